"""An earlier check, from its JSON file, to compare a later one with text by text."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from wordward.config.attack import AttackSettings
from wordward.datasets import DataError
from wordward.runs.json_checks import Kind, check_kind
from wordward.runs.metrics import mcnemar

FEWEST = 6  # texts that can differ beyond chance: with 5, all of them lost, p is 0.06
# What is read of an earlier check.
EARLIER: Kind = {
    "each": [{"text": str, "right": bool, "flips_at": (None, int)}],
    "settings": {},
    "guard?": (None, {"target?": (None, str)}),
    "judged_by?": (None, str),
}


@dataclass(frozen=True)
class Earlier:
    """Which texts an earlier check found right, and how many edits flipped each."""

    name: str
    right: Mapping[str, bool]  # by what identifies a text
    flips_at: Mapping[str, int | None]

    @classmethod
    def read(
        cls, path: str | Path, settings: AttackSettings, guards: str | None = None, judged_by: str | None = None
    ) -> "Earlier":
        """The one in a file that `wordward check` wrote as JSON; one that attacked in another way is refused.

        `guards`: the label that texts are flagged for by a threshold, which need not be as it was. `judged_by`: a
        fingerprint of the texts that decide which edits keep the sense.
        """
        if not Path(path).exists() or Path(path).is_dir():
            what = "is a folder" if Path(path).is_dir() else "does not exist"
            said = f"expected the JSON of an earlier `wordward check`, a file that `json` writes; this {what}"
            raise DataError(said, path)
        try:
            record = json.loads(Path(path).read_text(encoding="utf-8"))
            check_kind(record, EARLIER)
            each, made = record["each"], record["settings"]
            before = (record.get("guard") or {}).get("target")
            right = {one["text"]: one["right"] for one in each}
            flips_at = {one["text"]: one["flips_at"] for one in each}
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(
                f"expected the JSON of an earlier `wordward check`; it cannot be read: {error}", path
            ) from None
        if other := _differing(made, settings):
            raise DataError(
                f"it was made with other settings of the attack ({other}), so what it tells cannot be compared: give "
                "the same, or make it again",
                path,
            )
        if record.get("judged_by", judged_by) != judged_by:  # files of older versions do not say
            raise DataError(
                "which edits keep the sense was judged by other texts, so what it tells cannot be compared: give the "
                "same as `sense_from`, by default the texts checked (a run of wordward counts its training texts: "
                "check its folder model), or make it again",
                path,
            )
        if before != guards:
            then, now = (f"for {name!r}" if name else "by no threshold" for name in (before, guards))
            raise DataError(
                f"texts were flagged {then} then, and are flagged {now} now, so what it tells cannot be compared",
                path,
            )
        return cls(str(path), right, flips_at)

    def compare(self, now: Mapping[str, bool], edits: int) -> dict[str, float]:
        """On the texts in both: the accuracy then and now, texts lost and won, p of McNemar's exact test (two-sided).

        `now`: of each text whether it is right under so many edits.
        """
        both = [text for text in now if text in self.right]
        if not both:
            raise DataError(
                "expected some of the same texts with the same labels; none of these are in it", self.name
            )
        if len(both) < min(FEWEST, len(self.right)):
            raise DataError(
                f"expected the same texts with the same labels; only {len(both)} of these {len(now)} are in it, on "
                f"which nothing can be shown: {FEWEST} at least are needed",
                self.name,
            )
        then = {text: self._holds(text, edits) for text in both}
        lost, won = (sum(a[text] and not b[text] for text in both) for a, b in ((then, now), (now, then)))
        before, after = (sum(right[text] for text in both) / len(both) for right in (then, now))
        return {"texts": len(both), "before": before, "after": after, "lost": lost, "won": won} | {
            "p": mcnemar(lost, won)
        }

    def _holds(self, text: str, edits: int) -> bool:
        flips_at = self.flips_at[text]
        return self.right[text] and (flips_at is None or flips_at > edits)


def _differing(made: Mapping[str, Any], settings: AttackSettings) -> str:
    """The settings of an attack that are not as they were; one that was not known then is taken at its default."""
    default = asdict(AttackSettings())
    now = json.loads(json.dumps(asdict(settings)))
    before = json.loads(json.dumps(default)) | dict(made)
    names = [item.name for item in fields(settings) if before.get(item.name) != now[item.name]]
    given = {"max_swaps": "the largest of `budgets`"}  # which a check has in its place
    return ", ".join(f"{given.get(name, name)}: {before.get(name)} then, {now[name]} now" for name in names)
