"""A Hugging Face Trainer whose loss adds any method of wordward."""

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from wordward.hf.checks import CheckedCollator, refuse_methods, refuse_unclear_labels
from wordward.hf.inputs import Accumulated, accumulated, endless, label_count, perturbed, piece_ids, tagged
from wordward.hf.loss_log import LoggedLosses
from wordward.hf.settings import AdversarialSettings
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.recipes import Method, parse_methods
from wordward.perturbation.tap import gradient_at, logits_of, unwrapped
from wordward.support.errors import MissingExtraError

try:
    import accelerate  # noqa: F401 - the Trainer needs it, and would only say so later
    from transformers import Trainer

    from wordward.hf.callback import TrainingState
except ImportError as error:
    raise MissingExtraError(
        f"wordward.hf.trainer needs transformers and accelerate ({error}): pip install 'wordward[hf]'"
    ) from error


class AdversarialTrainer(Trainer):
    """A `transformers.Trainer` that adds a method's loss to the label loss; evaluation is as before.

    Args:
        *args: As for `transformers.Trainer`: the model, its `TrainingArguments` and so on.
        adversarial: The method and its settings, or the method's name; iadvt by default.
        unlabelled_dataset: Texts for the KL of vat and ivat, which is taken over the labelled ones without it.
        candidates: Ids of the pieces that may be pointed to; by default the tokenizer's (`processing_class`) words.
        **options: As for `transformers.Trainer`.

    Raises:
        SettingError: If the model, its tokenizer or the arguments cannot be used with the method.

    Examples:
        >>> import tempfile, torch, transformers
        >>> from wordward.hf import AdversarialSettings, AdversarialTrainer
        >>> small = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
        >>> small |= dict(bos_token_id=2, eos_token_id=3)  # which no tokenizer tells here
        >>> model = transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=20, **small))
        >>> texts = [{"input_ids": torch.tensor([2, 5 + n, 3]), "labels": n % 2} for n in range(8)]
        >>> arguments = transformers.TrainingArguments(
        ...     tempfile.mkdtemp(), max_steps=1, use_cpu=True, disable_tqdm=True, report_to=[], save_strategy="no"
        ... )
        >>> trainer = AdversarialTrainer(
        ...     model, arguments, train_dataset=texts, candidates=range(5, 20), adversarial=AdversarialSettings(k=3)
        ... )
        >>> trainer.train().global_step  # doctest: +ELLIPSIS
        {'train_runtime': ...}
        1
    """

    def __init__(
        self,
        *args: Any,
        adversarial: AdversarialSettings | str | None = None,
        unlabelled_dataset: Any = None,
        candidates: Tensor | Collection[int] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        if isinstance(adversarial, str):
            adversarial = AdversarialSettings(method=adversarial)
        self.adversarial = adversarial or AdversarialSettings()
        self.methods = parse_methods(self.adversarial.method, self.adversarial)
        self.unlabelled_dataset = unlabelled_dataset
        refuse_methods(self)
        self.data_collator = CheckedCollator(self.data_collator, self.model)
        # Many heads take num_items_in_batch and drop it, so that the Trainer does not divide their mean over an
        # accumulated batch: here no head is given it, and each batch counts by its share instead.
        self.model_accepts_loss_kwargs = False
        self._candidates, self._special = piece_ids(self, self._module, candidates)
        self._adversaries: list[Adversary] = []
        self._texts: Iterator[Any] | None = None  # unlabelled batches
        self._drawn: list[Any] = []  # those of this update
        self._accumulated: Accumulated | None = None  # None: the update has one batch
        self._losses = LoggedLosses()
        self._at_once = False  # whether each loss is backpropagated as soon as it is known
        self.add_callback(TrainingState(self))
        _ = self.adversaries  # a model that cannot be tapped is refused here, not in the first step

    @property
    def _module(self) -> nn.Module:
        """The model itself, without what the Trainer wraps around it."""
        assert isinstance(self.model, nn.Module)
        return unwrapped(self.model)

    @property
    def adversaries(self) -> list[Adversary]:
        """The methods applied to the model; made again if `model_init` has created a new one."""
        if not self._adversaries or self._adversaries[0].tap.model is not self._module:
            self._adversaries = [self._adversary(method) for method in self.methods]
        return self._adversaries

    def _load_from_checkpoint(self, *args: Any, **options: Any) -> None:
        """Load weights after the methods are made: epsilon is that of the table which training started from."""
        _ = self.adversaries
        super()._load_from_checkpoint(*args, **options)

    def _adversary(self, method: Method) -> Adversary:
        return Adversary(
            self._module,
            method,
            embedding=self.adversarial.embedding,
            site=self.adversarial.site,
            candidates=self._candidates if method.recipe.space == "words" else None,
        )

    def training_step(self, model: nn.Module, *args: Any, **options: Any) -> Tensor:
        """A step; each loss is followed back at once, so that the clean pass is followed back, and held, but once.

        Not under DDP, which exchanges the gradients of one backward pass, nor with optimizers that update in it, nor
        where a class below this one changes the loss.
        """
        ours = type(self).compute_loss is AdversarialTrainer.compute_loss and not getattr(self, "use_apex", False)
        fused = ours and "lomo" not in str(self.args.optim) and unwrapped(model) is model
        self._at_once = fused and bool(self.methods)
        try:
            return super().training_step(model, *args, **options)
        finally:
            self._at_once = False

    def _backward(self, loss: Tensor) -> Tensor:
        """Backpropagate a loss as the Trainer will its sum, where that is done at once; what is left of it."""
        if not self._at_once:
            return loss
        self.accelerator.backward(loss / self._divided)
        return loss.detach()

    def compute_loss(
        self,
        model: nn.Module,
        inputs: Any,
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """The loss that the Trainer computes, and in training that of each method."""
        if not (model.training and torch.is_grad_enabled()):
            return super().compute_loss(
                model, inputs, return_outputs=return_outputs, num_items_in_batch=num_items_in_batch
            )
        passes: list[tuple[Tensor, Any]] = []

        def forward() -> Tensor:
            # Only the first goes through DDP: it readies the exchange of gradients, and may write into buffers.
            through = unwrapped(model) if passes else model
            passes.append(self._label_loss(through, inputs, num_items_in_batch))
            return passes[-1][0]  # the loss is all that is asked for: some heads give no one tensor of logits

        losses = self._supervised(forward, inputs)
        label_loss, outputs = passes[0]
        losses |= self._virtual(unwrapped(model), inputs)
        total = label_loss + sum(losses.values())
        if self._at_once:  # nothing is left for the Trainer to follow back
            total = total.detach().requires_grad_()
        self._note({"label": label_loss, **losses})
        return (total, outputs) if return_outputs else total

    def _label_loss(self, model: nn.Module, inputs: Any, items: Tensor | int | None) -> tuple[Tensor, Any]:
        """What the Trainer makes of a pass (its own smoothing or function included), and the model's outputs."""
        loss, outputs = super().compute_loss(model, dict(inputs), return_outputs=True, num_items_in_batch=items)
        together = self._together
        own = self._scaled or self.compute_loss_func is not None
        if together is None or own or "labels" not in inputs:
            return loss, outputs
        return loss * (label_count(self, inputs) * together.steps / together.labels), outputs

    def _weight(self) -> Tensor | float:
        """For how much the methods' losses count in this step."""
        return 1.0

    _target: Callable[[dict[str, Tensor], Tensor], Tensor] | None = None
    """What the KL methods compare with, made from a batch and its clean prediction; None: the prediction itself."""

    def _supervised(self, forward: Callable[[], Tensor], inputs: Any) -> dict[str, Tensor]:
        """The label loss of the perturbed texts; one clean pass and its gradient serve all methods."""
        supervised = [adversary for adversary in self.adversaries if adversary.method.recipe.needs_labels]
        if not supervised:
            self._backward(forward())
            return {}
        watch = any(adversary.method.recipe.starts_uphill for adversary in supervised)
        clean = supervised[0].tap.run(forward, watch=watch)  # its logits, and those of later passes: the loss
        mask = supervised[0].mask(clean.ids, perturbed(inputs, self._ordinary))
        gradient = None
        if watch and not self._at_once:
            gradient = gradient_at(clean.logits, clean.shift, retain_graph=True)
        elif self._at_once:
            self._backward(clean.logits)
            gradient = clean.shift.grad if watch and clean.shift is not None else None
        losses, weight = {}, self._weight() * self.adversarial.regularizer_weight
        for adversary in supervised:
            self._tick(adversary)
            part = weight / adversary.method.recipe.counted
            back = (lambda loss, part=part: self._backward(part * loss)) if self._at_once else None
            ascent = adversary.perturbed_losses(forward, clean, gradient, mask, lambda at: at.logits, backward=back)
            every = torch.stack(ascent.losses)
            losses[adversary.method.name] = every.sum() if self._at_once else weight * every.mean()
        return losses

    def _virtual(self, model: nn.Module, inputs: Any) -> dict[str, Tensor]:
        """The KL of the perturbed from the clean texts, labelled or not."""
        virtual = [adversary for adversary in self.adversaries if not adversary.method.recipe.needs_labels]
        if not virtual:
            return {}
        refuse_unclear_labels(model, inputs)
        if self.unlabelled_dataset is not None:
            inputs = self._drawn.pop(0) if self._drawn else self._draw()
        bare = {name: value for name, value in inputs.items() if name not in self.label_names}
        mask, counted = perturbed(inputs, self._ordinary), tagged(self, inputs)
        target = partial(self._target, bare) if self._target else None
        losses, together = {}, self._together
        for adversary in virtual:
            self._tick(adversary)
            with self.accelerator.autocast():  # so that the gradient is scaled where passes are in fp16
                outcome = adversary(
                    lambda: logits_of(model(**bare)), mask=mask, counted=counted, target=target, count=False
                )
            share = self._weight() * torch.ones((), device=mask.device)
            if together is not None:
                by_token = outcome.clean.dim() > 2 and self.adversarial.average == "tokens"
                part = counted.sum() / together.tokens if by_token else len(mask) / together.texts
                share = share * (part if self._scaled else part * together.steps)
            losses[adversary.method.name] = self._backward(share * outcome.loss)
        return losses

    def _tick(self, adversary: Adversary) -> None:
        """Count a step of a method, for the next search for nearest words."""
        adversary.tick()

    def _ordinary(self, ids: Tensor) -> Tensor:
        """Which ids stand for text, (batch, time)."""
        self._special = self._special.to(ids.device)  # copied once: a copy waits for the device
        return ~torch.isin(ids, self._special)

    @property
    def _together(self) -> Accumulated | None:
        """What the batches of this update hold; None where it has one, or where nobody updates."""
        return self._accumulated if self.is_in_train else None

    @property
    def _scaled(self) -> bool:
        """Whether each batch's loss is its part of the update's already, so that the Trainer divides none."""
        said = getattr(self, "loss_is_scaled_for_ga", None)  # which older versions do not ask
        return self.compute_loss_func is not None if said is None else said

    @property
    def _divided(self) -> int:
        """By how many batches the Trainer divides the loss of each."""
        together = self._together
        return 1 if together is None or self._scaled else together.steps

    def get_batch_samples(self, *args: Any, **options: Any) -> Any:
        """The batches of one update; what they hold together is noted, and as many unlabelled ones are drawn."""
        batches, items = super().get_batch_samples(*args, **options)
        self._drawn = [self._draw() for _ in batches] if self.unlabelled_dataset is not None else []
        virtual = any(not method.recipe.needs_labels for method in self.methods)
        read = (self._drawn or batches) if virtual else []
        self._accumulated = accumulated(self, batches, read)
        return batches, items

    def _draw(self) -> Any:
        """The next unlabelled batch."""
        if self._texts is None:
            size = self.adversarial.unlabelled_batch_size or self.args.train_batch_size
            self._texts = endless(self, self.unlabelled_dataset, size)
        return self._prepare_inputs(next(self._texts))

    def _note(self, losses: dict[str, Tensor]) -> None:
        """Add losses to those since the last log, as large as they count in an update."""
        self._losses.add(losses, self._divided)

    def log(self, logs: dict[str, float], *args: Any, **options: Any) -> None:
        """Beside the loss, the label loss and each method's that it is the sum of."""
        if "loss" in logs and self.methods:
            gather: Any = self.accelerator.gather
            logs |= self._losses.means(self.state.global_step, lambda total: gather(total.reshape(1)).mean())
        super().log(logs, *args, **options)
