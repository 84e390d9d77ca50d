"""Training few weights of a Hugging Face model: matrices of low rank beside its layers, added to these in the end."""

from copy import deepcopy
from typing import Any

from torch import nn

from wordward.support.errors import MissingExtraError, SettingError


def add_lora(model: Any, rank: int) -> None:
    """Put matrices of this rank beside every linear layer below the head; these and the head alone are trained."""
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        raise MissingExtraError(f"`lora` needs peft ({error}): pip install 'wordward[lora]'") from None
    from transformers.pytorch_utils import Conv1D  # the linear layer of GPT-2

    below = f"{model.base_model_prefix}."
    linear = [name for name, module in model.named_modules() if isinstance(module, nn.Linear | Conv1D)]
    targets = [name for name in linear if name.startswith(below)]
    if not targets:
        raise SettingError(
            "lora", f"{type(model).__name__} has no linear layers below its head to put matrices beside: leave it out"
        )
    transposed = isinstance(model.get_submodule(targets[0]), Conv1D)
    settings = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=targets, fan_in_fan_out=transposed)
    inject_adapter_in_model(settings, model)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("lora_" in name or not name.startswith(below))


def merged(model: Any) -> Any:
    """A copy of the model in which the matrices are part of the weights; the model itself where it has none."""
    layers = [name for name, module in model.named_modules() if hasattr(module, "lora_A")]
    if not layers:
        return model
    whole = deepcopy(model)
    for name in layers:
        parent, _, last = name.rpartition(".")
        layer: Any = whole.get_submodule(name)
        layer.merge()
        setattr(whole.get_submodule(parent), last, layer.get_base_layer())
    return whole
