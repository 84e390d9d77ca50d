"""`wordward data`, used as a person would."""

import errno
import io
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from rich.console import Console

from wordward.cli import main as cli
from wordward.cli.data import ACTIONS, Data, Name
from wordward.datasets import fetch, registry
from wordward.datasets.published import Counts, Download
from wordward.runs.results_file import held
from wordward.support.locks import locked

Run = Callable[..., tuple[int, str, str]]
TSV = "I\tc\nlikes\ti\nit\tc\n\nYes\tc\n"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Status, output and errors of `wordward data ...` with an empty data folder."""
    monkeypatch.setitem(cli.COMMANDS, "data", Data)
    monkeypatch.setenv("WORDWARD_DATA", str(tmp_path / "data"))

    def run_command(*arguments: str) -> tuple[int, str, str]:
        try:
            status = cli.main(["data", *arguments])
        except SystemExit as exit:
            status = int(exit.code or 0)
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return run_command


@pytest.fixture
def fce(tmp_path: Path) -> Path:
    """A folder as FCE is published, with two sentences a split."""
    folder = tmp_path / "fce-error-detection"
    (folder / "tsv").mkdir(parents=True)
    for split in ("train", "dev", "test"):
        (folder / "tsv" / f"fce-public.{split}.original.tsv").write_text(TSV.replace("Yes", split))
    return folder


def counts(monkeypatch: pytest.MonkeyPatch, name: str, *paper: int) -> None:
    """Let the paper's counts be these."""
    module = registry.corpus(name)
    monkeypatch.setattr(module, "INFO", replace(module.INFO, counts=Counts(*paper)))


def packed(folder: Path, path: Path) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        tar.add(folder, folder.name)
    return path


def test_names_and_actions_are_those_of_the_registry():
    assert get_args(get_args(Name)[0]) == tuple(registry.CORPORA)
    assert list(ACTIONS) == ["list", "fetch", "add", "check", "stats", "pack"]


def test_help_is_quick_and_clean(run: Run):
    status, out, _ = run("--help")
    assert status == 0
    assert all(f"• {action}" in out for action in ACTIONS)
    code = "import sys, wordward.cli.data\nassert not {'torch', 'numpy', 'wordward.datasets'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_torch_is_needed():
    code = "import sys\nfrom wordward.datasets import registry, fetch\nfrom wordward.text import survey\n"
    code += "for name in registry.CORPORA: registry.corpus(name)\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_list_says_what_is_here_and_how_to_get_the_others(run: Run, fce: Path):
    assert run("add", "fce", str(fce))[0] == 0
    status, out, _ = run("list")
    assert status == 0
    blocks = {block.partition(":")[0]: block for block in out.split("\n\n")}
    assert list(blocks) == list(registry.CORPORA)
    assert f"here      {registry.find('fce')}" in blocks["fce"]
    assert "`wordward data fetch imdb` (84 MB)" in blocks["imdb"]
    assert "`wordward data fetch rcv1 --accept-licence` (size unknown)" in blocks["rcv1"]
    for name, block in blocks.items():
        info = registry.corpus(name).INFO
        assert all(text in block for text in (info.title, info.licence, info.citation, info.task, info.homepage))
        assert f"{info.counts.train:,} train" in block


@pytest.mark.parametrize("link", [[], ["--link"]])
def test_add_counts_what_is_read_from_the_data_folder(run: Run, link: list[str], tmp_path: Path):
    folder = tmp_path / "mine"
    (folder / "inner").mkdir(parents=True)
    for name in ("pos", "neg"):
        (folder / "inner" / f"rt-polarity.{name}").write_text(f"{name} film\n" * 10)
    (folder / "unlabelled.txt").write_text("one\ntwo\nthree\n")
    assert "3 unlabelled" in run("add", "rotten_tomatoes", str(folder), *link)[1]
    assert "unlabelled           3" in run("check", "rotten_tomatoes")[1]
    (folder / "inner" / "unlabelled.csv").write_text("text\nfour\n")
    _, _, err = run("add", "rotten_tomatoes", str(folder), "--data", str(tmp_path / "other"))
    assert "found inner/unlabelled.csv, unlabelled.txt: move the others away" in err


def test_add_of_an_archive_leaves_the_texts_beside_it(run: Run, tmp_path: Path):
    for name in ("pos", "neg"):
        (tmp_path / "rt").mkdir(exist_ok=True)
        (tmp_path / "rt" / f"rt-polarity.{name}").write_text(f"{name} film\n" * 10)
    archive = packed(tmp_path / "rt", tmp_path / "rt.tar.gz")
    (tmp_path / "unlabelled.txt").write_text("one\ntwo\nthree\n")
    _, out, _ = run("add", "rotten_tomatoes", str(archive))
    assert "unlabelled\n" not in out
    assert f"unlabelled.txt stays where it is: put it into {tmp_path / 'data' / 'rotten_tomatoes'}" in out
    assert registry.load("rotten_tomatoes").unlabelled == []
    (tmp_path / "unlabelled.txt").rename(tmp_path / "data" / "rotten_tomatoes" / "unlabelled.txt")
    assert len(registry.load("rotten_tomatoes").unlabelled) == 3


@pytest.mark.parametrize("link", [True, False])
@pytest.mark.parametrize("archive", [True, False])
def test_add_copies_or_links(run: Run, fce: Path, tmp_path: Path, archive: bool, link: bool):
    source = packed(fce, tmp_path / "my.tar.gz") if archive else fce
    status, out, _ = run("add", "fce", str(source), *(["--link"] if link else []))
    assert (status, "2 train, 2 dev, 2 test" in out) == (0, True)
    target = tmp_path / "data" / "fce" / source.name
    assert target.is_symlink() == link
    assert registry.load("fce").counts == (2, 2, 2, 0)
    if not link:
        assert [path.name for path in target.parent.iterdir()] == [source.name]
    status, _, err = run("add", "fce", str(source))
    assert status == 1
    assert "there is one: move it away first" in err


def test_add_refuses_what_cannot_be_read(run: Run, fce: Path, tmp_path: Path):
    (fce / "tsv" / "fce-public.dev.original.tsv").write_text("I\tq\n")
    status, _, err = run("add", "fce", str(fce))
    assert status == 1
    assert "expected the tags c and i" in err
    assert not (tmp_path / "data").exists()


def test_add_of_the_data_folder_itself(run: Run, fce: Path, tmp_path: Path):
    run("add", "fce", str(fce))
    status, _, err = run("add", "fce", str(tmp_path / "data" / "fce"))
    assert status == 1
    assert "there is one" in err


@pytest.mark.parametrize("place", ["a/b/c", "a/b"])
def test_add_refuses_a_folder_that_would_not_be_found(run: Run, fce: Path, tmp_path: Path, place: str):
    """Before anything is copied."""
    deep = tmp_path / "mine" / place
    deep.parent.mkdir(parents=True)
    (fce / "tsv").rename(deep)
    if place == "a/b":
        (deep / "fce-public.dev.original.tsv").rename(deep.parent / "fce-public.dev.original.tsv")
    status, _, err = run("add", "fce", str(tmp_path / "mine"))
    assert status == 1
    assert "in one folder, this one or up to two folders down; found them apart or deeper" in err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("archive", [True, False])
def test_add_on_a_full_disk_says_what_to_do_and_leaves_nothing(
    run: Run, fce: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, archive: bool
):
    source = packed(fce, tmp_path / "my.tar.gz") if archive else fce
    real = shutil.copyfile

    def full(source: Path, target: Path, **how: bool) -> None:
        real(source, target, **how)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    status, _, err = run("add", "fce", str(source))
    assert status == 1
    place = tmp_path / "data" / "fce"
    assert err == (
        f"wordward: {place}: expected a folder that can be written; got: [Errno 28] No space left on device: free "
        "some space, name another folder with --data, or give --link, which copies nothing\n"
    )
    assert list(place.iterdir()) == []


def test_add_into_what_is_no_folder(run: Run, fce: Path, tmp_path: Path):
    (tmp_path / "data").write_text("a file")
    status, _, err = run("add", "fce", str(fce))
    assert status == 1
    assert "expected a folder that can be written; got: [Errno" in err


def test_add_again_after_a_kill_keeps_nothing_of_the_copy_before(run: Run, fce: Path, tmp_path: Path):
    left = tmp_path / "data" / "fce" / f".{fce.name}.new"
    left.mkdir(parents=True)
    (left / "fce-public.dev.original.tsv").write_text(TSV)
    (fce / "gone.tsv").symlink_to(tmp_path / "nothing")  # a link to nothing is no text
    assert run("add", "fce", str(fce))[0] == 0
    assert registry.load("fce").counts == (2, 2, 2, 0)
    assert [path.name for path in left.parent.iterdir()] == [fce.name]


def test_a_corpus_that_another_command_copies_is_left_to_it(run: Run, fce: Path, tmp_path: Path):
    target = tmp_path / "data" / "fce" / fce.name
    with locked(target.with_name(f".{fce.name}.lock")):
        status, _, err = run("add", "fce", str(fce))
    assert (status, f"{target}: another command is copying to it" in " ".join(err.split())) == (1, True)
    assert not target.exists()
    assert run("add", "fce", str(fce))[0] == 0
    assert [path.name for path in target.parent.iterdir()] == [fce.name]


def test_check_compares_with_the_paper(run: Run, fce: Path, monkeypatch: pytest.MonkeyPatch):
    run("add", "fce", str(fce))
    status, out, err = run("check", "fce")
    assert status == 1
    assert "train                2      28,731           0       0  differs" in out
    assert "expected the paper's counts; train has 2, dev has 2, test has 2" in err
    counts(monkeypatch, "fce", 2, 2, 2)
    status, out, _ = run("check", "fce")
    assert status == 0
    assert "differs" not in out
    assert "1 texts of train are in test too" in out
    counts(monkeypatch, "fce", 2, 2, 3)
    assert run("check", "fce")[0] == 1


def test_check_counts_duplicates_and_empty_texts(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "data" / "elec"
    folder.mkdir(parents=True)
    for name in ("elec-25k-train", "elec-test"):
        (folder / f"{name}.txt.tok").write_text("good one\ngood  one\n\n" + "".join(f"{n}\n" for n in range(7)))
        (folder / f"{name}.cat").write_text("1\n2\n" * 5)
    counts(monkeypatch, "elec", 9, 1, 10, 5)
    status, out, _ = run("check", "elec")
    assert status == 0, "unlabelled texts may be missing"
    assert "train                9           9           1       1" in out
    assert "unlabelled           0           5           0       0  none here" in out
    assert "8 texts of train are in test too" in out


def test_check_verifies_a_pinned_or_recorded_hash(
    run: Run, fce: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "data" / "fce").mkdir(parents=True)
    path = packed(fce, tmp_path / "data" / "fce" / "fce-error-detection.tar.gz")
    counts(monkeypatch, "fce", 2, 2, 2)
    assert "hashes" not in run("check", "fce")[1]
    ledger = tmp_path / "data" / fetch.LEDGER
    download = registry.corpus("fce").INFO.downloads[0]
    fetch.record(path, download, path.parent, ledger)
    assert "(1 hash verified)" in run("check", "fce")[1]
    ledger.write_text('{"fce/fce-error-detection.tar.gz": "sha256:00"}')
    status, _, err = run("check", "fce")
    assert status == 1
    assert "expected a file with hash sha256:00" in err


def test_check_and_stats_of_what_is_not_there(run: Run):
    for action in ("check", "stats"):
        status, _, err = run(action, "imdb")
        assert status == 1
        assert "it is not there: get it with `wordward data fetch imdb`" in err


def test_stats(run: Run, fce: Path):
    run("add", "fce", str(fce))
    status, out, _ = run("stats", "fce")
    assert status == 0
    assert "train                2             4      2.0        2        3" in out
    assert "vocabulary of train and unlabelled: 4 words, 0 in two texts" in out
    assert "train: 2 classes: c 3, i 1" in out


@pytest.mark.parametrize("action", ["check", "stats", "add"])
def test_a_person_sees_that_a_corpus_is_read(
    run: Run, fce: Path, action: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    if action != "add":
        run("add", "fce", str(fce))
    screen = io.StringIO()
    monkeypatch.setattr("wordward.support.console.console", Console(file=screen, force_terminal=True))
    run(action, "fce", *([str(fce)] if action == "add" else []))
    assert "reading fce" in screen.getvalue()


def test_data_names_the_folder(run: Run, fce: Path, tmp_path: Path):
    other = str(tmp_path / "other")
    assert run("add", "fce", str(fce), "--data", other)[0] == 0
    assert run("stats", "fce")[0] == 1
    assert run("stats", "fce", "--data", other)[0] == 0
    assert f"here      {other}" in run("list", "--data", other)[1]


def test_an_unknown_corpus(run: Run):
    status, _, err = run("check", "imbd")
    assert status == 2
    assert "rotten_tomatoes" in err


@pytest.mark.parametrize("name", ["rcv1", "fce"])
def test_terms_are_shown_before_anything_is_downloaded(run: Run, name: str, tmp_path: Path):
    info = registry.corpus(name).INFO
    status, _, err = run("fetch", name)
    assert status == 1
    assert info.terms in err
    assert all(download.url in err for download in info.downloads)
    assert str(tmp_path / "data" / name) in err
    assert "--accept-licence" in err
    assert not (tmp_path / "data").exists()


def test_fetch_downloads_every_file(run: Run, fce: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    archive = packed(fce, tmp_path / "archive.tar.gz")
    module = registry.corpus("fce")
    downloads = (
        Download("http://127.0.0.1:1/a", "fce-error-detection.tar.gz"),
        Download("http://127.0.0.1:1/b", "more.txt"),
    )
    monkeypatch.setattr(module, "INFO", replace(module.INFO, downloads=downloads))

    def from_disk(url: str, part: Path, report: fetch.Report, timeout: float) -> None:
        part.write_bytes(archive.read_bytes() if url.endswith("a") else b"text")
        report(4, None)

    monkeypatch.setattr(fetch, "_transfer", from_disk)
    status, _, err = run("fetch", "fce", "--accept-licence")
    assert status == 0
    assert "next: wordward data check fce" in err
    assert "hashes.json at its first download, since no public source states one" in " ".join(err.split())
    assert registry.load("fce").counts == (2, 2, 2, 0)
    assert (tmp_path / "data" / "fce" / "more.txt").exists()
    status, _, err = run("fetch", "fce", "--accept-licence", "--quiet")
    assert (status, err) == (0, "")


def test_fetch_claims_no_hash_of_a_file_that_was_laid_there(run: Run, fce: Path, tmp_path: Path):
    place = tmp_path / "data" / "fce"
    place.mkdir(parents=True)
    packed(fce, place / "fce-error-detection.tar.gz")
    status, _, err = run("fetch", "fce", "--accept-licence")
    assert status == 0
    assert "hash unknown" in err
    assert not (tmp_path / "data" / fetch.LEDGER).exists()


@pytest.mark.parametrize("file", ["none/fce.pack", "folder.pack"])
def test_pack_looks_first_whether_it_can_write(
    run: Run, fce: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
):
    def never(*_: object, **__: object) -> None:
        raise AssertionError("the corpus was encoded first")

    (tmp_path / "folder.pack").mkdir()
    run("add", "fce", str(fce))
    monkeypatch.setattr("wordward.text.corpora.open_corpus", never)
    status, _, err = run("pack", "fce", str(tmp_path / file))
    assert status == 1
    assert "cannot be written: name a file in an existing, writable folder" in err


def test_a_pack_is_written_by_one_command(run: Run, fce: Path, tmp_path: Path):
    run("add", "fce", str(fce))
    out = tmp_path / "fce.pack"
    asked = ("pack", "fce", str(out), "--min-documents", "1", "--quiet")
    with held(out, "FILE"):
        status, _, err = run(*asked)
        assert (status, f"{out}: another command is writing it: wait" in " ".join(err.split())) == (1, True)
        assert not out.exists()
    assert run(*asked)[0] == 0
    assert [path.name for path in tmp_path.glob("fce.pack*")] == [out.name]


def test_every_file_comes_over_https_and_every_pin_is_a_cited_sha256():
    open_ = set()
    for name in registry.CORPORA:
        for download in registry.corpus(name).INFO.downloads:
            assert download.url.startswith("https://")
            assert bool(download.checksum) == bool(download.cited)
            if download.checksum:
                assert re.fullmatch("sha256:[0-9a-f]{64}", download.checksum)
            else:
                open_.add(download.name)
    tokens = {f"lyrl2004_tokens_{part}.dat.gz" for part in ("train", *(f"test_pt{number}" for number in range(4)))}
    # No public source states theirs: recorded at the first download. A new corpus needs a pin.
    assert open_ == {"elec-unlab.tar.gz", "fce-error-detection.tar.gz", "rcv1.topics.hier.orig", *tokens}
