"""Taggers under attack: the flagged word is replaced, its tag goes, the error stays; corrections from M2 files."""

import json
import lzma
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from reviews import reviews, tagged, write_conll

from wordward.attack.attacker import attack
from wordward.attack.goal import Tags
from wordward.attack.guide import Guide
from wordward.attack.half_precision import SearchModel
from wordward.attack.robustness import accuracies
from wordward.attack.summary import summarise
from wordward.cli.main import main
from wordward.config.attack import AttackSettings
from wordward.config.settings import (
    DataSettings,
    MethodSettings,
    ModelSettings,
    TrainConfig,
    TrainingSettings,
)
from wordward.datasets import DataError, Example
from wordward.datasets.m2 import Edit, corrections_at, read_m2, right_words
from wordward.perturbation.objective import IGNORE
from wordward.runs.opening import load_run
from wordward.runs.prediction import Prediction, TokenPrediction
from wordward.runs.run import Run
from wordward.train.training import train

M2 = """S the film are lovely
A 2 3|||R:VERB:SVA|||is|||REQUIRED|||-NONE-|||0
A 2 3|||R:VERB:TENSE|||was|||REQUIRED|||-NONE-|||1

S well this script is warm
A -1 -1|||noop|||-NONE-|||REQUIRED|||-NONE-|||0

S he go in to house
A 1 2|||R:VERB:SVA|||goes|||REQUIRED|||-NONE-|||0
A 2 4|||R:PREP|||into|||REQUIRED|||-NONE-|||0
A 4 4|||M:DET|||the|||REQUIRED|||-NONE-|||0

S a very very cold story was tell
A 1 2|||U:ADV||||||REQUIRED|||-NONE-|||0
A 5 7|||R:VERB|||was told||is told|||REQUIRED|||-NONE-|||0
A 3 4|||UNK|||cold|||REQUIRED|||-NONE-|||0
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A tagger that flags "are" after a single thing."""
    folder = tmp_path_factory.mktemp("tags")
    write_conll(folder / "tags.conll", tagged(160))
    config = TrainConfig(
        method="iadvt",
        data=DataSettings(train=str(folder / "tags.conll")),
        model=ModelSettings(dim=12, hidden=12, head=6, word_dropout=0.1, head_dropout=0.0),
        perturbation=MethodSettings(epsilon=1.0, k=None),
        training=TrainingSettings(epochs=6, learning_rate=0.02, device="cpu"),
    )
    train(config, folder / "run", quiet=True)
    return load_run(folder / "run", device="cpu")


def test_the_flagged_word_is_replaced_and_its_tag_goes(run: Run) -> None:
    examples = tagged(20, seed=3)
    results = list(attack(run, examples, AttackSettings(rescore=20)))
    for example, each in zip(examples, results, strict=True):
        tokens, tags = example.tokens or (), example.tags or ()
        before, after = (
            [token.label for token in run.predict([text])[0].tokens] for text in (each.text, each.adversarial)
        )
        assert (each.before, each.after, each.label) == (" ".join(before), " ".join(after), " ".join(tags))
        assert each.errors == tags.count("i")
        if "i" not in tags:
            assert (each.outcome, each.adversarial, each.flagged) == ("wrong", each.text, ())
            continue
        assert [change.position for change in each.changes] == [tags.index("i")] == list(each.flagged)
        assert each.changes[0].word == "are"
        assert each.flipped == ("i" not in after)
        assert each.left == tuple(at for at, tag in enumerate(after) if tag == "i")
        assert each.adversarial.split() == [each.changes[0].toward if token == "are" else token for token in tokens]
    assert sum(each.flipped for each in results) >= 5
    summary = summarise(results)
    errors = sum(each.errors or 0 for each in results)
    assert summary.task == "tag"
    assert summary.accuracy is not None
    assert summary.accuracy_under_attack is not None
    assert summary.accuracy.value == sum(len(each.flagged) for each in results) / errors
    assert summary.accuracy_under_attack.value == sum(len(each.left) for each in results) / errors


def test_only_true_errors_are_attacked_where_tags_are_given(run: Run) -> None:
    text = "the film are lovely"
    assert run.predict([text])[0].tokens[2].label == "i"
    correct = Example(text, tokens=tuple(text.split()), tags=("c",) * 4)
    untagged = Example(text)
    false_alarm, flagged = attack(run, [correct, untagged])
    assert (false_alarm.outcome, false_alarm.errors, false_alarm.changes) == ("wrong", 0, ())
    assert (flagged.errors, flagged.flagged, flagged.given) == (None, (2,), False)
    assert flagged.flipped


def test_only_the_tags_that_are_to_change_count(run: Run) -> None:
    row = run.read(Example("the film are lovely the script are dull")).row
    lose = np.array([IGNORE, IGNORE, 1, *[IGNORE] * 5])
    batch = run.corpus([row.ids], [row.at_first(lose)]).batch(np.array([0]), run.device)
    gradient, _ = Guide(SearchModel(run), AttackSettings(), None).gradient(batch)
    vectors = run.table()[batch.ids].requires_grad_()
    with torch.enable_grad():
        handle = run.model.words.table.register_forward_hook(lambda *_: vectors)
        F.cross_entropy(run.model(batch.ids, batch.mask)[0, 2:3], torch.tensor([1])).backward()
        handle.remove()
    assert gradient is not None
    assert vectors.grad is not None
    assert F.cosine_similarity(gradient.flatten(), vectors.grad.flatten(), 0) == pytest.approx(1, abs=1e-5)


def test_several_flags_must_all_go(run: Run) -> None:
    text = "the film are lovely the script are dull"
    (each,) = attack(run, [Example(text)], AttackSettings(rescore=20))
    assert each.flagged == (2, 6)
    assert each.flipped
    assert [change.position for change in each.changes] == [2, 6]
    assert "i" not in each.after.split()
    (one,) = attack(run, [Example(text)], AttackSettings(rescore=20, max_swaps=1))
    assert (one.outcome, len(one.changes), len(one.left)) == ("kept", 1, 1)


def test_a_flag_that_moves_to_another_word_is_still_one(run: Run) -> None:
    def said(tags: str) -> Prediction:
        probabilities = {"c": {"c": 0.8, "i": 0.2}, "i": {"c": 0.3, "i": 0.7}}
        return Prediction("", tokens=tuple(TokenPrediction("", tag, probabilities[tag]) for tag in tags))

    goal = Tags(run, 1, {})
    sentence = Example("the film are lovely here", tags=("c", "c", "i", "c", "c"))
    before = said("ccici")  # a true error and a false alarm
    target = goal.target(sentence, before)
    assert target is not None
    assert target.watched is not None
    assert target.watched.tolist() == [True, True, True, True, False]
    for after, outcome in {"ccici": "kept", "cccci": "flipped", "ccccc": "flipped", "ciccc": "kept"}.items():
        verdict = goal.verdict(sentence, before, said(after))
        assert verdict.outcome == outcome
        assert verdict.flagged == (2,)
        assert verdict.left == ((2,) if after[2] == "i" else ())
        assert (verdict.probability_before, verdict.probability_after) == (
            0.7,
            0.7 if after[2] == "i" else 0.2,
        )


def test_a_sentence_too_long_to_read_counts_only_where_it_has_an_error(run: Run) -> None:
    goal, long = Tags(run, 1, {}), Prediction("the film are", problem="too long")
    for tags, rates in (("c", "c", "c"), {}), (("c", "c", "i"), {0: 0.0}):
        attacked = goal.verdict(Example("the film are", tags=tags), long, long)
        assert attacked.outcome == "unreadable"
        assert {n: interval.value for n, interval in accuracies([attacked], (0,)).items()} == rates


def test_many_sentences_as_each_alone(run: Run) -> None:
    examples = [*tagged(8, seed=4), Example(""), Example("the film are lovely the script are dull")]
    for settings in (AttackSettings(), AttackSettings(rescore=1), AttackSettings(method="ivat")):
        together = list(attack(run, examples, settings))
        alone = [next(attack(run, [example], settings)) for example in examples]
        assert [each.adversarial for each in together] == [each.adversarial for each in alone]
        assert [each.outcome for each in together] == [each.outcome for each in alone]


def test_a_correction_is_no_adversarial_text(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.m2").write_text(M2)
    corrections = read_m2(tmp_path / "x.m2")
    sentence = Example("the film are lovely")
    (each,) = attack(run, [sentence], AttackSettings(rescore=50), corrections=corrections)
    (change,) = each.changes
    assert change.correct == "is / was"
    only_is = {tuple(sentence.text.split()): (Edit(2, 3, "R", each.changes[0].toward),)}
    (accident,) = attack(run, [sentence], AttackSettings(rescore=50), corrections=only_is)
    assert accident.changes[0].sense == "changed"
    assert not accident.sense_kept
    (kept,) = attack(run, [sentence], AttackSettings(rescore=50, sense="kept"), corrections=only_is)
    assert kept.changes[0].toward != accident.changes[0].toward
    assert kept.changes[0].sense == "kept"
    (unknown,) = attack(run, [Example("this script are dull")], corrections=corrections)
    assert (unknown.changes[0].sense, unknown.changes[0].correct) == ("unknown", None)


def test_sentences_in_which_nothing_is_flagged_are_a_taggers_too(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["attack", str(run.folder), "--text", "the film was warm", "--device", "cpu"]
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["task"], found["attacked"], found["success_sense_kept"]) == ("tag", 0, None)
    assert main(command) == 0
    assert "no word is tagged i" in capsys.readouterr().out
    assert (
        main(["attack", str(run.folder), str(run.folder.parent / "tags.conll"), "--limit", "9", "--device", "cpu"])
        == 0
    )
    said = capsys.readouterr().out
    assert "tagged i  p(i) " in said
    assert "true i tags found under attack" in said
    assert "flag" not in said
    assert "error" not in said


def test_what_a_tagger_cannot_be_attacked_with(run: Run) -> None:
    with pytest.raises(ValueError, match="`sense='kept'` needs `corrections`"):
        attack(run, [], AttackSettings(sense="kept"))
    with pytest.raises(DataError, match="a tag for every token; got 2 for 4"):
        attack(run, [Example("the film are lovely", tags=("c", "i"))])
    with pytest.raises(DataError, match="got 'z'"):
        attack(run, [Example("the film", tokens=("the", "film"), tags=("c", "z"))])
    none = replace(run, config=replace(run.config, training=replace(run.config.training, positive=None)))
    with pytest.raises(ValueError, match="give `positive` with one of"):
        attack(none, [])


def test_another_tag_may_be_the_one_that_is_missed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tags = {"the": "D", "this": "D", "was": "V"}
    told = [(e.text.split(), [tags.get(word, "N") for word in e.text.split()]) for e in reviews(80)]
    sentences = [Example(" ".join(w), tokens=tuple(w), tags=tuple(t)) for w, t in told]
    train, run = str(write_conll(tmp_path / "t.conll", sentences)), str(tmp_path / "run")
    small = ["--dim", "16", "--hidden", "16", "--epochs", "8", "--learning-rate", "0.02", "--k", "5"]
    assert main(["train", "--train", train, "--out", run, *small, "--quiet"]) == 0
    assert main(["attack", run, train, "--limit", "4"]) == 1
    assert "give --positive with one of D, N, V" in capsys.readouterr().err
    assert main(["attack", run, train, "--limit", "4", "--positive", "V", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["texts"] == 4
    assert main(["evaluate", run, train, "--positive", "V", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["f0.5"]["value"] > 0.9
    assert main(["report", run, "--positive", "V", "--out", str(tmp_path / "new" / "page.html")]) == 0
    assert "F0.5" in (tmp_path / "new" / "page.html").read_text()
    assert main(["evaluate", run, train, "--positive", "X"]) == 1
    assert re.search(r"a tag that .* knows for --positive; got '\w+': give one of D, N, V\n", capsys.readouterr().err)


def test_m2_files(tmp_path: Path) -> None:
    (tmp_path / "x.m2").write_text(M2)
    with lzma.open(tmp_path / "x.m2.xz", "wt") as file:
        file.write(M2.replace("\n", "\r\n"))
    read = read_m2(tmp_path / "x.m2")
    assert read == read_m2(tmp_path / "x.m2.xz")
    assert read["well", "this", "script", "is", "warm"] == ()
    tokens = "he go in to house".split()
    edits = read[tuple(tokens)]
    assert edits[0] == Edit(1, 2, "R:VERB:SVA", "goes")
    assert [corrections_at(edits, tokens, at) for at in range(5)] == [
        None,
        "goes",
        "in to → into",
        "in to → into",
        "the house",
    ]
    assert [right_words(edits, tokens, at) for at in range(5)] == [set(), {"goes"}, set(), set(), set()]
    tokens = "a very very cold story was tell".split()
    edits = read[tuple(tokens)]
    assert corrections_at(edits, tokens, 1) == ""
    assert corrections_at(edits, tokens, 3) is None  # found, not corrected
    assert corrections_at(edits, tokens, 6) == "was tell → was told / was tell → is told"
    assert right_words(edits, tokens, 6) == {"told"}
    assert right_words(edits, tokens, 5) == set()  # "is told" takes two swaps


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "A 0 1|||R|||x|||REQUIRED|||-NONE-|||0\n",
            r"line 1: expected a sentence \(S ...\) before its edits",
        ),
        ("S a b\nA 0 5|||R|||x|||REQUIRED|||-NONE-|||0\n", "line 2: expected an edit within the 2 tokens"),
        ("S a b\nA 0 1 x\n", "line 2: expected A start end"),
        ("a\tc\n", "line 1: expected empty lines or lines beginning with S or A"),
        ("\n", "expected sentences"),
    ],
)
def test_m2_files_that_are_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "x.m2").write_text(text)
    with pytest.raises(DataError, match=said):
        read_m2(tmp_path / "x.m2")
    with pytest.raises(DataError, match="none of this name"):
        read_m2(tmp_path / "y.m2")
