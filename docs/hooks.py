"""What the site adds to its pages: Markdown as GitHub reads it, and the programs of examples/ as a page."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

EXAMPLES = Path(__file__).parent.parent / "examples"
FENCE = re.compile(r"\s*(```|~~~)")
ITEM = re.compile(r"(- |\* |\d+\. )\S")
LINK = re.compile(r"\]\(\.\./examples/(?:(\w+)\.py)?\)")


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """One page of all programs, for links to them to lead to."""
    programs = {path.name: path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.py"))}
    parts = [f"## {name}\n\n```python\n{code}```" for name, code in programs.items()]
    text = "\n\n".join(["# Examples", "Whole programs, each run by the tests.", *parts])
    files.append(File.generated(config, "examples.md", content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Lists and tables need no blank line before them; links to examples/ lead to their page."""
    lines: list[str] = []
    fenced = False
    for line in markdown.split("\n"):
        before = lines[-1] if lines else ""
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced and before.strip() and _opens(line, before):
            lines.append("")
        lines.append(line if fenced else LINK.sub(_link, line))
    return "\n".join(lines)


def _link(found: re.Match[str]) -> str:
    """Where a link to examples/, or to a program of it, leads."""
    return f"](examples.md#{found[1]}py)" if found[1] else "](examples.md)"


def _opens(line: str, before: str) -> bool:
    """Whether a list or a table begins here, right below a line of text."""
    if line.startswith("|"):
        return not before.startswith("|")
    return bool(ITEM.match(line)) and not ITEM.match(before) and not before.startswith(" ")
