"""How r is found from gradients: a first step, further steps, and how long they are; no loss is known here."""

import math
from collections.abc import Callable, Collection

import torch
from torch import Tensor

from wordward.perturbation.choice import nearness, sampled, scattered, unit, within
from wordward.perturbation.directions import Directions, Noise
from wordward.perturbation.outcome import Found
from wordward.perturbation.recipes import USUAL_EPSILON, Method
from wordward.perturbation.space import Space
from wordward.perturbation.tap import Tap
from wordward.support.errors import SettingError

Slope = Callable[[Tensor], Tensor]  # r -> the gradient at the vectors of the text perturbed by it
Length = Tensor | float  # (batch, 1, 1), or the same for all texts
USUAL = 240  # words of a text for which a default epsilon is the paper's: the mean length of IMDB's reviews


class Ascender:
    """A method's perturbations at a tap: where they may point, how long they are, and the ascent that finds them."""

    def __init__(self, tap: Tap, method: Method, candidates: Tensor | Collection[int] | None) -> None:
        self.tap = tap
        self.method = method
        self.directions = Directions(tap, method, candidates)
        self.epsilon = method.settings.epsilon or self._usual_epsilon()
        step_size = method.settings.step_size if method.recipe.follows_gradient else None
        self.step_size = min(step_size or self._usual_step(), self.epsilon)

    def __repr__(self) -> str:
        """The method, where it perturbs, and how far: what was found or reckoned where nothing was given."""
        settings, toward_words = self.method.settings, self.method.recipe.space == "words"
        length = "" if settings.epsilon or not self.epsilon else f" (of a text of {USUAL} words)"
        k = f", k={settings.k}" if toward_words else ""
        return f"<{self.method.name}: {self.tap!r}, epsilon={self.epsilon:.4g}{length}{k}>"

    def _usual_step(self) -> float:
        """Enough to reach the edge from anywhere (Madry et al.), that of a usual epsilon if there is none."""
        epsilon = self._usual_epsilon() if math.isinf(self.epsilon) else self.epsilon
        return min(1.0, 2.5 / self.method.recipe.steps) * epsilon

    def _usual_epsilon(self) -> float:
        """The default: that of a text of USUAL words, which `_lengths` scales to each text's length."""
        space = self.method.recipe.space
        if self.method.recipe.choice == "nothing":
            return 0.0
        if not isinstance(space, str):
            raise SettingError("epsilon", "a space of your own has no default epsilon: give epsilon, the length of r")
        size = math.nan
        if self.tap.device.type != "meta":
            size = nearness(self.tap.words(sampled(self.tap.size).to(self.tap.device)))
        if not 0 < size < math.inf:
            raise SettingError(
                "epsilon",
                f"the default epsilon is a part of the distance between near words of the table, which is {size}: "
                "make the adversary after the weights are loaded, or give epsilon",
            )
        return USUAL_EPSILON[space] * self.method.settings.epsilon_factor * size

    @torch.no_grad()
    def perturb(self, ids: Tensor, gradient: Tensor | None, mask: Tensor, *, noise: Noise = None) -> Found:
        """r from the gradient at the vectors (batch, time, dim); the model itself is not called."""
        if self.method.recipe.moves:
            raise SettingError(
                "ascent_steps",
                f"{self.method.name} finds r in several steps, each with a pass of its own, but got one gradient: "
                "call the adversary or its `ascend`, or take one step (ascent_steps=1, and advt for pgd or freelb)",
            )
        return self._first(self.space(ids), ids, gradient, mask, noise, self._lengths(mask))

    @torch.no_grad()
    def ascend(
        self,
        ids: Tensor,
        gradient: Tensor | None,
        mask: Tensor,
        slope: Slope,
        *,
        noise: Noise = None,
        space: Space | None = None,
    ) -> Found:
        """r after every step, alpha <- P(alpha + eta a / |a|) with a = D^T g and P onto the ball of epsilon.

        `gradient` is taken at the text itself, for the first step; `slope` computes it at r, one pass each. `space`:
        where r may point, if already built.
        """
        space, (step, epsilon) = space or self.space(ids), self._lengths(mask)
        found = self._first(space, ids, gradient, mask, noise, (step, epsilon))
        for _ in range(self.method.recipe.moves):
            with torch.enable_grad():
                gradient = slope(found.perturbation)
            ahead = unit(self.directions.chosen(space, ids, gradient, mask, None), (1, 2))
            strengths = within(found.strengths + step * ahead, epsilon)
            found = Found(space.vectors(strengths), strengths, space.candidates)
        return found

    def _first(
        self,
        space: Space,
        ids: Tensor,
        gradient: Tensor | None,
        mask: Tensor,
        noise: Noise,
        lengths: tuple[Length, Length],
    ) -> Found:
        """The first r: one step from the text, or drawn."""
        step, epsilon = lengths
        if self.method.recipe.start == "random":
            chance = self.directions.noise(space, ids, noise)
            length = step if math.isinf(self.epsilon) else epsilon
            strengths = length * scattered(chance, mask)
            return Found(space.vectors(strengths), strengths, space.candidates)
        strengths = self.directions.chosen(space, ids, gradient, mask, noise)
        if self.method.per_token:  # the authors' code
            strengths = unit(strengths, (2,))
            perturbation = space.vectors(strengths)
            length = perturbation.flatten(1).norm(dim=1).view(-1, 1, 1)
            scale = torch.where(length > 0, step / length, 0.0)
            strengths, perturbation = scale * strengths, scale * perturbation
        else:  # eq:adv_approx, eq:update_alpha_new
            strengths = step * unit(strengths, (1, 2))
            perturbation = space.vectors(strengths)
        return Found(perturbation, strengths, space.candidates)

    def _lengths(self, mask: Tensor) -> tuple[Length, Length]:
        """Of a step, and of r at most: as given; default ones times sqrt(words / USUAL), (batch, 1, 1).

        Each word is then moved as far in a short text as in a long one.
        """
        settings = self.method.settings
        if settings.epsilon and (settings.step_size or not math.isinf(settings.epsilon)):
            return self.step_size, self.epsilon
        reach = (mask.sum(1).view(-1, 1, 1).to(self.tap.dtype) / USUAL).sqrt()
        step, epsilon = self.step_size * reach, self.epsilon * reach
        if settings.step_size and self.method.recipe.follows_gradient:
            step = epsilon.clamp(max=settings.step_size)
        return step, epsilon

    def space(self, ids: Tensor) -> Space:
        """Where r may point for these ids."""
        return self.directions.space(ids)

    def search(self, ids: Tensor) -> None:
        """Search the nearest words of these ids now, where the method needs them."""
        self.directions.search(ids)

    def refresh(self) -> None:
        """Forget the nearest words, so that they are searched again; call it at the start of an epoch."""
        self.directions.refresh()

    def tick(self) -> None:
        """Count a step, and forget the nearest words when a new search is due."""
        self.directions.tick()
