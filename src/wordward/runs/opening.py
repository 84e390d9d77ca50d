"""Opening a model: a run folder, ours or with a Hugging Face model in it; or a model that wordward did not train."""

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from torch import nn

from wordward.config.settings import TrainConfig
from wordward.runs import black_box, external, run_folder, transformer, word_run
from wordward.runs.external_run import ExternalRun
from wordward.runs.external_words import CountedWords
from wordward.runs.label_cells import meant
from wordward.runs.missing_run import beside, is_path
from wordward.runs.multi_label import SeveralLabels
from wordward.runs.pieces import separator_of
from wordward.runs.run import Run
from wordward.support.console import say
from wordward.support.device import pick_device
from wordward.support.errors import RunError, SettingError

PYTHON = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")  # module:name
HUB = re.compile(r"[\w-][\w.-]*(?:/[\w-][\w.-]*)?")  # a name on the hub: model, or owner/model
PICKLES = (".pkl", ".pickle", ".joblib", ".dill", ".sav", ".pt", ".pth", ".bin", ".ckpt")
KINDS = (
    "a run folder, the folder or hub name of a Hugging Face classifier or tagger, or module:name of Python that "
    "gives a model with its tokenizer or a function from texts to probabilities"
)


def load_run(path: str | Path, *, device: str = "auto", positive: str | None = None) -> Run:
    """The best model of a run folder, ready to predict: one of ours, or a Hugging Face model.

    `positive`: a tagger's tag whose F0.5 counts and which attacks make it miss, instead of the one of its training.
    """
    config = run_folder.load_config(path, TrainConfig)
    kind = word_run if config.transformer is None else transformer
    return with_positive(kind.open_run(Path(path), config, pick_device(device)), positive)


def open_model(
    source: Any,
    *,
    device: str = "auto",
    positive: str | None = None,
    labels: Sequence[str] = (),
    pair_column: str | None = None,
) -> Run:
    """Any model as a run: what `load_run` opens, and models that wordward did not train, as `KINDS` says.

    `labels` name those of a function, in the order of its probabilities. `pair_column`: the model reads two texts,
    the second from this column of a file; a run of pairs has its own.
    """
    run = _open(source, device=device, labels=labels, paired=pair_column is not None)
    return _with_pairs(with_positive(run, positive), pair_column)


def with_positive(run: Any, tag: str | None) -> Any:
    """The run with the tag of a tagger that counts, or of one label among several at once; None: as it is."""
    if tag is None:
        return run
    if isinstance(run, SeveralLabels):
        return run.deciding(tag)
    if not run.tagging:
        raise SettingError(
            "positive", f"positive names a tag of a tagger, but {run.folder} gives each text one label: leave it out"
        )
    if (name := meant(tag, run.labels)) not in run.labels:
        raise SettingError(
            "positive",
            f"expected a tag that {run.folder} knows for `positive`; got {tag!r}: give one of "
            f"{', '.join(run.labels)}",
        )
    return replace(run, config=replace(run.config, training=replace(run.config.training, positive=name)))


def _with_pairs(run: Any, column: str | None) -> Any:
    """The run of a model whose texts are two, the second from this column; None: as it is."""
    if column is None or run.config.data.pair_column is not None:
        return run
    if run.trained_here or run.tagging:
        what = "gives tags to one text" if run.tagging else "was trained on single texts"
        raise SettingError("pair_column", f"{run.folder} {what}, not on pairs of them: leave `pair_column` out")
    run = replace(run, config=replace(run.config, data=replace(run.config.data, pair_column=column)))
    if isinstance(run, ExternalRun):
        run.model.separator = separator_of(run.tokenizer, run.model.model)
    return run


def _open(source: Any, *, device: str, labels: Sequence[str], paired: bool) -> Run:
    """What `source` names, as a run; `paired`: a function is tried with two texts."""
    of_object = partial(_of_object, device=device, labels=labels, paired=paired)
    if not isinstance(source, str | Path):
        return of_object(source, type(source).__name__)
    name, folder = str(source), Path(source)
    if (folder / run_folder.CONFIG).exists():
        return load_run(folder, device=device)
    if folder.is_file():
        raise RunError(_no_file(folder))
    if (folder / "config.json").exists() or (not folder.exists() and _may_be_on_hub(name)):
        if not folder.exists():
            say(f"{name} is no folder here: looking for it on the Hugging Face hub")
        try:
            return external.open_hub(name, pick_device(device))
        except RunError as error:
            if folder.exists():
                raise
            raise RunError(f"{name} is not a run folder ({beside(name)}); {error}") from None
    if not folder.exists() and PYTHON.fullmatch(name):
        return replace(of_object(_imported(name), name), source=name)
    if is_path(name) and not folder.exists() and folder.suffix.lower() not in PICKLES:
        raise RunError(f"{name} is not a run folder: there is no such folder here; {beside(name)}")
    if folder.is_dir():
        run_folder.load_config(folder, TrainConfig)  # which says what a run folder lacks
    raise RunError(f"{name} is not a run folder: there is no such folder here. Expected {KINDS}")


def opener(run: Run) -> partial[Run]:
    """A picklable function that opens the same run in another process."""
    positive = run.config.training.positive
    if run.trained_here:
        return partial(load_run, run.folder, device=str(run.device), positive=positive)
    labels, pair = run.among or run.labels, run.config.data.pair_column
    return partial(
        _again, run.source, run.counted, device=str(run.device), positive=positive, labels=labels, pair_column=pair
    )


def _again(source: str | None, counted: CountedWords | None, *, labels: Sequence[str], **how: Any) -> Run:
    """A model opened anew; one that is only in the memory of another process cannot be."""
    if source is None:
        raise SettingError("jobs", "a model in memory cannot be opened by other processes: leave `jobs` out")
    return replace(open_model(source, labels=labels, **how), counted=counted)


def _imported(source: str) -> Any:
    """What `module:name` names; a function without arguments is called for it."""
    module, _, name = source.partition(":")
    module = module.removesuffix(".py")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise RunError(f"{module} needs {error.name}, which is not installed: pip install it") from None
        raise RunError(f"there is no Python module {module} here or installed, to take {name} from") from None
    except Exception as error:
        raise RunError(f"{module} cannot be imported: {type(error).__name__}: {error}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise RunError(
                f"{module} has no {name}: expected a model with its tokenizer, or a function, by that name"
            )
        found = getattr(found, part)
    if not callable(found) or isinstance(found, nn.Module):
        return found
    try:
        takes = [p for p in signature(found).parameters.values() if p.kind is not Parameter.KEYWORD_ONLY]
    except (TypeError, ValueError):
        return found
    return found() if not takes else found


def _of_object(given: Any, name: str, *, device: str, labels: Sequence[str], paired: bool) -> Run:
    """A model with its tokenizer (a tuple, or an object that has both), or a function."""
    pair = given
    if isinstance(getattr(given, "model", None), nn.Module) and getattr(given, "tokenizer", None) is not None:
        pair = given.model, given.tokenizer  # a pipeline of transformers
    if isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], nn.Module):
        return external.open_pair(*pair, pick_device(device), name=name)
    if isinstance(given, nn.Module):
        raise SettingError("model", f"{name} is a model without its tokenizer: give both, as (model, tokenizer)")
    kind = "None" if given is None else type(given).__name__
    found = f"{'the model' if name == type(given).__name__ else name} is {kind}"
    if callable(getattr(given, "decision_function", None)) and not hasattr(given, "predict_proba"):
        raise RunError(
            f"{found}, which decides without probabilities (it has no predict_proba): fit "
            "its classifier within scikit-learn's CalibratedClassifierCV, or take one that has them"
        )
    if not callable(getattr(given, "predict_proba", given)):
        raise RunError(
            f"{found}; expected (model, tokenizer), or a function from a list of texts to probabilities, or the "
            "folder or name of a model"
        )
    return black_box.open_function(given, name=name, labels=labels, paired=paired)


def _may_be_on_hub(name: str) -> bool:
    """Whether what is no folder here can be a name on the hub."""
    return (
        HUB.fullmatch(name) is not None and not is_path(name) and Path(name).suffix.lower() not in (*PICKLES, ".py")
    )


def _no_file(file: Path) -> str:
    """Why a file is no model."""
    if file.suffix.lower() in PICKLES:
        return (
            f"{file} is a pickle, which may run any code when it is opened, so it is not. If you trust it, write a "
            "module of Python that loads it and names what it gives, such as model = joblib.load(...), and give "
            "module:model (an object with predict_proba and classes_, or a function from texts to probabilities)"
        )
    if file.suffix == ".py":
        return f"{file} is a program: give {file.stem}:NAME, the name of a model or a function in it"
    return f"{file} is a file; expected {KINDS}"


def short_names(folders: Sequence[Path]) -> list[str]:
    """The last names of the folders, with as many of those before as it takes to tell them apart."""
    parts = [folder.resolve().parts for folder in folders]
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(of_folder[-count:]) for of_folder in parts]
        if len(set(names)) == len(names):
            return names
    raise RunError(f"expected different runs; got {', '.join(map(str, folders))}: name each once")
