"""The texts that settings name: labels that are nearly alike, empty texts, standard input."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from reviews import reviews, write_csv
from small_training import config

from wordward.config import DataSettings
from wordward.datasets import DataError, Example, examples_of, read
from wordward.datasets.example import alike, single_spaced
from wordward.runs.opening import load_run
from wordward.support.errors import SettingError
from wordward.text.loading import labelled_examples
from wordward.train import train


def test_labels_that_differ_only_in_case_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert alike(["bad", "Good", "good", "very  good", "Very good", "x"]) == [
        ["Good", "good"],
        ["very  good", "Very good"],
    ]
    assert alike(["1.0", "0", "1", "0.00", "-1", "1.5", "1.50"]) == [["1.0", "1"], ["0", "0.00"]]
    assert not alike(["B-PER", "I-PER", "O", "v1.0", "v1"])
    examples = reviews(40)
    odd = [
        replace(each, label="Good") if at % 5 == 0 and each.label == "good" else each
        for at, each in enumerate(examples)
    ]
    count = sum(each.label == "Good" for each in odd)
    train(config(write_csv(tmp_path / "t.csv", odd), epochs=1), tmp_path / "run")
    said = " ".join(capsys.readouterr().err.split())
    assert (
        f"differ only in case, blanks or a final `.0` are learnt as different ones: 'Good' ({count}) and 'good'"
        in said
    )
    train(config(write_csv(tmp_path / "t.csv", examples), epochs=1), tmp_path / "run", force=True)
    assert "differ only" not in capsys.readouterr().err
    with pytest.raises(DataError, match="got 'Good': write it as 'good', from which it differs only in case"):
        load_run(tmp_path / "run").evaluate([Example("a warm film", "Good")])


def split(folder: Path, examples: list[Example], share: float = 0.1) -> tuple[list[Example], list[Example]]:
    data = DataSettings(train=str(write_csv(folder / "t.csv", examples)), dev_share=share)
    learnt, held_out, _ = labelled_examples(replace(config(Path("")), data=data))
    return learnt, held_out


def test_no_text_is_learnt_and_held_out_alike(tmp_path: Path) -> None:
    """Each text is there twice, with other blanks."""
    once = list(dict.fromkeys(reviews(60)))
    learnt, held_out = split(tmp_path, [*once, *(replace(each, text=f" {each.text}  ") for each in once)], share=0.4)
    assert not {single_spaced(each.text) for each in learnt} & {single_spaced(each.text) for each in held_out}
    assert len(learnt) + len(held_out) == 2 * len(once)
    assert len(held_out) == 2 * round(0.4 * len(once))


def test_a_few_that_are_learnt_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    once = list(dict.fromkeys(reviews(100)))
    learnt, _ = split(tmp_path, once, share=0.3)
    more, fewer = split(tmp_path, [*once, *learnt[:8]], share=0.3)
    texts = {each.text for each in more}
    assert not texts & {each.text for each in fewer}
    assert len(more) + len(fewer) < len(once) + 8
    assert len(once) == len(texts | {each.text for each in fewer})
    assert {each.label for each in fewer} == {"good", "bad"}
    left = len(once) + 8 - len(more) - len(fewer)
    data = DataSettings(train=str(write_csv(tmp_path / "t.csv", [*once, *learnt[:8]])), dev_share=0.3)
    labelled_examples(replace(config(Path("")), data=data), quiet=False)
    assert f"{left} texts that are also learnt are left out of dev" in " ".join(capsys.readouterr().err.split())
    labelled_examples(
        replace(
            config(Path("")),
            data=replace(data, train=str(write_csv(tmp_path / "t.csv", once))),
        ),
        quiet=False,
    )
    assert "left out" not in capsys.readouterr().err


def test_many_copies_of_few_texts_leave_their_label_on_both_sides(tmp_path: Path) -> None:
    once = list(dict.fromkeys(reviews(200)))
    copies = [
        Example(f"win a {thing} now", "spam")
        for thing in ("car", "prize", "phone", "trip", "watch")
        for _ in range(30)
    ]
    for part in split(tmp_path, [*once, *copies], share=0.3):
        assert {each.label for each in part} == {"good", "bad", "spam"}


def test_one_text_alone_is_on_both_sides(tmp_path: Path) -> None:
    learnt, held_out = split(tmp_path, [Example("a film", label) for label in ("good", "bad") for _ in range(10)])
    assert (len(learnt), len(held_out)) == (18, 2)


def test_empty_texts_are_counted_or_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = reviews(40)
    holes = [replace(each, text="" if at in (3, 7, 20) else each.text) for at, each in enumerate(texts)]
    settings = config(write_csv(tmp_path / "holes.csv", holes), epochs=1)
    told = r"line 5: expected a text; it is empty, as 2 more are: .* leave out such texts with `skip_empty=True`"
    with pytest.raises(DataError, match=told):
        train(settings, tmp_path / "run")
    skipping = replace(settings, data=replace(settings.data, skip_empty=True))
    result = train(skipping, tmp_path / "run")
    assert "left out 3 empty of 40 texts" in capsys.readouterr().err
    assert sum(result["texts"].values()) == 37
    in_memory = replace(skipping, data=DataSettings(skip_empty=True))
    pairs = [(each.text, each.label) for each in holes]
    assert train(in_memory, tmp_path / "memory", train=pairs, quiet=True)["dev"] == result["dev"]
    with pytest.raises(DataError, match="train, line 4: expected a text; it is empty, as are 2 more"):
        train(replace(settings, data=DataSettings()), tmp_path / "other", train=pairs, quiet=True)


def test_texts_that_lack_their_label_are_counted_or_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    holes = [replace(each, label="" if at in (3, 7, 20) else each.label) for at, each in enumerate(reviews(40))]
    holes[9] = replace(holes[9], text="")
    file = write_csv(tmp_path / "holes.csv", holes)
    told = r"line 5: expected a label; it is empty, as those of 2 more rows: .* such texts with `skip_empty=True`"
    with pytest.raises(DataError, match=told):
        train(config(file, epochs=1), tmp_path / "run")
    skipping = replace(config(file, epochs=1), data=DataSettings(str(file), skip_empty=True))
    result = train(skipping, tmp_path / "run")
    assert "left out 3 without a label and 1 empty of 40 texts" in capsys.readouterr().err
    assert sum(result["texts"].values()) == 36
    records = [{"text": each.text, "label": each.label or None} for each in holes]
    (tmp_path / "holes.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    assert len(read(tmp_path / "holes.jsonl", skip_empty=True)) == 36
    assert len(read(file, labelled=False, skip_empty=True)) == 39  # where none is needed
    pairs = [(each.text, each.label) for each in holes]
    assert len(examples_of(pairs, "texts", skip_empty=True)) == 36
    with pytest.raises(DataError, match=r"texts, line 4: expected a label; it is empty: .* \(or `skip_empty`\)"):
        examples_of(pairs, "texts")


def test_standard_input_holds_one_file() -> None:
    with pytest.raises(SettingError, match="standard input holds one file, but `train` and `dev` are both -"):
        DataSettings("-", dev="-")
