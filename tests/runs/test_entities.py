"""Entities by exact spans: a second derivation agrees on random tags, and so do counts worked out by hand."""

import json
import random
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from reviews import write_conll
from small_training import config

from wordward.cli.main import main
from wordward.config import DataSettings
from wordward.datasets import DataError, Example
from wordward.runs.entities import Span, by_type, entity_scores, mark_entities, spans
from wordward.runs.opening import load_run
from wordward.train import train

BIOES = ["O", *(f"{place}-{kind}" for place in "BIES" for kind in ("PER", "LOC", "A-B"))]


def chunks(tags: list[str]) -> set[tuple[str, int, int]]:
    """A second derivation: cut the sentence between two words wherever conlleval's rules say so."""
    ends = []
    for at in range(len(tags) + 1):
        left, right = tags[at - 1] if at else "O", tags[at] if at < len(tags) else "O"
        kinds = [tag.partition("-")[2] for tag in (left, right)]
        cut = left[0] in "OES" or right[0] in "OBS" or kinds[0] != kinds[1]
        ends += [at] if cut else []
    pieces = [(start, end - 1) for start, end in pairwise(ends)]
    return {(tags[start].partition("-")[2], start, end) for start, end in pieces if tags[start] != "O"}


@pytest.mark.parametrize("seed", range(100))
def test_a_second_derivation_agrees_on_random_tags(seed: int) -> None:
    rng = random.Random(seed)
    known = BIOES if seed % 2 else [tag for tag in BIOES if tag[0] in "OBI"]
    gold = [[rng.choice(known) for _ in range(rng.randint(1, 12))] for _ in range(rng.randint(1, 8))]
    predicted = [[tag if rng.random() < 0.7 else rng.choice(known) for tag in tags] for tags in gold]
    hits, true, said = Counter[str](), Counter[str](), Counter[str]()
    for one, other in zip(gold, predicted, strict=True):
        assert {tuple(span) for span in spans(one)} == chunks(one)
        hits.update(kind for kind, *_ in chunks(one) & chunks(other))
        true.update(kind for kind, *_ in chunks(one))
        said.update(kind for kind, *_ in chunks(other))
    measured = entity_scores(gold, predicted, resamples=2)
    precision, recall = (hits.total() / n.total() if n else 0.0 for n in (said, true))
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    assert [each.value for each in measured] == pytest.approx([precision, recall, f1])
    for kind, scored in by_type(gold, predicted).items():
        assert (scored.support, scored.predicted) == (true[kind], said[kind])
        assert scored.f1 == pytest.approx(2 * hits[kind] / (true[kind] + said[kind]))


def test_worked_out_by_hand() -> None:
    tags = "I-PER I-PER B-PER O I-LOC E-LOC I-LOC S-LOC B-LOC I-PER".split()
    assert spans(tags) == [
        Span("PER", 0, 1),
        Span("PER", 2, 2),
        Span("LOC", 4, 5),
        Span("LOC", 6, 6),
        Span("LOC", 7, 7),
        Span("LOC", 8, 8),
        Span("PER", 9, 9),
    ]
    assert spans(["B-PER", "I-PER", "L-PER", "U-PER"]) == [Span("PER", 0, 2), Span("PER", 3, 3)]
    assert spans(["B", "I", "O", "B"]) == [Span("entity", 0, 1), Span("entity", 3, 3)]
    # One boundary wrong is no hit at all, however many words agree.
    scored = entity_scores([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "O", "O", "B-LOC"]])
    assert [each.value for each in scored] == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("tags", "are"),
    [
        (("O", "B-PER", "I-PER"), True),
        (("O", "I-PER"), True),
        (("B", "I", "O"), True),
        (("O", "S-A", "B-A", "E-A"), True),
        (("c", "i"), False),
        (("B-PER", "I-PER"), False),
        (("B", "O"), False),
        (("O", "B-PER", "NOUN"), False),
        (("O", "B-PER", "I"), False),
        (("O",), False),
    ],
)
def test_which_tags_mark_entities(tags: tuple[str, ...], are: bool) -> None:
    assert mark_entities(tags) is are


def named(count: int) -> list[Example]:
    rng, examples = random.Random(0), []
    for _ in range(count):
        place = rng.choice((("Oslo",), ("New", "York")))
        tokens = (rng.choice(("Anna", "Bruno")), "went", "to", *place)
        tags = ("B-PER", "O", "O", *("B-LOC", "I-LOC")[: len(place)])
        examples.append(Example(" ".join(tokens), tokens=tokens, tags=tags))
    return examples


def test_a_tagger_of_names_is_chosen_and_scored_by_them(tmp_path: Path) -> None:
    settings = config(tmp_path, "baseline", epochs=20, patience=20, batch_size=8)
    settings = settings.__class__("baseline", data=DataSettings(), model=settings.model, training=settings.training)
    result = train(settings, tmp_path / "run", train=named(60), quiet=True)
    assert result["criterion"] == "entity_f1"
    assert set(result["dev"]) == {"error", "macro_f1", "entity_precision", "entity_recall", "entity_f1"}
    run = load_run(tmp_path / "run")
    evaluation = run.evaluate(named(20))
    assert run.marks_entities
    assert set(evaluation.entities) == {"LOC", "PER"}
    tags = [run.predict([example])[0].labels for example in named(20)]
    again = entity_scores([list(example.tags or ()) for example in named(20)], tags)
    assert evaluation.scores["entity_f1"] == again.f
    assert again.f.value > 0.9


def test_the_command_line_speaks_of_names_not_of_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, run = str(write_conll(tmp_path / "names.txt", named(80))), str(tmp_path / "run")
    sizes = "--dim 12 --hidden 12 --head 6 --learning-rate 0.02 --epochs 8 --batch-size 8".split()
    sizes += "--k 3 --device cpu --quiet".split()
    assert main(["train", "--train", file, "--method", "baseline", "--out", run, *sizes]) == 0
    assert main(["evaluate", run, file]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^entity_f1 +\d+\.\d\d%", printed, re.M)
    assert re.search(r"^LOC +80 +\d+ +\d+\.\d\d%", printed, re.M)
    assert main(["evaluate", run, file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["entities"]["PER"]["support"] == 80
    assert main(["attack", run, file, "--positive", "B-PER", "--limit", "20", "--quiet"]) == 0
    printed = capsys.readouterr().out
    assert "true B-PER tags found under attack" in printed
    assert "sentences with B-PER found" in printed
    page = tmp_path / "page.html"
    assert main(["report", run, "--test", file, "--positive", "B-PER", "--attack", "20", "--out", str(page)]) == 0
    said = page.read_text()
    assert "Entity F1" in said
    assert "no word is tagged B-PER any more" in said
    for text in (printed, said):
        assert "flagged" not in text
        assert " error" not in text


def test_entities_need_their_tags(tmp_path: Path) -> None:
    tagged = [Example("a b", tokens=("a", "b"), tags=("c", "i"))] * 20
    settings = config(tmp_path, criterion="entity_f1")
    settings = settings.__class__("baseline", data=DataSettings(), model=settings.model, training=settings.training)
    with pytest.raises(DataError, match=r"expected tags of entities .* for entity_f1; got c, i"):
        train(settings, tmp_path / "run", train=tagged, quiet=True)
