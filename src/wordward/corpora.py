"""Known corpora, encoded: from the cache, from their publisher's files, or from a packed file."""

import os
from dataclasses import replace
from pathlib import Path

from wordward.cache import Encoded, Splits, load_or_encode
from wordward.config import TextSettings
from wordward.console import waiting
from wordward.pack import read_pack

PACK = ".pack"
VARIABLE = "WORDWARD_CACHE"


def open_corpus(
    name: str,
    settings: TextSettings,
    *,
    data: str | None = None,
    limit: int | None = None,
    quiet: bool = False,
) -> Encoded:
    """A corpus by its name, encoded once and cached; or that of a packed file, encoded as it was packed."""
    if name.endswith(PACK):
        encoded = read_pack(Path(name))
    else:
        from wordward.datasets import registry

        def read() -> Splits:
            with waiting(f"reading {name}", quiet=quiet):
                return registry.load(name, data)._asdict()

        encoded = load_or_encode(
            cache_folder(),
            name,
            registry.find(name, data),
            settings,
            read,
            workers=os.cpu_count() or 1,
            quiet=quiet,
        )
    if limit is None:
        return encoded
    return replace(encoded, splits={name: corpus.some(limit) for name, corpus in encoded.splits.items()})


def cache_folder() -> Path:
    """Where encoded corpora are kept: WORDWARD_CACHE, else in the user's cache folder."""
    given = os.environ.get(VARIABLE)
    return Path(given) if given else Path.home() / ".cache" / "wordward"
