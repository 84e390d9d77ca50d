"""What `wordward data` prints: how a corpus is fetched, under which terms, and what was found in it."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wordward.datasets.published import CorpusInfo
    from wordward.text.survey import Check, Stats


def fetching(info: "CorpusInfo") -> str:
    """The command that downloads a corpus."""
    return f"wordward data fetch {info.name}" + (" --accept-licence" if info.terms else "")


def size_of(info: "CorpusInfo") -> str:
    """The download size, if known."""
    sizes = [download.megabytes for download in info.downloads if download.megabytes is not None]
    return f" ({sum(sizes):g} MB)" if len(sizes) == len(info.downloads) else " (size unknown)"


def terms_of(info: "CorpusInfo", folder: Path) -> str:
    """The terms of a corpus, what to download and where to put it."""
    urls = "\n".join(f"  {download.url}" for download in info.downloads)
    return (
        f"{info.name} comes with terms: {info.terms}.\n"
        f"Fetch it with `{fetching(info)}`{size_of(info)}, or download\n{urls}\n"
        f"into {folder} yourself (page: {info.homepage})"
    )


def print_check(found: "Check") -> None:
    """A table of the counts here and in the paper, of duplicates and empty texts, and what splits share."""
    print(f"{'':12}{'here':>10}{'paper':>12}{'duplicates':>12}{'empty':>8}")
    for split, (count, paper) in found.counts.items():
        mark = "" if count == paper else "  differs" if count else "  none here"
        shown = f"{paper:,}" if paper else "-"
        print(f"{split:12}{count:>10,}{shown:>12}{found.duplicates[split]:>12,}{found.empty[split]:>8,}{mark}")
    for (one, other), shared in found.shared.items():
        if shared:
            print(f"{shared:,} texts of {one} are in {other} too")


def print_stats(found: "Stats") -> None:
    """A table of the texts and words of each split, then the vocabulary and the classes."""
    print(f"{'':12}{'texts':>10}{'words':>14}{'mean':>9}{'median':>9}{'longest':>9}")
    for split, sizes in found.lengths.items():
        print(
            f"{split:12}{sizes.texts:>10,}{sizes.words:>14,}{sizes.mean:>9.1f}{sizes.median:>9g}{sizes.longest:>9,}"
        )
    print(f"vocabulary of train and unlabelled: {found.vocabulary:,} words, {found.vocabulary_of_two:,} in two texts")
    for split, classes in found.classes.items():
        most = ", ".join(f"{name} {count:,}" for name, count in classes.most_common(14))
        print(f"{split}: {len(classes)} classes: {most}{', ...' if len(classes) > 14 else ''}")
