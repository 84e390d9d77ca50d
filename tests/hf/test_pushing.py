"""Models on the hub: the card, what is uploaded to a hub on this machine, and what is said where there is none."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_hub import fake_hub
from hf_tiny import saved
from reviews import reviews, write_csv
from small_training import config as own_config

import wordward.hf
from wordward.cli import main as cli
from wordward.config import DataSettings, TrainConfig, TrainingSettings
from wordward.runs.claiming import held
from wordward.runs.model_card import write_card
from wordward.runs.run_folder import load_config, save_settings
from wordward.support.errors import DataError, RunError, SettingError
from wordward.text.vocabulary import Vocabulary
from wordward.train import train


def wordward_(*arguments: Any) -> int:
    return cli.main([str(each) for each in arguments])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts, a run, and the card of a check of it."""
    folder = tmp_path_factory.mktemp("push")
    saved(folder / "tiny")
    write_csv(folder / "few.csv", reviews(40))
    config = TrainConfig(
        "iadvt",
        transformer=str(folder / "tiny"),
        data=DataSettings(train=str(folder / "few.csv")),
        training=TrainingSettings(epochs=1, device="cpu", learning_rate=0.01),
    )
    train(config, folder / "run", quiet=True)
    flags = ("--edits", "typo", "--budgets", 1, "--limit", 8, "--quiet")
    assert wordward_("check", folder / "run", folder / "few.csv", "--card", folder / "ROBUSTNESS.md", *flags) == 0
    return folder


@pytest.fixture
def run(place: Path, tmp_path: Path) -> Path:
    return shutil.copytree(place / "run", tmp_path / "run")


def metadata(card: str) -> dict[str, Any]:
    _, found, _ = card.split("---\n", 2)
    return yaml.safe_load(found)


class TestCard:
    def test_training_writes_one_beside_the_weights(self, place: Path) -> None:
        card = (place / "run" / "model" / "README.md").read_text()
        assert metadata(card) == {
            "library_name": "transformers",
            "pipeline_tag": "text-classification",
            "tags": ["wordward", "adversarial-training", "iadvt"],
        }
        assert "# run\n" in card
        assert "`bad`, `good`" in card
        assert "| error on 4 held-out texts |" in card
        assert str(place) not in card  # nobody else has that folder

    def test_a_model_of_the_hub_is_named_as_its_base(self, run: Path) -> None:
        config = replace(load_config(run, TrainConfig), transformer="someone/model", method="baseline")
        save_settings(run, config, Vocabulary.load(run / "vocabulary.txt"), ("bad", "good"))
        found = metadata(write_card(run, anew=True).read_text())
        assert (found["base_model"], found["tags"]) == ("someone/model", ["wordward"])

    def test_names_and_labels_are_shown_and_not_read(self, place: Path, tmp_path: Path) -> None:
        run = shutil.copytree(place / "run", tmp_path / "a *good* run")
        config = load_config(run, TrainConfig)
        save_settings(run, config, Vocabulary.load(run / "vocabulary.txt"), ("`![bad](x)`", "good"))
        card = write_card(run, anew=True).read_text()
        assert "# a \\*good\\* run\n" in card
        assert "labels `` `![bad](x)` ``, `good`." in card

    def test_a_check_becomes_a_part_of_it_once(self, place: Path, run: Path) -> None:
        before = (run / "model" / "README.md").read_text()
        check = (place / "ROBUSTNESS.md").read_text()
        write_card(run, check)
        card = write_card(run, check).read_text()
        assert card.startswith(before.rstrip())
        assert card.count("\n## Robustness\n") == 1
        assert "| accuracy |" in card
        assert "| accuracy under 1 edit |" in card
        assert not [line for line in card.split("## Robustness")[1].splitlines() if line.startswith(("# ", "## "))]

    def test_what_was_written_into_it_stays(self, run: Path, place: Path) -> None:
        card = run / "model" / "README.md"
        card.write_text(card.read_text().replace("# run\n", "# run\n\nFor films only.\n"))
        assert "For films only." in write_card(run, (place / "ROBUSTNESS.md").read_text()).read_text()
        with pytest.raises(DataError, match="expected Markdown that `wordward check` wrote"):
            write_card(run, "robust, I swear")

    def test_what_was_written_behind_a_check_stays(self, run: Path, place: Path) -> None:
        check = (place / "ROBUSTNESS.md").read_text()
        card = write_card(run, check)
        card.write_text(card.read_text() + "\n## Limits\nFilms only.\n")
        text = write_card(run, check).read_text()
        assert text.endswith("\n## Limits\nFilms only.\n")
        assert text.count("\n## Robustness\n") == 1

    def test_another_name_on_the_hub_takes_the_place_of_the_first(self, run: Path) -> None:
        write_card(run, repo="me/first")
        text = write_card(run, repo="me/second").read_text()
        assert 'model="me/second")' in text
        assert "me/first" not in text


class TestPush:
    def test_the_hub_has_what_from_pretrained_needs(
        self, place: Path, run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with fake_hub() as hub:
            self.connect(monkeypatch, hub.address, "let-me-in")
            assert wordward_("push", run, "me/mine", "--card", place / "ROBUSTNESS.md", "--private") == 0
            assert f"pushed to {hub.address}/me/mine" in capsys.readouterr().err
            assert "private" in str(hub.repos["me/mine"])  # which versions of the client say in different ways
            kept = {path.name: path.read_bytes() for path in (run / "model").iterdir()}
            assert hub.files == kept
            assert {"model.safetensors", "config.json", "tokenizer.json", "README.md"} <= hub.files.keys()
            card = hub.files["README.md"].decode()
            assert 'model="me/mine"' in card
            assert "## Robustness" in card

    def test_a_refusal_says_how_to_log_in(
        self, run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with fake_hub() as hub:
            self.connect(monkeypatch, hub.address, "wrong")
            assert wordward_("push", run, "me/mine") == 1
            assert hub.asked
        said = capsys.readouterr().err
        assert "hf auth login" in said
        assert "Traceback" not in said

    def test_where_the_hub_cannot_be_reached(
        self, run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.connect(monkeypatch, "http://127.0.0.1:9", "any")
        assert wordward_("push", run, "me/mine") == 1
        said = capsys.readouterr().err
        assert "run the command again where the hub can be reached" in " ".join(said.split())
        assert "Traceback" not in said

    def connect(self, monkeypatch: pytest.MonkeyPatch, address: str, token: str) -> None:
        """What the hub's client has read when it was imported is changed."""
        for name, read in {"ENDPOINT": address, "HF_HUB_OFFLINE": False, "HF_HUB_DISABLE_XET": True}.items():
            monkeypatch.setattr(f"huggingface_hub.constants.{name}", read)
        for name, value in {"HF_TOKEN": token, "NO_PROXY": "127.0.0.1", "HF_HUB_DISABLE_TELEMETRY": "1"}.items():
            monkeypatch.setenv(name, value)

    def test_a_dry_run_uploads_nothing(self, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert wordward_("push", run, "me/mine", "--dry-run") == 0
        said = capsys.readouterr()
        assert "README.md" in said.out
        assert "nothing was uploaded" in said.err

    def test_a_run_that_is_being_trained_is_not_pushed(self, run: Path) -> None:
        before = (run / "model" / "README.md").read_bytes()
        with held(run), pytest.raises(RunError, match=r"another process is training into .*: wait"):
            wordward.hf.push(run, "me/mine", dry_run=True)
        assert (run / "model" / "README.md").read_bytes() == before

    def test_what_cannot_be_pushed_is_refused(self, run: Path, tmp_path: Path, place: Path) -> None:
        for name in ("mine", "a/b/c", "a b/c"):
            with pytest.raises(SettingError, match="owner/name"):
                wordward.hf.push(run, name, dry_run=True)
        with pytest.raises(DataError, match=r"nowhere\.md"):
            wordward.hf.push(run, "me/mine", card=tmp_path / "nowhere.md", dry_run=True)
        train(own_config(place / "few.csv", epochs=1), tmp_path / "own", quiet=True)
        with pytest.raises(RunError, match="a model of wordward's own"):
            wordward.hf.push(tmp_path / "own", "me/mine", dry_run=True)
        shutil.rmtree(run / "model")
        with pytest.raises(RunError, match="holds no model folder"):
            wordward.hf.push(run, "me/mine", dry_run=True)
