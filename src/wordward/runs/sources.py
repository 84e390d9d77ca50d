"""Where the files of a model lie that wordward did not train."""

import sys
from pathlib import Path


def place_of(source: str) -> Path:
    """The folder of a model, of one of the hub that in the cache; of `module:name` the file."""
    if Path(source).is_dir():
        return Path(source)
    module, named, _ = source.partition(":")
    if named:
        return Path(getattr(sys.modules.get(module.removesuffix(".py")), "__file__", None) or source)
    from huggingface_hub import try_to_load_from_cache

    cached = try_to_load_from_cache(source, "config.json")
    return Path(cached).parent if isinstance(cached, str) else Path(source)
