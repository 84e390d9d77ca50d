"""A Hugging Face model and its tokenizer, from a folder or from the hub; no code of theirs is run."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import safe_open
from torch import nn

from wordward.runs.hub_errors import check_folder, explained
from wordward.support.errors import MissingExtraError, RunError

# One of these makes a folder one with a tokenizer.
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "tokenizer.model", "*bpe.model")
UNLIMITED = 1 << 20  # what tokenizers without a longest length say is more
# Code that a folder brings is never run, and transformers is not to ask about it on standard input; weights are read
# from safetensors only, since a pickle (.bin) may hold code as well.
SAFE: dict[str, Any] = {"trust_remote_code": False}
SAFE_WEIGHTS: dict[str, Any] = {**SAFE, "use_safetensors": True}
# Sizes of a model's tensors, by the names that families give them.
SIZES = set(
    "hidden_size intermediate_size vocab_size type_vocab_size max_position_embeddings embedding_size dim".split()
)
SIZES |= set("hidden_dim n_embd n_positions d_model d_ff num_hidden_layers n_layers n_layer num_layers".split())
SLACK = 4  # a size may be a part of a tensor's, as three in one, or a multiple of it
HEADS = {False: "ForSequenceClassification", True: "ForTokenClassification"}  # by whether a model gives tags
LONGEST = 512  # pieces, where neither tokenizer nor model says more


@contextmanager
def transformers_quietly() -> Iterator[Any]:
    """Import transformers, with its messages and progress bars off inside the block."""
    try:
        import transformers
    except ImportError as error:
        raise MissingExtraError(
            f"Hugging Face models need transformers ({error}): pip install 'wordward[hf]'"
        ) from None
    from huggingface_hub.utils import logging as hub  # which tells of each attempt to reach it

    logging = transformers.utils.logging
    level, hub_level, bars = logging.get_verbosity(), hub.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    hub.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield transformers
    finally:
        logging.set_verbosity(level)
        hub.set_verbosity(hub_level)
        if bars:
            logging.enable_progress_bar()


def load_tokenizer(source: str, *, tagging: bool) -> Any:
    """The tokenizer of a folder or of a model on the hub; refused if it is not fast, or has no token to pad with."""
    check_folder(source)
    folder = Path(source)
    if folder.is_dir() and not any(any(folder.glob(name)) for name in TOKENIZERS):
        raise RunError(
            f"{source} holds no tokenizer (such as {TOKENIZERS[0]}): put the model's own there, with "
            f"tokenizer.save_pretrained({source!r})"
        )
    with transformers_quietly() as transformers, explained(source, "tokenizer"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, **SAFE)
        if tagging and _glues(tokenizer):
            tokenizer = transformers.AutoTokenizer.from_pretrained(source, add_prefix_space=True, **SAFE)
            _put_blanks(tokenizer)
    if not tokenizer.is_fast:
        raise RunError(
            f"the tokenizer of {source} is not a fast one, which alone tells where words are in a text: take a model "
            "that has one (tokenizer.json)"
        )
    if not isinstance(tokenizer.model_max_length, (int, float)):
        raise RunError(f"the tokenizer in {source} cannot be loaded: its model_max_length is no number")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    if tokenizer.pad_token_id is None:
        raise RunError(f"the tokenizer of {source} has no token to pad with: set its pad_token and save it again")
    return tokenizer


def _glues(tokenizer: Any) -> bool:
    """Whether a list of words is tokenised without blanks between them, as by GPT-2's and Qwen's tokenizers."""
    return tokenizer.is_fast and any(not step.add_prefix_space for step in _blank_steps(tokenizer))


def _blank_steps(tokenizer: Any) -> list[Any]:
    """Those steps of the tokenizer's pre-tokenizer that may put a blank before a word."""
    step: Any = tokenizer.backend_tokenizer.pre_tokenizer
    if step is None:
        return []
    inside = json.loads(step.__getstate__()).get("pretokenizers", [])
    steps = [step[at] for at in range(len(inside))] if inside else [step]
    return [each for each in steps if hasattr(each, "add_prefix_space")]


def _put_blanks(tokenizer: Any) -> None:
    """Set `add_prefix_space`, which not every tokenizer class takes as an argument."""
    for step in _blank_steps(tokenizer):
        step.add_prefix_space = True


def load_model(source: str, *, tagging: bool, labels: Sequence[str], whole: bool = False) -> Any:
    """A model for these labels, its head new where it had another; in single precision, in training mode.

    `whole`: refuse weights that are missing or of another shape, also the head's.
    """
    check_folder(source)
    names = {"id2label": dict(enumerate(labels)), "label2id": {name: at for at, name in enumerate(labels)}}
    model, told = pretrained(
        source, f"AutoModel{HEADS[tagging]}", num_labels=len(labels), **names, ignore_mismatched_sizes=True
    )
    absent = sorted([*told["missing_keys"], *(str(each[0]) for each in told["mismatched_keys"])])
    if whole and absent:
        raise RunError(
            f"the weights in {source} are not those of its config.json: {absent[0]} is missing or of another shape"
        )
    model.config.problem_type = None if tagging else "single_label_classification"
    return model.float().train()


def pretrained(source: str, kind: str, what: str = "model", **options: Any) -> tuple[Any, dict[str, Any]]:
    """The model of a class of transformers and what its files lacked, loaded without running any code of theirs.

    `what` it is called in messages.
    """
    with transformers_quietly() as transformers, explained(source, what, kind):
        checked_config(source, transformers)
        return getattr(transformers, kind).from_pretrained(
            source, output_loading_info=True, **options, **SAFE_WEIGHTS
        )


def checked_config(source: str, transformers: Any) -> Any:
    """The configuration of a model whose loading runs no code that it names, and takes no endless time."""
    config = transformers.AutoConfig.from_pretrained(source, **SAFE)
    attention = getattr(config, "_attn_implementation", None)
    if attention is not None and "/" in str(attention):  # a kernel, which transformers fetches from the hub and loads
        raise RunError(
            f"the attention of {source} is code on the hub ({attention}), which is never run here: delete "
            "attn_implementation from its config.json"
        )
    if Path(source, "adapter_config.json").exists() and not Path(source, "adapter_model.safetensors").exists():
        raise RunError(
            f"the adapter of {source} has no weights in safetensors (adapter_model.safetensors), which alone "
            "are read: merge it into the model with peft, or delete adapter_config.json"
        )
    _check_sizes(source, config)
    return config


def _check_sizes(source: str, config: Any) -> None:
    """Refuse sizes in config.json that the weights beside it do not have: they may take any time and memory."""
    tensors = [shape for file in sorted(Path(source).glob("*.safetensors")) for shape in _shapes(file)]
    if not tensors:
        return
    largest = max(max(shape, default=1) for shape in tensors)
    for name, value in config.to_dict().items():
        most = len(tensors) if "layer" in name else (16 if "position" in name else 1) * SLACK * largest
        if name in SIZES and isinstance(value, int) and value > most:
            raise RunError(
                f"the weights in {source} are not those of its config.json: they have {len(tensors)} tensors and no "
                f"size above {largest}, but {name} is {value}"
            )


def _shapes(file: Path) -> list[list[int]]:
    with safe_open(file, "pt") as opened:
        return [opened.get_slice(name).get_shape() for name in opened.keys()]  # noqa: SIM118 - no dictionary


def known_labels(source: str, *, tagging: bool) -> tuple[str, ...]:
    """The labels that a classifier (or tagger) has been trained for, in its own order; none of another model."""
    check_folder(source)
    with transformers_quietly() as transformers, explained(source, "model"):
        config = transformers.AutoConfig.from_pretrained(source, **SAFE)
        if not any(name.endswith(HEADS[tagging]) for name in architectures(config)):
            return ()
    if config.problem_type == "multi_label_classification":
        raise RunError(
            f"{source} gives several labels at once, but these texts have one each: train for the labels of the "
            "texts with `new_labels=True`"
        )
    return tuple(str(name) for _, name in sorted((config.id2label or {}).items()))


def architectures(config: Any) -> list[str]:
    """The kinds of model that a configuration names."""
    named = getattr(config, "architectures", None)
    if named is not None and not (isinstance(named, list) and all(isinstance(name, str) for name in named)):
        raise ValueError(f"its architectures are {named!r:.60}, where names were expected")
    return named or []


def longest(model: nn.Module, tokenizer: Any) -> int:
    """Pieces of a text that a model can read, special tokens included."""
    of_tokenizer = tokenizer.model_max_length if tokenizer.model_max_length < UNLIMITED else None
    of_positions = [
        # RoBERTa's begin after its padding.
        module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
        for name, module in model.named_modules()
        if isinstance(module, nn.Embedding) and name.rpartition(".")[2] in ("position_embeddings", "wpe")
    ]
    if of_tokenizer is None and not of_positions:
        return getattr(getattr(model, "config", None), "max_position_embeddings", None) or LONGEST
    return min(limit for limit in (of_tokenizer, *of_positions) if limit is not None)


def multiple_of(model: nn.Module) -> int:
    """What the pieces of a batch must be a multiple of, mostly 1: else the model fills texts up, after the mask."""
    config: Any = getattr(model, "config", None)
    kind = getattr(config, "model_type", None)
    if kind == "longformer":
        windows = config.attention_window
        return int(windows if isinstance(windows, int) else max(windows))
    return int(config.block_size) if kind == "big_bird" and config.attention_type == "block_sparse" else 1
