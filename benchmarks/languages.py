"""python -m benchmarks.languages: what wordward's own choice gives on texts that are not English.

    apt-get update -o Acquire::Languages=de,fr,...          (on Debian or in its container; pip install scikit-learn)

The texts are the descriptions of Debian's packages as its translators wrote them, cut to 60 words or 400 characters,
one for each source package; labels are the eight sections that most of them are in: 500 to learn from,
at most 1,500 others to test on. Beside wordward's choice where no Transformer is at hand stand scikit-learn's linear
models on words, with the objective of the yardstick, and on letters. A row that is in the records already is not run
again; --table prints them. That the linear part reads letters, and learns by margins where there are more than two
labels, was decided on these texts but for the Ukrainian, Danish and Japanese.
"""

import argparse
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.records import add, mean, recorded
from benchmarks.yours import linear_error, machine
from wordward.config.settings import ModelSettings, TrainConfig, TrainingSettings
from wordward.datasets import Example, hold_out, sample
from wordward.datasets.example import label_names
from wordward.runs.opening import load_run
from wordward.support.errors import DataError
from wordward.support.version import __version__
from wordward.train.training import train

RESULTS = Path(__file__).parent / "results" / "languages.jsonl"
LANGUAGES = ("cs", "da", "de", "es", "fr", "it", "ja", "ko", "pl", "pt_BR", "ru", "sk", "uk")
SEEDS, METHODS = (1, 2), ("baseline", "iadvt")
LABELS, LEARNT, TESTED = 8, 500, 1_500
WORDS, CHARACTERS = 60, 400  # of a text, at most
FIELD = re.compile(r"^([A-Za-z0-9_-]+): (.*(?:\n .*)*)", re.MULTILINE)


def texts_of(language: str) -> list[Example]:
    """The descriptions with their sections, one for each source package."""
    sections = {}
    for found in _stanzas("Packages"):
        source = found.get("Source", found["Package"]).split()[0]
        sections[found["Package"]] = source, found["Section"].split("/")[-1]
    texts: dict[str, tuple[str, str]] = {}
    for found in _stanzas("Translations", language):
        if found["Package"] in sections:
            source, section = sections[found["Package"]]
            texts.setdefault(source, (_cut(found[f"Description-{language}"]), section))
    most = [section for section, _ in Counter(section for _, section in texts.values()).most_common(LABELS)]
    return [Example(text, section) for text, section in texts.values() if section in most]


def _stanzas(created_by: str, language: str = "") -> Iterator[dict[str, str]]:
    """The entries of apt's lists of this kind."""
    which = [f"Created-By: {created_by}", "Component: main", *([f"Language: {language}"] if language else [])]
    every = ["-o", f"Acquire::Languages={','.join(LANGUAGES)}"]
    files = _said(["apt-get", "indextargets", *every, "--format", "$(FILENAME)", *which]).split()
    if not files:
        raise DataError(
            f"apt has no list of {' '.join([created_by, language]).strip()}: "
            f"apt-get update -o Acquire::Languages={','.join(LANGUAGES)}"
        )
    for entry in "\n\n".join(_said(["/usr/lib/apt/apt-helper", "cat-file", file]) for file in files).split("\n\n"):
        if "Package: " in entry:
            yield dict(FIELD.findall(entry))


def _said(command: Sequence[str]) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except FileNotFoundError:
        raise DataError(
            f"{command[0]} was not found: this benchmark reads the package lists of Debian's apt"
        ) from None


def _cut(description: str) -> str:
    words = [word for word in description.split() if word != "."]
    return " ".join(words[:WORDS])[:CHARACTERS]


def letters_error(learnt: Sequence[Example], test: Sequence[Example]) -> float:
    """The test error of scikit-learn's support vector machine on stretches of letters."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    model = make_pipeline(letters, LinearSVC()).fit([one.text for one in learnt], [one.label for one in learnt])
    found = model.predict([one.text for one in test])
    return sum(label != one.label for label, one in zip(found, test, strict=True)) / len(test)


def run_row(language: str, seed: int, device: str) -> dict[str, Any]:
    """The test errors of the three, in a record."""
    kept, test = hold_out(texts := texts_of(language), min(TESTED, len(texts) - LEARNT), seed=0, labels=label_names)
    learnt = sample(kept, LEARNT, seed=seed, labels=label_names, in_order=False)
    labels = tuple(sorted({str(one.label) for one in learnt}))
    errors = {"words": linear_error(learnt, test, labels), "letters": letters_error(learnt, test)}
    seconds = {}
    for method in METHODS:
        training = TrainingSettings(seed=seed, device=device)
        config = TrainConfig(method, model=ModelSettings(kind="convolution"), training=training)
        with TemporaryDirectory() as place:
            started = time.monotonic()
            train(config, f"{place}/run", train=learnt, quiet=True)
            seconds[method] = round(time.monotonic() - started, 1)
            errors[method] = load_run(f"{place}/run", device=device).evaluate(test).scores["error"].value
    how = {"seconds": seconds, "machine": machine(), "version": __version__}
    return {"language": language, "seed": seed, "texts": len(learnt), "tested": len(test), "errors": errors} | how


def table(records: Sequence[dict[str, Any]]) -> str:
    """A row for each language, and their mean."""
    rows = ("words", "letters", *METHODS)
    lines = [
        "| language | linear model on words | on letters | wordward, baseline | wordward, iAdvT |",
        "|---|" + "---:|" * 4,
    ]
    means = []
    for language in LANGUAGES:
        of = [each["errors"] for each in records if each["language"] == language]
        if of:
            lines.append(f"| {language} | {' | '.join(mean([each[row] for each in of]) for row in rows)} |")
            means.append([sum(each[row] for each in of) / len(of) for row in rows])
    if means:
        cells = [f"{sum(column) / len(column):.1%}" for column in zip(*means, strict=True)]
        lines.append(f"| mean | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is asked for and not yet recorded, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", nargs="+", choices=LANGUAGES, default=list(LANGUAGES))
    parser.add_argument("--seed", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--records", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args(arguments)
    records = recorded(given.records)
    done = {(each["language"], each["seed"]) for each in records}
    for seed in given.seed:
        for language in given.language:
            if (language, seed) not in done and not given.table:
                new = run_row(language, seed, given.device)
                records.append(new)
                add(given.records, [new])
                print(language, seed, new["errors"], flush=True)
    print(table(records), end="")


if __name__ == "__main__":
    main()
