"""Downloads from a real server on loopback that breaks off, lies, refuses and changes its mind."""

import errno
import gzip
import hashlib
import http.server
import io
import json
import socket
import struct
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordward.datasets import DataError
from wordward.datasets.fetch import checksum, expected, fetch, record, verify
from wordward.datasets.published import Download
from wordward.support.locks import locked

CONTENT = gzip.compress(bytes(range(256)) * 4000, compresslevel=0, mtime=0)


@dataclass
class Behaviour:
    """What the server does, and what it was asked."""

    content: bytes = CONTENT
    stop_after: list[int] = field(default_factory=list)  # bytes sent by the next answers before breaking off
    ranges: bool = True
    status: list[int] = field(default_factory=list)  # of the next answers
    etag: str = '"one"'
    length: bool = True
    reset: bool = False  # break off by a reset of the connection
    shift: int = 0  # bytes by which a range is answered wrongly
    asked: list[str | None] = field(default_factory=list)  # the Range of each request


class Handler(http.server.BaseHTTPRequestHandler):
    behaviour: Behaviour
    protocol_version = "HTTP/1.0"

    def do_GET(self) -> None:
        how = self.behaviour
        asked = self.headers.get("Range")
        how.asked.append(asked)
        if how.status and (code := how.status.pop(0)) != 200:
            self.send_error(code)
            return
        start = 0
        fresh = self.headers.get("If-Range") in (None, how.etag)
        if asked and how.ranges and fresh:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(how.content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(how.content)}")
                self.end_headers()
                return
            self.send_response(206)
            start += how.shift
            self.send_header("Content-Range", f"bytes {start}-{len(how.content) - 1}/{len(how.content)}")
        else:
            self.send_response(200)
        body = how.content[start:]
        if how.length:
            self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", how.etag)
        self.end_headers()
        broken = bool(how.stop_after)
        self.wfile.write(body[: how.stop_after.pop(0)] if broken else body)
        if broken and how.reset:
            self.wfile.flush()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Site:
    """The server with a place to download to."""

    def __init__(self, behaviour: Behaviour, port: int, folder: Path) -> None:
        self.how, self.folder = behaviour, folder / "corpus"
        self.url = f"http://127.0.0.1:{port}/file.gz"
        self.ledger = folder / "hashes.json"
        self.part = self.folder / "file.gz.part"

    def fetch(self, checksum: str | None = None, attempts: int = 1, name: str = "file.gz") -> Path:
        download = Download(self.url, name, checksum, "a public source" if checksum else "")
        return fetch(download, self.folder, ledger=self.ledger, attempts=attempts, pause=0.0, timeout=5.0)

    def left(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir()) if self.folder.exists() else []


@pytest.fixture(scope="module")
def server() -> Iterator[http.server.ThreadingHTTPServer]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def site(server: http.server.ThreadingHTTPServer, tmp_path: Path) -> Site:
    Handler.behaviour = Behaviour()
    return Site(Handler.behaviour, server.server_address[1], tmp_path)


SHA = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
MD5 = f"md5:{hashlib.md5(CONTENT).hexdigest()}"


@pytest.mark.parametrize("pin", [None, SHA, MD5])
def test_a_whole_file(site: Site, pin: str | None):
    seen: list[tuple[int, int | None]] = []
    download = Download(site.url, "file.gz", pin)
    path = fetch(download, site.folder, ledger=site.ledger, report=lambda here, total: seen.append((here, total)))
    assert path.read_bytes() == CONTENT
    assert site.left() == ["file.gz"]
    assert seen[0] == (0, len(CONTENT))
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert json.loads(site.ledger.read_text()) == {"corpus/file.gz": SHA}


def test_a_full_disk_is_said_and_the_transfer_goes_on(site: Site, monkeypatch: pytest.MonkeyPatch):
    class Full(io.FileIO):
        def write(self, block: Any) -> int:
            if self.tell() >= 1 << 17:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(block)

    real = Path.open

    def opened(path: Path, mode: str = "r", **how: Any) -> Any:
        return Full(path, mode) if path == site.part and mode == "wb" else real(path, mode, **how)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", opened)
        with pytest.raises(DataError, match=r"file\.gz: .*No space left on device: free some space.* `data`"):
            site.fetch(attempts=4)
    assert site.part.read_bytes() == CONTENT[: 1 << 17]
    assert site.fetch(SHA).read_bytes() == CONTENT
    assert site.how.asked == [None, f"bytes={1 << 17}-"]  # a full disk is no reason to try again


def test_a_folder_that_cannot_be_made(site: Site):
    site.folder.write_text("a file")
    with pytest.raises(DataError, match=r"expected a folder that can be written; got: .*File exists"):
        site.fetch()


def test_a_file_that_is_there_is_not_fetched_again(site: Site):
    site.fetch()
    site.fetch()
    assert len(site.how.asked) == 1


def test_a_file_that_another_command_fetches_is_waited_for(site: Site):
    with ThreadPoolExecutor(1) as pool:
        with locked(site.folder / "file.gz.lock"):
            second = pool.submit(site.fetch, SHA)
            with pytest.raises(TimeoutError):
                second.result(timeout=0.1)
            (site.folder / "file.gz").write_bytes(CONTENT)
        assert second.result(timeout=60) == site.folder / "file.gz"
    assert site.how.asked == []
    assert site.left() == ["file.gz"]


def test_a_transfer_that_breaks_off_goes_on_by_itself(site: Site):
    site.how.stop_after = [1000, 500, 0]
    path = site.fetch(SHA, attempts=4)
    assert site.how.asked == [None, "bytes=1000-", "bytes=1500-", "bytes=1500-"]
    assert path.read_bytes() == CONTENT
    assert site.left() == ["file.gz"]


def test_attempts_that_bring_something_are_not_counted(site: Site):
    site.how.stop_after = [1000] * 9
    assert site.fetch(SHA, attempts=2).read_bytes() == CONTENT
    assert len(site.how.asked) == 10


def test_attempts_that_bring_nothing_new_are(site: Site):
    site.how.stop_after = [1000, 0, 500, 0, 0, 0]
    with pytest.raises(DataError, match="broke off after 1,500 bytes"):
        site.fetch(SHA, attempts=3)
    assert len(site.how.asked) == 5


def test_a_connection_that_is_reset(site: Site):
    site.how.stop_after, site.how.reset = [200_000], True
    assert site.fetch(SHA, attempts=2).read_bytes() == CONTENT
    assert site.how.asked[1] is None or site.how.asked[1].startswith("bytes=")


def test_or_at_the_next_command(site: Site):
    site.how.stop_after = [70_000]
    with pytest.raises(DataError, match=r"broke off after 70,000 bytes .*run the same command again"):
        site.fetch(SHA)
    assert site.part.read_bytes() == CONTENT[:70_000]
    assert not (site.folder / "file.gz").exists()
    assert site.fetch(SHA).read_bytes() == CONTENT
    assert site.how.asked[1] == "bytes=70000-"


def test_a_server_without_ranges_sends_the_file_again(site: Site):
    site.how.ranges, site.how.stop_after = False, [1000]
    assert site.fetch(SHA, attempts=2).read_bytes() == CONTENT
    assert site.how.asked == [None, "bytes=1000-"]


def test_a_file_that_changed_meanwhile_is_not_mixed_with_the_old_one(site: Site):
    site.how.stop_after = [1000]
    with pytest.raises(DataError, match="broke off"):
        site.fetch()
    site.how.content, site.how.etag = gzip.compress(b"new" * 5000, compresslevel=0), '"two"'
    assert site.fetch().read_bytes() == site.how.content


def test_a_part_that_was_whole_already(site: Site):
    site.folder.mkdir(parents=True)
    site.part.write_bytes(CONTENT)
    assert site.fetch(SHA).read_bytes() == CONTENT
    assert site.how.asked == [f"bytes={len(CONTENT)}-"]


def test_a_part_that_is_too_long_is_begun_anew(site: Site):
    site.folder.mkdir(parents=True)
    site.part.write_bytes(CONTENT + b"more")
    assert site.fetch(SHA, attempts=2).read_bytes() == CONTENT


def test_a_server_that_answers_another_part_than_asked(site: Site):
    site.how.stop_after, site.how.shift = [1000], 3
    assert site.fetch(SHA, attempts=3).read_bytes() == CONTENT
    assert site.how.asked == [None, "bytes=1000-", None]


def test_no_length_is_told(site: Site):
    site.how.length = False
    assert site.fetch(SHA).read_bytes() == CONTENT


def test_a_wrong_byte_leaves_nothing(site: Site):
    site.how.content = CONTENT[:5000] + b"!" + CONTENT[5001:]
    with pytest.raises(DataError, match=f"hash {SHA}; got sha256:.*: it was deleted; fetch it again$"):
        site.fetch(SHA)
    assert site.left() == []
    assert not site.ledger.exists()


def test_without_a_pin_the_first_download_counts_from_then_on(site: Site):
    path = site.fetch()
    path.unlink()
    site.how.content = CONTENT[:5000] + b"!" + CONTENT[5001:]
    with pytest.raises(DataError, match=f"hash {SHA}.*a new version, delete its line in .*hashes"):
        site.fetch()
    assert site.left() == []
    site.how.content = CONTENT
    path = site.fetch()
    path.write_bytes(b"\x1f\x8bedited")
    with pytest.raises(DataError, match=r"file\.gz: expected a file with hash .*delete it and fetch it again"):
        site.fetch()
    assert path.read_bytes() == b"\x1f\x8bedited", "what a person has changed is not deleted"


def test_other_records_stay(site: Site):
    site.ledger.parent.mkdir(exist_ok=True)
    site.ledger.write_text('{"other/file.gz": "sha256:00"}')
    site.fetch()
    assert json.loads(site.ledger.read_text()) == {"other/file.gz": "sha256:00", "corpus/file.gz": SHA}


def test_hashes_recorded_at_once_are_all_kept(tmp_path: Path):
    (tmp_path / "file").write_bytes(CONTENT)
    ledger = tmp_path / "data" / "hashes.json"

    def one(number: int) -> None:
        download = Download("http://127.0.0.1:1/file", f"file-{number}.gz")
        record(tmp_path / "file", download, tmp_path / "corpus", ledger)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(20)))
    assert len(json.loads(ledger.read_text())) == 20
    assert [path.name for path in ledger.parent.iterdir()] == ["hashes.json"]


def test_a_ledger_that_cannot_be_read(site: Site):
    site.ledger.write_text("[1]")
    with pytest.raises(DataError, match=r"hashes\.json: expected a JSON object of hashes"):
        site.fetch()


@pytest.mark.parametrize("code", [403, 404, 410])
def test_a_refusal_is_final(site: Site, code: int):
    site.how.status = [code]
    with pytest.raises(
        DataError, match=rf"expected a file at {site.url}; the server answered {code} .*wordward data add"
    ):
        site.fetch(SHA, attempts=5)
    assert len(site.how.asked) == 1
    assert site.left() == []


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_server_in_trouble_is_asked_again(site: Site, code: int):
    site.how.status = [code, code]
    assert site.fetch(SHA, attempts=3).read_bytes() == CONTENT


def test_a_web_page_in_place_of_the_file(site: Site):
    site.how.content = b"<html>Are you sure?</html>"
    with pytest.raises(
        DataError, match=r"expected the archive file\.gz at http.*; it begins with b'<html>.*add it with"
    ):
        site.fetch()
    assert site.left() == []
    assert not site.ledger.exists()
    assert site.fetch(name="page.txt").read_bytes() == site.how.content


def test_no_server_at_all(site: Site):
    site.url = "http://127.0.0.1:1/file.gz"
    with pytest.raises(DataError, match=r"received nothing \(.*refused.*or add a copy"):
        site.fetch(attempts=2)


@given(stops=st.lists(st.integers(0, len(CONTENT)), max_size=6))
def test_however_often_it_breaks_off_the_file_is_the_same(
    server: http.server.ThreadingHTTPServer, tmp_path_factory: pytest.TempPathFactory, stops: list[int]
):
    Handler.behaviour = Behaviour(stop_after=stops)
    site = Site(Handler.behaviour, server.server_address[1], tmp_path_factory.mktemp("stops"))
    assert site.fetch(SHA, attempts=len(stops) + 1).read_bytes() == CONTENT


def test_hashes(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    assert (checksum(path, "sha256"), checksum(path, "md5")) == (SHA, MD5)
    verify(path, None)
    verify(path, MD5)
    pinned = Download("u", "file", SHA)
    (tmp_path / "hashes.json").write_text('{"x/file": "sha256:00"}')
    assert expected(pinned, Path("x"), tmp_path / "hashes.json") == SHA, "a pin stands above the record"
    assert expected(Download("u", "file"), Path("x"), tmp_path / "hashes.json") == "sha256:00"
    assert expected(Download("u", "file"), Path("y"), tmp_path / "hashes.json") is None


def test_a_redirection_out_of_https_is_refused(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Without a pinned hash, whoever is on the way could send anything."""
    urlopen = urllib.request.urlopen
    monkeypatch.setattr("wordward.datasets.fetch.urlopen", lambda request, **how: urlopen(site.url, **how))
    asked = Download(site.url.replace("http:", "https:"), "file.gz")
    with pytest.raises(DataError, match=r"expected https://.* over HTTPS; the server sent it from http://"):
        fetch(asked, tmp_path / "safe", ledger=tmp_path / "hashes.json", attempts=1)
    assert not (tmp_path / "safe" / "file.gz").exists()
