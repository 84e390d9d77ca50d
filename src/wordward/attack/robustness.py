"""Several models under one attack, and one model under attacks that several methods guide."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from wordward.attack.attacked import Attacked
from wordward.attack.attacker import attack, cases_of
from wordward.attack.goal_choice import goal_of
from wordward.attack.guard import Guard
from wordward.attack.guide import TEXTS, TOKENS, Guide
from wordward.attack.half_precision import SearchModel
from wordward.attack.sense import Judge
from wordward.attack.summary import Summary, summarise
from wordward.config.attack import AttackSettings
from wordward.datasets import DataError, Example
from wordward.explain.directions import pointed_at
from wordward.perturbation.modes import evaluating
from wordward.runs.metrics import Interval, mean, share
from wordward.runs.reading import Row, target_of
from wordward.runs.run import Run
from wordward.support.console import progress
from wordward.support.errors import SettingError
from wordward.text.batches import small_batches

SWAPS = (0, 1, 2, 4, 8)


@dataclass(frozen=True)
class Robustness:
    """The accuracy of a model by number of swaps."""

    model: str
    method: str  # it was trained with
    accuracy: dict[int, Interval]  # by the number of swaps allowed


@dataclass(frozen=True)
class Guided:
    """The outcome of attacks guided by a method."""

    method: str
    summary: Summary
    cosine: Interval | None  # mean over words of the largest cosine of r with the direction toward any word
    nearness: Interval | None  # mean cosine of the vectors of a replaced word and of the word that came


def compare_models(
    runs: Sequence[Run],
    examples: Sequence[Example],
    settings: AttackSettings,
    *,
    swaps: Sequence[int] = SWAPS,
    quiet: bool = False,
    jobs: int = 1,
) -> list[Robustness]:
    """Accuracy on all texts under 0, 1, 2, ... swaps; those that a model gets wrong or cannot read count as wrong.

    For taggers: the share of sentences with a true error that the model flags, and still flags after so many swaps.
    """
    if not runs:
        raise SettingError(
            "models", "expected one model or more to compare; got none: give runs, as load_run gives them"
        )
    if not examples:
        raise DataError("expected labelled texts to attack; there are none")
    if any((example.tags if runs[0].tagging else example.label) is None for example in examples):
        raise DataError("expected true labels to measure accuracy with; some texts have none")
    if not swaps or min(swaps) < 0 or not max(swaps):
        raise SettingError(
            "swaps", f"expected numbers of swaps, 0 or more and one of them 1 or more; got {list(swaps)}"
        )
    settings, compared = replace(settings, max_swaps=max(swaps)), []
    for run in runs:
        name = str(run.folder)
        results = attack_all(run, examples, settings, name, quiet=quiet, jobs=jobs)
        accuracy = accuracies(results, swaps)
        if not accuracy:
            raise DataError("expected sentences with errors to measure a tagger with; there are none")
        compared.append(Robustness(name, run.config.method, accuracy))
    return compared


def accuracies(results: Sequence[Attacked], swaps: Sequence[int]) -> dict[int, Interval]:
    """The share of texts still right after each number of swaps; empty if there is nothing to get right."""
    # A sentence without errors has none to flag.
    counted = [attacked for attacked in results if attacked.errors != 0]
    if not counted:
        return {}
    return {n: share(sum(holds(attacked, n) for attacked in counted), len(counted)) for n in sorted(set(swaps))}


def holds(attacked: Attacked, swaps: int) -> bool:
    """Whether the prediction is right, and no change with at most this many swaps was found."""
    flipped = attacked.flipped and len(attacked.changes) <= swaps
    return attacked.outcome in ("flipped", "kept") and not flipped


def attack_all(
    run: Run,
    examples: Sequence[Example],
    settings: AttackSettings,
    name: str,
    *,
    guard: Guard | None = None,
    judge: Judge | None = None,
    quiet: bool,
    jobs: int = 1,
) -> list[Attacked]:
    """Attack all texts, with a progress bar of this name."""
    with progress(quiet=quiet) as bars:
        bar = bars.add_task(name, total=len(examples), unit="texts")
        found = attack(run, examples, settings, guard=guard, judge=judge, jobs=jobs)
        return list(bars.track(found, len(examples), task_id=bar))


def compare_guides(
    run: Run,
    examples: Sequence[Example],
    methods: Sequence[str],
    settings: AttackSettings,
    *,
    quiet: bool = False,
    jobs: int = 1,
) -> list[Guided]:
    """The same model and texts attacked under the guidance of each method, with any words unless these are set."""
    settings = replace(settings, words="any") if settings.words == "auto" else settings
    guided = []
    for method in methods:
        chosen = replace(settings, method=method)
        results = attack_all(run, examples, chosen, method, quiet=quiet, jobs=jobs)
        cosines, near = largest_cosines(run, examples, chosen), _nearness(run, results)
        means = (mean(values) if values else None for values in (cosines, near))
        guided.append(Guided(method, summarise(results, tagging=run.tagging), *means))
    return guided


def largest_cosines(run: Run, examples: Sequence[Example], settings: AttackSettings) -> list[float]:
    """For each text under attack, the mean over its words of max_k cos(r, w_k - w), k over the whole vocabulary."""
    how = replace(settings, words="any", rank="strength")  # r as long as the method has it
    goal, guide = goal_of(run, settings), Guide(SearchModel(run, exactly=True), how, None)
    plain = [goal.plain(example) for example in examples]
    texts = run.read_all(plain)
    predictions = run.predict_readings(texts)
    cases = list(cases_of(plain, texts, predictions, settings, goal).values())
    labels = [target_of(case.row, case.target.lose) for case in cases]
    corpus = run.corpus([case.row.ids for case in cases], labels)
    allowed = run.ordinary()
    table, means = guide.adversary.tap.table(), np.full(len(cases), np.nan)
    with evaluating(run.model):
        for index in small_batches(corpus.lengths, TEXTS, TOKENS):
            batch = corpus.batch(index, run.device)
            r = guide.perturb(batch).perturbation
            real = _of_words(batch.mask, [cases[at].row for at in index]) & (r.norm(dim=-1) > 0)
            cosines, nearest = pointed_at(r[real], batch.ids[real], table, allowed=allowed, top=2)
            own = nearest[:, 0] == batch.ids[real]  # its cosine is 0, and others may be below
            largest = torch.where(own, cosines[:, -1], cosines[:, 0])
            text_of_word = real.nonzero()[:, 0].cpu().numpy()
            sums = np.bincount(text_of_word, largest.double().cpu().numpy(), minlength=len(index))
            counts = np.bincount(text_of_word, minlength=len(index))
            means[index[counts > 0]] = sums[counts > 0] / counts[counts > 0]
    return means[~np.isnan(means)].tolist()


def _of_words(mask: Tensor, rows: Sequence[Row]) -> Tensor:
    """Which ids of a batch are part of words, (batch, time)."""
    words = np.zeros(mask.shape, dtype=bool)
    for at, row in enumerate(rows):
        words[at, : len(row.word)] = row.word >= 0
    return torch.from_numpy(words).to(mask.device)


def _nearness(run: Run, results: Sequence[Attacked]) -> list[float]:
    """For each text with swaps, how near the new words are to those they replaced."""
    cosines = []
    for attacked in results:
        pairs = [(run.vector(change.word), run.vector(change.toward)) for change in attacked.changes]
        if pairs:
            old, new = map(torch.stack, zip(*pairs, strict=True))
            cosines.append(float(F.cosine_similarity(old, new).mean()))
    return cosines
