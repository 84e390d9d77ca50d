"""Where a batch's r may point (with periodic searches for nearest words), and the strengths it takes there."""

from collections.abc import Callable, Collection

import torch
from torch import Tensor

from wordward.perturbation.choice import CHOICES, centred
from wordward.perturbation.nearest import NearestWords, Table, allowed_words, check_enough
from wordward.perturbation.recipes import Method
from wordward.perturbation.space import AllWords, Free, Neighbors, QuickNeighbors, Space
from wordward.perturbation.tap import Tap
from wordward.support.errors import SettingError

REFRESH = {"batch": 1, "auto": 100}  # steps between two searches for nearest words
AT_ONCE = 200_000  # words whose neighbours a GPU finds all together in less than a second, where they have
USUAL_DIM = 256  # numbers each

Noise = Tensor | Callable[[tuple[int, ...], torch.dtype], Tensor] | None  # given, drawn by the caller, or by us


class Directions:
    """A method's space for each batch, and the strengths it takes there."""

    def __init__(self, tap: Tap, method: Method, candidates: Tensor | Collection[int] | None) -> None:
        self.tap = tap
        self.method = method
        policy = method.settings.refresh
        self._every = REFRESH.get(policy) if isinstance(policy, str) else policy  # steps; None: only on `refresh`
        self._steps = 0
        self._allowed = allowed_words(tap.size, candidates, padding=tap.padding)
        self._word = torch.zeros(tap.size, dtype=torch.bool).index_fill(0, self._allowed, True)
        if method.recipe.space == "words":
            check_enough(self._allowed, method.settings.k)
        self.nearest: NearestWords | None = None  # made at the first use, on the device that ids are on
        self.given: NearestWords | None = None  # words that a caller chose instead, whatever the table says

    def space(self, ids: Tensor) -> Space:
        """Where r may point for these ids."""
        if not isinstance(self.method.recipe.space, str):
            return self.method.recipe.space(ids, self.tap)
        nearest = self.search(ids)
        if nearest is not None:
            dropout = self.method.settings.direction_dropout if self.tap.model.training else 0.0
            if ids.device.type == "cpu" and not dropout and not torch.is_inference_mode_enabled():
                return QuickNeighbors(ids, nearest, self.tap.words)
            return Neighbors(ids, nearest, self.tap.words, dropout=dropout)
        free = self.method.recipe.space == "free"
        return Free() if free else AllWords(ids, self._allowed_on(ids), self.tap.words)

    def search(self, ids: Tensor) -> Tensor | None:
        """The k nearest words of each id, (batch, time, k), searched where they are not known; None without k."""
        settings = self.method.settings
        if self.method.recipe.space != "words" or settings.k is None:
            return None
        allowed, table = self._allowed_on(ids), Table(self.tap.size, self.tap.dim, self.tap.words, self.tap.rows)
        if self.given is not None:
            return self.given.of(ids, table)
        if self.nearest is None or self.nearest.allowed.device != ids.device:
            at_once = ids.is_cuda and self.quickly_searched
            self.nearest = NearestWords(
                self.tap.size, settings.k, allowed=allowed, metric=settings.metric, at_once=at_once
            )
        return self.nearest.of(ids, table)

    @property
    def quickly_searched(self) -> bool:
        """Whether a GPU should search for all words together: for more than one step, in less than a second."""
        return self._every != 1 and self.tap.size * self.tap.dim <= AT_ONCE * USUAL_DIM

    def _allowed_on(self, ids: Tensor) -> Tensor:
        """The words that may be pointed to, on the device of the ids."""
        if self.tap.size != len(self._word):
            raise SettingError(
                "embedding",
                f"the table had {len(self._word)} words when the adversary was made, and has {self.tap.size} now: "
                "make a new one",
            )
        self._allowed = self._allowed.to(ids.device)  # copied once: copying synchronises with the device
        return self._allowed

    def chosen(self, space: Space, ids: Tensor, gradient: Tensor | None, mask: Tensor, noise: Noise) -> Tensor:
        """The strengths to take, not yet normalised: D^T g or noise, or a part of either."""
        real = mask.unsqueeze(-1)

        def possible() -> Tensor:
            return real if space.possible is None else real & space.possible

        def words() -> Tensor:
            self._word = self._word.to(ids.device)  # copied once: copying synchronises with the device
            return real & self._word[ids].unsqueeze(-1)

        if self.method.recipe.follows_gradient:
            assert gradient is not None, f"{self.method.name} follows the gradient, but was given none"
            if space.candidates is not None and gradient.shape[-1] != self.tap.dim:
                raise SettingError(
                    "site",
                    f"directions toward words are {self.tap.dim} long like the table, but the site's vectors are "
                    f"{gradient.shape[-1]}: pass the embedding itself or its dropout as `site=`",
                )
            values = space.strengths(gradient.to(self.tap.dtype) * real)
            values = centred(values, possible()) if self.method.through_start else values
        else:
            values = self.noise(space, ids, noise)
        choice = self.method.recipe.choice
        strengths = (CHOICES[choice] if isinstance(choice, str) else choice)(values, possible, words)
        if strengths.shape != values.shape:
            raise SettingError(
                "choice",
                f"a choice must return strengths of shape {tuple(values.shape)}, like its values, but returned "
                f"{tuple(strengths.shape)}",
            )
        return strengths * real

    def first(self, space: Space, ids: Tensor, noise: Noise) -> Tensor:
        """The vectors, of any length, of the small first step of VAT and iVAT, (batch, time, dim)."""
        if space.candidates is None:
            return self.noise(space, ids, noise)
        if self.method.settings.first_step == "random":
            return space.vectors(self.noise(space, ids, noise))
        return space.vectors(torch.ones_like(space.candidates, dtype=self.tap.dtype))

    def noise(self, space: Space, ids: Tensor, noise: Noise) -> Tensor:
        """Gaussian noise in the shape of a space's strengths, unless it is given or drawn by the caller."""
        shape = (*ids.shape, self.tap.dim) if space.candidates is None else tuple(space.candidates.shape)
        if noise is None:
            return torch.randn(shape, dtype=self.tap.dtype, device=ids.device)
        if not isinstance(noise, Tensor):
            noise = noise(shape, self.tap.dtype)
        if tuple(noise.shape) != shape:
            raise SettingError("noise", f"noise must be {shape}, but is {tuple(noise.shape)}")
        return noise.to(self.tap.dtype)

    def refresh(self) -> None:
        """Forget the nearest words, so that they are searched again."""
        self._steps = 0
        self.nearest = None

    def tick(self) -> None:
        """Count a step, and forget the nearest words when a new search is due."""
        if self._every is not None and self._steps % self._every == 0:
            self.refresh()
        self._steps += 1
