"""A fine-tuned model on the Hugging Face hub, with its card."""

import os
from pathlib import Path
from typing import Any

from wordward.config.settings import TrainConfig
from wordward.runs import claiming, run_folder
from wordward.runs.hub import transformers_quietly
from wordward.runs.model_card import ON_HUB, write_card
from wordward.support.errors import DataError, RunError, SettingError


def push(
    run: str | Path, repo: str, *, card: str | Path | None = None, private: bool = False, dry_run: bool = False
) -> str:
    """Upload the fine-tuned model of a run to the Hugging Face hub: weights, tokenizer and model card.

    Args:
        run: The run folder.
        repo: The repository, as owner/name; made if there is none.
        card: Markdown that `wordward check` wrote as `card`, which becomes part of the model card.
        private: Make a new repository one that only you see.
        dry_run: Write the card into the folder, but upload nothing.

    Returns:
        The address of the model on the hub.

    Raises:
        RunError: If the run has no Hugging Face model, or the hub refuses it or cannot be reached.

    Examples:
        >>> import tempfile, wordward
        >>> wordward.hf.push(tempfile.mkdtemp(), "me/mine", dry_run=True)
        Traceback (most recent call last):
        wordward.support.errors.RunError: ... is not a run folder: it holds no config.toml; give one...
    """
    folder = Path(run)
    files = check_push(folder, repo)
    with transformers_quietly():
        from huggingface_hub import HfApi, constants
    with claiming.held(folder):  # no model that is being replaced
        write_card(folder, None if card is None else _read(Path(card)), repo=repo)
        if not dry_run:
            _upload(HfApi(), files, repo, folder.resolve().name, private=private)
    return f"{constants.ENDPOINT}/{repo}"


def _upload(api: Any, files: Path, repo: str, name: str, *, private: bool) -> None:
    try:
        api.create_repo(repo, private=private or None, exist_ok=True)
        message = f"{name}, fine-tuned with wordward"
        api.upload_folder(repo_id=repo, folder_path=files, commit_message=message)
    except Exception as error:  # of the hub's client, and of whichever package it reaches the hub with
        raise RunError(_explained(error, repo)) from None


def check_push(folder: Path, repo: str) -> Path:
    """The folder with the model of a run, which can be pushed to a repository of that name."""
    if not ON_HUB.fullmatch(repo):
        raise SettingError("repo", f"expected a repository of the hub as owner/name; got {repo!r}")
    config = run_folder.load_config(folder, TrainConfig)
    if config.transformer is None:
        raise RunError(
            f"{folder} holds a model of wordward's own, which transformers cannot load: only runs of `transformer` "
            "are pushed; share the run folder as it is"
        )
    files = folder / run_folder.TRANSFORMER
    if not (files / "config.json").exists():
        raise RunError(f"{folder} holds no {run_folder.TRANSFORMER} folder: was the run stopped early?")
    return files


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"expected Markdown that `wordward check` wrote as `card`: {error}", path) from None


def _explained(error: Exception, repo: str) -> str:
    """What went wrong, and what to do."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    why = (lines[0] if lines else type(error).__name__)[:200]
    if status in (401, 403) or "token" in type(error).__name__.lower():
        what = "log in with `hf auth login`, or set HF_TOKEN to a token that may write there"
    elif status is None:
        what = "the model and its card are in the run folder: run the command again where the hub can be reached"
        what += " (HF_HUB_OFFLINE is set here)" if os.environ.get("HF_HUB_OFFLINE") else ""
    else:
        what = "check the name of the repository"
    return f"the model could not be pushed to {repo} ({why}): {what}"
