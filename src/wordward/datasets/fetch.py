"""Fetch published files over HTTP: resume interrupted transfers, never keep a wrong file."""

import hashlib
import json
import time
from collections.abc import Callable
from email.message import Message
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from wordward.datasets.published import Download
from wordward.support.errors import DataError
from wordward.support.files import put, write
from wordward.support.locks import locked

LEDGER = "hashes.json"  # in the data folder: hashes of first downloads
Report = Callable[[int, int | None], None]  # bytes received, bytes in total
_BEGINNINGS = {".gz": b"\x1f\x8b", ".tgz": b"\x1f\x8b", ".xz": b"\xfd7zXZ", ".zip": b"PK"}
_ELSEWHERE = "look for it on the publisher's page, and add it with `wordward data add`"


class _InterruptedError(Exception):
    """A transfer that can be resumed."""


def fetch(
    download: Download,
    folder: Path,
    *,
    ledger: Path,
    report: Report = lambda received, total: None,
    attempts: int = 4,
    pause: float = 1.0,
    timeout: float = 60.0,
) -> Path:
    """The file in `folder`, downloaded if missing; its hash must be the pinned or the recorded one."""
    target = folder / download.name
    part = target.with_name(target.name + ".part")
    if target.exists():
        verify(target, expected(download, folder, ledger))
        return target
    try:
        with locked(target.with_name(target.name + ".lock")):  # two commands would write to the same part
            if not target.exists():
                _download(download.url, part, report, attempts=attempts, pause=pause, timeout=timeout)
                _check(part, download, expected(download, folder, ledger), ledger)
                record(part, download, folder, ledger)
                put(part, target)
                _discard(part)
    except OSError as error:
        raise DataError(
            f"expected a folder that can be written; got: {error}: free some space and run the same command again, "
            "which resumes the download; or name another folder with `data`",
            target,
        ) from None
    return target


def expected(download: Download, folder: Path, ledger: Path) -> str | None:
    """The hash a file must have: the pinned one, else that of its first download."""
    return download.checksum or _recorded(ledger).get(f"{folder.name}/{download.name}")


def record(path: Path, download: Download, folder: Path, ledger: Path) -> None:
    """Record the hash of a first download; an existing record stays. Several commands may do so at once."""
    with locked(ledger.with_name(ledger.name + ".lock")):
        known = _recorded(ledger)
        if (key := f"{folder.name}/{download.name}") not in known:
            known[key] = checksum(path, "sha256")
            write(ledger, json.dumps(known, indent=1, sort_keys=True) + "\n")


def verify(path: Path, wanted: str | None, remedy: str = "delete it and fetch it again") -> None:
    """Refuse a file with a different hash."""
    if wanted is None:
        return
    actual = checksum(path, wanted.partition(":")[0])
    if actual != wanted:
        raise DataError(f"expected a file with hash {wanted}; got {actual}: {remedy}", path)


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
    except (ValueError, AttributeError, RecursionError) as error:
        raise DataError(f"expected a JSON object of hashes; got: {error}: repair or delete it", ledger) from None


def _download(url: str, part: Path, report: Report, *, attempts: int, pause: float, timeout: float) -> None:
    """Fetch a file into `part`, resuming interrupted transfers, until `attempts` in a row make no progress."""
    most = failed = 0
    while True:
        try:
            _transfer(url, part, report, timeout)
            return
        except _InterruptedError as error:
            size = part.stat().st_size if part.exists() else 0
            failed = failed + 1 if size <= most else 1
            most = max(most, size)
            if failed >= attempts:
                raise _gave_up(url, size, error) from None
        time.sleep(pause * 2 ** (failed - 1))


def _gave_up(url: str, size: int, error: Exception) -> DataError:
    if not size:
        return DataError(
            f"expected {url}; received nothing ({error}): run the same command again when the network or the "
            "server is back, or add a copy you have with `wordward data add`"
        )
    return DataError(
        f"expected all of {url}; the transfer broke off after {size:,} bytes ({error}): run the same command "
        "again to resume it"
    )


def _transfer(url: str, part: Path, report: Report, timeout: float) -> None:
    """Fetch the missing rest of a file into `part`."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "wordward", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        version = _validator_file(part)
        if version.exists() and (validator := version.read_text(encoding="utf-8").strip()):
            headers["If-Range"] = validator  # sends the whole file if it has changed
    try:
        with urlopen(Request(url, headers=headers), timeout=timeout) as answer:
            _refuse_downgrade(url, answer.url)
            resumed = answer.status == 206 and _first_byte(answer.headers) == have
            if answer.status == 206 and not resumed:
                _discard(part)
                raise _InterruptedError("the server sent a different part from the one requested")
            start = have if resumed else 0
            length = answer.headers.get("Content-Length")
            total = start + int(length) if length and length.isdecimal() else None
            _save_validator(part, answer.headers)
            with part.open("ab" if resumed else "wb") as file:
                report(start, total)
                while block := _block(answer):
                    file.write(block)
                    report(file.tell(), total)
            if total is not None and part.stat().st_size != total:
                raise _InterruptedError(f"of {total:,}")
    except HTTPError as error:
        with error:
            _refused(error, url, part, have)
    except (HTTPException, URLError, ConnectionError, TimeoutError) as error:
        raise _InterruptedError(str(getattr(error, "reason", error)) or type(error).__name__) from None


def _refuse_downgrade(url: str, answered: str) -> None:
    """Refuse a file that was asked for over HTTPS, but was sent in the clear after a redirection."""
    if url.startswith("https:") and not answered.startswith("https:"):
        raise DataError(f"expected {url} over HTTPS; the server sent it from {answered}: {_ELSEWHERE}")


def _block(answer: HTTPResponse) -> bytes:
    """The next bytes; any OSError here comes from the network, not from a full disk."""
    try:
        return answer.read(1 << 16)
    except (HTTPException, OSError) as error:
        raise _InterruptedError(str(error) or type(error).__name__) from None


def _refused(error: HTTPError, url: str, part: Path, have: int) -> None:
    """Return if nothing is missing, else raise an error that says whether to try again."""
    if error.code == 416 and have:
        if error.headers.get("Content-Range", "").endswith(f"*/{have}"):
            return
        _discard(part)
        raise _InterruptedError("the part on disk does not match the file on the server; starting over") from None
    if error.code == 429 or error.code >= 500:
        raise _InterruptedError(f"the server answered {error.code} {error.reason}") from None
    raise DataError(
        f"expected a file at {url}; the server answered {error.code} {error.reason}: {_ELSEWHERE}"
    ) from None


def _first_byte(headers: Message) -> int | None:
    unit, _, span = str(headers.get("Content-Range", "")).partition(" ")
    first = span.partition("-")[0]
    return int(first) if unit == "bytes" and first.isdecimal() else None


def _check(part: Path, download: Download, wanted: str | None, ledger: Path) -> None:
    """Refuse and delete a wrong file, so that it is not resumed from either."""
    remedy = "it was deleted; fetch it again"
    if not download.checksum:
        remedy += f"; if the publisher has a new version, delete its line in {ledger}"
    try:
        _check_beginning(part, download)
        verify(part, wanted, remedy)
    except DataError:
        _discard(part)
        raise


def _check_beginning(part: Path, download: Download) -> None:
    """Refuse a web page sent in place of the file: without a pinned hash it would be recorded as correct."""
    wanted = _BEGINNINGS.get(Path(download.name).suffix.lower())
    with part.open("rb") as file:
        beginning = file.read(16)
    if wanted and not beginning.startswith(wanted):
        raise DataError(
            f"expected the archive {download.name} at {download.url}; it begins with {beginning!r}: {_ELSEWHERE}"
        )


def _save_validator(part: Path, headers: Message) -> None:
    """Save what identifies this version of the file."""
    tag = headers.get("ETag", "")
    validator = tag if tag and not tag.startswith("W/") else headers.get("Last-Modified", "")
    _validator_file(part).write_text(validator, encoding="utf-8")


def _validator_file(part: Path) -> Path:
    return part.with_name(part.name + ".version")


def _discard(part: Path) -> None:
    for path in (part, _validator_file(part)):
        path.unlink(missing_ok=True)
