"""Where the addresses in a text stand: of pages and mail, paths of files, and hashes."""

import re

_TAIL = r"[!#-&*-;=?-_a-z|~]*"  # what an address may go on with: no blanks, quotes or brackets, ASCII only
_HOST = r"(?<![\w.-])[\w-]+(?:\.[\w-]+)*\."
# Ends of names of machines that are hardly ever a word whose full stop has no blank behind it (film.It).
_ENDS = "com|org|net|edu|gov|info|dev|eu|uk|fr|nl|pl|ru|ua|cz|br|cn|jp|kr"
_HEX = r"[0-9a-f]"
_ADDRESS = re.compile(
    "|".join(
        (
            rf"[a-z][a-z0-9+.]{{0,15}}://{_TAIL}",
            rf"\bwww\.{_TAIL}",
            r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+",  # mail
            rf"{_HOST}[a-z]{{2,}}(?::\d+)?/{_TAIL}",
            rf"{_HOST}(?:{_ENDS})\b",
            r"(?<![\w/.~])[.~]{0,2}/[\w.@+-]+(?:/[\w.@+~-]+)+/?",  # /usr/share
            # src/main.py
            r"(?<![\w/.@-])[\w@-][\w.@-]*(?:/[\w.@-]+)*/[\w@-]+(?:\.[\w-]+)*\.(?-i:[a-z][a-z0-9]{0,3})\b",
            r"\b[a-z]:\\[^\s<>\"']+",  # C:\...
            rf"\b(?=[a-f]*\d)(?=\d*[a-f]){_HEX}{{7,64}}\b",
        )
    ),
    re.IGNORECASE,
)

_HINT = re.compile(r"[/@\\.\d]")  # one of these stands in every address


def addresses(text: str) -> list[tuple[int, int]]:
    """Where each address begins and ends, in order: looked for between the blanks around a hint alone."""
    found: list[tuple[int, int]] = []
    read = 0
    for hint in _HINT.finditer(text):
        if hint.start() < read:
            continue
        end = text.find(" ", hint.end())
        read = len(text) if end < 0 else end
        found += [each.span() for each in _ADDRESS.finditer(text, text.rfind(" ", 0, hint.start()) + 1, read)]
    return found
