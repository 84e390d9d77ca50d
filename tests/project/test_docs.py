"""Every code block of the documentation runs, every flag that it names exists, and the site can be built."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest
from accelerate.state import AcceleratorState
from any_model import fine_tuned, marked, several_labels
from documented import (
    ONLY_PARSED,
    PAGES,
    ROOT,
    Block,
    DocumentationError,
    blocks,
    called,
    commands,
    do,
    help_flags,
    inline,
    reason_not_to_run,
)
from reviews import reviews, tagged, write_conll, write_csv

import wordward
from wordward.cli.main import main
from wordward.report import gathering
from wordward.train import choosing

pytestmark = pytest.mark.docs

SMALL = "--dim 10 --hidden 10 --head 5 --epochs 3 --learning-rate 0.02 --epsilon 1 --k 3 --device cpu --quiet"
# Flags of other programs that the pages speak of.
OTHERS = {"--no-deps", "--page", "--record", "--table"}
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the pages take for granted: files of texts, and small trained runs under the names that they use."""
    folder = tmp_path_factory.mktemp("docs")
    labelled = reviews(90)
    write_csv(folder / "reviews.csv", labelled[:60])
    write_csv(folder / "test.csv", labelled[60:])
    write_csv(folder / "mine.csv", labelled[:20])
    rows = [{"review": each.text, "stars": 5 if each.label == "good" else 1} for each in labelled[:60]]
    (folder / "reviews.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "more.txt").write_text("".join(f"{each.text}\n" for each in reviews(40, seed=1)))
    write_conll(folder / "tags.conll", tagged(60))
    known = sorted({word for each in labelled for word in each.text.split()})
    numbers = [" ".join(str((at * j) % 7 - 3) for j in range(1, 51)) for at in range(1, len(known) + 1)]
    (folder / "vectors.txt").write_text("".join(f"{a} {b}\n" for a, b in zip(known, numbers, strict=True)))
    demo = folder / "runs" / "demo"
    for method in ("baseline", "ivat"):
        given = ["--train", str(folder / "reviews.csv"), "--out", str(demo / method), "--method", method]
        assert main(["train", *given, *SMALL.split()]) == 0
    shutil.copy(folder / "test.csv", demo)
    shutil.copytree(demo / "ivat", folder / "RUN")
    fine_tuned(folder / "sentiment", steps=30)
    several_labels(folder / "topics")
    write_csv(folder / "marked.csv", marked(24))
    pairs = [{"premise": a.text, "hypothesis": b.text, "label": a.label} for a, b in pairwise(labelled[:41])]
    (folder / "pairs.jsonl").write_text("".join(f"{json.dumps(pair)}\n" for pair in pairs))
    return folder


@pytest.fixture
def here(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of those files, as the current folder."""
    folder = shutil.copytree(files, tmp_path / "here")
    (folder / "experiments").symlink_to(ROOT / "experiments")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("WORDWARD_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("WORDWARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    # What takes long and is tested elsewhere: a real Transformer where none is named, many texts in a report.
    monkeypatch.setattr(choosing, "_transformer_suits", lambda *_: False)
    monkeypatch.setattr(gathering, "FAITHFUL", 6)
    yield folder
    AcceleratorState._reset_state(reset_partial_state=True)  # what a page set is not for the next


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_blocks_run(page: str, here: Path) -> None:
    """The blocks of a page, one after the other, as a reader would type them."""
    assert here.is_dir()
    names: dict[str, object] = {}
    for block in blocks(page, (ROOT / page).read_text(encoding="utf-8")):
        do(block, names)


@pytest.mark.parametrize(
    ("language", "code", "said"),
    [
        ("sh", "wordward train --train reviews.csv --out runs/x --epsilom 3", "epsilom"),
        ("sh", "wordward serve RUN --prot 80", "prot"),
        ("sh", "wordward reproduce imdb", "reproduce"),
        ("sh", "python -m experiments reproduce imdb --sedes 3", "sedes"),
        ("sh", "python -m experiments results --folder nowhere", "nowhere"),
        ("sh", "wordward evaluate RUN nowhere.csv", "nowhere.csv"),
        ("sh", "torchrun --standalone -m wordward trian --out x", "trian"),
        ("sh", "torchrun -m wordward trian ...", "trian"),
        ("text", "$ wordward data check imbd", "imbd"),
        ("sh", "make cake", "no such target"),
        ("sh", "pip install 'wordward[cake]'", "no extra cake"),
        ("sh", "python -m benchmarks.cake", "no module"),
        ("sh", "frobnicate", "no program"),
        ("", "some output", "no program"),
        ("rust", "fn main() {}", "'rust'"),
        ("python", "raise ValueError('cake')", "cake"),
        ("python", "import cake", "cake"),
    ],
)
def test_a_wrong_block_is_noticed(language: str, code: str, said: str, here: Path) -> None:
    (block,) = blocks("page.md", f"Text.\n\n```{language}\n{code}\n```\n")
    assert (block, here.is_dir()) == (Block("page.md", 4, language, "", f"{code}\n"), True)
    with pytest.raises((DocumentationError, ValueError, ImportError), match=said):
        do(block, {})


def test_what_is_only_parsed_is_still_in_the_pages() -> None:
    found = set()
    for page in PAGES:
        for block in blocks(page, (ROOT / page).read_text(encoding="utf-8")):
            if block.language in ("", "sh", "text"):
                for _, command in commands(block):
                    found.add(reason_not_to_run(called(shlex.split(command, comments=True))[1]))
    assert found - {""} == ONLY_PARSED.keys()


@pytest.fixture(scope="module")
def known() -> dict[str, set[str]]:
    return help_flags()


@pytest.mark.parametrize("page", PAGES)
def test_flags_in_running_text_exist(page: str, known: dict[str, set[str]]) -> None:
    every = set().union(*known.values()) | OTHERS
    for span, flags in inline((ROOT / page).read_text(encoding="utf-8")):
        _, words = called(span.split())
        command = " ".join(words[:2] if words[:1] == ["data"] else words[:1])
        wanted = known.get(command, every)
        assert flags <= wanted, f"{page}: `{span}` names {', '.join(flags - wanted)}"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_outside_the_site_lead_somewhere(page: str) -> None:
    for target in LINK.findall((ROOT / page).read_text(encoding="utf-8")):
        assert re.match("https?://", target) or (ROOT / target).exists(), f"{page} links to {target}"


def test_the_reference_has_every_public_name() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert [name for name in wordward.__all__ if name[0] != "_" and not re.search(rf"wordward\.{name}\b", text)] == []


class Loaded(HTMLParser):
    """What a browser fetches to show a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses: list[str] = re.findall(r"url\(([^)]+)\)", page)
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        names = ("href",) if tag == "link" else () if tag == "a" else ("src", "srcset", "data", "poster")
        self.addresses += [given[name] for name in names if name in given]


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("mkdocs"), reason="the site needs pip install '.[docs]'")
def test_the_site_is_whole_and_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    """Strict: a link, an anchor or a name of the reference that leads nowhere fails."""
    site = tmp_path / "site"
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, env=quiet)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert {f"{Path(page).stem}.html" for page in PAGES if page.startswith("docs/")} <= {p.name for p in pages}
    fetched = [(path.name, at) for path, page in pages.items() for at in Loaded(page).addresses]
    for path in site.rglob("*.css"):
        fetched += [(path.name, at) for at in re.findall(r"(?:url\(|@import\s+)([^);]+)", path.read_text())]
    assert len(fetched) > len(pages)
    assert [(name, at) for name, at in fetched if re.match(r"""["']?(\w+:)?//""", at)] == []
