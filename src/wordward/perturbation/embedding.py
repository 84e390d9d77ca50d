"""Which module of a model reads token ids, and how to read it without side effects."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from wordward.support.errors import SettingError

_PLACES = re.compile(r"(^|[._])(pos(ition(s|al)?)?([._]|$|emb|enc)|wpe$|token_type|segment)", re.IGNORECASE)
NO_BAG = (
    "nn.EmbeddingBag gives a whole text one vector, so words have none to perturb: use nn.Embedding, and the "
    "mean (or sum) of its vectors"
)


def table_reader(model: nn.Module, named: nn.Module | str | None = None) -> nn.Module:
    """The embedding of token ids, as named or as found; it holds a table (words, dim)."""
    embedding = module_of(model, named) if named is not None else _find_embedding(model)
    if isinstance(embedding, nn.EmbeddingBag):
        raise SettingError("embedding", NO_BAG)
    weight = getattr(embedding, "weight", None)
    if not isinstance(weight, Tensor) or weight.dim() != 2:
        raise SettingError(
            "embedding",
            f"the embedding must hold a table `weight` (words, dim), but {type(embedding).__name__} has "
            "none: pass the module that does as `embedding=`",
        )
    return embedding


def refuse_places(model: nn.Module, embedding: nn.Module) -> None:
    """Refuse an embedding that is named after positions or segments, where the model has another."""
    name = name_of(model, embedding)
    tables = (other for other, module in model.named_modules() if isinstance(module, nn.Embedding))
    other = next((other for other in tables if not _PLACES.search(other)), None)
    if _PLACES.search(name) and other is not None:
        raise SettingError(
            "embedding",
            f"{name!r} holds vectors of positions or segments, not of words: pass the one that reads token ids, "
            f"e.g. embedding={other!r}",
        )


def module_of(model: nn.Module, name: nn.Module | str) -> nn.Module:
    """A module given as itself or by its dotted name."""
    if isinstance(name, nn.Module):
        return name
    modules = dict(model.named_modules())
    if name not in modules:
        raise SettingError(
            "embedding", f"the model has no module {name!r}; it has {', '.join(filter(None, modules))}"
        )
    return modules[name]


def name_of(model: nn.Module, module: nn.Module) -> str:
    """The dotted name of a module, or its class where it is none of the model's."""
    return next((name for name, other in model.named_modules() if other is module), "") or type(module).__name__


def _find_embedding(model: nn.Module) -> nn.Module:
    """The embedding that a Hugging Face model names, else the only `nn.Embedding`."""
    if isinstance(named := _named_by_model(model), nn.Module):
        return _reader(model, named)
    embeddings = {name: module for name, module in model.named_modules() if isinstance(module, nn.Embedding)}
    if len(embeddings) == 1:
        return next(iter(embeddings.values()))
    if not embeddings:
        bag = any(isinstance(module, nn.EmbeddingBag) for module in model.modules())
        what = NO_BAG if bag else "pass the one to perturb as `embedding=`"
        raise SettingError("embedding", f"{type(model).__name__} has no nn.Embedding: {what}")
    raise SettingError(
        "embedding",
        f"{type(model).__name__} has {len(embeddings)} embeddings ({', '.join(embeddings)}): "
        f"pass the one that reads token ids as `embedding=`, e.g. embedding={next(iter(embeddings))!r}",
    )


def _named_by_model(model: nn.Module) -> object:
    """The module that a Hugging Face model, wrapped or not, names as its input embedding; None if it names none."""
    wrapped = isinstance(model, nn.parallel.DistributedDataParallel | nn.DataParallel)
    inner = model.module if wrapped else model
    try:
        return getattr(inner, "get_input_embeddings", lambda: None)()
    except NotImplementedError:  # a user's own class may not define it
        return None


def _reader(model: nn.Module, named: nn.Module) -> nn.Module:
    """The module that actually runs: T5 and BART name a shared table, but their encoder has a module of its own."""
    table = getattr(named, "weight", None)
    for name, module in model.named_modules(remove_duplicate=False):
        shares = isinstance(module, nn.Embedding) and module.weight is table
        if shares and "encoder" in name.split("."):
            return module
    return named


@contextmanager
def unlimited(module: nn.Module) -> Iterator[None]:
    """Read tables as they are: `max_norm` would shorten vectors in the table, where a graph may still need them."""
    tables = [(table, table.max_norm) for table in _limited(module)]
    try:
        for table, _ in tables:
            table.max_norm = None
        yield
    finally:
        for table, length in tables:
            table.max_norm = length


@contextmanager
def unwritten(module: nn.Module) -> Iterator[None]:
    """Keep tables unchanged: what `max_norm` would shorten in them is shortened after reading."""
    with ExitStack() as stack:
        for table in _limited(module):
            hook = partial(_shortened, length=table.max_norm, norm=table.norm_type)
            stack.callback(table.register_forward_hook(hook, prepend=True).remove)
        stack.enter_context(unlimited(module))
        yield


def _limited(module: nn.Module) -> list[Any]:
    """The tables in a module whose vectors `max_norm` shortens."""
    return [part for part in module.modules() if isinstance(part, nn.Embedding) and part.max_norm is not None]


def _shortened(module: nn.Module, args: object, vectors: Tensor, *, length: float, norm: float) -> Tensor:
    """The vectors (..., dim), none longer than `length`."""
    return torch.renorm(vectors.flatten(0, -2), norm, 0, length).view_as(vectors)
