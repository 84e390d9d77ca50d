"""Run the core tests with the lowest versions that `pyproject.toml` allows, or with the newest that the registry has.

    python -m tests.reliability.versions lowest
    python -m tests.reliability.versions newest --with torch==2.13.0

Makes an environment of its own in a temporary folder (PyTorch is large), or `--into` a folder, where it is found
again. `--with` gives versions that come first: of PyTorch's newest the registry may have only a CUDA build, which is
several gigabytes large.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from contextlib import nullcontext
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent)]

from records import record

ROOT = Path(__file__).parents[2]
CORE = ["tests/perturbation", "tests/models", "tests/text", "tests/config", "tests/hf/test_trainer.py"]
TOOLS = ("pytest", "hypothesis", "fastapi", "uvicorn", "httpx", "scikit-learn", "pytest-xdist")  # of the extra dev
SHOWN = ("torch", "numpy", "safetensors", "transformers", "accelerate")


def asked(lowest: bool, first: list[str]) -> list[str]:
    """What to install: every dependency at its lowest version, or without a limit."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    tools = [each for each in extras["dev"] if re.split(r"[><=]", each)[0] in TOOLS]
    given = {re.split(r"[><=]", each)[0]: each for each in first}
    found = {}  # where an extra asks for more than the core, it decides
    for each in [*project["dependencies"], *extras["hf"], *tools]:
        name = re.split(r"[><=]", each)[0]
        found[name] = given.get(name) or (each.replace(">=", "==") if lowest else name)
    return list(found.values())


def main(which: str, first: list[str], into: str | None, *, keep: bool) -> int:
    """Install, run the tests, and print how many passed."""
    with nullcontext(into) if into else tempfile.TemporaryDirectory() as folder:
        python = str(Path(folder) / "bin" / "python")
        if not Path(python).exists():
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *asked(which == "lowest", first)], check=True)
        # Warnings of other versions than the project's own are not errors.
        tests = [python, "-m", "pytest", "-p", "no:cacheprovider", "-o", "filterwarnings=default", "-o", "addopts="]
        tests += ["--import-mode=importlib", "-q", "--tb=line", *CORE]
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(tests, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        print(done.stdout[-4000:])
        counts = {name: int(number) for number, name in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
        code = "import importlib.metadata as m, sys; print(*(m.version(name) for name in sys.argv[1:]))"
        shown = subprocess.run(
            [python, "-c", code, *SHOWN], capture_output=True, text=True, check=True
        ).stdout.split()
    record(f"versions_{which}", {**dict(zip(SHOWN, shown, strict=True)), **counts}, keep=keep)
    return done.returncode


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("which", choices=["lowest", "newest"])
    parser.add_argument("--with", dest="first", action="append", default=[], help="a version, such as torch==2.13.0")
    parser.add_argument("--into", metavar="FOLDER", help="the environment's folder, which is kept")
    parser.add_argument("--record", action="store_true", help="keep the figures for the documentation")
    given = parser.parse_args()
    sys.exit(main(given.which, given.first, given.into, keep=given.record))
