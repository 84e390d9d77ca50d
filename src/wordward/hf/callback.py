"""The callback of an AdversarialTrainer: what happens where training, an epoch or a step begins or ends."""

from typing import Any

from transformers import TrainerCallback

from wordward.support.errors import ModelError


class TrainingState(TrainerCallback):
    """Resets texts and sums when training starts and checks that sums are made; searches nearest words again each
    epoch and after a checkpoint.

    Training resumed from a checkpoint searches there too, so that it continues as if never stopped.
    """

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self.trainer._texts = None
        self.trainer._losses.restart(state.global_step)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        for adversary in self.trainer.adversaries:
            adversary.refresh()

    on_save = on_epoch_begin

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if self.trainer.methods and not self.trainer._losses.added:
            raise ModelError(
                f"compute_loss of {type(self.trainer).__name__} does not call AdversarialTrainer's, so nothing was "
                "perturbed: pass your loss as compute_loss_func=, or put it into a Trainer of its own and derive "
                "from both, class Mine(AdversarialTrainer, Yours)"
            )
