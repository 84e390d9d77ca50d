"""The command line: subcommands to functions, torch imported only by those that need it."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from wordward.cli.attack import Attack
from wordward.cli.augment import Augment
from wordward.cli.check import Check
from wordward.cli.data import Data
from wordward.cli.errors import UsageError
from wordward.cli.explain import Explain
from wordward.cli.export import Export
from wordward.cli.methods import Methods
from wordward.cli.program import STOPPED, parse, run
from wordward.cli.push import Push
from wordward.cli.report import Report
from wordward.cli.serve import Serve
from wordward.cli.settings_given import defaults, flagged, refuse_settings, repeated, values_of
from wordward.cli.train_end import advice, outcome, test_score, transformer
from wordward.cli.use import Evaluate, Neighbors, Predict
from wordward.cli.yardsticks import Yardsticks
from wordward.config.pretraining import PretrainConfig
from wordward.config.settings import TrainConfig
from wordward.config.toml import built
from wordward.support.given_settings import changed, mark_given


@dataclass(frozen=True)
class Train:
    """Train a classifier or tagger on your own texts with any method of the paper: ours, or a Hugging Face model."""

    out: Annotated[str, tyro.conf.arg(metavar="FOLDER")]
    """Run folder to write."""
    settings: TrainConfig
    preset: Literal["sec", "cac", "ged", "small"] | None = None
    """Sizes of the paper's tasks, or small ones for a laptop, before those of --config; other flags override them."""
    config: Annotated[str | None, tyro.conf.arg(metavar="FILE.toml")] = None
    """TOML file with any of these settings; flags override it, a later file an earlier one."""
    sweep: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="SETTING=A,B,C")] = ()
    """Train once for each value and keep the best on dev, e.g. epsilon=1,2.5,5; several: each combination."""
    force: bool = False
    """Replace an existing run folder."""
    resume: bool = False
    """Resume a stopped run with its own settings, which may be given again; only epochs, patience, minutes and device
    may be changed."""
    quiet: bool = False
    """Say nothing but errors."""
    file: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[FILE]")] = None
    """Labelled texts, as --train FILE names them."""

    def __call__(self) -> int:
        if self.file is not None:
            return replace(self, settings=_trained_on(self.settings, self.file), file=None)()
        from wordward.runs.run_folder import finished
        from wordward.support.console import say
        from wordward.text.loading import file_at_hand
        from wordward.train.sweep import train_sweep
        from wordward.train.training import train

        data = self.settings.data
        if (self.sweep or not self.resume) and not (data.train or data.corpus):
            again = "; a sweep is resumed with the flags it was started with" if self.resume else ""
            raise UsageError(f"give the labelled texts with --train FILE (or --corpus NAME){again}")
        if tested := self._tested_on():
            file_at_hand(tested)  # not found out only when training has ended
        how: Any = {"force": self.force, "resume": self.resume, "quiet": self.quiet}
        if self.sweep:
            result = train_sweep(self.settings, self.sweep, self.out, **how)
        else:
            if self.resume:
                refuse_settings(self.settings, self.out, "epochs", "patience", "minutes", "device")
            done = finished(Path(self.out)) if self.resume else None
            result = train(self.settings, self.out, **how)
            if done and done.get("steps") == result.get("steps"):
                say(f"{self.out} was finished already: nothing was trained", quiet=self.quiet)
        if result["stopped"]:
            return STOPPED
        self._say_end(result)
        return 0

    def _tested_on(self) -> str | None:
        """The texts that score the model in the end: those given, or those of the run that is resumed."""
        from wordward.runs.run_folder import CONFIG, load_config

        given = self.settings.data.test
        if given or not (self.resume and Path(self.out, CONFIG).exists()):
            return given
        return load_config(self.out, TrainConfig).data.test

    def _say_end(self, result: dict[str, Any]) -> None:
        """Say how a run ended, and what may be done next."""
        from wordward.runs.run_folder import CONFIG, load_config, read_metrics
        from wordward.support.console import say
        from wordward.support.distributed import team

        config, folder = self.settings, shlex.quote(self.out)
        if Path(self.out, CONFIG).exists():  # with what was chosen, or what the run had that was resumed
            config = load_config(self.out, TrainConfig)
        test = "test" if config.data.corpus else "FILE"  # a split, or texts like those it was trained on
        given, then = config.data.test, f"evaluate {folder} {test}"
        if given and given != "-":
            then = f"report {folder} --test {shlex.quote(given)}"
        metrics = read_metrics(self.out)
        say(f"{outcome(result, metrics)}, in {folder}; next: wordward {then}", quiet=self.quiet)
        if more := advice(result, config, metrics):
            say(more, quiet=self.quiet)
        if not (self.resume or self.sweep) and (more := transformer(self.settings, config, self.out, result)):
            say(more, quiet=self.quiet)
        if given and team(config.training.device).first:
            say(test_score(self.out, given, config.training.device, quiet=self.quiet), quiet=self.quiet)


def _trained_on(settings: TrainConfig, file: str) -> TrainConfig:
    """The settings with the file of labelled texts that was given without a flag."""
    if settings.data.train not in ("", file):
        raise UsageError(
            f"expected one file of labelled texts; got {shlex.quote(file)} and --train "
            f"{shlex.quote(settings.data.train)}: put them into one"
        )
    return changed(settings, data=changed(settings.data, train=file))


@dataclass(frozen=True)
class Pretrain:
    """Train a language model on running text, for `wordward train --pretrained` to start from."""

    out: Annotated[str, tyro.conf.arg(metavar="FOLDER")]
    """Run folder to write."""
    settings: PretrainConfig
    preset: Literal["sec", "cac", "ged", "small"] | None = None
    """Sizes of the paper's tasks, or small ones for a laptop, before those of --config; other flags override them."""
    config: Annotated[str | None, tyro.conf.arg(metavar="FILE.toml")] = None
    """TOML file with any of these settings; flags override it, a later file an earlier one."""
    force: bool = False
    """Replace an existing run folder."""
    resume: bool = False
    """Resume a stopped run with its own settings, which may be given again; only epochs, minutes and device may be
    changed."""
    quiet: bool = False
    """Say nothing but errors."""

    def __call__(self) -> int:
        from wordward.support.console import say
        from wordward.train.pretraining import pretrain

        if self.resume:
            refuse_settings(self.settings, self.out, "epochs", "minutes", "device")
        elif not (self.settings.texts or self.settings.corpus):
            raise UsageError("give the texts to read with --texts FILE [FILE ...] (or --corpus NAME)")
        result = pretrain(self.settings, self.out, force=self.force, resume=self.resume, quiet=self.quiet)
        if result["stopped"]:
            return STOPPED
        folder = shlex.quote(self.out)
        say(
            f"best epoch {result['best_epoch']}, held-out perplexity {result['perplexity'] or inf:.1f}, in {folder}; "
            f"next: wordward train --pretrained {folder} --train FILE --out FOLDER, with the same --dim and --hidden",
            quiet=self.quiet,
        )
        return 0


@dataclass(frozen=True)
class Demo:
    """Train on a few labelled film sentences and many without labels; show what iVAT gains and what it points at."""

    out: Annotated[str, tyro.conf.arg(metavar="FOLDER")] = "runs/demo"
    """Folder for the runs; an earlier demo there is continued, or replaced if it was another one."""
    seed: int = 0
    """The three runs of each method have the three seeds after this one."""
    quiet: bool = False
    """Show no progress."""

    def __call__(self) -> None:
        from wordward.cli.demo import demo

        demo(Path(self.out), seed=self.seed, quiet=self.quiet)


COMMANDS: dict[str, Any] = {
    "train": Train,
    "pretrain": Pretrain,
    "evaluate": Evaluate,
    "predict": Predict,
    "explain": Explain,
    "attack": Attack,
    "check": Check,
    "augment": Augment,
    "yardsticks": Yardsticks,
    "neighbors": Neighbors,
    "methods": Methods,
    "data": Data,
    "report": Report,
    "serve": Serve,
    "push": Push,
    "export": Export,
    "demo": Demo,
}


SETTINGS: dict[str, Any] = {"train": (Train, TrainConfig), "pretrain": (Pretrain, PretrainConfig)}


def _check_json(arguments: list[str]) -> None:
    """Refuse a file after --json where that is a switch that prints: others, such as explain, write to one."""
    settings = getattr(COMMANDS.get(arguments[0] if arguments else ""), "__dataclass_fields__", {})
    files = [file for file in values_of(arguments, "--json") if file.endswith((".json", ".jsonl"))]
    if files and "json" in settings and settings["json"].type is bool:
        hint = "--out FILE.jsonl writes each text" if "out" in settings else "redirect it with >"
        raise UsageError(f"wordward {arguments[0]} prints with --json, which takes no file; got {files[0]}: {hint}")


def _parse(arguments: list[str]) -> Any:
    """The command with its settings."""
    _check_json(arguments)
    command, kind = SETTINGS.get(next(iter(arguments), ""), (None, None))
    values = defaults(arguments, kind) if kind else {}
    parsed = parse(
        repeated(arguments, "--sweep"),
        COMMANDS,
        name="wordward",
        description="Adversarial training for text whose perturbations point toward real words. "
        "`wordward --version` prints the version.",
        defaults={arguments[0]: command(tyro.MISSING, built(kind, values, checked=False))} if command else None,
    )
    if kind:
        mark_given(parsed.settings, {*values, *flagged(arguments, kind)})
    return parsed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    return run(_parse, COMMANDS, arguments)


if __name__ == "__main__":
    sys.exit(main())
