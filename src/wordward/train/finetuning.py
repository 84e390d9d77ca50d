"""Fine-tuning a Hugging Face model into a run folder, with any method."""

import shutil
from pathlib import Path
from typing import Any

from wordward.config.settings import TrainConfig
from wordward.runs import claiming, run_folder
from wordward.runs.hub import transformers_quietly
from wordward.runs.model_card import write_card
from wordward.support.console import say
from wordward.support.distributed import ALONE, Team
from wordward.support.errors import SettingError
from wordward.text.loading import InMemory
from wordward.train.clock import Clock
from wordward.train.finetuning_checkpoint import last_checkpoint
from wordward.train.finetuning_start import Encoded, encode, start_of
from wordward.train.record import say_compared
from wordward.train.self_training_messages import say_unreached
from wordward.train.yardstick import yardstick_of


def fine_tune(
    config: TrainConfig,
    folder: Path,
    in_memory: InMemory | None = None,
    *,
    force: bool = False,
    resume: bool = False,
    quiet: bool = False,
    team: Team = ALONE,
) -> dict[str, Any]:
    """Fine-tune a model into a run folder; returns its result, as written to result.json."""
    if config.training.batch_size % team.size:
        raise SettingError(
            "batch_size",
            f"batch_size must be a multiple of the {team.size} processes, which share each batch, but is "
            f"{config.training.batch_size}",
        )
    if resume and (done := _finished(folder, config, quiet=quiet)):
        return done
    start = start_of(config, in_memory, quiet=quiet)
    from wordward.train.finetuner import FineTuning  # needs transformers, and says so less plainly

    texts = encode(start, quiet=quiet)
    if not quiet:
        _say_start(texts)
    yardstick = yardstick_of(texts.in_words(), quiet=quiet) if team.first else None
    with claiming.held(folder, first=team.first), transformers_quietly() as transformers:
        if resume and run_folder.begun(folder):
            run_folder.check_labels(folder, texts.data.classes)
        if not resume and team.first:
            claiming.create(folder, force=force)
        going = FineTuning(texts, folder, resume=resume, quiet=quiet, team=team)
        if team.first:
            texts.write(folder)
        stopped = going.record.interrupted(going.fit, going.save_model)
        ended = "stopped" if stopped else going.ended
        if ended and going.trainer.before_second_half:
            say_unreached(texts.config, texts.data, ended=ended, quiet=quiet)
        if not team.first:
            return team.agree({})
        if not ended:
            shutil.rmtree(folder / run_folder.TRAINER, ignore_errors=True)
        version = transformers.__version__
        result = run_folder.save_result(folder, going.result(stopped, yardstick), start.device, transformers=version)
        write_card(folder, anew=True)
        if not start.may_know_dev:
            say_compared(result, texts.config, quiet=quiet)
        return team.agree(result)


def _say_start(texts: Encoded) -> None:
    """Say what is about to be learnt from what, and where the scores on dev may flatter."""
    say(texts.describe())
    if texts.start.may_know_dev:
        say(
            f"texts held out for dev flatter {texts.config.transformer} if it has learnt them before: give others as "
            "`dev`"
        )


def _finished(folder: Path, config: TrainConfig, *, quiet: bool) -> dict[str, Any] | None:
    """The result of a run with nothing left to train; raises an error if more is asked for and no checkpoint left."""
    result = run_folder.finished(folder)
    if result is None:
        return None
    if missing := [name for name in ("criterion", "dev", "best_epoch", "epochs", "seconds") if name not in result]:
        raise run_folder.RunError(
            f"{folder / run_folder.RESULT} cannot be read: expected {missing[0]}; there is none: delete it and run "
            "the same command again, which trains anew"
        )
    asked, kept = config.training, run_folder.load_config(folder, TrainConfig).training
    resumable = last_checkpoint(folder / run_folder.TRAINER) is not None
    if resumable and asked.minutes is not None and result["seconds"] >= 60 * asked.minutes:
        clock = Clock(quiet=quiet)
        clock.seconds = result["seconds"]
        clock.say_out_of_time(asked.minutes, trained=False)
        return result
    if asked.epochs <= kept.epochs and asked.patience <= kept.patience and asked.minutes == kept.minutes:
        return result
    if resumable:
        return None
    early = result["epochs"] < kept.epochs
    why = f"after {result['epochs']} of {kept.epochs} epochs" if early else "its learning rate has fallen to zero"
    raise run_folder.RunError(
        f"{folder} is finished: {why}, and no checkpoint is left. Train again in another `out`, from "
        f"{folder / run_folder.TRANSFORMER} as `transformer` if you like"
    )
