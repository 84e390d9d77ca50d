"""The command line, used as a person would."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from reviews import reviews

from wordward.cli import main
from wordward.config import PRESETS, flags, setting_names
from wordward.predict import load_run

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


@pytest.fixture
def run(csv_file: Path, tmp_path: Path) -> str:
    folder = str(tmp_path / "run")
    assert main(["train", "--train", str(csv_file), "--out", folder, *SMALL]) == 0
    return folder


def test_help_needs_no_torch() -> None:
    code = "import sys; sys.argv=['wordward','train','--help']\nfrom wordward.cli import main\n"
    code += "try: main()\nexcept SystemExit: pass\nassert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--epsilon" in done.stdout


def test_version_and_methods(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert main(["methods"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("wordward ")
    assert all(name in shown for name in ("iadvt-best", "random-kl", "eq:adv_approx", "baseline"))


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
    assert records[0]["label"] == max(
        records[0]["probabilities"], key=records[0]["probabilities"].__getitem__
    )


def test_predict_says_what_it_could_not_read(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", run, "the film was dull", "   ", "zyx wvu"]) == 1
    shown = capsys.readouterr()
    first, second, third = (json.loads(line) for line in shown.out.splitlines())
    assert "label" in first
    assert "empty" in second["error"]
    assert "vocabulary" in third["warning"]
    assert "1 of the texts" in shown.err


def test_evaluate_prints_and_gives_json(run: str, csv_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", run, str(csv_file)]) == 0
    assert "95 % interval" in capsys.readouterr().out
    assert main(["evaluate", run, str(csv_file), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["texts"] == 240
    assert record["error"]["low"] <= record["error"]["value"] <= record["error"]["high"]


def test_evaluate_agrees_with_predict(run: str, csv_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["evaluate", run, str(csv_file), "--json"])
    measured = json.loads(capsys.readouterr().out)["error"]["value"]
    examples = reviews(240)
    said = load_run(run, device="cpu").predict([example.text for example in examples])
    wrong = sum(record["label"] != example.label for record, example in zip(said, examples, strict=True))
    assert measured == pytest.approx(wrong / 240)


def test_neighbors(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["neighbors", run, "dull", "--k", "4"]) == 0
    word, _, others = capsys.readouterr().out.partition(":")
    assert word == "dull"
    assert len(others.split(",")) == 4
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
    toml.write_text("epsilon = [unclosed")
    assert main(["train", "--config", str(toml), "--out", str(tmp_path / "run")]) == 1
    assert "not a TOML file" in capsys.readouterr().err


def test_every_setting_has_its_own_name() -> None:
    """One flat name space for flags and TOML: a name that two parts share would be ambiguous."""
    from dataclasses import fields, is_dataclass

    from wordward.config import PretrainConfig, TrainConfig

    for kind in (TrainConfig, PretrainConfig):
        names = [item.name for item in fields(kind) if not is_dataclass(item.default_factory)]
        for item in fields(kind):
            if is_dataclass(item.default_factory):
                names += [inner.name for inner in fields(item.default_factory)]  # type: ignore[arg-type]
        assert len(names) == len(set(names)) == len(setting_names(kind))


def test_presets_name_real_settings(tmp_path: Path) -> None:
    from wordward.config import TrainConfig

    for values in PRESETS.values():
        toml = tmp_path / "preset.toml"
        toml.write_text("".join(f"{name} = {value}\n" for name, value in values.items()))
        assert flags(toml, TrainConfig)


BAD = {
    "missing column": ("words,label\nfine,good\n", "column 'text'"),
    "one class": ("text,label\n" + "fine film,good\n" * 9, "two classes"),
    "empty file": ("", "found none"),
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


def test_wrong_kind_of_folder(
    run: str, csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
        [sys.executable, "-m", "wordward.cli", "--version"],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert done.stdout.startswith("wordward ")
