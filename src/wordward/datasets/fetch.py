"""Fetch published files over HTTP, going on after a broken transfer and never keeping a wrong file."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from email.message import Message
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from wordward.datasets.example import DataError
from wordward.datasets.published import Download
from wordward.processes.locks import locked

LEDGER = "hashes.json"  # in the data folder: what was first downloaded
Report = Callable[[int, int | None], None]  # bytes here, bytes in all
_BEGINNINGS = {".gz": b"\x1f\x8b", ".tgz": b"\x1f\x8b", ".xz": b"\xfd7zXZ", ".zip": b"PK"}
_ELSEWHERE = "look for it on the publisher's page, and hand it over with `wordward data add`"


class _BrokenOffError(Exception):
    """A transfer that may go on."""


def fetch(
    download: Download,
    folder: Path,
    *,
    ledger: Path,
    report: Report = lambda here, total: None,
    attempts: int = 4,
    pause: float = 1.0,
    timeout: float = 60.0,
) -> Path:
    """The file in `folder`, downloaded if it is not there; its hash is as pinned or as recorded before."""
    target = folder / download.name
    part = target.with_name(target.name + ".part")
    if target.exists():
        verify(target, expected(download, folder, ledger))
        return target
    try:
        with locked(target.with_name(target.name + ".lock")):  # two commands would write into one part
            if not target.exists():
                _whole(download.url, part, report, attempts=attempts, pause=pause, timeout=timeout)
                _check(part, download, expected(download, folder, ledger), ledger)
                record(part, download, folder, ledger)
                os.replace(part, target)
                _forget(part)
    except OSError as error:
        raise DataError(
            f"expected a folder that can be written; got: {error}: free some space and run the same command again, "
            "which goes on after what has come; or name another folder with --data",
            target,
        ) from None
    return target


def expected(download: Download, folder: Path, ledger: Path) -> str | None:
    """The hash a file must have: the pinned one, else the one of its first download."""
    return download.checksum or _recorded(ledger).get(f"{folder.name}/{download.name}")


def record(path: Path, download: Download, folder: Path, ledger: Path) -> None:
    """Write down the hash of a first download; a former record stays. Several commands may do so at once."""
    with locked(ledger.with_name(ledger.name + ".lock")):
        known = _recorded(ledger)
        if (key := f"{folder.name}/{download.name}") not in known:
            known[key] = checksum(path, "sha256")
            new = ledger.with_name(ledger.name + ".new")
            new.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            os.replace(new, ledger)


def verify(path: Path, wanted: str | None, remedy: str = "delete it and fetch it again") -> None:
    """Refuse a file whose hash is not the wanted one."""
    if wanted is None:
        return
    found = checksum(path, wanted.partition(":")[0])
    if found != wanted:
        raise DataError(f"expected a file of hash {wanted}; got {found}: {remedy}", path)


def checksum(path: Path, method: str) -> str:
    """The hash of a file as "sha256:..."."""
    with path.open("rb") as file:
        return f"{method}:{hashlib.file_digest(file, method).hexdigest()}"


def _recorded(ledger: Path) -> dict[str, str]:
    if not ledger.exists():
        return {}
    try:
        known = json.loads(ledger.read_text(encoding="utf-8"))
        return {str(key): str(value) for key, value in known.items()}
    except (ValueError, AttributeError) as error:
        raise DataError(
            f"expected a JSON object of hashes; got: {error}: repair or delete it", ledger
        ) from None


def _whole(url: str, part: Path, report: Report, *, attempts: int, pause: float, timeout: float) -> None:
    """Fetch a file into `part`; where it breaks off, it goes on until so many attempts in a row bring nothing new."""
    most = failed = 0
    while True:
        try:
            _transfer(url, part, report, timeout)
            return
        except _BrokenOffError as error:
            size = part.stat().st_size if part.exists() else 0
            failed = failed + 1 if size <= most else 1
            most = max(most, size)
            if failed >= attempts:
                raise _gave_up(url, size, error) from None
        time.sleep(pause * 2 ** (failed - 1))


def _gave_up(url: str, size: int, error: Exception) -> DataError:
    if not size:
        return DataError(
            f"expected {url}; nothing came ({error}): run the same command again when the network or the "
            "server is back, or hand over a copy you have with `wordward data add`"
        )
    return DataError(
        f"expected the whole of {url}; it broke off after {size:,} bytes ({error}): run the same command "
        "again to go on from there"
    )


def _transfer(url: str, part: Path, report: Report, timeout: float) -> None:
    """Fetch what is missing of a file into `part`."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "wordward", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        if validator := _validator(part):
            headers["If-Range"] = validator  # the whole file, if it has changed since
    try:
        with urlopen(Request(url, headers=headers), timeout=timeout) as answer:
            going_on = answer.status == 206 and _first_byte(answer.headers) == have
            if answer.status == 206 and not going_on:
                _forget(part)
                raise _BrokenOffError("the server sent another part than was asked for")
            start = have if going_on else 0
            length = answer.headers.get("Content-Length")
            total = start + int(length) if length and length.isdecimal() else None
            _note(part, answer.headers)
            with part.open("ab" if going_on else "wb") as file:
                report(start, total)
                while block := _block(answer):
                    file.write(block)
                    report(file.tell(), total)
            if total is not None and part.stat().st_size != total:
                raise _BrokenOffError(f"of {total:,}")
    except HTTPError as error:
        with error:
            _refused(error, url, part, have)
    except (HTTPException, URLError, ConnectionError, TimeoutError) as error:
        raise _BrokenOffError(str(getattr(error, "reason", error)) or type(error).__name__) from None


def _block(answer: HTTPResponse) -> bytes:
    """Some bytes more; here any OSError is the network's, and not that of a full disk."""
    try:
        return answer.read(1 << 16)
    except (HTTPException, OSError) as error:
        raise _BrokenOffError(str(error) or type(error).__name__) from None


def _refused(error: HTTPError, url: str, part: Path, have: int) -> None:
    """Return if nothing is missing, else say whether to try again."""
    if error.code == 416 and have:
        if error.headers.get("Content-Range", "").endswith(f"*/{have}"):
            return
        _forget(part)
        raise _BrokenOffError("the part here does not fit the file there, begun anew") from None
    if error.code == 429 or error.code >= 500:
        raise _BrokenOffError(f"the server answers {error.code} {error.reason}") from None
    raise DataError(
        f"expected a file at {url}; the server answers {error.code} {error.reason}: {_ELSEWHERE}"
    ) from None


def _first_byte(headers: Message) -> int | None:
    unit, _, span = str(headers.get("Content-Range", "")).partition(" ")
    first = span.partition("-")[0]
    return int(first) if unit == "bytes" and first.isdecimal() else None


def _check(part: Path, download: Download, wanted: str | None, ledger: Path) -> None:
    """Refuse a wrong file; nothing of it is kept, not even to go on from."""
    remedy = "it was deleted, fetch it again"
    if not download.checksum:
        remedy += f"; if the publisher has another version now, delete its line in {ledger}"
    try:
        _check_beginning(part, download)
        verify(part, wanted, remedy)
    except DataError:
        _forget(part)
        raise


def _check_beginning(part: Path, download: Download) -> None:
    """Refuse a web page that comes in place of the file: without a pinned hash it would be recorded as right."""
    wanted = _BEGINNINGS.get(Path(download.name).suffix.lower())
    with part.open("rb") as file:
        found = file.read(16)
    if wanted and not found.startswith(wanted):
        raise DataError(
            f"expected the archive {download.name} at {download.url}; it begins with {found!r}: {_ELSEWHERE}"
        )


def _note(part: Path, headers: Message) -> None:
    """Keep what tells this version of the file from another."""
    tag = headers.get("ETag", "")
    validator = tag if tag and not tag.startswith("W/") else headers.get("Last-Modified", "")
    _note_file(part).write_text(validator, encoding="utf-8")


def _validator(part: Path) -> str:
    note = _note_file(part)
    return note.read_text(encoding="utf-8").strip() if note.exists() else ""


def _note_file(part: Path) -> Path:
    return part.with_name(part.name + ".version")


def _forget(part: Path) -> None:
    for path in (part, _note_file(part)):
        with suppress(FileNotFoundError):
            path.unlink()
