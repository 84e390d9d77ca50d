"""Known corpora, encoded: from the cache, from their publisher's files, or from a packed file."""

from dataclasses import replace
from itertools import chain
from pathlib import Path

from wordward.config.texts import TextSettings
from wordward.datasets import DataError, registry
from wordward.support.console import waiting
from wordward.support.threads import cores
from wordward.text.cache import Encoded, Splits, load_or_encode
from wordward.text.cache_files import cache_folder
from wordward.text.corpus import Corpus
from wordward.text.on_disk import Texts, store
from wordward.text.pack import read_pack
from wordward.text.tokens import vocabulary_of
from wordward.text.vocabulary import Vocabulary

PACK = ".pack"


def open_corpus(
    name: str,
    settings: TextSettings,
    *,
    data: str | None = None,
    limit: int | None = None,
    vocabulary: Vocabulary | None = None,
    texts: Texts | None = None,
    quiet: bool = False,
) -> Encoded:
    """A corpus by name, encoded once and cached; or a packed file, which must have the same settings.

    `texts` are added to its unlabelled ones, and their words to the vocabulary unless one is given.
    """
    common = None
    if texts is not None and vocabulary is None:
        common = vocabulary = _common_vocabulary(name, texts, settings, data, quiet=quiet)
    encoded = _encoded(name, settings, data, common, quiet=quiet)
    if vocabulary is not None and vocabulary.fingerprint != encoded.vocabulary.fingerprint:
        encoded = _encoded(name, settings, data, vocabulary, quiet=quiet)
    if texts is not None:
        rows = store(texts, encoded.vocabulary, settings, tagging=encoded.tagging, quiet=quiet)
        unlabelled = encoded.splits["unlabelled"] + Corpus(rows)
        encoded = replace(encoded, splits=encoded.splits | {"unlabelled": unlabelled})
    return replace(encoded, splits={name: corpus.sample(limit) for name, corpus in encoded.splits.items()})


def _encoded(
    name: str, settings: TextSettings, data: str | None, vocabulary: Vocabulary | None, *, quiet: bool
) -> Encoded:
    """A corpus as ids of a vocabulary, by default its own; a packed one can have no other."""
    if name.endswith(PACK):
        if vocabulary is not None:
            raise DataError(
                "expected the vocabulary it was packed with; got a different one, which its word numbers do not "
                "match: give the corpus by name",
                name,
            )
        return read_pack(Path(name), settings)

    def read() -> Splits:
        with waiting(f"reading {name}", quiet=quiet):
            splits = registry.load(name, data)._asdict()
        if empty := [split for split in ("train", "dev", "test") if not splits[split]]:
            raise DataError(
                f"expected texts to train, select and test on; {name} has none in {', '.join(empty)}: compare it "
                f"with the paper's counts by `wordward data check {name}`",
                registry.find(name, data),
            )
        return splits

    return load_or_encode(
        cache_folder(),
        name,
        registry.sources(name, data),
        settings,
        read,
        vocabulary=vocabulary,
        workers=cores(),
        quiet=quiet,
    )


def _common_vocabulary(
    name: str, texts: Texts, settings: TextSettings, data: str | None, *, quiet: bool
) -> Vocabulary:
    """The vocabulary of a corpus's training and unlabelled texts and of `texts`."""
    if name.endswith(PACK):
        raise DataError(
            f"expected a corpus by name to use with your own texts, whose words are counted together; got {name}, "
            "which holds only word numbers"
        )
    with waiting(f"counting the words of {name} and your texts", quiet=quiet):
        splits = registry.load(name, data)
        return vocabulary_of(chain(splits.train, splits.unlabelled, texts), settings)
