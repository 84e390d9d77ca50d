"""Training a run: from its settings to a folder that holds the best model."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from wordward.config.settings import TrainConfig, given_of
from wordward.config.texts import DataSettings
from wordward.datasets import Example, examples_of, sample
from wordward.datasets.example import label_names
from wordward.datasets.streams import called
from wordward.explain.other_languages import reads_contexts
from wordward.runs import checkpoint, claiming, run_folder
from wordward.runs.missing_run import beside
from wordward.support.console import say, waiting
from wordward.support.distributed import Team, team
from wordward.support.errors import DivergedError, SettingError
from wordward.support.threads import threads_for
from wordward.text.loading import InMemory, labels_to_learn, read_as, with_in_memory
from wordward.train.building import network_of, with_fitting_k
from wordward.train.choosing import choose, is_open
from wordward.train.data import Data, prepare
from wordward.train.record import check_epochs, say_compared
from wordward.train.start_messages import description, warn_of_length
from wordward.train.tracking import check_tracker
from wordward.train.trainer import Trainer
from wordward.train.word_contexts import context_vectors
from wordward.train.yardstick import yardstick_of

__all__ = ["DivergedError", "Trainer", "inputs_of", "train"]
Texts = Iterable[Example | tuple[str, Any] | str]  # in memory


def train(
    config: TrainConfig,
    out: str | Path,
    *,
    train: Texts | None = None,
    dev: Texts | None = None,
    unlabelled: Texts | None = None,
    force: bool = False,
    resume: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Train a classifier or a tagger into a run folder.

    If a launcher such as torchrun started several processes, all call this and train one run together. Ctrl-C ends
    training early, and leaves the best model so far.

    Args:
        config: All settings; its `data` names files or a corpus, unless texts are given here.
        out: The run folder to write.
        train: Texts to learn from, in the place of a file: pairs (text, label), or `Example`s, which have `tokens`
            and `tags` for tagging; or a table of pandas or datasets, with the columns that `config.data` names.
        dev: Labelled texts that choose the best epoch; by default a share of the training texts.
        unlabelled: Texts without labels (strings or `Example`s), for vat, ivat and the other KL methods.
        force: Replace a run that `out` already holds.
        resume: Continue the run in `out` with its own settings; of `config` only `epochs`, `patience`, `minutes` and
            `device` count. Texts that were given in memory must be given again.
        quiet: Show nothing.

    Returns:
        The result, as written to result.json: scores on dev (`dev`), the `best_epoch`, `epochs`, `seconds`, whether
        training was `stopped`, and so on.

    Raises:
        WordwardError: If texts, settings or the folder cannot be used, or the loss is not finite.

    Examples:
        >>> import wordward, tempfile
        >>> from wordward.config import ModelSettings, TrainConfig, TrainingSettings
        >>> said = {"good": ["warm", "funny", "bright"], "bad": ["dull", "cold", "bland"]}
        >>> texts = [(f"a {a} and {b} film", label) for label in said for a in said[label] for b in said[label]]
        >>> config = TrainConfig(
        ...     method="iadvt",
        ...     model=ModelSettings(dim=8, hidden=8),
        ...     perturbation=wordward.MethodSettings(k=3),
        ...     training=TrainingSettings(epochs=2, device="cpu"),
        ... )
        >>> folder = tempfile.mkdtemp()
        >>> result = wordward.train.train(config, f"{folder}/run", train=texts, quiet=True)
        >>> result["epochs"], sorted(result["dev"])
        (2, ['error', 'macro_f1'])
    """
    folder = Path(out)
    config = _to_resume(folder, config) if resume else config
    check_tracker(config.training.report_to)
    in_memory = _examples_in_memory(config.data, {"train": train, "dev": dev, "unlabelled": unlabelled})
    config = replace(config, data=with_in_memory(config.data, in_memory, folder if resume else None))
    if not (config.data.train or config.data.corpus):  # an empty name would be that of the folder we are in
        raise SettingError("train", "there are no texts to learn from: give `train`, texts or a file, or a `corpus`")
    processes = team(config.training.device)
    if processes.first and not resume:  # before texts are read
        claiming.check_free(folder, force=force, inputs=inputs_of(config))
    config, chosen = with_model(config, in_memory, quiet=quiet)
    if chosen:
        say(chosen, quiet=quiet)
    if config.transformer is not None:
        if not (resume or config.data.corpus):
            _read_first(config.data, in_memory, quiet=quiet)
        from wordward.train.finetuning import fine_tune

        return fine_tune(config, folder, in_memory, force=force, resume=resume, quiet=quiet, team=processes)
    return _train_network(config, folder, in_memory, force=force, resume=resume, quiet=quiet, processes=processes)


def _examples_in_memory(data: DataSettings, texts: dict[str, Texts | None]) -> dict[str, list[Example]]:
    """Examples of the texts that are given in memory, by what they are for."""
    return {
        name: examples_of(
            of_kind,
            name,
            labelled=name != "unlabelled",
            skip_empty=data.skip_empty,
            text_column=data.text_column,
            label_column=data.label_column,
            pair_column=data.pair_column,
            several_labels=name == "unlabelled",  # whose labels nobody reads
        )
        for name, of_kind in texts.items()
        if of_kind is not None
    }


def _train_network(
    config: TrainConfig, folder: Path, in_memory: InMemory, *, force: bool, resume: bool, quiet: bool, processes: Team
) -> dict[str, Any]:
    """Train one of our own networks; returns its result, as written to result.json."""
    with processes.one_a_machine_first():
        settled, data = prepare(config, in_memory, quiet=quiet)
        settled = with_fitting_k(settled, data, quiet=quiet)
    if resume and run_folder.begun(folder):
        run_folder.check_vocabulary(folder, data.vocabulary)
        run_folder.check_labels(folder, data.classes)
        checkpoint.check_resumable(folder, partial(network_of, settled, data))
    trainer = Trainer(settled, data, folder, quiet=quiet, team=processes)
    if not quiet:  # it counts all words and compares dev with train
        say(description(trainer))
        warn_of_length(data)
    yardstick = yardstick_of(data, quiet=quiet) if processes.first else None
    with claiming.held(folder, first=processes.first):
        _begin(trainer, force=force, resume=resume)
        with (
            processes.interruptible(),
            threads_for(None if settled.model.kind == "convolution" else settled.model.hidden),
        ):
            stopped = trainer.record.interrupted(trainer.fit, trainer.save_model)
        if not processes.first:
            return processes.agree({})
        result = run_folder.save_result(folder, trainer.result(stopped, yardstick), trainer.device)
        say_compared(result, trainer.config, quiet=quiet)
        return processes.agree(result)


def _read_first(data: DataSettings, in_memory: dict[str, list[Example]], *, quiet: bool) -> list[Example]:
    """Put the texts to learn from `in_memory`; those that cannot be are refused, before a model is looked for."""
    if "train" not in in_memory:
        with waiting(f"reading {Path(called(data.train)).name}", quiet=quiet):
            in_memory["train"] = read_as(replace(data, limit=None), data.train, quiet=quiet)
    labels_to_learn(in_memory["train"], data.train)
    return in_memory["train"]


def with_model(
    config: TrainConfig, in_memory: dict[str, list[Example]], *, quiet: bool
) -> tuple[TrainConfig, str | None]:
    """The config with a model that suits the texts, which are read only once, and what was chosen, if it was open."""
    chosen = None
    if is_open(config):
        whole, unlabelled = _read_first(config.data, in_memory, quiet=quiet), bool(config.data.unlabelled)
        labels = {example.label for example in whole}  # a limit leaves out texts, but no label
        examples = sample(whole, config.data.limit, labels=label_names, in_order=False)
        tagging = bool(examples) and examples[0].tags is not None
        config, chosen = choose(config, examples, len(labels), tagging=tagging, unlabelled=unlabelled)
    if config.data.pair_column is not None and config.transformer is None:
        raise SettingError(
            "pair_column",
            "two texts are judged together by a Hugging Face model, and none was given, nor one chosen that is "
            "installed and fast enough here: give its folder or name as `transformer`",
        )
    return config, chosen


def _begin(trainer: Trainer, *, force: bool, resume: bool) -> None:
    """Load the run to resume, or create the folder of a new one."""
    folder = trainer.folder
    if resume:
        trainer.load()
    elif trainer.team.first:
        claiming.create(folder, force=force)
    if trainer.team.first:
        _write_settings(folder, trainer.config, trainer.data)


def _write_settings(folder: Path, config: TrainConfig, data: Data) -> None:
    """Write what defines a run, before it starts."""
    run_folder.save_settings(folder, config, data.learnt, data.classes)
    if not data.tagging:
        counts = torch.from_numpy(data.train.class_counts(len(data.vocabulary), len(data.classes)))
        where = _context_vectors(data) if reads_contexts(config, data.learnt) else None
        checkpoint.save_class_counts(folder, counts, data.vocabulary, where, data.capitals)


def _context_vectors(data: Data) -> Tensor:
    """Where the words of all texts to learn from stand, (ids, dim): nowhere, those that no text has."""
    unlabelled = [] if data.unlabelled is None else [data.unlabelled.rows]
    where = context_vectors([data.train.rows, *unlabelled], data.vocabulary.words[: data.met])
    return torch.nn.functional.pad(where, (0, 0, 0, data.others))


def inputs_of(config: TrainConfig) -> list[str]:
    """The files and folders that a run reads."""
    data = config.data
    texts = (data.train, data.dev, data.test, data.unlabelled)
    model = config.transformer if config.transformer and Path(config.transformer).exists() else None
    return [path for path in (config.pretrained, config.vectors, model, *texts) if path]


def _to_resume(folder: Path, asked: TrainConfig) -> TrainConfig:
    """The run's own settings; only how long and where to train may be changed."""
    if (folder / run_folder.SWEEP).exists():
        raise run_folder.RunError(f"{folder} is a sweep: repeat it, `sweep` included, with `resume=True`")
    if not folder.exists():
        raise run_folder.RunError(f"{folder}: there is no such folder here to resume; {beside(str(folder))}")
    kept = run_folder.load_config(folder, TrainConfig)
    claiming.check_writable(folder)
    changed = given_of(asked.training, "epochs", "patience", "minutes", "device")
    training = replace(kept.training, **changed)
    check_epochs(folder, training.epochs)
    return replace(kept, training=training)
