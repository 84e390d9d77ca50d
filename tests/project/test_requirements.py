"""What is installed: by the project's own set-up, pinned once and by hash; by users, as the README lists it."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
BY_VERSION = {"torch"}  # its builds for CPU and CUDA are different files of one version


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    found = re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    return {normal(name): version for name, version in found}


def hashed(group: str) -> dict[str, str]:
    """Name and version of all that a group installs; each entry must have hashes and nothing else."""
    found = {}
    text = (ROOT / "requirements" / f"{group}.txt").read_text()
    for entry in re.split(r"\n(?! )", re.sub(r"^#.*\n", "", text).strip()):
        first, *hashes = entry.split(" \\\n    ")
        assert hashes, entry
        assert all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", each) for each in hashes), entry
        name, _, version = first.partition("==")
        assert name not in found
        found[name] = version
    return found


def test_hashes_are_of_the_pinned_versions_and_of_all_of_them() -> None:
    pinned, groups = pins(), {group: hashed(group) for group in ("core", "demo", "dev", "docs")}
    every = {name: version for group in groups.values() for name, version in group.items()}
    assert every == {name: version for name, version in pinned.items() if name not in BY_VERSION}


def test_what_is_asked_for_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras, core = project["optional-dependencies"], hashed("core")
    wanted = {"core": project["dependencies"], "dev": extras["dev"], "docs": extras["docs"]}
    for group, asked in wanted.items():
        names = {normal(re.split(r"[<>=\[;]", each)[0]) for each in asked}
        assert names - BY_VERSION <= {*core, *hashed(group)}, group


def test_the_readme_lists_each_extra_once() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    readme = (ROOT / "README.md").read_text()
    listed = re.search(r"^## Install\n.*?^```\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert listed
    lines = re.findall(r"^pip install '\.\[(\w+)\]' +# \S", listed[1], re.MULTILINE)
    assert sorted(lines) == sorted(extras.keys() - {"dev", "docs"})  # which are the developers'
