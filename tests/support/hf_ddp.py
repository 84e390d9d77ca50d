"""One update by two processes, or by one alone; the first writes the gradients."""

import os
from pathlib import Path

import torch
from hf_tiny import gradients, rows, trainer, word_pieces
from safetensors.torch import save_file


def update(file: Path) -> None:
    world = int(os.environ.get("WORLD_SIZE", "1"))
    made = trainer(
        file.parent / "out",
        "token",
        "iadvt+ivat",
        given={"unlabelled_dataset": rows(word_pieces(), "token", 16)[8:]},
        per_device_train_batch_size=4 // world,
        gradient_accumulation_steps=2,
        ddp_backend="gloo" if world > 1 else None,
    )
    found = gradients(made)
    if made.is_world_process_zero():
        save_file(found, file)


def work(rank: int, file: Path) -> None:
    """What each of two processes does."""
    update(file)
    assert torch.distributed.get_rank() == rank
    assert torch.distributed.get_world_size() == 2
    torch.distributed.barrier()  # else its threads may still run at the end, which ends the process by a signal
    torch.distributed.destroy_process_group()
