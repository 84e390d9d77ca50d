"""The command line: subcommands to functions, torch imported only by those that need it."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from wordward import __version__
from wordward.cli_tables import Reproduce, Results
from wordward.config import PRESETS, PretrainConfig, TrainConfig, flags, flags_of

Device = Annotated[str, tyro.conf.arg(metavar="cpu|cuda|mps|auto")]


@dataclass(frozen=True)
class Train:
    """Train a classifier or tagger on your own texts with any method of the paper."""

    out: Annotated[str, tyro.conf.arg(metavar="FOLDER")]
    """Run folder to write."""
    settings: TrainConfig
    preset: Literal["sec", "cac", "ged", "small"] | None = None
    """Sizes of the paper's tasks, or small ones for a laptop; other flags override them."""
    config: str | None = None
    """TOML file with any of these settings; flags override it."""
    sweep: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SETTING=A,B,C")] = ()
    """Train once for each value and keep the best on dev, e.g. epsilon=1,2.5,5."""
    force: bool = False
    """Replace a run folder that exists."""
    resume: bool = False
    """Go on with a run that was stopped; its own settings count."""
    quiet: bool = False
    """Say nothing but errors."""

    def __call__(self) -> None:
        from wordward.sweep import train_sweep
        from wordward.train import train

        if not self.resume and not (self.settings.data.train or self.settings.data.corpus):
            raise ValueError("give the labelled texts with --train FILE (or --corpus NAME)")
        if self.sweep:
            train_sweep(
                self.settings, self.sweep, self.out, force=self.force, resume=self.resume, quiet=self.quiet
            )
        else:
            train(self.settings, self.out, force=self.force, resume=self.resume, quiet=self.quiet)


@dataclass(frozen=True)
class Pretrain:
    """Train a language model on running text, for `wordward train --pretrained` to start from."""

    out: Annotated[str, tyro.conf.arg(metavar="FOLDER")]
    """Run folder to write."""
    settings: PretrainConfig
    preset: Literal["sec", "cac", "ged", "small"] | None = None
    """Sizes of the paper's tasks, or small ones for a laptop; other flags override them."""
    config: str | None = None
    """TOML file with any of these settings; flags override it."""
    force: bool = False
    """Replace a run folder that exists."""
    resume: bool = False
    """Go on with a run that was stopped; its own settings count."""
    quiet: bool = False
    """Say nothing but errors."""

    def __call__(self) -> None:
        from wordward.pretrain import pretrain

        if not self.resume and not (self.settings.texts or self.settings.corpus):
            raise ValueError("give the texts to read with --texts FILE [FILE ...] (or --corpus NAME)")
        pretrain(self.settings, self.out, force=self.force, resume=self.resume, quiet=self.quiet)


@dataclass(frozen=True)
class Evaluate:
    """Score a run on labelled texts: error rate, or precision, recall and F0.5, with 95 % intervals."""

    run: tyro.conf.Positional[str]
    """Run folder."""
    data: tyro.conf.Positional[str]
    """Labelled texts, read as those of the run were; or dev or test, for a run on a known corpus."""
    format: Literal["auto", "csv", "tsv", "jsonl", "conll", "txt"] = "auto"
    """Kind of the file, by default as in the run, else told from the name."""
    json: bool = False
    """Print JSON instead of a table."""
    device: Device = "auto"
    """Where to compute."""

    def __call__(self) -> None:
        from wordward.corpora import open_corpus
        from wordward.predict import evaluate, load_run
        from wordward.prepare import read_as

        run = load_run(self.run, device=self.device)
        if run.config.data.corpus and self.data in ("train", "dev", "test"):
            corpus = open_corpus(run.config.data.corpus, run.config.text, limit=run.config.data.limit).splits[
                self.data
            ]
        else:
            data = run.config.data if self.format == "auto" else replace(run.config.data, format=self.format)
            corpus = run.encode(read_as(data, self.data), labelled=True, source=self.data)
        measured = evaluate(run, corpus)
        count = len(corpus.rows)
        if self.json:
            record: dict[str, Any] = {name: interval._asdict() for name, interval in measured.items()}
            print(json.dumps({"run": self.run, "data": self.data, "texts": count, **record}))
            return
        unit = "sentences" if run.tagging else "texts"
        print(f"{count} {unit} of {self.data}")
        for name, interval in measured.items():
            print(
                f"{name:10} {interval.value:7.2%}   95 % interval {interval.low:.2%} to {interval.high:.2%}"
            )


@dataclass(frozen=True)
class Predict:
    """Label texts given as arguments, in a file, or on standard input; JSON Lines out."""

    run: tyro.conf.Positional[str]
    """Run folder."""
    texts: tyro.conf.Positional[tuple[str, ...]] = ()
    """Texts; a tagger's are split at blanks."""
    file: str | None = None
    """File of texts: a line each, or any format that can be trained on."""
    device: Device = "auto"
    """Where to compute."""

    def __call__(self) -> None:
        from wordward.predict import load_run

        run = load_run(self.run, device=self.device)
        failed = 0
        for some in _chunks(self._read(run.config.data.text_column), 256):
            for record in run.predict(some):
                failed += "error" in record
                print(json.dumps(record, ensure_ascii=False))
        if failed:
            raise ValueError(f"{failed} of the texts could not be read; their lines say why")

    def _read(self, text_column: str) -> Iterator[str]:
        if self.file is not None:
            from wordward.datasets import read

            yield from (example.text for example in read(self.file, text_column=text_column, labelled=False))
        elif self.texts:
            yield from self.texts
        else:
            for number, line in enumerate(sys.stdin.buffer, start=1):
                try:
                    yield line.decode().rstrip("\r\n")
                except UnicodeDecodeError as error:
                    raise ValueError(f"standard input, line {number}: expected UTF-8 ({error})") from None


@dataclass(frozen=True)
class Neighbors:
    """Show the nearest words of some words in a run's table."""

    run: tyro.conf.Positional[str]
    """Run folder, of `train` or `pretrain`."""
    words: tyro.conf.Positional[tuple[str, ...]]
    """Words to look up."""
    k: int = 10
    """How many to show."""
    metric: Literal["cosine", "euclidean"] = "cosine"
    """What "nearest" means."""
    min_count: int = 5
    """Occurrences in the texts for a word to be shown."""

    def __call__(self) -> None:
        from wordward.neighbors import nearest_words

        for word, found in nearest_words(
            self.run, self.words, k=self.k, metric=self.metric, min_count=self.min_count
        ):
            print(f"{word}: " + ", ".join(f"{other} {near:.2f}" for other, near in found))


@dataclass(frozen=True)
class Methods:
    """List the methods with their equations and cost."""

    def __call__(self) -> None:
        from rich.console import Console
        from rich.table import Table

        from wordward.recipes import PAPER_EPSILON, RECIPES

        table = Table(
            "method", "grows", "points", "chosen", "epsilon", "passes", "what it is", "paper", box=None
        )
        table.add_row("baseline", "-", "-", "-", "-", "1", "the label loss alone", "eq. of section Training")
        for name, recipe in RECIPES.items():
            extra = f"+{recipe.forwards}" + (" unlab." if recipe.objective == "kl" else "")
            grows = recipe.objective.replace("_", " ")
            where = {"free": "anywhere", "words": "to words"}[recipe.space]
            chosen, epsilon = recipe.choice.replace("_", " "), f"{PAPER_EPSILON[recipe.space]:g}"
            table.add_row(name, grows, where, chosen, epsilon, extra, recipe.summary, recipe.equation)
        Console(width=150 if not sys.stdout.isatty() else None).print(table)
        print("Sums such as iadvt+ivat add their losses.")


@dataclass(frozen=True)
class Demo:
    """Train baseline, AdvT and iAdvT on real film reviews and show what iAdvT points at."""

    out: str = "runs/demo"
    """Folder for the three runs; a former demo there is replaced."""
    seed: int = 0
    quiet: bool = False
    """Say nothing but errors."""

    def __call__(self) -> None:
        from wordward.demo import demo

        demo(Path(self.out), seed=self.seed, quiet=self.quiet)


COMMANDS: dict[str, Any] = {
    "train": Train,
    "pretrain": Pretrain,
    "evaluate": Evaluate,
    "predict": Predict,
    "neighbors": Neighbors,
    "methods": Methods,
    "reproduce": Reproduce,
    "results": Results,
    "demo": Demo,
}


def _chunks(texts: Iterator[str], size: int) -> Iterator[list[str]]:
    some: list[str] = []
    for text in texts:
        some.append(text)
        if len(some) == size:
            yield some
            some = []
    if some:
        yield some


def _expand(arguments: Sequence[str]) -> list[str]:
    """Flags of --preset and --config before those of the command line, so that the last wins."""
    arguments = list(arguments)
    kinds = {"train": TrainConfig, "pretrain": PretrainConfig}
    if not arguments or arguments[0] not in kinds:
        return arguments
    command, rest = arguments[0], arguments[1:]
    kind, before = kinds[command], []
    preset, config = _value(rest, "--preset"), _value(rest, "--config")
    if preset in PRESETS:
        before += flags_of(PRESETS[preset], kind, source="the preset")
    if config is not None:
        before += flags(config, kind)
    return [command, *before, *rest]


def _value(arguments: list[str], flag: str) -> str | None:
    for at, argument in enumerate(arguments):
        if argument == flag and at + 1 < len(arguments):
            return arguments[at + 1]
        if argument.startswith(f"{flag}="):
            return argument.partition("=")[2]
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given in (["--version"], ["-V"]):
        print(f"wordward {__version__}")
        return 0
    try:
        command = tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="wordward",
            description="Adversarial training for text whose perturbations point toward real words.",
            args=_expand(given) or ["--help"],
            config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
        )
        command()
    except BrokenPipeError:  # the reader of a pipe has seen enough
        sys.stderr.close()
        return 0
    except (ValueError, OSError, RuntimeError) as error:
        print(f"wordward: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
