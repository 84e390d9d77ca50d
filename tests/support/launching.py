"""torchrun and accelerate, whose two processes are forked from theirs where a new one's seconds are to be saved."""

import os
import runpy
import sys
from typing import Any

from accelerate.commands import launch as accelerate
from torch.distributed import run as torchrun

LAUNCHERS = {
    "torchrun": ["--standalone", "--nproc-per-node=2"],
    "accelerate": ["--multi_gpu", "--num_processes=2"],
}


def main(arguments: list[str]) -> int:
    """Launch two processes of `python -m wordward`; before their arguments: the launcher, and "new" or "forked"."""
    launcher, processes, *command = arguments
    read = torchrun.config_from_args

    def forking(args: Any) -> tuple[Any, Any, list[str]]:
        config, _, given = read(args)
        config.start_method = "fork"
        return config, _process, given

    if processes == "forked":
        torchrun.config_from_args = forking  # which accelerate calls, too
    given = [*LAUNCHERS[launcher], "-m", "wordward", *command]
    if launcher == "torchrun":
        torchrun.main(given)
    else:
        accelerate.launch_command(accelerate.launch_command_parser().parse_args(given))
    return 0


def _process(*given: str) -> None:
    """What `python -u -m MODULE ...` does, after saying which process it is."""
    print(f"process {os.environ['RANK']} of {os.environ['WORLD_SIZE']}", flush=True)
    sys.argv = list(given[2:])
    try:
        runpy.run_module(given[2], run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if ended.code:
            raise
