"""The outcome of an attack on many texts in numbers."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from wordward.attack.attacked import Attacked
from wordward.attack.sense import unjudged, unmeasured
from wordward.runs.metrics import Interval, share


class KindSummary(NamedTuple):
    """What edits of one kind do to a model."""

    made: int  # in the flipped texts
    alone: Interval  # share of the attacked texts that one such edit was found to flip by itself


@dataclass(frozen=True)
class Summary:
    """The numbers of an attack; intervals are Wilson's at 95 %."""

    texts: int
    unreadable: int  # without any word, or longer than a tagger can read
    attacked: int  # whose prediction was right
    flipped: int
    accuracy: Interval | None  # of the model, on the texts it can read; None without true labels
    accuracy_under_attack: Interval | None
    success: Interval | None  # flipped of attacked; None where nothing was attacked
    success_sense_kept: Interval | None  # by swaps all judged to keep the true label; None: none was judged
    share_changed: float | None  # mean share of words swapped in the flipped texts
    swaps: float | None  # mean number of them
    passes: float  # texts read by the model for each text
    texts_a_second: float | None
    task: str = "classify"  # tag: accuracies are shares of the true errors that are flagged
    kinds: dict[str, KindSummary] = field(default_factory=dict)  # empty where words are swapped only
    cost: float | None = None  # mean number of characters changed in the flipped texts; None as there
    unmeasured: str = ""  # why the rates that depend on the sense of edits are None, where few words can be judged

    def as_dict(self) -> dict[str, Any]:
        """The numbers as a dict for `json.dumps`."""
        values = {k: v._asdict() if isinstance(v := getattr(self, k), Interval) else v for k in asdict(self)}
        kinds, cost = values.pop("kinds"), values.pop("cost")
        if kinds:
            named = {kind: {"made": one.made, "alone": one.alone._asdict()} for kind, one in kinds.items()}
            values |= {"cost": cost, "kinds": named}
        return values


def summarise(
    results: Sequence[Attacked],
    *,
    edits: Sequence[str] = ("swap",),
    tagging: bool = False,
    seconds: float | None = None,
    timed: int = 0,
    sense: str = "any",
    few: bool = False,
) -> Summary:
    """Summarise results; the last `timed` of them took `seconds`, which gives the speed; `edits`: kinds allowed.

    `tagging`: whether they are a tagger's, of whose sentences without true tags and flags nothing else tells that.
    `sense`: which edits were allowed; `few`: whether there were few words to judge them by.
    """
    read = [result for result in results if result.outcome != "unreadable"]
    attacked = [result for result in read if result.outcome != "wrong"]
    flipped = [result for result in attacked if result.flipped]
    tagging = tagging or any(result.errors is not None or result.flagged for result in results)
    before, after = _errors_flagged(read) if tagging else _accuracies(read, attacked, flipped)
    count, kept = len(attacked), sum(result.sense_kept for result in flipped)
    judged = any(change.sense != "unknown" for result in flipped for change in result.changes)
    told = judged or not (flipped or tagging)  # a tagger's are judged by corrections, where there are any
    why = "" if not few else unmeasured(attacked) if sense == "kept" else unjudged(flipped)
    rated = bool(count) and not (why and sense == "kept")
    kinds = {} if tuple(edits) == ("swap",) or not count else {kind: _kind(attacked, kind) for kind in edits}
    return Summary(
        texts=len(results),
        unreadable=len(results) - len(read),
        attacked=count,
        flipped=len(flipped),
        accuracy=before,
        accuracy_under_attack=after if rated or not count else None,
        success=share(len(flipped), count) if rated else None,
        success_sense_kept=share(kept, count) if count and told and not why else None,
        share_changed=sum(result.share for result in flipped) / len(flipped) if flipped else None,
        swaps=sum(len(result.changes) for result in flipped) / len(flipped) if flipped else None,
        passes=sum(result.passes for result in results) / len(results) if results else 0.0,
        texts_a_second=timed / seconds if seconds and timed else None,
        task="tag" if tagging else "classify",
        kinds=kinds,
        cost=sum(result.cost for result in flipped) / len(flipped) if flipped and kinds else None,
        unmeasured=why,
    )


def _kind(attacked: Sequence[Attacked], kind: str) -> KindSummary:
    made = sum(change.kind == kind for result in attacked if result.flipped for change in result.changes)
    return KindSummary(made, share(sum(kind in result.alone for result in attacked), len(attacked)))


Pair = tuple[Interval | None, Interval | None]


def _accuracies(read: Sequence[Attacked], attacked: Sequence[Attacked], flipped: Sequence[Attacked]) -> Pair:
    if not read or not all(result.given for result in read):
        return None, None
    return share(len(attacked), len(read)), share(len(attacked) - len(flipped), len(read))


def _errors_flagged(read: Sequence[Attacked]) -> Pair:
    errors = sum(result.errors or 0 for result in read)
    if not errors or any(result.errors is None for result in read):
        return None, None
    return share(sum(len(e.flagged) for e in read), errors), share(sum(len(e.left) for e in read), errors)
