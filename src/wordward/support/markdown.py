"""Texts of others in Markdown that we write, where they are to be shown and nothing more."""

import re

# What begins or ends something in Markdown, math and HTML, but for _ inside a word; and addresses, which become links
# without any brackets.
READ = re.compile(r"[\\`*\[\]|#<$~]|(?<![^\W_])_|_(?![^\W_])|!(?=\[)|&(?=#?\w+;)|:(?=//)|(?<=www)\.", re.IGNORECASE)
NAMED = {"\\": "&#92;", "<": "&lt;", "&": "&amp;"}  # a second backslash would make math of \( on the hub


def escaped(text: str) -> str:
    """A text of one line as Markdown that shows it as it is, also in a table."""
    return READ.sub(lambda found: NAMED.get(found[0], f"\\{found[0]}"), text)


def code(text: str) -> str:
    """A text of one line as code, between more backticks than it has in a row."""
    ticks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{ticks}{text}{ticks}" if len(ticks) == 1 else f"{ticks} {text} {ticks}"
