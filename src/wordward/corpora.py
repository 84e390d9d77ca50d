"""Known corpora, encoded: from the cache, from their publisher's files, or from a packed file."""

import os
from dataclasses import replace
from pathlib import Path

from wordward.cache import Encoded, Splits, load_or_encode
from wordward.config import TextSettings
from wordward.console import waiting
from wordward.kept import cache_folder
from wordward.pack import read_pack

PACK = ".pack"


def open_corpus(
    name: str,
    settings: TextSettings,
    *,
    data: str | None = None,
    limit: int | None = None,
    quiet: bool = False,
) -> Encoded:
    """A corpus by its name, encoded once and cached; or that of a packed file, packed with the same settings."""
    if name.endswith(PACK):
        encoded = read_pack(Path(name), settings)
    else:
        from wordward.datasets import registry

        def read() -> Splits:
            with waiting(f"reading {name}", quiet=quiet):
                return registry.load(name, data)._asdict()

        encoded = load_or_encode(
            cache_folder(),
            name,
            registry.sources(name, data),
            settings,
            read,
            workers=os.cpu_count() or 1,
            quiet=quiet,
        )
    if limit is None:
        return encoded
    return replace(encoded, splits={name: corpus.some(limit) for name, corpus in encoded.splits.items()})
