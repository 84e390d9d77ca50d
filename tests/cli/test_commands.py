"""The command line, used as a person would."""

import io
import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from reviews import reviews, write_conll, write_csv
from rich.cells import cell_len
from rich.console import Console
from small_training import copied

import wordward.support.console
import wordward.train.training
from wordward.cli.main import main
from wordward.config.model import PRESETS
from wordward.config.settings import TrainConfig
from wordward.config.toml import built, named, setting_names, to_toml
from wordward.datasets import Example, read
from wordward.perturbation.recipes import RECIPES
from wordward.runs.opening import load_run
from wordward.support import files

TOKENS = [(who, "10\u00a0000", "times") for who in "abcdefghijkl"]  # of which the second holds a no-break space
FILMS = [("fine", "good"), ("dull", "bad")]
SMALL = [
    "--dim",
    "10",
    "--hidden",
    "10",
    "--head",
    "5",
    "--epochs",
    "2",
    "--learning-rate",
    "0.02",
    "--device",
    "cpu",
]
SMALL += ["--epsilon", "1", "--k", "3", "--quiet"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that no test changes."""
    folder = tmp_path_factory.mktemp("trained")
    texts = write_csv(folder / "texts.csv", reviews(240))
    assert main(["train", "--train", str(texts), "--out", str(folder / "run"), *SMALL]) == 0
    return folder / "run"


@pytest.fixture
def run(trained: Path, csv_file: Path, tmp_path: Path) -> str:
    return str(copied(trained, tmp_path / "run", csv_file))


@pytest.mark.parametrize(
    "command",
    [
        *("explain RUN word --html", "explain RUN word --json", "report RUN --out"),
        *("attack RUN x.csv --out", "attack RUN x.csv --csv", "attack x.csv --models RUN --figure"),
    ],
)
def test_a_file_that_cannot_be_written_is_said_before_the_work(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    assert main([*command.split(), str(file / "new.html")]) == 1
    flag = command.split()[-1]
    said = f"{flag} {file / 'new.html'} cannot be written ({file}: Not a directory): choose another place"
    assert said in capsys.readouterr().err
    monkeypatch.setattr(files, "TemporaryFile", None)
    files.check_file(os.devnull, flag)  # no place for another file is needed beside a device


@pytest.mark.parametrize(
    "command",
    ["check RUN x.csv --json {} --card", "explain RUN word --html {} --json", "attack RUN x.csv --csv {} --out"],
)
def test_one_file_for_two_things_is_refused(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*command.format("both").split(), str(tmp_path / "both")]) in (1, 2)
    said = capsys.readouterr().err
    assert "both, which holds one of them: name two files" in said
    assert {word for word in command.split() if word.startswith("--")} <= set(said.split())


@pytest.mark.parametrize("learns", [True, False])
def test_a_classifier_that_has_learnt_nothing_is_told_of_with_what_may_help(
    learns: bool, csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rate = "0.02" if learns else "1e-9"
    small = [flag for flag in SMALL if flag != "--quiet"]
    given = [
        "train",
        "--train",
        str(csv_file),
        "--out",
        str(tmp_path / "run"),
        *small,
        "--learning-rate",
        rate,
    ]
    assert main([*given, "--epochs", "20", "--patience", "20"]) == 0
    advice = "always giving the most frequent label: longer training (--epochs, --patience)"
    assert (advice in " ".join(capsys.readouterr().err.split())) is not learns


def test_help_needs_no_torch() -> None:
    code = "import sys; sys.argv=['wordward','train','--help']\nfrom wordward.cli.main import main\n"
    code += "try: main()\nexcept SystemExit: pass\nassert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--epsilon" in done.stdout


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a person sees who sits at a terminal."""
    shown = io.StringIO()
    monkeypatch.setattr("wordward.support.console.console", Console(file=shown, force_terminal=True))
    return shown


def test_a_person_sees_that_texts_are_read_and_scored(csv_file: Path, tmp_path: Path, screen: io.StringIO) -> None:
    """Tens of thousands of texts take minutes of each."""
    folder = str(tmp_path / "run")
    assert main(["train", "--train", str(csv_file), "--out", folder, *SMALL[:-1]]) == 0
    assert f"reading {csv_file.name}" in screen.getvalue()
    assert main(["evaluate", folder, str(csv_file)]) == 0
    assert "scoring" in screen.getvalue()
    assert "120/120" in screen.getvalue()
    assert main(["predict", folder, "--file", str(csv_file)]) == 0
    assert "predict" in screen.getvalue()


@pytest.mark.parametrize("reason", ["a screen", "--quiet"])
def test_no_bar_stands_among_answers_on_the_screen(
    reason: str, run: str, csv_file: Path, screen: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason == "a screen":
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["predict", run, "--file", str(csv_file), *(["--quiet"] if reason == "--quiet" else [])]) == 0
    assert "predict" not in screen.getvalue()


def test_results_that_come_in_bunches_are_not_called_fast(screen: io.StringIO) -> None:
    clock = 0.0
    bars = wordward.support.console.progress()
    bars.get_time = lambda: clock
    bar = bars.add_task("attack", total=100, unit="texts")
    clock = 10.0
    for _ in range(50):
        bars.advance(bar)
        clock += 1e-6
    line = "".join(str(column.render(bars.tasks[0])) for column in bars.columns[3:])  # type: ignore[union-attr]
    assert line in ("5.0 texts/s00:10", "5.0 texts/s00:11")
    bars.reset(bar, total=36_000)
    clock += 100.0
    for _ in range(100):
        bars.advance(bar)
        clock += 1.0
    assert str(bars.columns[4].render(bars.tasks[0])).startswith("19:")  # type: ignore[union-attr]


def test_labels_of_any_script_stand_in_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, folder = tmp_path / "films.tsv", str(tmp_path / "run")
    names = {"good": "很好的电影", "bad": "👎"}
    rows = [f"{each.text}\t{names[str(each.label)]}\n" for each in reviews(60)]
    file.write_text("text\tlabel\n" + "".join(rows), encoding="utf-8")
    assert main(["train", "--train", str(file), "--out", folder, *SMALL]) == 0
    capsys.readouterr()
    assert main(["evaluate", folder, str(file)]) == 0
    table = capsys.readouterr().out.splitlines()[-3:]
    assert len({cell_len(line) for line in table}) == 1


def test_version_and_methods(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert main(["methods"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("wordward ")
    assert all(name in shown for name in ("iadvt-best", "random-kl", "eq:adv_approx", "baseline"))
    legend = shown.rsplit("\n\n", 1)[1]
    assert all(f"{head}: " in legend for head in ("Grows", "Points", "Chosen", "Epsilon", "Passes"))


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_names_of_methods_are_whole_on_any_screen(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["methods"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(any(line.split()[:1] == [name] for line in lines) for name in ("random-kl", *RECIPES))
    assert not any("…" in line for line in lines)


def test_predict_arguments_file_and_standard_input(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["the film was dull and cold", "a lovely ending “quoted”"]
    assert main(["predict", run, *texts]) == 0
    by_argument = capsys.readouterr().out
    (tmp_path / "in.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    assert main(["predict", run, "--file", str(tmp_path / "in.txt")]) == 0
    assert capsys.readouterr().out == by_argument
    stdin = io.TextIOWrapper(io.BytesIO("\n".join(texts).encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert main(["predict", run]) == 0
    assert capsys.readouterr().out == by_argument
    records = [json.loads(line) for line in by_argument.splitlines()]
    assert [record["text"] for record in records] == texts
    assert set(records[0]["probabilities"]) == {"good", "bad"}
    assert records[0]["label"] == max(records[0]["probabilities"], key=records[0]["probabilities"].__getitem__)


def test_a_person_sees_that_a_file_is_predicted(
    run: str, csv_file: Path, screen: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answers go where they were sent, and not to the terminal where the bar is."""
    assert main(["predict", run, "--file", str(csv_file)]) == 0
    answers = capsys.readouterr().out.splitlines()
    assert len(answers) == 120
    assert all("label" in json.loads(line) for line in answers)
    shown = screen.getvalue()
    assert f"reading {csv_file.name}" in shown
    assert "predicting" in shown
    assert "120/120" in shown
    assert "probabilities" not in shown


@pytest.mark.parametrize("seen", [True, False])
def test_no_bar_where_the_answers_are_seen(
    run: str, csv_file: Path, screen: io.StringIO, monkeypatch: pytest.MonkeyPatch, seen: bool
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: seen, raising=False)
    assert main(["predict", run, "--file", str(csv_file)]) == 0
    assert ("predicting" in screen.getvalue()) != seen


@pytest.mark.parametrize("command", [["methods"], ["explain", "RUN", "a warm film"], ["data", "list"]])
@pytest.mark.parametrize("closed", [True, False])
def test_a_reader_who_has_gone_is_no_error(
    command: list[str], closed: bool, run: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    read, written = os.pipe()
    os.close(read)
    with os.fdopen(written, "w") as unread:
        monkeypatch.setattr(sys, "stdout", None if closed else unread)
        assert main([run if word == "RUN" else word for word in command]) == 0
        sys.stdout.close()
    assert "Error" not in capfd.readouterr().err


def test_explanations_go_into_a_pipe_while_a_bar_is_drawn(
    run: str, csv_file: Path, screen: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", run, "--file", str(csv_file), "--json", "-"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 120
    assert "120/120" in screen.getvalue()


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
        RuntimeError("CUDA out of memory. Tried to allocate 9 GiB\nmore that nobody reads"),
    ],
)
def test_too_little_memory_says_what_to_do(
    error: Exception, csv_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def short(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(wordward.train.training, "train", short)
    assert main(["train", "--train", str(csv_file), "--out", "nowhere"]) == 1
    told = said(capsys)
    assert "wordward: not enough memory (" in told
    assert "--max-length" in told
    assert "nobody" not in told


@pytest.mark.parametrize("order", [0, 1])
def test_the_file_to_train_on_needs_no_flag(order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def trained(config: Any, out: str, **_: object) -> dict[str, Any]:
        seen.extend([config.data.train, config.data.text_column, out])
        return {"stopped": True}

    monkeypatch.setattr(wordward.train.training, "train", trained)
    flags = ["--out", "runs/x", "--text-column", "review"]
    assert main(["train", *flags[: 4 * order], "mine.csv", *flags[4 * order :]]) == 130
    assert seen == ["mine.csv", "review", "runs/x"]


@pytest.mark.parametrize(
    ("command", "hint"),
    [("attack", "--out FILE.jsonl"), ("yardsticks", "--out FILE.jsonl"), ("evaluate", "redirect it")],
)
def test_a_file_after_json_that_prints_says_what_to_do(
    command: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "runs/x", "test.csv", "--json", "found.jsonl"]) == 1
    assert f"wordward {command} prints with --json, which takes no file; got found.jsonl: {hint}" in said(capsys)


def test_two_files_to_train_on_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "mine.csv", "--train", "other.csv", "--out", "runs/x"]) == 1
    assert "expected one file of labelled texts; got mine.csv and --train other.csv" in said(capsys)


def test_sizes_of_a_damaged_folder_are_not_taken_for_too_little_memory(
    csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = "--epochs 1 --streams 2 --window 5 --dim 8 --hidden 8 --device cpu --quiet".split()
    assert main(["pretrain", "--texts", str(csv_file), "--out", str(tmp_path / "lm"), *sizes]) == 0
    config = tmp_path / "lm" / "config.toml"
    config.write_text(config.read_text().replace("dim = 8", f"dim = {10**30}"))
    start = ["train", "--train", str(csv_file), "--pretrained", str(tmp_path / "lm"), "--dim", "8", "--hidden", "8"]
    assert main([*start, "--out", str(tmp_path / "run"), "--device", "cpu", "--quiet"]) == 1
    told = said(capsys)
    assert "does not fit the sizes in config.toml" in told
    assert "not enough memory" not in told


def test_predict_says_what_it_could_not_read(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", run, "the film was dull", "   ", "zyx wvu"]) == 1
    shown = capsys.readouterr()
    first, second, third = (json.loads(line) for line in shown.out.splitlines())
    assert "label" in first
    assert "empty" in second["error"]
    assert "vocabulary" in third["warning"]
    assert "1 of the texts" in shown.err


def test_predict_says_how_to_read_a_file(run: str, csv_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", run, str(csv_file)]) == 0
    assert f"is read as a text; for the texts in that file give --file {csv_file}" in said(capsys)
    assert main(["predict", run, "reviws.csv"]) == 0
    assert "there is no file reviws.csv, so it is read as a text" in said(capsys)
    assert main(["predict", run, "see reviews.csv"]) == 0
    assert "there is no file" not in said(capsys)


def test_evaluate_prints_and_gives_json(run: str, csv_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", run, str(csv_file)]) == 0
    shown = capsys.readouterr().out
    assert "95 % interval" in shown
    assert main(["evaluate", run, str(csv_file), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["texts"] == 120
    assert record["error"]["low"] <= record["error"]["value"] <= record["error"]["high"]
    classes = record["classes"]
    assert sum(each["support"] for each in classes.values()) == 120
    assert sum(each["predicted"] for each in classes.values()) == 120
    assert sum(each["f1"] for each in classes.values()) / len(classes) == pytest.approx(record["macro_f1"]["value"])
    rows = [line.split() for line in shown.splitlines()[-len(classes) :]]
    assert rows == [
        [name, str(count), str(predicted), *(f"{share:.2%}" for share in shares)]
        for name, (count, predicted, *shares) in ((name, each.values()) for name, each in classes.items())
    ]


def test_an_interval_that_tells_nothing_is_not_given(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One text that is right: its macro-F1 would be 100 %, surely; of the other label nothing can be told."""
    assert main(["predict", run, "the film was dull"]) == 0
    label = json.loads(capsys.readouterr().out)["label"]
    (tmp_path / "one.csv").write_text(f"text,label\nthe film was dull,{label}\n")
    assert main(["evaluate", run, str(tmp_path / "one.csv")]) == 0
    _, error, macro_f1, *_, one, two = capsys.readouterr().out.splitlines()
    assert sorted(line.split()[1:] for line in (one, two)) == [
        ["0", "0", "–", "–", "–"],
        ["1", "1", *["100.00%"] * 3],
    ]
    assert "95 % interval 0.00% to 79.35%" in error
    assert macro_f1.split(maxsplit=2)[2] == "no interval: every resample gives the same"


def test_evaluate_agrees_with_predict(run: str, csv_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["evaluate", run, str(csv_file), "--json"])
    measured = json.loads(capsys.readouterr().out)["error"]["value"]
    examples = reviews(120)
    said = load_run(run, device="cpu").predict([example.text for example in examples])
    wrong = sum(record.label != example.label for record, example in zip(said, examples, strict=True))
    assert measured == pytest.approx(wrong / 120)


def test_neighbors(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["neighbors", run, "dull", "--k", "4"]) == 0
    shown = capsys.readouterr()
    word, _, others = shown.out.partition(":")
    assert word == "dull"
    assert len(others.split(",")) == 4
    assert "numbers: cosine with the word" in shown.err
    assert main(["neighbors", run, "dull", "--k", "4", "--metric", "euclidean"]) == 0
    assert "numbers: distance from the word" in capsys.readouterr().err
    assert main(["neighbors", run, "zyx"]) == 1
    assert "does not know 'zyx'" in capsys.readouterr().err


def test_toml_gives_settings_and_flags_override(csv_file: Path, tmp_path: Path) -> None:
    toml = tmp_path / "settings.toml"
    toml.write_text(
        f'method = "advt"\n[data]\ntrain = {json.dumps(str(csv_file))}\n[perturbation]\nepsilon = 2.0\n'
        "[training]\nepochs = 1\n[text]\nlowercase = true\n"
    )
    arguments = ["train", "--config", str(toml), "--preset", "small", "--out", str(tmp_path / "run")]
    assert main([*arguments, "--epsilon", "3", "--hidden", "9", "--device", "cpu", "--quiet"]) == 0
    config = load_run(tmp_path / "run", device="cpu").config
    assert (config.method, config.perturbation.epsilon, config.text.lowercase) == ("advt", 3.0, True)
    assert (config.model.dim, config.model.hidden) == (PRESETS["small"]["dim"], 9)


def test_unknown_toml_key_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    toml = tmp_path / "settings.toml"
    toml.write_text("[perturbation]\nepsilom = 2.0\n")
    assert main(["train", "--config", str(toml), "--out", str(tmp_path / "run")]) == 1
    assert "'epsilom'" in (shown := capsys.readouterr().err)
    assert "did you mean 'epsilon'" in shown
    for content in ("epsilon = [unclosed", f"epsilon = {'[' * 3_000}"):
        toml.write_text(content)
        assert main(["train", "--config", str(toml), "--out", str(tmp_path / "run")]) == 1
        assert "not a TOML file" in capsys.readouterr().err


def test_every_setting_has_its_own_name() -> None:
    """One flat name space for flags and TOML: a name that two parts share would be ambiguous."""
    from dataclasses import fields, is_dataclass

    from wordward.config.settings import PretrainConfig, TrainConfig

    for kind in (TrainConfig, PretrainConfig):
        names = [item.name for item in fields(kind) if not is_dataclass(item.default_factory)]
        for item in fields(kind):
            if is_dataclass(item.default_factory):
                names += [inner.name for inner in fields(item.default_factory)]  # type: ignore[arg-type]
        assert len(names) == len(set(names)) == len(setting_names(kind))


def test_presets_name_real_settings() -> None:
    from wordward.config.settings import PretrainConfig, TrainConfig

    for values in PRESETS.values():
        for kind in (TrainConfig, PretrainConfig):
            assert named(values, kind, source="the preset") == values
            assert vars(built(kind, values).model).items() >= values.items()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('same_dropout = "no"', 'sets same_dropout = "no"; expected true or false, without quotes'),
        ("same_dropout = 1", "sets same_dropout = 1; expected true or false, without quotes"),
        ("refresh = true", "sets refresh = true; expected neither true nor false"),
    ],
)
def test_a_switch_in_a_file_is_true_or_false(
    line: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in (line, f"[perturbation]\n{line}"):
        (tmp_path / "set.toml").write_text(f"{text}\n")
        assert main(["train", "--config", str(tmp_path / "set.toml"), "--out", str(tmp_path / "run")]) == 1
        assert f"set.toml {told}" in capsys.readouterr().err


BAD = {
    "missing column": ("words,label\nfine,good\n", "column 'text'"),
    "one class": ("text,label\n" + "fine film,good\n" * 9, "two classes"),
    "empty file": ("", "found none"),
    "a label a text": (
        "text,label\n" + "".join(f"fine film,{number}\n" for number in range(9)),
        "9 with 9 labels (0, 1, 2, ...) are too few of each class",
    ),
    "empty text": ("text,label\nfine,good\n,bad\n", "line 3"),
    "not UTF-8": (b"text,label\nfine,good\nna\xefve,bad\n", "offset 23"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_get_a_clear_error(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, wanted = BAD[name]
    path = tmp_path / "bad.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert main(["train", "--train", str(path), "--out", str(tmp_path / "run"), *SMALL]) == 1
    assert wanted in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_file_of_tokens_without_empty_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "all.conll"
    path.write_text("films c\nis i\n" * 30)
    assert main(["train", "--train", str(path), "--out", str(tmp_path / "run"), *SMALL]) == 1
    assert "all.conll: expected sentences with an empty line between" in (said := capsys.readouterr().err)
    assert "found one, of 60 tokens" in said


def test_tags_for_a_classifier_and_labels_for_a_tagger(
    run: str, csv_file: Path, conll_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", run, str(conll_file)]) == 1
    assert (
        "line 1: expected a label; it has a tag for every token instead: give other texts, or a tagger"
        in capsys.readouterr().err
    )
    files = ["--train", str(conll_file), "--dev", str(csv_file)]
    assert main(["train", *files, "--out", str(tmp_path / "tagger"), *SMALL]) == 1
    assert "line 2: expected a tag for every token; it has a label instead" in capsys.readouterr().err


def test_a_settings_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--config", "none.toml", "--out", str(tmp_path / "run")]) == 1
    assert capsys.readouterr().err == "wordward: none.toml: expected a TOML file; there is none of this name\n"


def test_unknown_label_in_evaluation(run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.csv"
    path.write_text("text,label\nthe film was dull,bad\nthe film was odd,strange\n")
    assert main(["evaluate", run, str(path)]) == 1
    shown = capsys.readouterr().err
    assert "line 3" in shown
    assert "bad, good" in shown


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--epsilon", "-1"], "epsilon must be greater than 0"),
        (["--k", "500"], "k must be less than"),
        (["--method", "magic"], "unknown method 'magic'"),
        (["--device", "warp"], "cannot be used here"),
        (["--positive", "good"], "--positive names a tag of a tagger"),
        (
            ["--min-candidate-count", "9999"],
            "no word occurs 9,999 times in the training texts: give a lower --min-",
        ),
        (["--corpus", "imdb"], "but --train came with --corpus: leave that out"),
    ],
)
def test_bad_settings_get_a_clear_error(
    arguments: list[str], wanted: str, csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = ["train", "--train", str(csv_file), "--out", str(tmp_path / "run"), *SMALL]
    try:
        status = main([*base, *arguments])
    except SystemExit as stopped:
        status = int(str(stopped.code))
    shown = capsys.readouterr()
    assert status != 0
    assert wanted in " ".join((shown.err + shown.out).replace("│", " ").split())


@pytest.mark.parametrize(
    "command",
    [
        *("evaluate RUN FILE", "predict RUN --file FILE", "explain RUN --file FILE", "attack RUN FILE"),
        *("check RUN FILE", "augment RUN FILE --out new.csv", "yardsticks RUN FILE", "report RUN --test FILE"),
    ],
)
def test_a_run_of_single_texts_takes_no_pairs(
    command: str, run: str, csv_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = command.replace("RUN", run).replace("FILE", str(csv_file)).split()
    assert main([*asked, "--pair-column", "text"]) in (1, 2)
    assert "was trained on single texts, not on pairs of them: leave --pair-column out" in capsys.readouterr().err


def test_wrong_kind_of_folder(run: str, csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lm = str(tmp_path / "lm")
    sizes = ["--dim", "10", "--hidden", "10", "--epochs", "1", "--streams", "4", "--device", "cpu", "--quiet"]
    assert main(["pretrain", "--texts", str(csv_file), "--out", lm, *sizes]) == 0
    assert main(["predict", lm, "a film"]) == 1
    assert "wordward pretrain" in capsys.readouterr().err
    arguments = ["train", "--train", str(csv_file), "--out", str(tmp_path / "new"), *SMALL]
    assert main([*arguments, "--pretrained", run]) == 1
    assert "wordward train" in capsys.readouterr().err


def test_installed_command_runs() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-m", "wordward.cli.main", "--version"],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert done.stdout.startswith("wordward ")


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """What a command printed, its lines joined."""
    shown = capsys.readouterr()
    return " ".join((shown.err + shown.out).replace("│", " ").split())


@pytest.mark.parametrize(
    ("flag", "value", "wanted"),
    [
        ("epochs", "0", "--epochs must be a whole number, 1 or more, but is 0"),
        ("patience", "0", "--patience must be a whole number, 1 or more"),
        ("batch-size", "0", "--batch-size must be a whole number, 1 or more"),
        ("hidden", "-3", "--hidden must be a whole number, 1 or more, but is -3"),
        ("max-length", "0", "--max-length must be a whole number, 1 or more, or None"),
        ("limit", "0", "--limit must be a whole number, 1 or more, or None"),
        ("learning-rate", "nan", "--learning-rate must be greater than 0, but is nan"),
        ("decay", "1.5", "--decay must be greater than 0 and at most 1"),
        ("averaging", "1.0", "--averaging must be 0 or more and less than 1"),
        ("averaging", "-0.1", "--averaging must be 0 or more and less than 1"),
        ("word-dropout", "1", "--word-dropout must be 0 or more and less than 1"),
        ("dev-share", "1", "--dev-share must be between 0 and 1"),
        ("seed", "-1", "--seed must be a whole number, 0 or more"),
        ("seed", "1" * 30, "--seed must be a whole number, 0 or more and less than 2**64"),
        ("min-documents", "0", "--min-documents must be a whole number, 1 or more"),
        ("epsilon", "-1", "--epsilon must be greater than 0"),
        ("method", "magic", "unknown method 'magic'"),
    ],
)
def test_settings_out_of_range_are_said_plainly(
    flag: str, value: str, wanted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--train", "x.csv", "--out", str(tmp_path / "run"), f"--{flag}", value]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith(f"wordward: {wanted}")
    assert "tyro" not in shown


@pytest.mark.parametrize("flag", ["streams", "window", "epochs", "held-out-share", "minutes", "clip"])
def test_pretraining_settings_out_of_range(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pretrain", "--texts", "x.txt", "--out", "y", f"--{flag}", "0"]) == 1
    assert capsys.readouterr().err.startswith(f"wordward: --{flag} must be ")


def test_pretraining_reads_files_or_a_corpus(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pretrain", "--out", "lm"]) == 1
    assert "give the texts to read with --texts FILE [FILE ...] (or --corpus NAME)" in capsys.readouterr().err


def test_a_corpus_comes_with_its_labelled_texts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--train", "a.csv", "--dev", "b.csv", "--corpus", "imdb", "--out", "run"]) == 1
    assert "but --train, --dev came with --corpus: leave that out" in capsys.readouterr().err


def test_a_word_for_a_number_names_the_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "--train", "x.csv", "--out", "y", "--epochs", "many"])
    assert "--epochs" in said(capsys)


def test_every_setting_has_help() -> None:
    from dataclasses import fields, is_dataclass

    from tyro._docstrings import get_field_docstring

    from wordward.config.settings import PretrainConfig, TrainConfig

    def unsaid(kind: type) -> list[str]:
        names = []
        for item in fields(kind):
            if is_dataclass(item.default_factory):
                names += unsaid(item.default_factory)  # type: ignore[arg-type]
            elif not get_field_docstring(kind, item.name, ()):
                names.append(item.name)
        return names

    assert unsaid(TrainConfig) + unsaid(PretrainConfig) == []


USAGE = {
    "evaluate": "RUN FILE|dev|test",
    "predict": "RUN [TEXT ...]",
    "explain": "RUN [TEXT ...]",
    "attack": "RUN DATA",
    "report": "RUN",
    "neighbors": "RUN WORD ...",
    "serve": "RUN [RUN2]",
}


@pytest.mark.parametrize("command", ["train", "pretrain", *USAGE])
def test_help_names_what_is_given(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    with pytest.raises(SystemExit):
        main([command, "--help"])
    shown = capsys.readouterr().out
    usage = shown.split("\n\n")[0]
    assert f"] {USAGE.get(command, '')}" in f"{usage} "
    assert "STR" not in usage
    assert "{None" not in shown
    for several in ("[TEXT ...]", "[RUN ...]", "[FILE ...]", "WORD ..."):
        assert not any("(default: )" in line for line in shown.splitlines() if several in line)


def test_none_is_still_taken_for_what_may_be_left_out(csv_file: Path, tmp_path: Path) -> None:
    settings = ["--preset", "None", *SMALL, "--k", "None", "--limit", "None", "--epochs", "1"]
    assert main(["train", "--train", str(csv_file), "--out", str(tmp_path / "run"), *settings]) == 0
    assert load_run(tmp_path / "run").config.perturbation.k is None


def test_help_tells_of_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "--version" in said(capsys)


def test_resume_refuses_settings_but_takes_epochs(
    run: str,
    csv_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    again = ["train", "--out", run, "--resume"]
    assert main([*again, "--epsilon", "3", "--batch-size", "8", "--epochs", "3"]) == 1
    shown = capsys.readouterr().err
    assert "--epsilon, --batch-size came with it" in shown.replace(
        "--batch-size, --epsilon", "--epsilon, --batch-size"
    )
    given = []
    monkeypatch.setattr(
        wordward.train.training, "train", lambda config, out, **how: given.append((config, how)) or RESULT
    )
    assert main([*again, "--epochs", "3", "--device", "cpu", "--quiet"]) == 0
    config, how = given[0]
    assert (config.training.epochs, config.training.device, how["resume"]) == (3, "cpu", True)
    assert main(["pretrain", "--out", run, "--resume", "--streams", "3"]) == 1
    assert "--streams came with it" in capsys.readouterr().err
    kept = load_run(run, device="cpu").config
    assert kept.model.dim != 256 == TrainConfig().model.dim
    capsys.readouterr()
    assert main([*again, "--dim", "256", "--hidden", str(kept.model.hidden)]) == 1
    assert "but --dim came with it" in capsys.readouterr().err
    assert main([*again, *"--criterion auto --refresh auto --quiet".split()]) == 0  # which are left to the run
    (Path(run) / "config.toml").write_text(to_toml(replace(kept, text=replace(kept.text, tokenizer="characters"))))
    assert main([*again, "--tokenizer", "words", "--quiet"]) == 0  # as it was asked for
    assert main([*again, "--tokenizer", "punctuation", "--quiet"]) == 1


RESULT = {"stopped": False, "best_epoch": 2, "criterion": "error", "dev": {"error": 0.125}}


def test_closing_line_and_status_of_a_stopped_run(
    csv_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["train", "--train", str(csv_file), "--out", "some run"]
    monkeypatch.setattr(wordward.train.training, "train", lambda *_, **__: RESULT)
    assert main(arguments) == 0
    wanted = "best epoch 2, dev error 0.1250, in 'some run'; next: wordward evaluate 'some run' FILE"
    assert wanted in said(capsys)
    monkeypatch.setattr(wordward.train.training, "train", lambda *_, **__: RESULT | {"stopped": True, "dev": None})
    assert main(arguments) == 130


@pytest.mark.parametrize("found", [0.0, 0.5])
def test_a_tagger_that_finds_nothing_is_said_to(
    found: float, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = RESULT | {"criterion": "f0.5", "dev": {"f0.5": found}}
    monkeypatch.setattr(wordward.train.training, "train", lambda *_, **__: result)
    assert main(["train", "--train", "tags.conll", "--out", "runs/mine"]) == 0
    assert ("longer training (--patience" in capsys.readouterr().err) is (not found)
    assert main(["train", "--train", "tags.conll", "--out", "runs/mine", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_a_run_begins_with_its_labels_by_name(
    csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = ["--text-column", "0", "--label-column", "1"]
    csv_file.write_text(csv_file.read_text().replace("text,label", "worte,urteil", 1))  # read as a text
    loud = [flag for flag in SMALL if flag != "--quiet"]
    assert main(["train", "--train", str(csv_file), "--out", str(tmp_path / "run"), *columns, *loud]) == 0
    assert "3 labels (bad, good, urteil; with fewer than 3 texts: urteil 1), " in said(capsys)


def test_a_run_begins_with_what_dev_shares_with_train(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [f"a {word} film of {number} acts,{label}" for number in range(8) for word, label in FILMS]
    for name, lines in (("train", texts), ("dev", [*texts[:3], "a strange film,good", "another one,bad"])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    files = ["--train", str(tmp_path / "train.csv"), "--dev", str(tmp_path / "dev.csv")]
    loud = [flag for flag in SMALL if flag != "--quiet"]
    assert main(["train", *files, "--out", str(tmp_path / "run"), *loud]) == 0
    assert "16 texts to learn from, 5 dev (3 of them also among the training texts), 2 labels" in said(capsys)


def test_ctrl_c_is_answered(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(wordward.train.training, "train", interrupted)
    assert main(["train", "--train", "x.csv", "--out", "run"]) == 130
    assert capsys.readouterr().err == "wordward: stopped\n"


def test_pretraining_ends_with_what_to_do_next(
    csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = ["--dim", "10", "--hidden", "10", "--epochs", "1", "--streams", "4", "--device", "cpu"]
    assert main(["pretrain", "--texts", str(csv_file), "--out", str(tmp_path / "lm"), *sizes]) == 0
    assert f"next: wordward train --pretrained {tmp_path / 'lm'}" in said(capsys)


def test_columns_and_format_of_other_files(
    run: str, csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["evaluate", run, str(csv_file), "--json"])
    expected = json.loads(capsys.readouterr().out)["error"]
    other = tmp_path / "other.data"
    other.write_text(csv_file.read_text().replace("text,label", "review,verdict", 1))
    columns = ["--text-column", "review", "--format", "csv"]
    assert main(["evaluate", run, str(other), *columns, "--label-column", "verdict", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["error"] == expected
    assert main(["predict", run, "--file", str(other), *columns]) == 0
    texts = [json.loads(line)["text"] for line in capsys.readouterr().out.splitlines()]
    assert texts == [example.text for example in reviews(120)]
    assert main(["predict", run, "a film", "--file", str(other)]) == 1
    assert "leave one out" in capsys.readouterr().err


def test_tag_column_of_another_file(conll_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "tagger")
    assert main(["train", "--train", str(conll_file), "--out", folder, *SMALL]) == 0
    other = tmp_path / "other.conll"
    lines = conll_file.read_text().split("\n")
    other.write_text("\n".join(line and line + "\tnoun" for line in lines))
    assert main(["evaluate", folder, str(other)]) == 1
    assert main(["evaluate", folder, str(other), "--tag-column", "1"]) == 0
    capsys.readouterr()
    assert main(["predict", folder, "--file", str(other), "--tag-column", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 80


def test_the_tokens_of_a_file_are_tagged_as_they_stand_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A token with a no-break space is one token."""
    rows = [Example(" ".join(words), tokens=words, tags=("O", "B", "O")) for words in TOKENS]
    texts = write_conll(tmp_path / "t.conll", rows)
    run = str(tmp_path / "run")
    assert main(["train", str(texts), "--out", run, "--method", "baseline", *SMALL]) == 0
    assert main(["predict", run, "--file", str(texts), "--quiet"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [tuple(each["token"] for each in record["tokens"]) for record in records] == TOKENS


def test_predicted_tags_are_a_file_that_can_be_evaluated_and_trained_on(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [Example(" ".join(words), tokens=words, tags=("O", "B", "O")) for words in TOKENS]
    texts, tagger = write_conll(tmp_path / "t.conll", rows), str(tmp_path / "tagger")
    assert main(["train", str(texts), "--out", tagger, "--method", "baseline", *SMALL]) == 0
    assert main(["predict", tagger, "--file", str(texts), "--quiet"]) == 0
    given = [json.loads(line)["tokens"] for line in capsys.readouterr().out.splitlines()]
    assert main(["predict", tagger, "--file", str(texts), "--conll", "--quiet"]) == 0
    again = tmp_path / "again.conll"
    again.write_text(capsys.readouterr().out)
    found = list(read(again))
    assert [example.tokens for example in found] == TOKENS
    assert [list(example.tags or ()) for example in found] == [[each["label"] for each in row] for row in given]
    assert main(["evaluate", tagger, str(again), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["classes"].values()
    assert {each["precision"] for each in scores if each["support"]} == {1.0}
    assert main(["predict", tagger, "a cast", " ", "--conll"]) == 1
    shown = capsys.readouterr()
    assert len(shown.out.strip().splitlines()) == 2
    assert "1 of the texts could not be read; they are left out" in shown.err
    assert main(["predict", run, "a film", "--conll"]) == 1
    assert "gives a label to each text" in said(capsys)


def test_answers_before_a_bad_byte_are_kept(
    run: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"the film was dull\r\n\na warm cast\nna\xefve\nthe end\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert main(["predict", run]) == 1
    shown = capsys.readouterr()
    texts = [json.loads(line)["text"] for line in shown.out.splitlines()]
    assert texts == ["the film was dull", "", "a warm cast"]
    assert "standard input, line 4: expected UTF-8" in shown.err


def test_predict_answers_each_line_as_it_comes(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through pipes: the second text is written when the first is answered, or not at all."""
    (texts, write), (read, answers) = os.pipe(), os.pipe()
    answered: list[str] = []

    def ask() -> None:
        with open(write, "w") as sent, open(read) as received:
            patience = threading.Timer(60, sent.close)
            patience.start()
            for text in ("the film was dull", "the cast was warm"):
                sent.write(text + "\n")
                sent.flush()
                answered.append(json.loads(received.readline())["text"])
            patience.cancel()

    with open(texts) as stdin, open(answers, "w") as stdout:
        monkeypatch.setattr("sys.stdin", stdin)
        monkeypatch.setattr("sys.stdout", stdout)
        person = threading.Thread(target=ask)
        person.start()
        assert main(["predict", run, "--device", "cpu"]) == 0
        person.join()
    assert answered == ["the film was dull", "the cast was warm"]


def test_two_toml_files_and_a_preset_in_one(csv_file: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text('preset = "small"\n[model]\nhidden = 9\n[training]\nepochs = 1\nseed = 4\n')
    second.write_text(f"[data]\ntrain = {json.dumps(str(csv_file))}\ntag_column = -1\n[training]\nseed = 5\n")
    files = ["--config", str(first), f"--config={second}"]
    more = ["--device", "cpu", "--quiet", "--method", "advt"]
    assert main(["train", *files, "--out", str(tmp_path / "run"), *more]) == 0
    config = load_run(tmp_path / "run", device="cpu").config
    assert (config.model.dim, config.model.hidden, config.training.seed) == (PRESETS["small"]["dim"], 9, 5)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[data]\nepochs = 3\n", "sets 'epochs' in [data], but it belongs in [training]"),
        ('[data]\nmethod = "advt"\n', "belongs at the top"),
        ('preset = "huge"\n', "known are sec, cac, ged, small"),
        ('out = "runs/x"\n', "only the command line can"),
        ('[data]\ntrain = "-odd.csv"\n', "-odd.csv"),
    ],
)
def test_what_a_toml_file_may_say(text: str, wanted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    toml = tmp_path / "settings.toml"
    toml.write_text(text)
    assert main(["train", "--config", str(toml), "--out", str(tmp_path / "run"), *SMALL]) == 1
    assert wanted in capsys.readouterr().err
