"""One update by two processes, in the environment that torchrun gives them; the first writes the gradients."""

import os
import sys
from pathlib import Path

import torch
from hf_tiny import gradients, rows, trainer, word_pieces
from safetensors.torch import save_file


def main(file: Path) -> None:
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
    if world > 1:  # else its threads may still run at the end, which ends the process by a signal
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    second = os.fork()  # after the imports, which take seconds, and before anything is computed
    os.environ |= dict.fromkeys(("RANK", "LOCAL_RANK"), "0" if second else "1")
    main(Path(sys.argv[1]))
    if second:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(second, 0)[1]))
