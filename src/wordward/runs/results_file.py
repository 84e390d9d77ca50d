"""Results of many texts as JSON Lines, written as texts are done; the same command continues the file."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from wordward.datasets import DataError, Example
from wordward.runs import run_folder
from wordward.runs.run import Run
from wordward.support.console import say
from wordward.support.files import write
from wordward.support.locks import locked
from wordward.support.version import __version__

Read = TypeVar("Read")
# What decides how a Hugging Face model reads; results may lie in its folder as well.
READ = ("config.json", "adapter_config.json", "*token*.json", "vocab.*", "merges.txt", "*.model")


def describe(run: Run, examples: Sequence[Example], **more: Any) -> dict[str, Any]:
    """What determines the results, wherever it is stored: the model, how it reads, the labelled texts, and `more`."""
    config = run.config
    settings = [config.task, asdict(config.text), asdict(config.perturbation)]
    settings += [config.training.seed, config.training.min_candidate_count]
    texts = hashlib.sha256()
    for example in examples:
        texts.update(json.dumps([example.text, example.label, example.tokens, example.tags]).encode())
    opened = {} if run.trained_here else {"model": str(run.folder), "labels": list(run.labels)}
    return {
        **opened,
        "weights": fingerprint(run.weights),
        "vocabulary": fingerprint(_words(run)),
        "run_settings": _short(hashlib.sha256(json.dumps(settings).encode())),
        "texts": len(examples),
        "fingerprint": _short(texts),
        "positive": config.training.positive,
        "version": __version__,
        **json.loads(json.dumps(more)),
    }


def fingerprint(files: Iterable[str | Path]) -> str | None:
    """A fingerprint of the contents of files; None if there are none."""
    digest = None
    for file in files:
        digest = digest or hashlib.sha256()
        digest.update(Path(file).read_bytes())
    return None if digest is None else _short(digest)


def _words(run: Run) -> list[Path]:
    """The files that define which words and labels a run knows, including a Hugging Face model's tokenizer."""
    names = run_folder.VOCABULARY, run_folder.LABELS, run_folder.CLASS_COUNTS
    tokenizer_files = {file for kind in READ for file in run.place.glob(kind)}
    return [file for name in names if (file := run.folder / name).exists()] + sorted(tokenizer_files)


def _short(digest: Any) -> str:
    return digest.hexdigest()[:16]


class ResultsFile:
    """JSON Lines written as texts are done, with a file beside them that identifies what they belong to."""

    def __init__(
        self,
        path: str | Path,
        described: dict[str, Any],
        *,
        command: str,
        name: str,
        lines: int = 1,
        force: bool = False,
    ) -> None:
        """`command` writes it, `name` is its setting there; `lines`: the number of lines per text."""
        self.path = Path(path)
        self.beside = self.path.with_name(self.path.name + ".settings.json")
        self.command, self.lines = command, lines
        self._described, self._remedy = described, f"choose another `{name}`, or `force=True` to overwrite it"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.done = 0 if force else self._done()  # texts

    def _done(self) -> int:
        """How many texts were done before; raises an error if the file belongs to something else."""
        if not self.path.exists():
            return 0
        if not self.beside.exists():
            raise DataError(
                f"expected {self.beside.name} beside it, which says what it belongs to: {self._remedy}", self.path
            )
        with run_folder.readable(self.beside, f": {self._remedy}"):
            earlier = dict(json.loads(self.beside.read_text(encoding="utf-8")))
        if other := [name for name, value in self._described.items() if earlier.get(name) != value]:
            raise DataError(
                f"it holds results of another `wordward {self.command}` (other {', '.join(other)}): {self._remedy}",
                self.path,
            )
        ends = [0]
        with self.path.open("rb") as file:
            ends += [file.tell() for line in iter(file.readline, b"") if line.endswith(b"\n")]
        done = (len(ends) - 1) // self.lines
        os.truncate(self.path, ends[done * self.lines])  # drop an incomplete last line
        return done

    def records(self, read: Callable[[dict[str, Any]], Read]) -> Iterator[Read]:
        """What `read` makes of the record in each line, in order; a damaged line is refused."""
        if not self.done:
            return
        with self.path.open(encoding="utf-8", errors="replace", newline="\n") as file:
            for number, line in zip(range(self.done * self.lines), file, strict=True):
                try:
                    record = json.loads(line)
                    if record.pop("number") != number // self.lines:
                        raise ValueError("the texts are not in order")
                    result = read(record)
                except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                    raise DataError(
                        f"expected results of `wordward {self.command}` ({error}): {self._remedy}", self.path
                    ) from None
                yield result

    def append(self, *records: Mapping[str, Any]) -> None:
        """Write the lines of one more text immediately."""
        if not self.done:
            self.path.unlink(missing_ok=True)  # before its new description is written
            write(self.beside, json.dumps(self._described, indent=1, ensure_ascii=False) + "\n")
        lines = [json.dumps({"number": self.done, **record}, ensure_ascii=False) for record in records]
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write("".join(f"{line}\n" for line in lines))
            self.done += 1  # before the file is closed, which Ctrl-C does too


@contextmanager
def held(path: str | Path | None, flag: str) -> Iterator[None]:
    """Hold a file of results while writing it; refuse one that another process is writing. A pipe is not held."""
    if path is None or (Path(path).exists() and not Path(path).is_file()):
        yield
        return

    def busy() -> None:
        raise DataError(f"another command is writing it: wait until that has ended, or choose another {flag}", path)

    with locked(Path(f"{path}.lock"), busy=busy):
        yield


@contextmanager
def hint_to_continue(file: ResultsFile | None) -> Iterator[None]:
    """After Ctrl-C, say that the same command continues the file."""
    try:
        yield
    except KeyboardInterrupt:
        if file is not None and file.done:
            say(f"{file.done:,} texts are in {file.path}; the same command continues after them")
        raise
