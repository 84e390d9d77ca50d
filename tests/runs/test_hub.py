"""Folders of strangers: their code is never run, nor are pickles read."""

import io
import json
import shutil
from pathlib import Path

import pytest
import torch
from hf_tiny import saved
from reviews import reviews, write_csv
from safetensors.torch import load_file, save_file

from wordward.cli.main import main
from wordward.runs.hub import known_labels, load_model, load_tokenizer
from wordward.runs.opening import load_run, open_model
from wordward.support.errors import RunError

HOSTILE = "from pathlib import Path\n\nPath({mark!r}).touch()\n\n\nclass Mine:\n    pass\n"
KINDS = ("AutoConfig", "AutoModelForSequenceClassification", "AutoModelForTokenClassification")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a tiny Hugging Face model."""
    place = tmp_path_factory.mktemp("hub")
    saved(place / "tiny")
    write_csv(place / "train.csv", reviews(40))
    given = ["--model", str(place / "tiny"), "--train", str(place / "train.csv"), "--out", str(place / "run")]
    assert main(["train", *given, "--method", "baseline", "--epochs", "1", "--device", "cpu", "--quiet"]) == 0
    return place / "run"


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run, tmp_path / "run"))


def make_hostile(folder: Path, mark: Path) -> None:
    """Have a model's folder name code of its own for its configuration, model and tokenizer."""
    (folder / "mine.py").write_text(HOSTILE.format(mark=str(mark)))
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": dict.fromkeys(KINDS, "mine.Mine")}
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text())
    tokenizer |= {"tokenizer_class": "Mine", "auto_map": {"AutoTokenizer": ["mine.Mine", "mine.Mine"]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))


def test_code_in_a_folder_is_neither_run_nor_asked_about(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = tmp_path / "it ran"
    make_hostile(copy / "model", mark)
    answers = io.TextIOWrapper(io.BytesIO(b"y\ny\ny\ny\ngood film\n"))
    monkeypatch.setattr("sys.stdin", answers)
    assert main(["predict", str(copy), "--device", "cpu"]) == 1
    assert not mark.exists()
    assert answers.readline() == "y\n"  # nothing was asked
    shown, said = capsys.readouterr()
    assert shown == ""
    assert "is Python code that comes with it, which is never run here" in said
    assert "Traceback" not in said


def test_no_way_to_a_folder_runs_its_code(copy: Path, tmp_path: Path) -> None:
    mark, model = tmp_path / "it ran", str(copy / "model")
    make_hostile(copy / "model", mark)
    for tagging in (False, True):
        with pytest.raises(RunError, match="never run here"):
            load_tokenizer(model, tagging=tagging)
        with pytest.raises(RunError, match="never run here"):
            load_model(model, tagging=tagging, labels=("bad", "good"))
    with pytest.raises(RunError, match="never run here"):
        known_labels(model, tagging=False)
    assert not mark.exists()


@pytest.mark.parametrize("stored", ["a pickle", "weights"])
def test_weights_in_a_pickle_are_refused_with_the_way_to_convert_them(
    stored: str, copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, mark = copy / "model", tmp_path / "it ran"
    weights = load_run(copy, device="cpu").model.state_dict()
    (model / "model.safetensors").unlink()

    class Opener:
        def __reduce__(self) -> tuple[object, tuple[Path]]:
            return Path.touch, (mark,)

    torch.save(Opener() if stored == "a pickle" else weights, model / "pytorch_model.bin")
    assert main(["predict", str(copy), "good film", "--device", "cpu"]) == 1
    assert not mark.exists()
    said = capsys.readouterr().err
    assert f"{model} has no weights in safetensors" in said
    assert f"AutoModelForSequenceClassification.from_pretrained('{model}').save_pretrained('{model}')" in said


@pytest.mark.parametrize(
    ("name", "value"),
    [("num_hidden_layers", 10**9), ("hidden_size", 10**6), ("vocab_size", 10**9), ("max_position_embeddings", 10**8)],
)
def test_sizes_that_the_weights_do_not_have_are_refused_at_once(name: str, value: int, copy: Path) -> None:
    file = copy / "model" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {name: value}))
    with pytest.raises(RunError, match=f"are not those of its config.json: .*, but {name} is {value}"):
        load_run(copy, device="cpu")


def test_a_runs_weights_are_all_there(copy: Path) -> None:
    file = copy / "model" / "model.safetensors"
    tensors = load_file(file)
    name = next(name for name in tensors if "attention" in name)
    del tensors[name]
    save_file(tensors, file, {"format": "pt"})
    with pytest.raises(RunError, match=f"{name} is missing or of another shape"):
        load_run(copy, device="cpu")


def test_attention_that_is_code_on_the_hub_is_refused(copy: Path) -> None:
    """transformers would fetch a kernel of that name and load it."""
    file = copy / "model" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"attn_implementation": "someone/attention"}))
    for opened in (copy, copy / "model"):
        with pytest.raises(RunError, match=r"is code on the hub \(someone/attention\), which is never run here"):
            open_model(str(opened), device="cpu")


def test_an_adapter_in_a_pickle_is_refused(copy: Path, tmp_path: Path) -> None:
    model, mark = copy / "model", tmp_path / "it ran"
    (model / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "target_modules": ["query"]}))

    class Opener:
        def __reduce__(self) -> tuple[object, tuple[Path]]:
            return Path.touch, (mark,)

    torch.save(Opener(), model / "adapter_model.bin")
    for opened in (copy, model):
        with pytest.raises(RunError, match=r"the adapter of .* has no weights in safetensors"):
            open_model(str(opened), device="cpu")
    assert not mark.exists()


@pytest.mark.parametrize("value", [3.0, "BertForSequenceClassification", [1], {"a": 1}])
def test_architectures_that_are_no_names_are_told(value: object, copy: Path) -> None:
    file = copy / "model" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"architectures": value}))
    for opens in (lambda: known_labels(str(file.parent), tagging=False), lambda: open_model(str(file.parent))):
        with pytest.raises(RunError, match="cannot be loaded: "):
            opens()


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json"])
def test_what_the_libraries_say_of_a_damaged_file_is_told(name: str, copy: Path) -> None:
    """tokenizers raises plain exceptions, transformers errors of its own."""
    damage = {"post_processor": ""} if name == "tokenizer.json" else {"intermediate_size": []}
    file = copy / "model" / name
    file.write_text(json.dumps(json.loads(file.read_text()) | damage))
    with pytest.raises(RunError, match="cannot be loaded: "):
        load_run(copy, device="cpu")
