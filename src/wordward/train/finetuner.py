"""Fine-tuning in progress: the Trainer's epochs, each scored on dev, the best one kept; checkpoints when due."""

import json
import math
import shutil
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import transformers

from wordward.hf.settings import AdversarialSettings
from wordward.perturbation.recipes import parse_methods
from wordward.perturbation.tap import Tap
from wordward.runs import checkpoint, json_checks, run_folder
from wordward.runs.hub import multiple_of
from wordward.runs.json_checks import check_kind
from wordward.runs.metrics import Interval
from wordward.runs.piece_vocabulary import PieceVocabulary
from wordward.runs.pieces import LogitsModel
from wordward.runs.scoring import probabilities, scores
from wordward.runs.transformer import TransformerRun
from wordward.support.console import progress
from wordward.support.device import attention
from wordward.support.distributed import Team
from wordward.support.errors import WordwardError
from wordward.support.files import sync, whole, write
from wordward.train.augmenting import Augmenter
from wordward.train.finetuning_checkpoint import MARK, PARTS, earlier, last_checkpoint
from wordward.train.finetuning_data import Collator, Order, TrainerDataset, pool
from wordward.train.finetuning_start import Encoded
from wordward.train.finetuning_trainer import RunTrainer, arguments_of
from wordward.train.gradual import LearntShare
from wordward.train.lora import merged
from wordward.train.pseudo_labels import pseudo_labels_of
from wordward.train.record import Record, tolerance
from wordward.train.self_training_messages import Ended, say_pace
from wordward.train.updater import CHECKED, diverged


class FineTuning(transformers.TrainerCallback):
    """A run in progress."""

    def __init__(self, texts: Encoded, folder: Path, *, resume: bool, quiet: bool, team: Team) -> None:
        start = texts.start
        self.config, self.data, self.device = texts.config, texts.data, start.device
        self.model, self.tokenizer, self.folder, self.quiet = start.model, start.tokenizer, folder, quiet
        self.separator = start.separator
        self.steps, self.team = 0, team
        report_to = self.config.training.report_to
        self.record = Record(folder, quiet=quiet, first=team.first, config=self.config, report_to=report_to)
        self._bars, self._bar = None, None
        self._deadline: float | None = None
        self._under_way = False  # once a checkpoint, if any, has been taken over
        self._attack_cut = False  # time ended the search for an epoch's texts, which is then begun anew on resuming
        self.ended: Ended | None = None  # what ended it before its last step, so that it can be resumed
        self.augmenter = self._make_augmenter(start.examples["train"]) if self.config.training.augment else None
        self._caches = getattr(start.model.config, "use_cache", None)  # which the Trainer turns off
        self.trainer = self._make(start.candidates)
        self.trainer.remove_callback(transformers.trainer_callback.PrinterCallback)
        self._former = last_checkpoint(folder / run_folder.TRAINER) if resume else None
        if self._former is not None:
            self._load(self._former)
        elif resume:
            self.record.load(None)

    def _make_augmenter(self, examples: Any) -> Augmenter:
        words = PieceVocabulary(self.tokenizer, Tap(self.model).size)
        model = LogitsModel(self.model, self.separator)
        run = TransformerRun(self.folder, self.config, words, self.data.classes, model, self.device)
        return Augmenter(run, examples, self.config.training, quiet=self.quiet, team=self.team)

    def _train(self) -> Any:
        """The labelled texts of an epoch."""
        return self.augmenter.joined(self.data.train) if self.augmenter else self.data.train

    def _make(self, candidates: Any) -> RunTrainer:
        settings, train = self.config.training, self._train()
        named: Any = asdict(self.config.perturbation) | {
            "method": self.config.method,
            "unlabelled_batch_size": max(1, settings.unlabelled_batch_size // self.team.size),
        }
        methods = parse_methods(self.config.method, self.config.perturbation)
        virtual = any(not method.recipe.needs_labels for method in methods)
        return RunTrainer(
            self.model,
            arguments_of(self.config, self.folder, len(train.rows), self.device, self.team.size),
            data_collator=Collator(self.tokenizer, self.separator, multiple=multiple_of(self.model)),
            train_dataset=TrainerDataset(train, labelled=True),
            processing_class=self.tokenizer,
            candidates=candidates,
            callbacks=[self],
            adversarial=AdversarialSettings(**named),
            unlabelled_dataset=TrainerDataset(pool(self.data), labelled=False) if virtual else None,
            order=Order(train.lengths, settings.batch_size, settings.seed),
            record=self.record,
            learnt=LearntShare(self.data.chance_loss("tokens") if settings.gradual else None, self.device),
            halves=settings.self_training and virtual,
            pseudo_labels=pseudo_labels_of(self.data, self.device, 1.0)
            if settings.self_training and not self.data.tagging
            else None,
        )

    def fit(self) -> None:
        """Train until the last epoch or minute, or until dev has not improved for `patience` epochs."""
        self._deadline = self.record.clock.deadline(self.config.training.minutes)
        try:
            if self.record.out_of_patience(self.config.training.patience):
                self.ended = "patience"
            else:
                former = None if self._former is None else str(self._former)
                with attention(self.device):
                    self.trainer.train(resume_from_checkpoint=former)
        except (WordwardError, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # of whichever library reads the file that is damaged
            if self._former is None or self._under_way:
                raise
            raise checkpoint.damaged(self.folder, error, earlier(self._former)) from None
        finally:
            if self._bars is not None:
                self._bars.stop()

    def _load(self, folder: Path) -> None:
        """Restore what the Trainer does not keep."""
        with run_folder.readable(folder / MARK, f": {earlier(folder)}"):
            mark = json.loads((folder / MARK).read_text(encoding="utf-8"))
            check_kind(mark, json_checks.TRAINER_MARK)
            for name in PARTS:  # without which the Trainer would go on, but otherwise
                if not any(folder.glob(name)):
                    raise ValueError(f"there is no {name} beside it")
        with checkpoint.restoring(self.folder, earlier(folder)):
            self.record.check_data(mark, self.data)
            self.record.load(mark)
            if self.team.first:  # with the line of a model that is ahead, which the metrics no longer have
                write(folder / MARK, json.dumps(mark | self.record.state()))
            self.steps = mark["steps"]
            self.trainer.learnt.load(mark["recent"])
            if self.trainer.pseudo_labels:
                self.trainer.pseudo_labels.load(mark["predicted"])
            if self.augmenter:
                self.augmenter.load(mark["augmented"])
                self.trainer.read(self._train())

    @property
    def _a_pass(self) -> int:
        """Steps of an epoch."""
        return math.ceil(len(self.trainer.order) / self.config.training.batch_size)

    @property
    def _wanted(self) -> bool:
        """Whether `checkpoint_steps` asks for a checkpoint after this step."""
        every = self.config.training.checkpoint_steps
        return bool(every and self.steps % every == 0)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Show a bar; before an epoch, the first excepted, look for texts that fool the model as it is now."""
        self.record.clock.start()
        self.trainer.order.set_epoch(self.record.epoch)  # of several processes that resume inside one, none is told
        if self.augmenter and self.record.epoch and state.global_step == self.record.epoch * self._a_pass:
            self.augmenter(self.record.epoch, self._deadline)
            self._attack_cut = self.record.clock.out_of_time(self._deadline, self.team)
            self.model.train()
            self.trainer.read(self._train())
        self._bars = progress(quiet=self.quiet)
        self._bars.start()
        epoch = self.record.epoch
        name = f"epoch {epoch + 1}/{self.config.training.epochs}"
        self._bar = self._bars.add_task(name, total=self._a_pass, completed=state.global_step - epoch * self._a_pass)

    def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """By now a checkpoint has been taken over."""
        self._under_way = True

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Move the bar, look at the loss, keep a checkpoint where one is wanted inside an epoch."""
        self.steps = state.global_step
        self._bars.advance(self._bar)  # type: ignore[union-attr,arg-type]
        over = self.record.clock.out_of_time(self._deadline, self.team)
        inside = self.steps % self._a_pass > 0  # that of an epoch's last step comes when dev is scored
        save = inside and (self._wanted or over) and not self._attack_cut
        if self.device.type == "cpu" or self.steps % CHECKED == 0 or save:
            self._check()
        control.should_save |= save
        control.should_epoch_stop |= over

    def _check(self) -> None:
        """Stop if a loss was not finite."""
        if not math.isfinite(self.record.loss):
            raise diverged(self.steps, self.record.kept())

    def on_epoch_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Score dev, keep the best model, record the epoch, and have a checkpoint written, if one is due."""
        self._check()
        self.record.clock.stop()
        self._bars.stop()  # type: ignore[union-attr]
        settings = self.config.training
        dev = self.team.agree(self._dev() if self.team.first else {})
        self.record.close_dev_epoch(
            settings.criterion,
            dev,
            steps=self.steps,
            table=self.model.get_input_embeddings().weight,
            save_model=self.save_model,
            tolerance=tolerance(settings.criterion, dev, len(self.data.dev.rows)),
            augmented=self.augmenter.counts if self.augmenter else None,
        )
        last = self.steps >= state.max_steps
        self.ended = None if last else self._ended()
        if self.record.epoch == 1 and self.trainer.halves and not (last or self.ended):
            say_pace(self.config, self.data, seconds=self.record.clock.seconds, quiet=self.quiet)
        control.should_training_stop = last or self.ended is not None
        control.should_save = not last and self._due()
        self.record.clock.start()

    def _ended(self) -> Ended | None:
        """What ends training after this epoch, which may be cut short; says so."""
        settings = self.config.training
        if self.record.clock.out_of_time(self._deadline, self.team):
            self.record.clock.say_out_of_time(settings.minutes, trained=True)
            return "minutes"
        return "patience" if self.record.out_of_patience(settings.patience) else None

    def _due(self) -> bool:
        """Whether a checkpoint is to be written now that dev is scored."""
        if self.steps % self._a_pass or self._attack_cut:  # one from before dev was scored is there
            return False
        return self.ended is not None or self._wanted or self.team.agree(self.record.clock.checkpoint_due)

    def _dev(self) -> dict[str, Interval]:
        found = probabilities(LogitsModel(self.model, self.separator), self.data.dev, self.device, quiet=self.quiet)
        self.model.train()
        return scores(self.data.dev, found, self.data.classes, positive=self.data.positive, intervals=False)

    def save_model(self) -> None:
        """Model and tokenizer as plain transformers load them."""
        with whole(self.folder / run_folder.TRANSFORMER) as part:
            model, config = merged(self.model), self.model.config
            model.config = deepcopy(config)
            if self._caches is not None:
                model.config.use_cache = self._caches
            model.save_pretrained(part)
            model.config = config
            self.tokenizer.save_pretrained(part)
            for weights in part.glob("*.safetensors"):  # which are made for the owner alone
                shutil.copymode(part / "config.json", weights)

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Make a checkpoint whole."""
        self.record.clock.stop()
        mark = {"steps": state.global_step, "data": self.data.fingerprint} | self.record.state()
        mark["recent"] = self.trainer.learnt.state()
        if self.trainer.pseudo_labels:
            mark["predicted"] = self.trainer.pseudo_labels.state()
        if self.augmenter:
            mark["augmented"] = self.augmenter.state()
        if self.team.first:
            place = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            sync(place)
            write(place / MARK, json.dumps(mark))
        self.record.clock.start()

    def result(self, stopped: bool, yardstick: dict[str, Any] | None) -> dict[str, Any]:
        """The result, as for our own models."""
        found = {"stopped": stopped, "steps": self.steps, "yardstick": yardstick}
        result = self.record.result(self.config, self.data, **found)
        return result | {"model": self.config.transformer}
