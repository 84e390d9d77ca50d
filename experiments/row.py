"""One run of a row: trained (or resumed), scored on test, and attacked where its column says so."""

from pathlib import Path
from typing import Any

from experiments import results
from experiments.paired import pack_bits
from experiments.settings import COMMON, LANGUAGE_MODEL, Plan, check_settings, language_model, row_config
from experiments.tables import Column, Row
from wordward.attack.attacker import attack
from wordward.attack.robustness import accuracies
from wordward.config.attack import AttackSettings
from wordward.config.settings import TrainConfig
from wordward.datasets import sample
from wordward.runs import run_folder
from wordward.runs.opening import load_run
from wordward.runs.run import Run
from wordward.support.errors import BusyError, SettingError
from wordward.support.locks import locked
from wordward.text.corpora import PACK
from wordward.text.corpus import Corpus
from wordward.text.loading import read_as, split_examples
from wordward.train.training import train


def run_row(column: Column, row: Row, seed: int, plan: Plan) -> results.Record:
    """Train one row (or resume it) and score it on test, unless another process is training it."""

    def busy() -> None:
        raise BusyError(
            "another command is training it; run this command again when that one is done to see the result"
        )

    folder = folder_of(column, row, seed, plan)
    with locked(folder.with_name(f"{folder.name}.lock"), busy=busy):
        config = row_config(column, row, seed, plan)
        quiet = plan.quiet or plan.jobs > 1  # the bars of several rows would overwrite each other
        result = _trained(config, folder, quiet=quiet)
        start = {LANGUAGE_MODEL: language_model(Path(config.pretrained))} if config.pretrained else {}
        run = load_run(folder, device=plan.device)
        return {
            "column": column.name,
            "row": row.name,
            "preset": plan.preset,
            **result,
            **start,
            **_tested(run, quiet=quiet),
            "config": run_folder.config_text(folder),
            **_under_attack(run, column.attacked),
        }


def folder_of(column: Column, row: Row, seed: int, plan: Plan) -> Path:
    """The run folder of a row with a seed."""
    return plan.out / column.name / row.name / f"seed-{seed}"


def _trained(config: TrainConfig, folder: Path, *, quiet: bool) -> dict[str, Any]:
    """The result of a run, which is trained to its end if it is not finished."""
    begun = (folder / run_folder.CONFIG).exists()
    if begun:
        check_settings(folder, config)
    result = run_folder.finished(folder) or train(config, folder, resume=begun, quiet=quiet)
    if result["stopped"]:
        raise KeyboardInterrupt
    return result


def _tested(run: Run, *, quiet: bool) -> dict[str, Any]:
    """The score on the test texts, and which of them were wrong."""
    evaluation = run.evaluate_corpus(_texts_to_test(run, quiet=quiet), "test", quiet=quiet)
    measured, wrong = evaluation.scores[run.config.training.criterion], evaluation.wrong
    return {"test": measured._asdict(), "counted": len(wrong), "wrong": pack_bits(wrong)}


def _texts_to_test(run: Run, *, quiet: bool) -> Corpus:
    """The test texts of the corpus, or of the file named in the settings."""
    data = run.config.data
    if data.corpus:
        return run.split("test", limit=data.limit, quiet=quiet)
    if not data.test:
        raise SettingError("test", f"{run.folder} names no test texts: set test in {COMMON}")
    examples = read_as(data, data.test)
    return run.encode(examples, labelled=True, source=data.test)


def _under_attack(run: Run, count: int) -> dict[str, Any]:
    """Accuracy on `count` of the test texts, always the same ones, by how many words an attack may swap.

    Nothing where none are asked for, or where the corpus is a pack, which holds no texts.
    """
    if not count or str(run.config.data.corpus).endswith(PACK):
        return {}
    chosen = sample(split_examples(run.config.data, "test"), count)
    found: dict[str, Any] = {"texts": len(chosen)}
    for sense in results.SENSES:
        attacked = list(attack(run, chosen, AttackSettings(max_swaps=max(results.SWAPS), sense=sense)))
        found[sense] = {str(swaps): each.value for swaps, each in accuracies(attacked, results.SWAPS).items()}
    return {"attacked": found}
