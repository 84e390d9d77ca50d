"""Texts that fool the model as it is so far, found by an attack before an epoch and learnt from in it."""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from wordward.attack.attacker import attack
from wordward.attack.augment import augmented
from wordward.config.attack import AttackSettings
from wordward.config.settings import TrainingSettings
from wordward.datasets import Example
from wordward.runs.run import Run
from wordward.support.console import progress
from wordward.support.distributed import ALONE, Team
from wordward.support.random_state import drawn_on, put_back, state_of
from wordward.text.corpus import Corpus
from wordward.text.ragged import Joined

EDITS = ("swap", "typo")  # where none are named
DRAWN = 3  # beside the seed: 1 and 2 order the labelled and the unlabelled texts


class Augmenter:
    """The texts that each epoch has beside its own: `augment` training texts, drawn anew, as an attack left them.

    There are as many in every epoch, so that the number of steps is known: a text that did not fool the model, and
    each text of the first epoch, is as it was. Of several processes the first attacks.
    """

    def __init__(
        self,
        run: Run,
        examples: Sequence[Example],
        settings: TrainingSettings,
        *,
        quiet: bool,
        team: Team = ALONE,
        reader: Run | None = None,
    ) -> None:
        """`reader`: encodes what is learnt from; by default the run that is attacked."""
        assert settings.augment is not None
        self.run, self.examples, self.quiet, self.team = run, examples, quiet, team
        self.reader = reader or run
        self.count, self._seed = min(settings.augment, len(examples)), settings.seed
        self._settings = AttackSettings(settings.augment_edits or EDITS, sense="kept")
        self.texts = self._drawn(0)
        self.counts = {"attacked": 0, "added": 0}  # of this epoch

    def _drawn(self, epoch: int) -> list[Example]:
        rng = np.random.default_rng([self._seed, DRAWN, epoch])
        return [self.examples[at] for at in sorted(rng.choice(len(self.examples), self.count, replace=False))]

    def __call__(self, epoch: int, deadline: float | None = None) -> None:
        """Attack this epoch's texts, until the deadline at most; leaves the model in evaluation mode."""
        self.texts = self._drawn(epoch)
        self.run.model.eval()
        if self.team.first:
            drawn = state_of(drawn_on(self.run.model))
            self._attack(deadline)
            put_back(drawn)
        self.load(self.team.agree(self.state()))

    def _attack(self, deadline: float | None) -> None:
        self.counts = {"attacked": 0, "added": 0}
        attacks = attack(self.run, self.texts, self._settings)
        with closing(attacks), progress(quiet=self.quiet) as bars:
            bar = bars.add_task("attacking texts to learn from", total=self.count, unit="texts")
            for at, one in enumerate(bars.track(attacks, self.count, task_id=bar)):
                self.counts["attacked"] += one.outcome in ("flipped", "kept")
                for found in augmented([one]):
                    self.texts[at] = Example(found.text, found.label)
                    self.counts["added"] += 1
                if deadline is not None and time.monotonic() >= deadline:
                    return

    def joined(self, train: Corpus) -> Any:
        """The training texts followed by this epoch's others, encoded."""
        more = self.reader.encode(self.texts, labelled=True)
        assert train.labels is not None
        assert more.labels is not None
        return replace(train, rows=Joined(train.rows, more.rows), labels=[*train.labels, *more.labels])

    def state(self) -> dict[str, Any]:
        """What a checkpoint inside an epoch keeps."""
        return {"texts": [[example.text, example.label] for example in self.texts], "counts": self.counts}

    def load(self, state: dict[str, Any]) -> None:
        """Take over what `state` gave."""
        self.texts = [Example(text, label) for text, label in state["texts"]]
        self.counts = state["counts"]
