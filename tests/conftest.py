"""Settings and files that all tests share."""

import gc
import os
import sys
from functools import cache
from pathlib import Path

# One thread, also in the processes that tests start: more only wait for each other over tiny tensors.
os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}

import pytest
import torch
from hypothesis import settings
from reviews import reviews, tagged, write_conll, write_csv
from tyro import _docstrings

settings.register_profile("wordward", deadline=None, derandomize=True)
settings.load_profile("wordward")
torch.set_num_threads(1)
gc.set_threshold(50_000, 20, 100)  # else a twentieth of all time goes into searches for garbage
if not (torch.cuda.is_available() or torch.backends.mps.is_available()):
    # Else each call notes, for each kind of device, where in the program it was made.
    torch.manual_seed = lambda seed: torch.default_generator.manual_seed(int(seed))
# tyro reads the sources of a command's settings for each command line; here once.
for place, name in (
    (getattr(_docstrings, "_ClassTokenization", None), "make"),
    (_docstrings, "get_callable_description"),
):
    if hasattr(place, name):
        setattr(place, name, staticmethod(cache(getattr(place, name))))


def pytest_collection_finish() -> None:
    """Leave all that is loaded out of later searches for garbage: the Trainer makes one a run, of half a second."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before the loop itself, which is xdist's in its processes
def pytest_runtestloop(session: pytest.Session) -> None:
    """Fork the process that others are forked from, if any test asks for it, while nothing is patched yet."""
    pools = any("loaded_processes" in getattr(item, "fixturenames", ()) for item in session.items)
    if session.items and (pools or "beside" in sys.modules):
        from beside import start

        start()


@pytest.fixture(autouse=True)
def seed() -> None:
    """Each test starts at the same random state."""
    torch.manual_seed(0)


@pytest.fixture
def csv_file(tmp_path: Path) -> Path:
    """120 labelled little reviews."""
    return write_csv(tmp_path / "reviews.csv", reviews(120))


@pytest.fixture
def conll_file(tmp_path: Path) -> Path:
    """80 tagged sentences."""
    return write_conll(tmp_path / "tags.conll", tagged(80))


@pytest.fixture
def loaded_processes() -> None:
    """Processes of a pool, too, are forked from one that has loaded all that they need."""
