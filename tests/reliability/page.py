"""Put the figures that were kept into `docs/reliability.md`, each with its date and machine.

    python -m tests.reliability.page

A block between `<!-- name -->` and `<!-- end of name -->` is written here; all else in the page stays.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent)]

from records import FOLDER, recorded

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"


def _table(head: list[str], *rows: list[Any]) -> str:
    lines = [head, ["---:"] * len(head), *rows]
    return "\n".join("| " + " | ".join(f"{each:,}" if isinstance(each, int) else str(each) for each in row) + " |"
                     for row in lines)  # fmt: skip


def _where(figures: dict[str, Any]) -> str:
    return f"{figures['date']}; {figures['machine']}, which other work kept busy."


def kills() -> str:
    """Commands that were killed."""
    at = recorded("kills")
    head = ["kills", "while a file was half written", "chains", "ended as undisturbed ones", "problems", "seconds"]
    row = [at[name] for name in ("kills", "half_written", "chains", "equal", "problems", "seconds")]
    return f"{_table(head, row)}\n\n{', '.join(at['kinds'])}; {_where(at)}"


def damaged() -> str:
    """Folders and packs that were damaged."""
    folders, more, packs = (recorded(f"damaged_{name}") for name in ("folders", "more", "packs"))
    names = ("damages", "worked", "refused", "problems", "seconds")
    head = ["what was damaged", "damages", "did their work", "refused", "problems", "seconds"]
    kinds = {"run folders": folders, "more kinds": more, "packed corpora": packs}
    return (
        f"{_table(head, *([kind, *(at[name] for name in names)] for kind, at in kinds.items()))}\n\n{_where(packs)}"
    )


def fuzzed() -> str:
    """Files and requests."""
    files, requests = recorded("fuzz_readers"), recorded("fuzz_requests")
    head = ["what", "inputs", "problems", "seconds", "what came of them"]
    came = ", ".join(f"{count:,} {status}" for status, count in requests["answers"].items())
    kinds = f"{files['read']:,} read, {files['refused']:,} refused, by {files['readers']} readers"
    rows = [
        ["files", files["inputs"], files["problems"], files["seconds"], kinds],
        ["requests", requests["requests"], requests["problems"], requests["seconds"], came],
    ]
    return f"{_table(head, *rows)}\n\n{_where(files)}"


def load() -> str:
    """The server under many connections."""
    at = recorded("load")
    rows = []
    for asked in at["asked"]:
        others = sum(count for status, count in asked["answers"].items() if status != "200")
        rows.append(
            [asked["question"], asked["answers"]["200"], others, f"{asked['p50_s']} s", f"{asked['p99_s']} s"]
        )
    return f"{_table(['', 'answered 200', 'others', 'median', '99 % within'], *rows)}\n\n{_where(at)}"


def soak() -> str:
    """The server's memory."""
    at = recorded("soak")
    memory, answers = at["memory_mb"], ", ".join(f"{count:,} times {name}" for name, count in at["answers"].items())
    grown = at["grown_in_the_second_half_mb"]
    return (
        f"{at['minutes']:g} minutes, {at['connections']} connections, answered {answers}. Memory in MB, each round: "
        f"{', '.join(map(str, memory))}; from the middle to the end {grown:+d} MB. {_where(at)}"
    )


def mutants() -> str:
    """Changes to the code, and what noticed them."""
    at = recorded("mutants")
    head = ["files", "changes", "noticed by a test", "the same program", "not tried", "survived"]
    row = [len(at["files"]), at["mutants"], at["noticed"], at["explained"], at["untried"], len(at["survived"])]
    survived = "".join(f"\n- `{name}`" for name in at["survived"])
    return f"{_table(head, row)}\n\n{_where(at)}{survived and f' Survived:{chr(10)}{survived}'}"


def versions() -> str:
    """The core tests with the lowest versions and with the newest."""
    told = []
    for which in ("lowest", "newest"):
        at = recorded(f"versions_{which}")
        names = ("torch", "numpy", "safetensors", "transformers", "accelerate")
        what = ", ".join(f"{name} {at[name]}" for name in names)
        told.append(f"With the {which}, {what}: {at['passed']:,} core tests passed, {at.get('failed', 0)} failed.")
    return f"{chr(10).join(told)} {_where(at)}"


BLOCKS: dict[str, Callable[[], str]] = {
    "kills": kills,
    "damaged": damaged,
    "fuzzed": fuzzed,
    "load": load,
    "soak": soak,
    "mutants": mutants,
    "versions": versions,
}


def written(page: str) -> str:
    """The page with the figures that were kept last."""

    def block(match: re.Match[str]) -> str:
        return f"<!-- {match[1]} -->\n{BLOCKS[match[1]]()}\n<!-- end of {match[1]} -->"

    return re.sub(r"<!-- (\w+) -->\n.*?<!-- end of \1 -->", block, page, flags=re.DOTALL)


if __name__ == "__main__":
    assert FOLDER.exists(), "there are no records: give --record to the programs of the page"
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
