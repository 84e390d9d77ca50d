"""Edits of all kinds under search: verified from the string, within limits, and alone as in a batch."""

import io
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reviews import reviews, tagged, write_conll, write_csv
from rich.console import Console

from wordward.attack import edit_search, proposals, search
from wordward.attack.attacked import Attacked, Change
from wordward.attack.attacker import attack
from wordward.attack.cases import Case, State, Target
from wordward.attack.checking import check
from wordward.attack.edits import SPELLINGS, Edit
from wordward.attack.files import from_record, marked
from wordward.attack.goal_choice import goal_of
from wordward.attack.proposals import Proposer
from wordward.attack.sense import Judge
from wordward.attack.summary import summarise
from wordward.attack.terminal import show
from wordward.attack.wording import told
from wordward.cli.main import main
from wordward.config.attack import EDITS, KEEP_WORDS, AttackSettings
from wordward.config.check import CheckSettings
from wordward.config.settings import (
    DataSettings,
    MethodSettings,
    ModelSettings,
    TextSettings,
    TrainConfig,
    TrainingSettings,
)
from wordward.datasets import Example
from wordward.runs.opening import load_run, open_model
from wordward.runs.reading import Reading, Row, Words
from wordward.runs.run import Run
from wordward.support.errors import SettingError
from wordward.train.training import train

TEXTS = reviews(16, seed=5)
SMALL = {
    "model": ModelSettings(dim=12, hidden=12, head=6, word_dropout=0.1, head_dropout=0.0),
    "perturbation": MethodSettings(epsilon=1.0, k=5),
    "training": TrainingSettings(epochs=6, learning_rate=0.02, device="cpu"),
}
KINDS = [("typo",), ("space", "case"), ("homoglyph", "invisible"), ("insert", "append", "delete"), tuple(EDITS)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A classifier that tells praise from blame, and reads marks and capitals."""
    folder = tmp_path_factory.mktemp("edits")
    data = DataSettings(train=str(write_csv(folder / "reviews.csv", reviews(240))))
    config = TrainConfig(data=data, text=TextSettings(tokenizer="punctuation"), **SMALL)  # type: ignore[arg-type]
    train(config, folder / "run", quiet=True)
    return load_run(folder / "run", device="cpu")


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("tags")
    data = DataSettings(train=str(write_conll(folder / "tags.conll", tagged(160))))
    train(TrainConfig(data=data, **SMALL), folder / "run", quiet=True)  # type: ignore[arg-type]
    return load_run(folder / "run", device="cpu", positive="i")


def test_what_matters_in_long_texts_is_asked_a_part_at_a_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def attacked() -> tuple[list[Attacked], int]:
        asked: list[int] = []
        rows_of = type(run).rows_of
        with monkeypatch.context() as patch:
            patch.setattr(
                type(run), "rows_of", lambda run, texts, **how: asked.append(len(texts)) or rows_of(run, texts, **how)
            )
            return run.attack(TEXTS[:4], AttackSettings(edits=("typo", "delete"))), max(asked)

    whole, most = attacked()
    monkeypatch.setattr(edit_search, "AT_ONCE", 200)
    parts, fewer = attacked()
    assert fewer < 10 < most
    assert [(each.adversarial, each.passes) for each in parts] == [(each.adversarial, each.passes) for each in whole]


def test_a_typo_is_no_real_word_that_the_texts_do_not_have(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def typos(word: str) -> set[str]:
        goal = goal_of(run, settings := AttackSettings(edits=("typo",)))
        return set(SPELLINGS["typo"](word, Proposer(run, settings, goal).known))

    monkeypatch.setattr(proposals, "installed_model", lambda: None)
    assert "tried" in typos("tired")  # of a word that the run's texts have, one that they do not
    monkeypatch.setattr(proposals, "installed_model", lambda: Path("a-model"))
    monkeypatch.setattr(proposals, "plain_words", lambda folder: ["tried"])
    assert "tried" not in typos("tired")
    assert typos("tired")


def remade(attacked: Attacked) -> str:
    """The adversarial text, from the text and the record of its changes alone."""
    text, end = "", 0
    for change in attacked.changes:
        assert attacked.text[change.start : change.end] == change.word
        text += attacked.text[end : change.start] + change.toward
        end = change.end
    return text + attacked.text[end:]


@pytest.mark.parametrize("kinds", KINDS, ids="+".join)
def test_every_edit_is_recorded_and_verified_from_the_text(run: Run, kinds: tuple[str, ...]) -> None:
    results = list(attack(run, TEXTS, AttackSettings(edits=kinds, max_swaps=3)))
    for each in results:
        assert each.adversarial == remade(each)
        assert len(each.changes) <= 3
        assert {change.kind for change in each.changes} <= set(kinds)
        before, after = run.predict([each.text, each.adversarial])
        assert each.flipped == (before.label == each.label != after.label)
        assert each.probability_after == pytest.approx(after.probabilities[each.before], abs=2e-6)
        assert each.cost == sum(change.cost for change in each.changes)
        assert not each.changes or each.probability_after < each.probability_before
        assert from_record(json.loads(json.dumps(asdict(each)))) == each
        assert all(each.adversarial == text.replace("[[", "").replace("]]", "") for text in marked(each)[1:])
    assert any(each.changes for each in results)
    assert sum(each.flipped for each in results) >= (8 if "typo" in kinds else 0)


@pytest.mark.parametrize("kinds", KINDS, ids="+".join)
def test_many_texts_as_each_alone(run: Run, kinds: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wordward.attack.attacker.CHUNK", 5)
    examples = [*TEXTS[:6], Example(""), Example("the"), Example("Warm film! " * 9, "good")]
    settings = AttackSettings(edits=kinds, beam=2, max_swaps=2, rescore=4)
    together = list(attack(run, examples, settings))
    for example, each in zip(examples, together, strict=True):
        (alone,) = attack(run, [example], settings)
        same = ("text", "adversarial", "changes", "outcome", "passes", "words", "alone")
        assert [getattr(alone, name) for name in same] == [getattr(each, name) for name in same]


def reads_as(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a search read texts so."""
    monkeypatch.setattr(Run, "logits", read)


def test_a_flip_that_the_text_does_not_show_is_none(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Run.logits
    reads_as(lambda *given: [-logits for logits in read(*given)], monkeypatch)
    results = [each for each in attack(run, TEXTS, AttackSettings(edits=("typo",))) if each.changes]
    assert results
    for each in results:
        assert each.flipped == (run.predict([each.adversarial])[0].label != each.before)


def test_an_edit_that_does_not_help_is_not_made(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reads_as(lambda run, rows: [np.array([1.0, 0.0]) for _ in rows], monkeypatch)
    results = list(attack(run, TEXTS, AttackSettings(edits=("typo", "append"))))
    assert [each.adversarial for each in results] == [each.text for each in TEXTS]


def test_of_edits_that_flip_the_cheapest_is_made() -> None:
    row = Row(*(np.arange(2) for _ in range(4)))

    def state(new: str, margin: float) -> State:
        ids = np.array([len(new), int(margin * 10)])
        return State(row._replace(ids=ids), (Edit("space", 0, 5, new),), margin)

    case = Case(
        Reading.of("funny", Words([(0, 5)], [True], 1, 0, row), lowercase=True), Target(0), np.ones(1, dtype=bool), 4
    )
    long, short, near = state("f u n n y", -3.0), state("fun ny", -1.0), state("fuunny", 0.5)
    one = edit_search.EditSearch(case, [state("funny", 2.0)])
    one.keep([long, near, short], 3)
    assert one.beam == [short, long, near]
    assert one.over
    one = edit_search.EditSearch(case, [state("funny", 2.0)])
    one.keep([near, state("f unny", 0.2)], 2)
    assert [each.margin for each in one.beam] == [0.2, 0.5]
    assert not one.over
    one.keep([long, replace(short, margin=-0.004)], 1, unsure=0.01)
    assert one.beam == [long]  # which surely flips it
    assert one.over


def test_the_passes_are_the_texts_that_the_model_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Any] = []
    read = Run.logits
    reads_as(lambda run, given: rows.extend(given) or read(run, given), monkeypatch)
    (found,) = attack(run, [replace(TEXTS[0], label=None)], AttackSettings(edits=("typo", "append"), max_swaps=2))
    assert found.passes == len(rows) + 2  # and the predictions before and after
    assert found.changes


def test_swaps_alone_take_the_papers_search(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(edit_search.Editor, "__call__")
    assert any(each.changes for each in attack(run, TEXTS[:4]))


def test_words_that_are_kept_are_not_edited(run: Run) -> None:
    words = {word for example in TEXTS for word in example.text.split()}
    settings = AttackSettings(edits=("typo", "space", "delete", "swap"), keep=tuple(words))
    assert not any(each.changes for each in attack(run, TEXTS[:4], settings))
    open = AttackSettings(edits=("typo", "space", "delete", "swap"), keep_stop_words=True)
    changed = {change.word for each in attack(run, TEXTS[:6], open) for change in each.changes}
    assert changed
    assert changed.isdisjoint({"the", "was", "and"})


def test_an_apostrophe_inside_a_word_that_is_kept_stays() -> None:
    answers = {True: [0.4, 0.6], False: [0.6, 0.4]}
    function = open_model(lambda texts: [answers["n't" in text] for text in texts], labels=("a", "b"))
    for kept, outcome in ((), "flipped"), (("Don't",), "kept"):
        (found,) = function.attack(["I don't mind"], AttackSettings(edits=("punctuation",), keep=kept))
        assert found.outcome == outcome


def test_with_sense_kept_only_harmless_edits_are_made(run: Run) -> None:
    settings = AttackSettings(edits=tuple(EDITS), sense="kept", max_swaps=2)
    changes = [change for each in attack(run, TEXTS, settings) for change in each.changes]
    assert changes
    assert {change.sense for change in changes} == {"kept"}


def test_harmless_words_that_speak_for_a_label_are_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wordward.attack.proposals.HARMLESS", {"insert": ("friend",), "append": ("said", "mine")})
    monkeypatch.setattr(Judge, "speaks", lambda *given, **named: True)
    kinds = ("insert", "append", "delete")
    changes = [change for each in attack(run, TEXTS, AttackSettings(edits=kinds)) for change in each.changes]
    assert {change.sense for change in changes} == {"changed"}
    kept = attack(run, TEXTS, AttackSettings(edits=kinds, sense="kept"))
    assert not any(each.changes for each in kept)
    monkeypatch.setattr("wordward.attack.proposals.HARMLESS", {"append": ("xyzzy",)})  # that no text held
    unheard = attack(run, TEXTS, AttackSettings(edits=("append",)))
    assert {change.sense for each in unheard for change in each.changes} <= {"kept"}


def test_a_taggers_words_keep_their_number(tagger: Run) -> None:
    results = list(attack(tagger, tagged(20, seed=3), AttackSettings(edits=KEEP_WORDS, max_swaps=2)))
    assert {change.kind for each in results for change in each.changes} > {"swap"} or any(
        each.alone for each in results
    )
    for each in results:
        assert each.adversarial == remade(each)
        assert len(each.adversarial.split()) == len(each.text.split())
        assert all(change.position in each.flagged for change in each.changes)
        assert each.after == " ".join(token.label for token in tagger.predict([each.adversarial])[0].tokens)
    for kind in set(EDITS) - set(KEEP_WORDS):
        with pytest.raises(SettingError, match=f"keep the number of words .*; got {kind}"):
            attack(tagger, tagged(2), AttackSettings(edits=(kind,)))


def test_kinds_in_tables_and_json(run: Run) -> None:
    kinds = ("typo", "append")
    results = list(attack(run, TEXTS, AttackSettings(edits=kinds, max_swaps=2)))
    summary = summarise(results, edits=kinds)
    attacked = [each for each in results if each.outcome in ("flipped", "kept")]
    assert set(summary.kinds) == set(kinds)
    for kind, one in summary.kinds.items():
        assert one.made == sum(c.kind == kind for each in results if each.flipped for c in each.changes)
        assert one.alone.value == sum(kind in each.alone for each in attacked) / len(attacked)
    record = summary.as_dict()
    assert record["kinds"]["typo"]["made"] == summary.kinds["typo"].made
    assert record["cost"] == summary.cost
    assert {"kinds", "cost"}.isdisjoint(summarise(list(attack(run, TEXTS[:2]))).as_dict())
    shown = io.StringIO()
    show(results, summary, Console(file=shown, width=200, no_color=True))
    assert "flipped by one alone" in shown.getvalue()
    assert "(typo: " in shown.getvalue()


@pytest.mark.parametrize(
    ("kind", "word", "toward", "words"),
    [
        ("swap", "warm", "cold", "warm → cold"),
        ("typo", "lovely", "loevly", "typo: lovely → loevly"),
        ("homoglyph", "pat", "p\u0430t", "homoglyph: pat → p\u0430t with U+0430"),
        ("invisible", "pat", "p\u200bat", "invisible: pat → p<U+200B>at"),
        ("insert", "", " today", "insert: today"),
        ("delete", " the", "", "delete: the"),
        ("punctuation", ",", "", "punctuation: ,"),
    ],
)
def test_a_change_in_words(kind: str, word: str, toward: str, words: str) -> None:
    assert told(Change(0, word, toward, 0, len(word), "kept", kind=kind)) == words


def test_the_command(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = write_csv(tmp_path / "texts.csv", TEXTS), tmp_path / "out.jsonl"
    flags = ["--edits", "typo,space", "insert", "--device", "cpu", "--quiet"]
    assert main(["attack", str(run.folder), str(data), *flags, "--json", "--out", str(out)]) == 0
    assert set(json.loads(capsys.readouterr().out)["kinds"]) == {"typo", "space", "insert"}
    kinds = {
        change["kind"] for line in out.read_text().splitlines() for change in json.loads(line).get("changes", [])
    }
    assert kinds <= {"typo", "space", "insert"}
    assert kinds
    assert main(["attack", str(data), "--models", str(run.folder), *flags, "--swaps", "0", "1"]) == 0
    assert "| 1 edit " in capsys.readouterr().out
    assert main(["attack", str(run.folder), str(data), "--guides", "advt", "iadvt", *flags]) == 1
    assert "leave out --edits" in capsys.readouterr().err


def test_texts_without_blanks_are_told_once(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["这部电影不好看", "他们觉得很无聊"]
    for quiet, times in (([], 1), (["--quiet"], 0)):
        flags = ["--edits", "typo", "space", "--device", "cpu", *quiet]
        assert main(["attack", str(run.folder), "--text", *texts, *flags]) == 0
        assert capsys.readouterr().err.count("without blanks between words") == times
    for spaced, times in ((["the film was warm"], 0), (texts, 1)):
        check(run, [Example(text) for text in spaced], CheckSettings(AttackSettings(edits=("typo",))), quiet=False)
        assert capsys.readouterr().err.count("without blanks between words") == times


def test_swaps_beside_other_edits_fit_their_place_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = AttackSettings(edits=("swap", "case"), words="fitting", language_model="none")
    texts = [each.text for each in reviews(12)]
    kinds = {change.kind for found in attack(run, texts, settings) for change in found.changes}
    assert "swap" in kinds
    monkeypatch.setattr(search, "keeps_articles", lambda *_: False)
    kinds = {change.kind for found in attack(run, texts, settings) for change in found.changes}
    assert "swap" not in kinds
