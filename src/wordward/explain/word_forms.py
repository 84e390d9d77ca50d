"""Which words are forms of one another, so that a pull from one to the other says nothing: service, serve; 1, 01."""

import re
from functools import lru_cache
from itertools import takewhile
from zlib import crc32

from wordward.explain.english import CLOSED, fold

# What English words that begin alike end in where they are forms of one word.
ENDINGS = frozenset(
    """
    a able ably age aic al ally ament an ance ancy ant ar arian arily ary asm astic ate ated atic ation ational
    ative ator ature bility ble bly c cal cally ce cial cian ct ction cy d de dom e ed ee el ement en enance
    ence ency ent er ery ese ess et eutic ful fully hood ial ially ian iance iation ibility ible ibly ic ical
    ically icate ication ice ician icity ics ience ient ify ility in inal ination ine ing ings ion ional ior
    ious ish ism ist istic istics ition itional itive itor ity ium ive ively ization ize land le like
    ly m mal ment mize mum n nce nd ness nt ntial or oric ory osition ous ously pt ption re s se sh ship
    sion sis sition sive sm sor ssion st stic stry t te th tial tic tical tics tion tional tive tor tory ture ty
    ual ually uction ude ular ulate ulation ulus um ure us ution vation ve ward wise y ying yse ysis yst ytic
    ytical yze ze zer zing
    """.split()
)
# British spelling, and what Americans write.
BRITISH = (
    (re.compile("(?<=...)([iy])s(?=e|ing|ation)"), r"\1z"),
    (re.compile("(?<=...[aeiou])ll(?=ed|er|ing)"), "l"),  # travelled, traveled; but not falling, faling
)
OUR = re.compile("(?<=...)our(?=$|s|ed|ing|able|ite|ful|less|er|ist|hood|ly)")
GREY, COSY = re.compile("^grey"), re.compile("(?<=[aeiou])z(?=y|ie)")
WITHOUT = ("less", "los")  # careless is nothing like careful, arbeitslos nothing like Arbeit
WHOLE = 4  # letters of a word that another begins with
ALIKE, SHORT = 5, 2  # letters of a beginning that is long, and of ends that are short, in any language


@lru_cache(maxsize=1 << 18)
def beginning(word: str) -> int:
    """A number that forms of one word have in common, so that only words with the same one need be compared."""
    word = GREY.sub("gray", fold(word))
    return crc32(b"0" if word.isdecimal() else word[: WHOLE - 1].replace("z", "s").encode())


def same_word(word: str, other: str) -> bool:
    """Whether two words are forms of one word, or one number written in two ways.

    One begins with the other (pipe, pipeline; net, nets), or both begin alike and end as forms of an English word do
    (library, librarian), or they differ in two letters at the end of a long beginning, which serves other languages.
    Nor is a word in British spelling another one than in American (humour, humor; cosy, cozy). It is a rule of thumb:
    words that only look so are left out, too.
    """
    word, other = (GREY.sub("gray", fold(each)) for each in (word, other))
    if word.isdecimal() and other.isdecimal():
        return int(word) == int(other)
    if COSY.sub("s", word) == COSY.sub("s", other) or _as_humour(word, other) or _as_humour(other, word):
        return True
    if word[: WHOLE - 1] != other[: WHOLE - 1]:  # as most do
        return False
    if word in CLOSED or other in CLOSED:
        return word == other
    for spelling, american in BRITISH:
        word, other = spelling.sub(american, word), spelling.sub(american, other)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, other, strict=False)))
    ends = word[shared:], other[shared:]
    if all(end.endswith("s") for end in ends):  # of both plurals
        ends = ends[0][:-1], ends[1][:-1]
    if shared < WHOLE - 1 or any(end.startswith(WITHOUT) for end in ends):
        return False
    if not all(ends):
        end = "".join(ends)
        doubled = end[:1] == word[shared - 1]  # stop, stopper
        return shared >= WHOLE or end in ENDINGS or (doubled and end[1:] in ENDINGS) or not end
    if shared < WHOLE and min(map(len, ends)) < SHORT:
        return False
    return all(end in ENDINGS for end in ends) or (shared >= ALIKE and max(map(len, ends)) <= SHORT)


def _as_humour(word: str, other: str) -> bool:
    """Whether a British word in -our, or a form of it, is another American one: humour, humor, humorous."""
    found = OUR.search(word)
    return found is not None and other.startswith(f"{word[: found.start()]}or")
