"""The means of named training losses between two logs."""

from collections.abc import Callable, Mapping

from torch import Tensor


class LoggedLosses:
    """Adds losses up, on their device, until their means over the updates since the last log are asked for."""

    def __init__(self) -> None:
        self.restart(0)

    def restart(self, update: int) -> None:
        """Forget what was added; the next log is of what comes after this update."""
        self._sums: dict[str, Tensor] = {}
        self._after = update

    @property
    def added(self) -> bool:
        """Whether a loss was added since the last log."""
        return bool(self._sums)

    def add(self, losses: Mapping[str, Tensor], divided: int) -> None:
        """Add the losses of a batch, one of so many of its update."""
        for name, loss in losses.items():
            self._sums[name] = self._sums.get(name, 0) + loss.detach() / divided

    def means(self, update: int, of_all: Callable[[Tensor], Tensor]) -> dict[str, float]:
        """The mean of each over the updates up to this one, for a log; `of_all` gives a sum's mean over processes."""
        updates = max(1, update - self._after)
        found = {f"{name}_loss": float(of_all(total)) / updates for name, total in self._sums.items()}
        self.restart(update)
        return found
