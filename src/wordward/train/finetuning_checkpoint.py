"""The Trainer's checkpoints in a run folder, each made whole by a mark of ours."""

from pathlib import Path

MARK = "wordward.json"  # makes a checkpoint whole: it is written last
PARTS = ("optimizer.pt", "scheduler.pt", "trainer_state.json", "rng_state*.pth")  # of the Trainer's checkpoint


def earlier(folder: Path) -> str:
    """What to do where a checkpoint is damaged."""
    return f"delete {folder} to go on from the checkpoint before it, or else from the beginning"


def last_checkpoint(folder: Path) -> Path | None:
    """The last whole checkpoint."""
    whole = {
        path.parent.name.removeprefix("checkpoint-"): path.parent for path in folder.glob(f"checkpoint-*/{MARK}")
    }
    return max(((int(steps), path) for steps, path in whole.items() if steps.isdecimal()), default=(0, None))[1]
