"""`wordward data`: list, fetch, add, check, measure and pack the paper's corpora."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

import tyro

from wordward.cli.data_tables import fetching, print_check, print_stats, size_of, terms_of
from wordward.cli.errors import UsageError
from wordward.config.texts import TextSettings

if TYPE_CHECKING:
    from wordward.datasets.published import CorpusInfo

Name = Annotated[Literal["imdb", "elec", "rotten_tomatoes", "dbpedia", "rcv1", "fce"], tyro.conf.arg(metavar="NAME")]
Folder = Annotated[str | None, tyro.conf.arg(metavar="FOLDER")]


@dataclass(frozen=True, kw_only=True)
class InFolder:
    """Options of every action that uses the data folder."""

    data: Folder = None
    """Data folder; by default WORDWARD_DATA, else `data`."""


@dataclass(frozen=True)
class OneCorpus(InFolder):
    """Options of every action on one corpus."""

    name: tyro.conf.Positional[Name]
    """A corpus of `wordward data list`."""


@dataclass(frozen=True)
class List(InFolder):
    """List the corpora: title, the paper's counts, licence, citation, and where they are or how to get them."""

    def __call__(self) -> None:
        from wordward.datasets import registry

        for number, name in enumerate(registry.CORPORA):
            info = registry.corpus(name).INFO
            paper = ", ".join(f"{count:,} {split}" for split, count in info.counts._asdict().items() if count)
            print("\n" * bool(number) + f"{name}: {info.title}")
            print(f"  task      {info.task}")
            print(f"  paper     {paper}")
            print(f"  licence   {info.licence}")
            print(f"  citation  {info.citation}")
            print(f"  homepage  {info.homepage}")
            try:
                print(f"  here      {registry.find(name, self.data)}")
            except ValueError:
                print(f"  here      no: `{fetching(info)}`{size_of(info)}, or `wordward data add {name} PATH`")
            if info.note:
                print(f"  note      {info.note}")


@dataclass(frozen=True)
class Fetch(OneCorpus):
    """Download a corpus from its publisher; an interrupted transfer is resumed."""

    accept_licence: bool = False
    """Agree to the corpus's terms; without this option they are shown, with what to download."""
    quiet: bool = False
    """Say nothing but errors."""

    def __call__(self) -> None:
        from wordward.datasets import fetch, registry
        from wordward.support.console import progress, say

        info = registry.corpus(self.name).INFO
        folder = registry.folder(self.data) / self.name
        if info.terms and not self.accept_licence:
            raise UsageError(terms_of(info, folder))
        ledger = registry.folder(self.data) / fetch.LEDGER
        with progress(quiet=self.quiet) as bar:
            for download in info.downloads:
                task = bar.add_task(download.name, total=None, unit="MB")

                def report(received: int, total: int | None, task: Any = task) -> None:
                    bar.update(task, completed=received / 1e6, total=total and total / 1e6)

                path = fetch.fetch(download, folder, ledger=ledger, report=report)
                known = fetch.expected(download, folder, ledger)  # None for a file that was put there by hand
                recorded = f"recorded in {ledger} at its first download, since no public source states one"
                hash = "as " + download.cited if download.checksum else recorded
                size = f"{path.stat().st_size / 1e6:,.1f} MB"
                say(f"{path}: {size}, hash {hash if known else 'unknown'}", quiet=self.quiet)
        say(f"next: wordward data check {self.name}", quiet=self.quiet)
        if info.note:
            say(info.note, quiet=self.quiet)


@dataclass(frozen=True)
class Add(OneCorpus):
    """Copy (or link) a corpus that you have into the data folder, after checking that it can be read."""

    path: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="PATH")]]
    """Folder or archive, as published."""
    link: bool = False
    """Link to it instead of copying it."""

    def __call__(self) -> None:
        from wordward.datasets import registry
        from wordward.support.console import waiting

        source = Path(self.path).resolve()
        target = registry.folder(self.data).resolve() / self.name / source.name
        if os.path.lexists(target) or target.is_relative_to(source):
            raise UsageError(f"expected no copy in {target.parent} yet; there is one: move it away first")
        with waiting(f"reading {self.name}"):
            splits = registry.corpus(self.name).load(source)
            registry.place(self.name, source, target, link=self.link)
        found = registry.find(self.name, self.data)
        if found.resolve() not in (source, target, target.parent):
            raise UsageError(
                f"expected {target} to be found; {found.resolve()} is found before it: move one of them away"
            )
        more = registry.beside(self.name, source)  # not copied along with an archive
        if more or registry.beside(self.name, found):
            splits = registry.load(self.name, self.data)
        counts = ", ".join(f"{count:,} {split}" for split, count in splits.counts._asdict().items() if count)
        print(f"{self.name}: {target}: {counts}")
        if more and not splits.unlabelled:
            print(f"{more[0]} stays where it is: put it into {target.parent} for it to be read")


@dataclass(frozen=True)
class Check(OneCorpus):
    """Compare counts with the paper's, count duplicates and empty texts; status 1 if a labelled count is wrong."""

    def __call__(self) -> None:
        from wordward.datasets import fetch, registry
        from wordward.support.console import waiting
        from wordward.text import survey

        info, source = registry.corpus(self.name).INFO, registry.find(self.name, self.data)
        hashes = _hashes(info, source, registry.folder(self.data) / fetch.LEDGER)
        with waiting(f"reading {self.name}"):
            for path, hash in hashes.items():
                fetch.verify(path, hash)
            found = survey.check(registry.load(self.name, self.data), info)
        verified = f" ({len(hashes)} {'hash' if len(hashes) == 1 else 'hashes'} verified)" if hashes else ""
        print(f"{self.name}: {source}{verified}")
        print_check(found)
        if found.wrong:
            counts = ", ".join(f"{split} has {found.counts[split][0]:,}" for split in found.wrong)
            raise UsageError(
                f"{self.name}: expected the paper's counts; {counts}: the copy is incomplete, or not this corpus"
            )


@dataclass(frozen=True)
class Stats(OneCorpus):
    """Count texts, words and classes."""

    tokenizer: Literal["words", "authors", "punctuation", "whitespace", "characters"] = "words"
    """What a word is, as in `wordward train`."""

    def __call__(self) -> None:
        from wordward.datasets import registry
        from wordward.support.console import waiting
        from wordward.text import survey

        with waiting(f"reading {self.name}"):
            measures = survey.stats(registry.load(self.name, self.data), tokenizer=self.tokenizer)
        print_stats(measures)


@dataclass(frozen=True)
class Pack(OneCorpus):
    """Encode a corpus and write it as one small file, for --corpus FILE.pack on another machine."""

    out: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="FILE")]]
    """File to write; its name must end in .pack."""
    text: TextSettings
    quiet: bool = False
    """Say nothing but errors."""

    def __call__(self) -> None:
        from wordward.runs.results_file import held
        from wordward.text.corpora import PACK, open_corpus
        from wordward.text.pack import write_pack

        if not self.out.endswith(PACK):
            raise UsageError(f"the file's name must end in {PACK}, but is {self.out!r}")
        path = Path(self.out)
        if path.is_dir() or not os.access(path.parent, os.W_OK):  # refused before minutes of work
            raise UsageError(f"{path} cannot be written: name a file in an existing, writable folder")
        with held(path, "FILE"):
            encoded = open_corpus(self.name, self.text, data=self.data, quiet=self.quiet)
            write_pack(path, encoded, self.text, quiet=self.quiet)
        if not self.quiet:
            print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


ACTIONS: dict[str, Any] = {"list": List, "fetch": Fetch, "add": Add, "check": Check, "stats": Stats, "pack": Pack}

if TYPE_CHECKING:
    Action = Any
else:
    Action = Union[tuple(Annotated[kind, tyro.conf.subcommand(name)] for name, kind in ACTIONS.items())]  # noqa: UP007


@dataclass(frozen=True)
class Data:
    """The paper's corpora: list, fetch, add, check, measure and pack them."""

    action: Action

    def __call__(self) -> None:
        self.action()


def _hashes(info: "CorpusInfo", source: Path, ledger: Path) -> dict[Path, str]:
    """The files of a corpus whose hash is pinned or recorded, with that hash."""
    from wordward.datasets import fetch

    folder = source if source.is_dir() else source.parent
    return {
        path: hash
        for download in info.downloads
        if (path := folder / download.name).is_file() and (hash := fetch.expected(download, Path(info.name), ledger))
    }
