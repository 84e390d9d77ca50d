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
from torch import Tensor, nn

from wordward.hf.trainer import AdversarialSettings, AdversarialTrainer
from wordward.perturbation.recipes import parse_methods
from wordward.perturbation.tap import Tap
from wordward.runs import run_folder
from wordward.runs.metrics import Interval
from wordward.runs.pieces import LogitsModel, PieceVocabulary
from wordward.runs.scoring import probabilities, scores
from wordward.runs.transformer import TransformerRun
from wordward.support.console import progress, say
from wordward.support.distributed import Team
from wordward.support.files import whole, write
from wordward.train.augmenting import Augmenter
from wordward.train.beliefs import Beliefs, beliefs_of
from wordward.train.finetuning_data import Collator, Order, TrainerDataset, pool
from wordward.train.learnt import Learnt
from wordward.train.lora import merged
from wordward.train.record import Record, tolerance
from wordward.train.step import CHECKED, diverged, settled_precision
from wordward.train.teacher import Teacher

WARM_UP = 0.1  # share of the steps
MARK = "wordward.json"  # makes a checkpoint whole: it is written last


class _Trainer(AdversarialTrainer):
    """Reads texts in our order, records the losses, and weighs the methods' by what has been learnt."""

    def __init__(
        self, *args: Any, order: Order, record: Record, learnt: Learnt, beliefs: Beliefs | None, **options: Any
    ) -> None:
        self.order, self.record, self.learnt, self.beliefs = order, record, learnt, beliefs
        self._target = self._believed if beliefs else None
        super().__init__(*args, **options)
        self.teacher = Teacher(Path(str(self.args.output_dir)), first=record.first)

    def _weight(self) -> Tensor | float:
        return self.learnt.share

    def _virtual(self, model: nn.Module, inputs: Any) -> dict[str, Tensor]:
        """In self-training only from half of the steps on: then there is a teacher."""
        if self.beliefs and not self.teacher.ready(model, self.state.global_step, self.state.max_steps):
            return {}
        return super()._virtual(model, inputs)

    def _believed(self, inputs: dict[str, Tensor], logits: Tensor) -> Tensor:
        assert self.beliefs is not None
        target, mean = self.beliefs.target(self.teacher(inputs))
        self.beliefs.update(self._of_all(mean))
        return target

    def _note(self, losses: dict[str, Tensor]) -> None:
        super()._note(losses)
        self.learnt.add(self._of_all(losses["label"].detach()))

    def _of_all(self, value: Tensor) -> Tensor:
        """The mean over all processes."""
        return self.accelerator.reduce(value, reduction="mean") if self.args.world_size > 1 else value  # type: ignore

    def read(self, corpus: Any) -> None:
        """Take the labelled texts from this corpus instead, of as many texts."""
        self.train_dataset.corpus, self.order.lengths = corpus, corpus.lengths  # type: ignore[union-attr]

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        return self.order

    def _save_checkpoint(self, *args: Any, **options: Any) -> None:
        with self.record.writing_checkpoint():
            super()._save_checkpoint(*args, **options)

    def training_step(self, *args: Any, **options: Any) -> Tensor:
        """A step; its loss is read from the device only now and then."""
        loss = super().training_step(*args, **options)
        self.record.add(loss)
        return loss


class FineTuning(transformers.TrainerCallback):
    """A run in progress."""

    def __init__(self, start: Any, folder: Path, *, resume: bool, quiet: bool, team: Team) -> None:
        self.config, self.data, self.device = start.config, start.data, start.device
        self.model, self.tokenizer, self.folder, self.quiet = start.model, start.tokenizer, folder, quiet
        self.separator = start.separator
        self.steps, self.team = 0, team
        report_to = start.config.training.report_to
        self.record = Record(folder, quiet=quiet, first=team.first, config=start.config, report_to=report_to)
        self._bars, self._bar = None, None
        self._deadline: float | None = None
        self.augmenter = self._make_augmenter(start.examples["train"]) if self.config.training.augment else None
        self._caches = getattr(start.model.config, "use_cache", None)  # which the Trainer turns off
        self.trainer = self._make(start.candidates)
        self.trainer.remove_callback(transformers.trainer_callback.PrinterCallback)
        self._former = _last(folder / run_folder.TRAINER) if resume else None
        if self._former is not None:
            self._load(self._former)
        elif resume:
            self.record.load(None)

    def _make_augmenter(self, examples: Any) -> Augmenter:
        words = PieceVocabulary(self.tokenizer, Tap(self.model).size)
        run = TransformerRun(self.folder, self.config, words, self.data.classes, LogitsModel(self.model), self.device)
        return Augmenter(run, examples, self.config.training, quiet=self.quiet, team=self.team)

    def _train(self) -> Any:
        """The labelled texts of an epoch."""
        return self.augmenter.joined(self.data.train) if self.augmenter else self.data.train

    def _make(self, candidates: Any) -> _Trainer:
        settings, train = self.config.training, self._train()
        named: Any = asdict(self.config.perturbation) | {
            "method": self.config.method,
            "average": "tokens",  # as the model's own label loss
            "unlabelled_batch_size": max(1, settings.unlabelled_batch_size // self.team.size),
        }
        methods = parse_methods(self.config.method, self.config.perturbation)
        virtual = any(not method.recipe.needs_labels for method in methods)
        return _Trainer(
            self.model,
            _arguments(self.config, self.folder, len(train.rows), self.device, self.team.size),
            data_collator=Collator(self.tokenizer, self.separator),
            train_dataset=TrainerDataset(train, labelled=True),
            processing_class=self.tokenizer,
            candidates=candidates,
            callbacks=[self],
            adversarial=AdversarialSettings(**named),
            unlabelled_dataset=TrainerDataset(pool(self.data), labelled=False) if virtual else None,
            order=Order(train.lengths, settings.batch_size, settings.seed),
            record=self.record,
            learnt=Learnt(self.data.chance_loss("tokens") if settings.gradual else None, self.device),
            beliefs=beliefs_of(self.data, self.device, 1.0)
            if settings.self_training and not self.data.tagging
            else None,
        )

    def fit(self) -> None:
        """Train until the last epoch or minute, or until dev has not improved for `patience` epochs."""
        self._deadline = self.record.deadline(self.config.training.minutes)
        try:
            if not self.record.out_of_patience(self.config.training.patience):
                former = None if self._former is None else str(self._former)
                self.trainer.train(resume_from_checkpoint=former)
        finally:
            if self._bars is not None:
                self._bars.stop()

    def _load(self, folder: Path) -> None:
        """Restore what the Trainer does not keep."""
        mark = json.loads((folder / MARK).read_text(encoding="utf-8"))
        self.record.check_data(mark, self.data)
        self.record.load(mark)
        self.steps = mark["steps"]
        self.trainer.learnt.recent = torch.tensor(mark["recent"], device=self.device)
        if self.trainer.beliefs:
            self.trainer.beliefs.predicted = torch.tensor(mark["predicted"], device=self.device)
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
        self.record.start_clock()
        if self.augmenter:
            if self.record.epoch and state.global_step == self.record.epoch * self._a_pass:
                self.augmenter(self.record.epoch, self._deadline)
                self.model.train()
                self.trainer.read(self._train())
            self.record.augmented = self.augmenter.counts
        self._bars = progress(quiet=self.quiet)
        self._bars.start()
        epoch = self.record.epoch
        name = f"epoch {epoch + 1}/{self.config.training.epochs}"
        self._bar = self._bars.add_task(name, total=self._a_pass, completed=state.global_step - epoch * self._a_pass)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Move the bar, look at the loss, keep a checkpoint where one is wanted inside an epoch."""
        self.steps = state.global_step
        self._bars.advance(self._bar)  # type: ignore[union-attr,arg-type]
        if self.device.type == "cpu" or self.steps % CHECKED == 0:
            self._check()
        if self._wanted and self.steps % self._a_pass:  # that of an epoch's last step comes when dev is scored
            control.should_save = True
        if self.record.out_of_time(self._deadline, self.team):
            control.should_epoch_stop = True

    def _check(self) -> None:
        """Stop if a loss was not finite."""
        if not math.isfinite(self.record.loss):
            raise diverged(self.steps, self.record.kept)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Score dev, keep the best model, record the epoch, and have a checkpoint written, if one is due."""
        self._check()
        self.record.stop_clock()
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
        )
        last = self.record.epoch >= settings.epochs
        if not last and (over := self.record.out_of_time(self._deadline, self.team)):
            say(f"stopping: {settings.minutes:g} minutes are over", quiet=self.quiet)
            last = over
        control.should_training_stop = last or self.record.out_of_patience(settings.patience)
        due = self._wanted or self.team.agree(self.record.checkpoint_due)
        control.should_save = due and not control.should_training_stop
        self.record.start_clock()

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
        self.record.stop_clock()
        mark = {"steps": state.global_step, "data": self.data.fingerprint} | self.record.state()
        mark["recent"] = self.trainer.learnt.recent.tolist()
        if self.trainer.beliefs:
            mark["predicted"] = self.trainer.beliefs.predicted.tolist()
        if self.augmenter:
            mark["augmented"] = self.augmenter.state()
        if self.team.first:
            write(Path(args.output_dir) / f"checkpoint-{state.global_step}" / MARK, json.dumps(mark))
        self.record.start_clock()

    def result(self, stopped: bool) -> dict[str, Any]:
        """The result, as for our own models."""
        result = self.record.result(self.config, self.data, stopped=stopped, steps=self.steps)
        return result | {"model": self.config.transformer}


def _arguments(
    config: Any, folder: Path, texts: int, device: torch.device, processes: int
) -> transformers.TrainingArguments:
    settings = config.training
    steps = settings.epochs * math.ceil(texts / settings.batch_size)
    half = settled_precision(settings.precision, device)
    return transformers.TrainingArguments(
        str(folder / run_folder.TRAINER),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size // processes,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=int(WARM_UP * steps),
        max_grad_norm=settings.clip,
        optim="adamw_torch_fused" if device.type == "cuda" else "adamw_torch",
        fp16=half == "fp16",
        bf16=half == "bf16",
        use_cpu=device.type == "cpu",
        ddp_backend="gloo" if device.type == "cpu" and processes > 1 else None,
        gradient_checkpointing=config.finetuning.gradient_checkpointing,
        gradient_checkpointing_kwargs={"use_reentrant": False} if config.finetuning.gradient_checkpointing else None,
        seed=settings.seed,
        save_strategy="no",  # but for those that FineTuning asks for
        save_total_limit=2,  # the last may be broken off
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=device.type == "cuda",
    )


def _last(folder: Path) -> Path | None:
    """The last whole checkpoint."""
    whole = [path.parent for path in folder.glob(f"checkpoint-*/{MARK}")]
    return max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
