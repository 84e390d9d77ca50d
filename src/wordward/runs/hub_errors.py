"""What keeps a Hugging Face model or its tokenizer from being loaded, and what to do about it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError

from wordward.runs.missing_run import beside, is_path
from wordward.support.errors import RunError, WordwardError
from wordward.support.files import refuse_pipes


def check_folder(source: str) -> None:
    """Refuse a folder that holds no model, and a path that does not exist."""
    folder = Path(source)
    if folder.is_dir():
        refuse_pipes(folder)
        if (folder / "config.json").exists():
            return
        inner = folder / "model" / "config.json"
        hint = f"give {folder / 'model'}" if inner.exists() else "give the folder that save_pretrained wrote"
        raise RunError(f"{source} is not the folder of a Hugging Face model: it holds no config.json; {hint}")
    if folder.exists() or is_path(source):
        raise RunError(
            f"there is no folder {source} ({beside(source)}): give that of a Hugging Face model, or its name on the "
            "hub"
        )
    if ":" in source:  # no name on the hub has one
        raise RunError(
            f"expected the folder of a Hugging Face model, or its name on the hub; got {source}: write a model that "
            "Python gives to a folder, by save_pretrained of the model and of its tokenizer, and give that"
        )


@contextmanager
def explained(source: str, what: str, kind: str = "AutoModel") -> Iterator[None]:
    """Turn an error of loading into one that says what to do."""
    try:
        yield
    except (WordwardError, MemoryError):
        raise
    except Exception as error:  # tokenizers raises nothing more special
        lines = [line.strip() for line in str(error).split("\n") if line.strip()]
        why = (lines[0] if lines else type(error).__name__)[:200]
        if "trust_remote_code" in str(error):
            raise RunError(
                f"the {what} of {source} is Python code that comes with it, which is never run here: take a model "
                "that transformers itself knows"
            ) from None
        if _unsafe(source, error):
            converted = source if Path(source).is_dir() else "FOLDER"
            raise RunError(
                f"{source} has no weights in safetensors, the one format that is read, since others (.bin) may hold "
                "code: if you trust it, convert it with transformers, "
                f"{kind}.from_pretrained({source!r}).save_pretrained({converted!r})"
            ) from None
        if Path(source).is_dir():
            raise RunError(f"the {what} in {source} cannot be loaded: {why}") from None
        raise RunError(
            f"{source} is no folder here, and its {what} could not be had from the Hugging Face hub ({why}): check "
            f"the name; where the hub cannot be reached, fetch it elsewhere, `hf download {source} --local-dir "
            "FOLDER`, and give that folder"
        ) from None


def _unsafe(source: str, error: Exception) -> bool:
    """Whether loading failed because the weights are in a format that may hold code."""
    if isinstance(error, UnpicklingError) or "cannot be loaded with `safetensors`" in str(error):
        return True
    folder = Path(source)
    others = any(any(folder.glob(f"*.{kind}")) for kind in ("bin", "pt", "pth", "ckpt", "h5", "msgpack"))
    return isinstance(error, OSError) and others and not any(folder.glob("*.safetensors"))
