"""Results of an attack as files and on the terminal, and the command that makes them."""

import csv
import errno
import io
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from reviews import reviews
from rich.console import Console

import wordward.attack.attacker
from wordward.attack.attacked import Attacked, Change
from wordward.attack.attacker import attack
from wordward.attack.files import COLUMNS, from_record, marked, write_csv
from wordward.attack.summary import summarise
from wordward.attack.terminal import show, show_texts
from wordward.attack.wording import stretches, telling
from wordward.cli.main import main
from wordward.config.settings import TrainConfig
from wordward.config.toml import to_toml
from wordward.datasets import hold_out, read, sample
from wordward.runs import run_folder
from wordward.runs.opening import load_run
from wordward.runs.run import Run

FLIPPED = Attacked(
    'Better, "much" better [b]than[/b] that <i>',
    'Worse, "much" poorer [b]than[/b] that <i>',
    "good",
    given=True,
    before="good",
    after="bad",
    probability_before=0.9,
    probability_after=0.25,
    changes=(Change(0, "Better", "Worse", 0, 6, "changed"), Change(2, "better", "poorer", 15, 21, "kept")),
    outcome="flipped",
    passes=11,
    words=5,
)
WRONG = Attacked("so so", "so so", "bad", given=True, before="good", after="good", outcome="wrong", passes=1, words=2)
KEPT = Attacked("fine", "fine", "good", given=True, before="good", after="good", passes=9, words=1)
NOTHING = Attacked("", "", "good", given=True, outcome="unreadable")
ALL = [FLIPPED, WRONG, KEPT, NOTHING]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run beside the texts it learnt from."""
    place = tmp_path_factory.mktemp("files")
    with (place / "reviews.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["text", "label"], *([e.text, e.label] for e in reviews(240))])
    sizes = "--dim 12 --hidden 12 --head 6 --epochs 5 --learning-rate 0.02 --epsilon 1 --k 5 --device cpu --quiet"
    train = ["train", "--train", str(place / "reviews.csv"), "--out", str(place / "run"), *sizes.split()]
    assert main(train) == 0
    with (place / "test.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["text", "label"], *([e.text, e.label] for e in reviews(30, seed=5))])
    return place


@pytest.fixture
def run(folder: Path) -> Run:
    return load_run(folder / "run", device="cpu")


def test_json_lines_and_back() -> None:
    for each in ALL:
        assert from_record(json.loads(json.dumps(asdict(each)))) == each


def test_csv_as_textattack_writes_it(tmp_path: Path) -> None:
    write_csv(tmp_path / "new" / "x.csv", ALL)
    with (tmp_path / "new" / "x.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert [row["result_type"] for row in rows] == ["Successful", "Skipped", "Failed", "Skipped"]
    first = rows[0]
    assert first["original_text"] == '[[Better]], "much" [[better]] [b]than[/b] that <i>'
    assert first["perturbed_text"] == '[[Worse]], "much" [[poorer]] [b]than[/b] that <i>'
    assert [float(first[f"{which}_score"]) for which in ("original", "perturbed")] == [
        pytest.approx(0.1),
        pytest.approx(0.75),
    ]
    outputs = [first[f"{which}_output"] for which in ("original", "perturbed", "ground_truth")]
    assert [*outputs, first["num_queries"]] == ["good", "bad", "good", "11"]


def test_marks_leave_both_texts_as_they_are(run: Run) -> None:
    for each in attack(run, reviews(10, seed=3)):
        bare = [text.replace("[[", "").replace("]]", "") for text in marked(each)]
        assert bare == [each.text, each.adversarial]
        assert marked(each)[1].count("[[") == len(each.changes)


def test_summary_by_hand() -> None:
    summary = summarise([*ALL, FLIPPED], seconds=2.0, timed=3)
    assert (summary.texts, summary.unreadable, summary.attacked, summary.flipped) == (5, 1, 3, 2)
    assert summary.accuracy is not None
    assert summary.accuracy_under_attack is not None
    assert summary.success is not None
    assert summary.success_sense_kept is not None
    assert summary.accuracy.value == 0.75  # of the four with words
    assert summary.accuracy_under_attack.value == 0.25
    assert summary.success.value == pytest.approx(2 / 3)
    assert summary.success.low < 2 / 3 < summary.success.high
    assert summary.success_sense_kept.value == 0.0  # one of its swaps changes the sense
    assert summary.share_changed == pytest.approx(2 / 5)
    assert (summary.swaps, summary.passes, summary.texts_a_second) == (2.0, 32 / 5, 1.5)
    assert json.loads(json.dumps(summary.as_dict()))["success"]["value"] == pytest.approx(2 / 3)
    unjudged = tuple(replace(change, sense="unknown") for change in FLIPPED.changes)
    assert summarise([replace(FLIPPED, changes=unjudged), KEPT]).success_sense_kept is None
    empty = summarise([])
    assert (empty.accuracy, empty.success, empty.swaps, empty.passes) == (None, None, None, 0.0)
    assert summarise([Attacked("fine", "fine", "good", words=1)]).accuracy is None  # no true label, no accuracy


def test_what_few_words_cannot_tell_is_not_a_measured_0() -> None:
    unknown = replace(FLIPPED, changes=tuple(replace(change, sense="unknown") for change in FLIPPED.changes))
    kept = replace(FLIPPED, changes=FLIPPED.changes[1:])
    assert summarise([FLIPPED, KEPT], few=True) == summarise([FLIPPED, KEPT])  # known to change the sense
    enough = summarise([FLIPPED, unknown, kept, KEPT], few=True)
    assert (enough.unmeasured, enough.success_sense_kept and enough.success_sense_kept.value) == ("", 0.25)
    summary = summarise([FLIPPED, unknown, unknown, kept, KEPT], few=True)
    told = "of 4 flipped texts 1 are known to keep the sense, and of 2 it is unknown"
    assert summary.unmeasured == f"with sense kept is not measured: few words can be judged, so {told}"
    assert summary.success is not None
    assert summary.success_sense_kept is None
    show([], summary, Console(file=(shown := io.StringIO()), width=100, no_color=True))
    assert re.search("with sense kept +\N{EN DASH} *\n", shown.getvalue())
    assert shown.getvalue().count(told) == 1
    tried = replace(KEPT, tried=3)
    assert summarise([KEPT, tried], few=True, sense="kept").success is not None
    assert summarise([KEPT, KEPT, tried], few=True, sense="kept").success is None
    assert summarise([KEPT, KEPT, tried], sense="kept").success is not None


def test_the_most_telling_come_first_and_show_plainly() -> None:
    swap = Change(0, "of", "from", 0, 2, "kept")
    one = Attacked("of it", "from it", "a", before="a", after="b", changes=(swap,), outcome="flipped", words=2)
    two = replace(one, changes=(swap, replace(swap, position=1, word="it", toward="its", start=3, end=5)))
    stronger = replace(one, probability_before=0.9)
    changed = replace(one, changes=(replace(swap, sense="changed"),))
    assert telling([FLIPPED, KEPT, changed, two, one, stronger]) == [stronger, one, two, changed, FLIPPED]
    shown = io.StringIO()
    show([FLIPPED, KEPT, one], summarise([FLIPPED, KEPT, one]), Console(file=shown, width=100, no_color=True))
    text = shown.getvalue()
    assert text.index("(of → from) it") < text.index("(Better → Worse)")
    assert '(Better → Worse), "much" (better → poorer) [b]than[/b] that <i>' in text
    assert "good → bad  p(good) 90% → 25%  sense changed" in text
    assert "success rate" in text
    assert re.search("forward passes +[0-9.]+ +for each text", text)


def test_texts_that_are_not_attacked_say_why() -> None:
    tags = Attacked("it is", "it is", "c c", before="c c", after="c c", outcome="wrong", words=2)
    long = replace(NOTHING, text="it is " * 99, adversarial="it is " * 99)
    shown = io.StringIO()
    show_texts([WRONG, tags, long], Console(file=shown, width=100, no_color=True), tag="NAME")
    said = shown.getvalue().splitlines()
    assert said[0] == "good, but it is bad"
    assert said[3] == "no word is tagged NAME"
    assert said[6] == "not read: no words, or more than the model can read"


def test_what_is_far_from_the_changes_of_a_long_text_is_not_printed() -> None:
    before, after = "here " * 5000, " there" * 5000
    swap = Change(5000, "dull", "warm", len(before), len(before) + 4, "unknown")
    text = f"{before}dull{after}"
    changed = replace(KEPT, text=text, adversarial=text.replace("dull", "warm"), changes=(swap,))
    shown = io.StringIO()
    show_texts([changed, replace(KEPT, text=text, adversarial=text)], Console(file=shown, width=100, no_color=True))
    assert "here (dull → warm) there" in shown.getvalue()
    assert len(shown.getvalue()) < 6000
    assert shown.getvalue().count("…") == 3


def test_of_a_text_without_blanks_as_much_is_kept_around_a_change() -> None:
    text = "电影很好看" * 100
    swap = Change(50, "好看", "难看", 253, 255, "unknown")
    (before, _), (after, _) = stretches(replace(KEPT, text=text, changes=(swap,)), 20)
    assert (before, after) == (f"… {text[233:253]}", f"{text[255:275]} …")


def test_a_terminal_is_not_steered_by_an_attacked_text() -> None:
    text = "\x1b[31mfine\x1b[0m\nand\x07 warm"
    steering = replace(KEPT, text=text, adversarial=text, before="\x1b[2Jgood", label="\x1b[2Jgood")
    shown = io.StringIO()
    show_texts([steering], Console(file=shown, width=100, no_color=True))
    assert not set("\x1b\x07") & set(shown.getvalue())
    assert len(shown.getvalue().strip().splitlines()) == 2


def test_one_sentence_is_one() -> None:
    flagged = replace(KEPT, flagged=(0,), left=(0,), errors=1)
    for several, said in ((1, "1 sentence with i found"), (2, "2 sentences with i found")):
        shown = io.StringIO()
        found = [flagged] * several
        show(found, summarise(found, tagging=True), Console(file=shown, width=100), tag="i")
        assert said in " ".join(shown.getvalue().split())


@pytest.fixture
def stop_after(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make attacks, of eight texts at a time, break off after so many texts."""
    monkeypatch.setattr(wordward.attack.attacker, "CHUNK", 8)
    real, left = wordward.attack.attacker.attack, [10**6]

    def broken(*args: object, **named: object) -> Iterator[Attacked]:
        for each in real(*args, **named):  # type: ignore[arg-type]
            if not left[0]:
                raise OSError(errno.EIO, "power cut")
            left[0] -= 1
            yield each

    monkeypatch.setattr(wordward.attack.attacker, "attack", broken)
    return left


def test_what_an_attack_wrote_and_could_not_judge_is_said(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["attack", str(folder / "run"), str(folder / "test.csv"), "--device", "cpu", "--limit", "4"]
    out, table = tmp_path / "x.jsonl", tmp_path / "x.csv"
    assert main([*command, "--sense", "kept", "--out", str(out), "--csv", str(table)]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "so the sense of few swaps can be judged; others are not made: --sense any makes them, too" in said
    assert f"wrote {out} wrote {table}" in said
    assert main(command) == 0
    assert "can be judged" not in capsys.readouterr().err


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().split("\n") if line]


def test_an_attack_goes_on_where_it_was_stopped(
    folder: Path, tmp_path: Path, stop_after: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["attack", str(folder / "run"), str(folder / "test.csv"), "--device", "cpu", "--json"]
    assert main([*command, "--out", str(tmp_path / "whole.jsonl")]) == 0
    whole = json.loads(capsys.readouterr().out)
    cut = tmp_path / "new" / "cut.jsonl"
    stop_after[0] = 11
    assert main([*command, "--out", str(cut)]) == 1
    assert len(lines(cut)) == 11
    cut.write_text(cut.read_text() + '{"number": 11, "te')  # half a line
    stop_after[0] = 22
    assert main([*command, "--out", str(cut), "--csv", str(tmp_path / "x.csv")]) == 0
    again = json.loads(capsys.readouterr().out)
    assert lines(cut) == lines(tmp_path / "whole.jsonl")
    assert stop_after[0] == 0  # only the missing ones were attacked, and those that were read with the first of them
    assert {**again, "texts_a_second": 0} == {**whole, "texts_a_second": 0}
    with (tmp_path / "x.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 30
    assert main([*command, "--out", str(cut), "--max-swaps", "2"]) == 1
    said = "it holds results of another `wordward attack` (other settings): choose another --out, or --force"
    assert said in capsys.readouterr().err
    assert main([*command, "--out", str(cut), "--limit", "5"]) == 1
    assert "(other texts, fingerprint)" in capsys.readouterr().err
    assert len(lines(cut)) == 30
    stop_after[0] = 30
    assert main([*command, "--out", str(cut), "--max-swaps", "2", "--force"]) == 0
    assert len(lines(cut)) == 30


def test_some_texts_of_the_training_file_are_not_those_held_out(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, file, kinds = str(folder / "run"), str(folder / "reviews.csv"), ["--device", "cpu", "--quiet"]
    labelled = list(read(file))
    _, held = hold_out(labelled, 0.1, seed=0)
    drawn = [each.text for each in sample(labelled, 12, apart=True)]
    assert not set(drawn) <= {each.text for each in held}
    some, found = [*kinds, "--limit", "12"], tmp_path / "attacked.jsonl"
    assert main(["attack", run, file, *some, "--out", str(found)]) == 0
    assert [line["text"] for line in lines(found)] == drawn
    assert main(["explain", run, "--file", file, *some, "--json", str(tmp_path / "e.jsonl")]) == 0
    assert list(dict.fromkeys(line["text"] for line in lines(tmp_path / "e.jsonl"))) == list(dict.fromkeys(drawn))
    assert main(["check", run, file, *some, "--sense", "any", "--json", str(tmp_path / "c.json")]) == 0
    assert main(["check", run, file, *kinds, "--sense", "any", "--json", str(tmp_path / "all.json")]) == 0
    each, of = (json.loads((tmp_path / name).read_text())["each"] for name in ("c.json", "all.json"))
    assert each == [of[labelled.index(one)] for one in sample(labelled, 12, apart=True)]


def test_the_command_shows_what_predict_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attack", str(folder / "run"), "--text", "the film was warm and funny", "", "--device", "cpu"]) == 0
    shown = capsys.readouterr().out
    assert "good → bad" in shown
    assert "not read: no words" in shown
    assert main(["attack", str(folder / "run"), str(folder / "test.csv"), "--show", "2", "--device", "cpu"]) == 0
    shown = capsys.readouterr().out
    assert shown.count(" → ") >= 2
    assert all(
        name in shown for name in ("accuracy under attack", "success rate", "with sense kept", "texts a second")
    )
    plain = ["attack", str(folder / "run"), str(folder / "test.csv"), "--no-labels", "--json", "--limit", "4"]
    assert main([*plain, "--device", "cpu"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["texts"], told["attacked"], told["accuracy"]) == (4, 4, None)


def test_commands_that_are_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, data = str(folder / "run"), str(folder / "test.csv")
    (tmp_path / "x.m2").write_text("S a\n")
    odd = tmp_path / "odd.csv"
    odd.write_text("text,label\nwarm,splendid\n")
    refused = {
        (): "expected RUN and DATA; got nothing",
        (run,): "expected RUN and DATA; got",
        (run, data, "more"): "expected RUN and DATA",
        (run, data, "--text", "warm"): "expected RUN; got",
        (run, "--models", run): "expected texts; this folder holds a model: give a file of texts",
        (data, "--models", run, "--figure", "x.pdf"): "ends in .png or .svg for the plot; got 'x.pdf'",
        (run, data, "--models", run): "expected DATA; got",
        (data, "--models", run, "--guides", "advt"): "leave out --guides and --text",
        (data, "--models", run, "--max-swaps", "3"): "give --swaps instead of --max-swaps",
        (data, "--models", run, "--swaps", "0"): "expected numbers of swaps",
        (run, data, "--guides", "advt", "--csv", "x.csv"): "are for an attack on one run",
        (run, data, "--figure", "x.png"): "--figure draws the comparison of --models",
        (run, data, "--limit", "0"): "limit must be a whole number, 1 or more, but is 0",
        (run, data, "--jobs", "0"): "jobs must be a whole number, 1 or more, but is 0",
        (run, data, "--method", "magic"): "unknown method 'magic'",
        (run, data, "--max-share", "7"): "--max-share must be greater than 0 and at most 1, but is 7",
        (run, data, "--corrections", str(tmp_path / "x.m2")): "corrections are for taggers",
        (run, data, "--corrections", "none.m2"): "expected an M2 file; there is none of this name",
        (run, str(odd)): f"{odd}, line 2: expected a label that the model knows (bad, good); got 'splendid'",
        (str(odd), "--models", run): f"{odd}, line 2: expected a label that the model knows",
        (run, str(odd), "--guides", "advt"): f"{odd}, line 2: expected a label that the model knows",
        (run, "the cast was warm"): "for a text give --text 'the cast was warm'",
        (run, "nowhere.csv"): "nowhere.csv",
        (str(tmp_path), data): "is not a run folder",
    }
    for given, said in refused.items():
        assert main(["attack", *given]) == 1, given
        assert said in capsys.readouterr().err.replace("\n", " "), given


def test_a_packed_corpus_has_no_texts(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in (folder / "run").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    settings = run_folder.load_config(tmp_path, TrainConfig)
    (tmp_path / "config.toml").write_text(
        to_toml(replace(settings, data=replace(settings.data, train="", corpus="mine.pack")))
    )
    assert main(["attack", str(tmp_path), "test", "--device", "cpu"]) == 1
    assert "mine.pack holds word ids, not texts" in capsys.readouterr().err
