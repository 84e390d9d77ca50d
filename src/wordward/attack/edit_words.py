"""English words that edits may put in or leave out, and characters that look or lie alike."""

# Words that a reader skips where a clause ends or in front: they speak neither for nor against anything.
ADVERBS = ("today", "here", "now", "then", "this time", "these days", "in the end")
# The same, with a comma before them at the end of a clause.
ASIDES = (
    *("anyway", "by the way", "of course", "as it happens", "for the record", "you know", "i mean", "at any rate"),
    "all in all",
)
INSERTED = ADVERBS + ASIDES
# Words that a reader skips after the end of a text.
APPENDED = (
    *("thanks", "thank you", "regards", "hello", "hi", "okay", "ok", "anyway", "bye", "cheers", "greetings"),
    *("today", "here", "now", "later", "tomorrow", "yesterday", "monday", "tuesday", "wednesday", "thursday"),
    *("friday", "saturday", "sunday", "morning", "evening", "end", "done", "note", "yours", "sincerely"),
)
# Words that a reader does not miss where they are left out, unless a negation or one of BOUND is beside them.
OMITTED = frozenset(
    "a an the very really quite just simply even also then actually basically certainly definitely indeed".split()
)
BOUND = frozenset("only all such what how as too so many few little lot".split())
# Letters and others that look the same in most fonts (Cyrillic, Greek and Latin ones).
ALIKE = dict(
    zip(
        "aceijopsxyABEHIKMNOPTXYZ",
        "\u0430\u0441\u0435\u0456\u0458\u043e\u0440\u0455\u0445\u0443"
        "\u0410\u0412\u0415\u041d\u0406\u041a\u041c\u039d\u041e\u0420\u0422\u0425\u03a5\u0396",
        strict=True,
    )
)
# Characters of no width: zero-width space, soft hyphen, word joiner, zero-width non-joiner.
INVISIBLE = ("\u200b", "\u00ad", "\u2060", "\u200c")
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
# Keys beside each other in a row of the keyboard.
BESIDE = {key: (row[at - 1] if at else "") + row[at + 1 : at + 2] for row in _ROWS for at, key in enumerate(row)}
