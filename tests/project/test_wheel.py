"""Wheel and sdist build, and the wheel works where nothing of the clone can be seen."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
from reviews import reviews, write_csv

ROOT = Path(__file__).parents[2]
THREE_LINES = """
import sys, torch, wordward
assert wordward.__file__.startswith(sys.prefix), wordward.__file__
model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Flatten(), torch.nn.Linear(12, 2))
ids, labels = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([0, 1])
adversary = wordward.iadvt(model, k=3)
out = adversary(lambda: model(ids), labels)
(torch.nn.functional.cross_entropy(out.clean, labels) + out.loss).backward()
assert model[0].weight.grad.isfinite().all()
"""
TRAIN = """
from wordward.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist."""
    pytest.importorskip("hatchling", reason="builds the project (requirements/core.txt)")
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of a new environment with the wheel; what wordward needs is seen from it, not installed again."""
    env = tmp_path_factory.mktemp("env")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(env)], check=True)
    scripts = env / ("Scripts" if os.name == "nt" else "bin")
    (wheel,) = built.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", str(scripts / "python")]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--no-compile", str(wheel)], check=True)
    (packages,) = [path for path in env.rglob("site-packages") if path.is_dir()]
    (packages / "needed.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    return scripts


def run(scripts: Path, *command: str, cwd: Path) -> str:
    """What a program of the environment prints; the clone is not on its path."""
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([scripts / command[0], *command[1:]], cwd=cwd, env=plain, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_the_package_and_the_sdist_what_builds_and_tests_it(built: Path) -> None:
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    names = set(zipfile.ZipFile(wheel).namelist())
    ours = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "wordward").rglob("*.*")}
    assert {name for name in ours if "__pycache__" not in name and (ROOT / "src" / name).is_file()} <= names
    assert not [name for name in names if name.startswith(("tests", "docs", "experiments"))]
    with tarfile.open(sdist) as packed:
        inside = {name.partition("/")[2] for name in packed.getnames()}
    needed = {
        "pyproject.toml",
        "Makefile",
        "constraints.txt",
        "requirements/core.txt",
        "tests/conftest.py",
        "LICENSE",
    }
    assert needed <= inside


@pytest.mark.slow
def test_the_wheel_runs_alone(installed: Path, tmp_path: Path) -> None:
    assert "train" in run(installed, "wordward", "--help", cwd=tmp_path)
    write_csv(tmp_path / "reviews.csv", reviews(80))
    sizes = "--epochs 1 --dim 8 --hidden 8 --head 4 --epsilon 1 --k 3 --device cpu --quiet".split()
    train = ["train", "--train", "reviews.csv", "--out", "run", *sizes]
    run(installed, "python", "-c", THREE_LINES + TRAIN, *train, cwd=tmp_path)
    assert (tmp_path / "run" / "model.safetensors").exists()
