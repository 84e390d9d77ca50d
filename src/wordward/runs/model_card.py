"""The model card of a fine-tuned model: README.md in its folder, as the Hugging Face hub shows it."""

import re
from pathlib import Path
from typing import Any

from wordward.config.settings import TrainConfig
from wordward.perturbation.recipes import parse_methods
from wordward.runs import run_folder
from wordward.support.errors import DataError
from wordward.support.files import write
from wordward.support.markdown import code, escaped
from wordward.support.version import __version__

CARD = "README.md"
ROBUSTNESS = "\n## Robustness\n"  # the part that a check wrote
CALLED = re.compile(r'(^model = pipeline\("[\w-]+", )model="[^"]*"', re.M)  # what the example calls the model
ON_HUB = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")  # owner/model


def write_card(folder: Path, robustness: str | None = None, *, repo: str | None = None, anew: bool = False) -> Path:
    """Write the card of a run, or add to the one that is there what `wordward check` found, in Markdown.

    An earlier check in it is replaced; whatever else was written into it stays, unless it is written `anew`.
    `repo`: what the model is called on the hub.
    """
    path = folder / run_folder.TRANSFORMER / CARD
    text = _card(folder) if anew or not path.exists() else path.read_text(encoding="utf-8", errors="replace")
    if repo is not None:
        text = CALLED.sub(lambda found: found[1] + _called(repo), text)
    if robustness is not None:
        before, _, checked = text.partition(ROBUSTNESS)
        after = checked.partition("\n## ")[1:]  # what was written behind the earlier check
        text = f"{before.rstrip()}\n{ROBUSTNESS}{_part(robustness)}{''.join(after)}"
    write(path, text)
    return path


def _card(folder: Path) -> str:
    """The card of a run, without any check."""
    config, labels = run_folder.load_config(folder, TrainConfig), run_folder.load_labels(folder)
    task = "token-classification" if config.task == "tag" else "text-classification"
    name, result = folder.resolve().name, run_folder.load_result(folder) or {}
    given = "words" if config.task == "tag" else "pairs of texts" if config.data.pair_column else "texts"
    names = ", ".join(code(" ".join(label.split())) for label in labels)
    says = f"Gives {given} one of the labels {names}. Fine-tuned"
    says += f" from `{config.transformer}`" if _on_hub(config) else ""
    lines = [*_metadata(config, task), f"# {escaped(name)}", "", f"{says} with wordward {__version__}.", ""]
    lines += ["| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in _facts(config, result).items()), ""]
    lines += ["```python", "from transformers import pipeline", "", f'model = pipeline("{task}", {_called(name)})']
    return "\n".join([*lines, "```", ""])


def _called(name: str) -> str:
    return f'model="{name}"'


def _metadata(config: TrainConfig, task: str) -> list[str]:
    """What the hub finds a model by, as YAML."""
    methods = [method.name for method in parse_methods(config.method, config.perturbation)]
    tags = ["wordward", *(["adversarial-training", *methods] if methods else [])]
    base = [f"base_model: {config.transformer}"] if _on_hub(config) else []
    known = ["library_name: transformers", f"pipeline_tag: {task}", *base]
    return ["---", *known, "tags:", *(f"- {tag}" for tag in tags), "---", ""]


def _facts(config: TrainConfig, result: dict[str, Any]) -> dict[str, str]:
    """How the model was trained, and its scores on dev."""
    texts, scores = result.get("texts") or {}, result.get("dev") or {}
    held_out = f" on {texts['dev']:,} held-out texts" if "dev" in texts else ""
    found = {"method": config.method}
    found |= {"training texts": f"{texts['train']:,}"} if "train" in texts else {}
    if result.get("epochs") and "best_epoch" in result:
        found |= {"epochs": f"{result['epochs']}, of which {result['best_epoch']} is kept"}
    return (
        found
        | {f"{name}{held_out}": f"{value:.2%}" for name, value in scores.items()}
        | {"seed": str(config.training.seed)}
    )


def _on_hub(config: TrainConfig) -> bool:
    """Whether the model that training started from is one of the hub, and not a folder of this machine."""
    source = str(config.transformer)
    return ON_HUB.fullmatch(source) is not None and not Path(source).exists()


def _part(robustness: str) -> str:
    """The Markdown of a check as a part of a card, its headings a level lower."""
    first, _, rest = robustness.partition("\n")
    if not first.startswith("# "):
        raise DataError(f"expected Markdown that `wordward check` wrote as `card`; got {first[:60]!r}")
    return re.sub(r"(?m)^(#+ )", r"#\1", rest)
