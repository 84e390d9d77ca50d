"""Sweeps from the command line: what is tried, refused, recorded and gone on with."""

import json
from pathlib import Path
from typing import Any

import pytest
from reviews import tagged, write_conll

import wordward.train.sweep
from wordward.cli.main import main
from wordward.config.settings import TrainConfig
from wordward.runs import run_folder
from wordward.train.choosing import is_open
from wordward.train.sweep import _label, _trials
from wordward.train.training import DivergedError

QUICK = "--epochs 1 --device cpu --quiet".split()
SIZES = [*"--dim 8 --hidden 8 --head 4 --epsilon 1 --k 3".split(), *QUICK]


@pytest.fixture
def arguments(csv_file: Path, tmp_path: Path) -> list[str]:
    return ["train", "--train", str(csv_file), "--out", str(tmp_path / "sweep"), *SIZES]


def record(arguments: list[str]) -> dict[str, Any]:
    folder = Path(arguments[arguments.index("--out") + 1])
    return json.loads((folder / "sweep.json").read_text())


def choices(arguments: list[str]) -> list[dict[str, str]]:
    return [entry["choice"] for entry in record(arguments)["tried"]]


class Trials:
    """Stands for `train`: what it was asked to do; some trials fail or are stopped."""

    def __init__(self, **ends: str) -> None:
        self.ends, self.asked = ends, []

    def __call__(self, config: TrainConfig, out: Path, **how: Any) -> dict[str, Any]:
        k = str(config.perturbation.k)
        self.asked.append(k)
        if self.ends.get("k" + k) == "diverged":
            raise DivergedError("the loss is not finite")
        stopped = self.ends.get("k" + k) == "stopped"
        result = {"criterion": "error", "dev": {"error": int(k) / 10}, "best_epoch": 1, "seconds": 1.0}
        result["stopped"] = stopped
        out.mkdir(parents=True, exist_ok=True)
        (out / "result.json").write_text(json.dumps(result))
        return result


@pytest.mark.parametrize(
    "sweep",
    [["--sweep", "epsilon=1,2", "--sweep", "k=2,3"], ["--sweep", "epsilon=1,2", "k=2,3"]],
    ids=["twice", "once"],
)
def test_all_settings_of_a_sweep_are_tried(sweep: list[str], arguments: list[str]) -> None:
    assert main([*arguments, *sweep]) == 0
    wanted = [{"epsilon": epsilon, "k": k} for epsilon in "12" for k in "23"]
    assert choices(arguments) == wanted


@pytest.fixture
def texts_apart(tmp_path: Path) -> list[str]:
    """Texts no word of which is in two of them, which a chosen model learns, and the LSTM's settings leave out."""
    rows = [f"{name}{n} {name}{n}a,{name}" for name in ("good", "bad") for n in range(20)]
    (tmp_path / "apart.csv").write_text("\n".join(["text,label", *rows]))
    return ["train", str(tmp_path / "apart.csv"), "--out", str(tmp_path / "sweep"), "--method", "baseline", *QUICK]


def test_texts_that_a_single_run_learns_are_swept(texts_apart: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*texts_apart, "--kind", "convolution", "--sweep", "learning_rate=.001,.002"]) == 0
    assert main([*texts_apart, "--force", "--preset", "small", "--sweep", "learning_rate=.001,.002"]) == 1
    assert "words that occur in 2 or more documents" in capsys.readouterr().err


def test_a_size_is_given_whatever_its_value() -> None:
    for choice in ("dim=128,256", "head_dropout=0.5,0.1", "kind=lstm"):
        assert not any(is_open(settings) for _, settings in _trials(TrainConfig(), [choice]))
    assert all(is_open(settings) for _, settings in _trials(TrainConfig(), ["kind=auto,convolution", "k=3,10"]))


def test_two_texts_judged_together_are_refused_before_an_old_result_is_replaced(
    arguments: list[str], csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 0
    before = (tmp_path / "sweep" / "config.toml").read_bytes()
    assert main([*arguments, "--force", "--pair-column", "label", "--sweep", "k=2,3"]) == 1
    assert "are judged together by a Hugging Face model" in capsys.readouterr().err
    assert (tmp_path / "sweep" / "config.toml").read_bytes() == before


def test_same_values_are_tried_once(arguments: list[str]) -> None:
    assert main([*arguments, "--sweep", "epsilon=1,1,1.0,2", "--sweep", "epsilon=2,3"]) == 0
    assert [choice["epsilon"] for choice in choices(arguments)] == ["1", "2", "3"]


def test_switches_can_be_swept(arguments: list[str]) -> None:
    assert main([*arguments, "--sweep", "lowercase=true,False"]) == 0
    assert [choice["lowercase"] for choice in choices(arguments)] == ["true", "False"]


@pytest.mark.parametrize(
    ("sweep", "wanted"),
    [
        ("lowercase=maybe", "lowercase=maybe, but lowercase must be true or false"),
        ("epochs=1,many", "epochs=many, but epochs must be a whole number"),
        ("epsilon=x", "epsilon must be a number or None"),
        ("tokenizer=words,letters", "words or authors or punctuation or whitespace"),
        ("epochs=1,0", "epochs must be a whole number, 1 or more, but is 0"),
        ("k=3,500", "k must be less than"),
        ("device=cpu,warp", "cannot be used here"),
        ("train=nowhere.csv", "nowhere.csv"),
    ],
)
def test_a_bad_sweep_leaves_the_old_result(
    sweep: str, wanted: str, arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "sweep").iterdir()}
    capsys.readouterr()
    assert main([*arguments, "--force", "--sweep", sweep]) == 1
    shown = capsys.readouterr()
    assert wanted in shown.err
    assert shown.err.startswith("wordward: ")
    assert {path.name: path.read_bytes() for path in (tmp_path / "sweep").iterdir()} == before


def test_a_value_that_does_not_fit_the_texts_is_refused_before_any_trial(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["train", str(write_conll(tmp_path / "t.conll", tagged(40))), "--out", str(tmp_path / "sweep"), *QUICK]
    assert main([*given, "--kind", "spelling", "--method", "baseline", "--sweep", "augment=None,10"]) == 1
    assert "--augment is for texts with one label each, but these have tags" in capsys.readouterr().err
    assert not (tmp_path / "sweep").exists()


def test_texts_are_read_once_to_check(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []
    prepare = wordward.train.sweep.prepare
    monkeypatch.setattr(wordward.train.sweep, "prepare", lambda *a, **b: reads.append(1) or prepare(*a, **b))
    monkeypatch.setattr(wordward.train.sweep, "train", Trials())
    assert main([*arguments, "--sweep", "lowercase=true,false", "k=2,3,4"]) == 0
    assert len(reads) == 2


def test_texts_are_read_again_with_other_vectors_which_decide_what_words_are_known(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / name for name in ("one.txt", "other.txt")]
    for file in files:
        file.write_text("2 8\n" + "".join(f"{word} {' '.join(['0.5'] * 8)}\n" for word in ("film", "good")))
    reads = []
    prepare = wordward.train.sweep.prepare
    monkeypatch.setattr(
        wordward.train.sweep,
        "prepare",
        lambda config, *a, **b: reads.append(config.vectors) or prepare(config, *a, **b),
    )
    monkeypatch.setattr(wordward.train.sweep, "train", Trials())
    assert main([*arguments, "--sweep", f"vectors={files[0]},{files[1]}", "k=2,3"]) == 0
    assert reads == [*map(str, files)]


def test_a_trial_that_diverges_is_recorded_and_not_tried_again(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trials = Trials(k2="diverged", k4="stopped")
    monkeypatch.setattr(wordward.train.sweep, "train", trials)
    sweep = [*arguments, "--sweep", "k=2,3,4,5"]
    assert main(sweep) == 130
    assert record(sweep)["tried"][0] == {"choice": {"k": "2"}, "failed": "the loss is not finite"}
    assert (record(sweep)["stopped"], record(sweep)["chosen"]) == (True, {"k": "3"})
    trials.ends["k4"] = "fine"
    assert main([*sweep, "--resume"]) == 0
    assert trials.asked == ["2", "3", "4", "4", "5"]
    assert [list(entry)[1] for entry in record(sweep)["tried"]] == [
        "failed",
        "criterion",
        "criterion",
        "criterion",
    ]
    monkeypatch.setattr(wordward.train.sweep, "train", Trials(k2="diverged"))
    assert main([*arguments, "--force", "--sweep", "k=2"]) == 1
    assert "nothing was chosen" in capsys.readouterr().err


def test_a_sweep_ends_with_what_came_of_each_trial(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wordward.train.sweep, "train", Trials(k2="diverged"))
    assert main([*(flag for flag in arguments if flag != "--quiet"), "--sweep", "k=2,3,4"]) == 0
    wanted = "k=2: failed\nk=3: dev error 0.3000\nk=4: dev error 0.4000\nchosen on dev: k=3"
    assert wanted in capsys.readouterr().err


def test_trials_that_dev_does_not_tell_apart_are_said_to_be_alike(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wordward.train.sweep, "train", Trials())
    loud = [each for each in arguments if each != "--quiet"]
    assert main([*loud, "--sweep", "epsilon=1,2", "--sweep", "k=3,4"]) == 0
    assert "chosen on dev: epsilon=1,k=3, the first of 2 with that score, copied to" in capsys.readouterr().err


def test_a_sweep_goes_on_only_as_it_began(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wordward.train.sweep, "train", Trials())
    assert main([*arguments, "--sweep", "k=2,3", "--resume"]) == 1
    assert "holds no sweep to resume" in capsys.readouterr().err
    assert main([*arguments, "--sweep", "k=2,3"]) == 0
    assert main([*arguments, "--sweep", "k=2,3", "--resume", "--seed", "7"]) == 1
    assert "other settings (seed)" in capsys.readouterr().err
    assert main([*arguments, "--sweep", "k=2,3", "--resume", "--no-gradual"]) == 1
    assert "other settings (gradual)" in capsys.readouterr().err
    assert main(["train", "--out", str(tmp_path / "sweep"), "--sweep", "k=2,3", "--resume"]) == 1
    assert "--train FILE" in capsys.readouterr().err


def test_a_sweep_does_not_replace_what_it_starts_from(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 0
    again = [*arguments, "--force", "--sweep", "k=2,3", "--pretrained", str(tmp_path / "sweep")]
    assert main(again) == 1
    assert "would be replaced" in capsys.readouterr().err
    assert main([*arguments, "--sweep", "k=2,3"]) == 1
    assert "exists already" in capsys.readouterr().err


def test_a_sweep_killed_before_any_file_was_complete_starts_again(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wordward.train.sweep, "train", Trials())
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / f"{run_folder.SWEEP}.part").write_text("{")
    assert main([*arguments, "--sweep", "k=2,3"]) == 0


def test_trials_have_folders_of_their_own() -> None:
    names = [_label({"transformer": name}) for name in ("a/b", "a_b", r"C:\models\a")]
    assert names[1] == "transformer=a_b"
    assert len(set(names)) == 3
    assert not any(set(name) & set('\\/:*?"<>|') for name in names)
