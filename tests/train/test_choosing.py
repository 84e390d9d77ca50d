"""Which model is chosen where nothing is said, and what is left alone where something is."""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from any_model import word_vectors
from reviews import BLAME, PRAISE, THINGS, reviews, tagged

import wordward.train.training
from wordward.config.settings import (
    DataSettings,
    FineTuningSettings,
    ModelSettings,
    TextSettings,
    TrainConfig,
    TrainingSettings,
)
from wordward.datasets import Example
from wordward.models import Convolution
from wordward.runs import input_table, run_folder
from wordward.runs.opening import load_run
from wordward.support.errors import SettingError
from wordward.text.loading import labelled_examples
from wordward.train import building, choosing
from wordward.train.choosing import choose, is_open, left_out, with_fine_tuning
from wordward.train.data import prepare
from wordward.train.trainer import Trainer
from wordward.train.training import train, with_model

OPEN = TrainConfig("iadvt", data=DataSettings("reviews.csv"))


@pytest.fixture
def nothing_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "installed_model", lambda: None)


def test_a_folder_in_use_is_refused_before_texts_are_read(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "notes.txt").write_text("mine")
    with pytest.raises(run_folder.RunError, match="exists already"):
        train(replace(OPEN, data=DataSettings(str(tmp_path / "nowhere.csv"))), tmp_path / "kept", quiet=True)


def test_open_only_where_no_model_is_given() -> None:
    assert is_open(OPEN)
    assert is_open(replace(OPEN, training=TrainingSettings(epochs=2), text=TextSettings(lowercase=True)))
    assert is_open(replace(OPEN, model=ModelSettings(kind="convolution")))
    assert is_open(replace(OPEN, model=ModelSettings(kind="spelling")))
    assert not is_open(replace(OPEN, model=ModelSettings(kind="lstm")))
    assert not is_open(replace(OPEN, model=ModelSettings(hidden=8)))
    for size in ("dim", "hidden", "head", "word_dropout", "head_dropout", "rescaled", "pairs"):
        given: Any = {size: getattr(ModelSettings(), size)}
        assert not is_open(replace(OPEN, model=ModelSettings(**given)))
        assert not is_open(replace(OPEN, model=ModelSettings(kind="convolution", **given)))
    assert not is_open(replace(OPEN, pretrained="runs/lm"))
    assert not is_open(replace(OPEN, data=DataSettings(corpus="imdb")))


def test_what_is_given_stays(nothing_at_hand: None) -> None:
    asked = replace(
        OPEN, training=TrainingSettings(epochs=7, learning_rate=0.5), text=TextSettings(tokenizer="whitespace")
    )
    chosen, said = choose(asked, reviews(50), 2, tagging=False)
    assert (chosen.training.epochs, chosen.training.patience, chosen.training.learning_rate) == (7, 7, 0.5)
    assert (chosen.text.tokenizer, chosen.text.lowercase, chosen.text.min_documents) == ("whitespace", True, 1)
    assert (chosen.model.kind, chosen.model.pairs) == ("convolution", True)
    assert "word vectors computed from the texts" in said


def test_what_is_given_stays_though_it_is_the_default(nothing_at_hand: None) -> None:
    text = TextSettings(tokenizer="words", lowercase=False, min_documents=2)
    training = TrainingSettings(schedule="exponential", gradual=False, self_training=False)
    asked = replace(OPEN, method="ivat", text=text, training=training)
    chosen, _ = choose(asked, reviews(50), 2, tagging=False, unlabelled=True)
    assert chosen.text == text
    left = chosen.training
    assert (left.schedule, left.gradual, left.self_training) == ("exponential", False, False)
    assert (chosen.model.kind, left.learning_rate) == ("convolution", 0.002)


@pytest.mark.parametrize("decay", [0.9, TrainingSettings().decay])
def test_where_decay_is_given_the_learning_rate_falls_by_it(decay: float, nothing_at_hand: None) -> None:
    chosen, _ = choose(replace(OPEN, training=TrainingSettings(decay=decay)), reviews(50), 2, tagging=False)
    assert (chosen.training.schedule, chosen.training.decay) == ("exponential", decay)


def test_the_model_is_chosen_for_the_texts_that_are_trained_on(
    nothing_at_hand: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a file whose first texts are of one label, and the labels are those of all."""
    texts, seen = [Example("warm", "good")] * 100 + [Example("cold", f"bad {n}") for n in range(30)], []

    def choose(config: TrainConfig, examples: list[Example], classes: int, **_: Any) -> tuple[TrainConfig, str]:
        seen.append((examples, classes))
        return config, ""

    monkeypatch.setattr(wordward.train.training, "choose", choose)
    config = TrainConfig(data=DataSettings("x.csv", limit=40))
    with_model(config, {"train": texts}, quiet=True)
    learnt, held_out, labels = labelled_examples(config, {"train": texts})
    ((examples, classes),) = seen
    assert Counter(examples) == Counter([*learnt, *held_out])
    assert classes == len(labels) == 31


def test_texts_without_spaces_are_read_by_characters(
    tmp_path: Path, nothing_at_hand: None, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [("茶很好我喜欢", "好"), ("茶很冷我讨厌", "坏")] * 20
    train(TrainConfig("baseline", training=TrainingSettings(epochs=1, device="cpu")), tmp_path / "run", train=texts)
    assert load_run(tmp_path / "run").text.tokenizer == "characters"
    assert "each of their characters is read as a word" in " ".join(capsys.readouterr().err.split())


def test_what_characters_say_in_pairs_is_kept(tmp_path: Path, nothing_at_hand: None) -> None:
    texts = [("茶很好喝", "好"), ("茶很喝好", "坏")] * 20  # of the same characters
    config = TrainConfig("baseline", training=TrainingSettings(epochs=1, device="cpu"))
    train(config, tmp_path / "run", train=texts, quiet=True)
    run = load_run(tmp_path / "run")
    assert [found.label for found in run.predict([text for text, _ in texts[:2]])] == ["好", "坏"]
    assert (run.model.pairs.known >= 0).any()


@pytest.mark.parametrize(
    ("vectors", "unlabelled", "enough", "hiding"),
    [(False, 0, 1_000, False), (True, 0, 1_000, True), (False, 9, 1_000, True), (False, 0, 45, True)],
)
def test_phrases_learn_to_do_without_evidence_only_where_more_than_few_texts_tell_of_words(
    vectors: bool,
    unlabelled: int,
    enough: int,
    hiding: bool,
    tmp_path: Path,
    nothing_at_hand: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(building, "ENOUGH", enough)
    given = str(word_vectors(tmp_path / "vectors.txt")) if vectors else None
    chosen, _ = choose(replace(OPEN, vectors=given), reviews(50), 2, tagging=False)
    texts = {"train": reviews(50)} | ({"unlabelled": reviews(unlabelled)} if unlabelled else {})
    model = building.build(*prepare(chosen, texts, quiet=True))
    assert isinstance(model, Convolution)
    assert model.hiding == hiding
    assert bool(model.head.weight.any()) == hiding  # else they say nothing at first


def test_empty_texts_that_are_left_out_are_counted(
    tmp_path: Path, nothing_at_hand: None, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f'"{example.text}",{example.label}' for example in reviews(40)]
    (tmp_path / "some.csv").write_text("\n".join(["text,label", *rows, ",good", ",bad"]))
    data = DataSettings(str(tmp_path / "some.csv"), skip_empty=True)
    train(TrainConfig("baseline", data=data, training=TrainingSettings(epochs=1, device="cpu")), tmp_path / "run")
    assert "left out 2 empty of 42 texts" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(("texts", "epochs"), [(200, 40), (1_000, 19), (5_000, 8), (100_000, 3)])
def test_many_passes_over_few_texts(texts: int, epochs: int, nothing_at_hand: None) -> None:
    chosen, _ = choose(OPEN, [Example("a warm film", "good")] * texts, 2, tagging=False)
    assert chosen.training.epochs == epochs
    assert chosen.text.min_documents == (1 if texts < 5_000 else 2)
    assert chosen.training.min_candidate_count == (1 if texts < 500 else 2)


@pytest.mark.parametrize(("texts", "epochs"), [(200, 120), (1_000, 57), (5_000, 13), (100_000, 3)])
def test_unlabelled_texts_are_read_for_longer_and_teach(texts: int, epochs: int, nothing_at_hand: None) -> None:
    asked = replace(OPEN, method="ivat")
    chosen, _ = choose(asked, [Example("a warm film", "good")] * texts, 2, tagging=False, unlabelled=True)
    assert (chosen.training.epochs, chosen.training.self_training) == (epochs, True)
    tagger, _ = choose(asked, tagged(40), 2, tagging=True, unlabelled=True)
    assert not tagger.training.self_training


def test_tags_get_the_bi_lstm_and_their_own_case(nothing_at_hand: None) -> None:
    chosen, said = choose(OPEN, tagged(40), 2, tagging=True)
    assert (chosen.model.kind, chosen.model.pairs, chosen.text.lowercase) == ("spelling", False, False)
    assert "a Bi-LSTM beside a linear model" in said
    with pytest.raises(SettingError, match="these have tags"):
        choose(replace(OPEN, model=ModelSettings(kind="convolution")), tagged(40), 2, tagging=True)
    with pytest.raises(SettingError, match="these texts have labels"):
        choose(replace(OPEN, model=ModelSettings(kind="spelling")), reviews(40), 2, tagging=False)


@pytest.mark.parametrize(("texts", "seen"), [(200, 1), (5_000, 1), (20_000, 2)])
def test_of_a_word_with_a_tag_its_spelling_tells_though_it_was_seen_once(
    texts: int, seen: int, nothing_at_hand: None
) -> None:
    chosen, _ = choose(OPEN, tagged(1) * texts, 2, tagging=True)
    assert chosen.text.min_documents == seen


def test_spelling_is_taken_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(choosing, "installed_model", lambda: tmp_path)
    monkeypatch.setattr(choosing, "input_table", lambda folder: (dict.fromkeys(PRAISE + BLAME + THINGS, 0), None))
    monkeypatch.setattr(choosing, "width_of", lambda folder: 6)
    monkeypatch.setattr(choosing, "pick_device", lambda name: torch.device("cuda"))
    monkeypatch.setattr(choosing, "find_spec", lambda name: name)
    monkeypatch.setattr(choosing, "KNOWN", 0.3)
    left, _ = choose(OPEN, tagged(40), 2, tagging=True)
    asked, _ = choose(replace(OPEN, model=ModelSettings(kind="spelling")), tagged(40), 2, tagging=True)
    assert left.transformer == str(tmp_path)
    assert (asked.transformer, asked.model.kind, asked.model.dim) == (None, "spelling", 6)


def named(count: int, letters: str) -> list[Example]:
    """Sentences in which words with a capital are names, a city's if they end in -burg."""
    rng = random.Random(0)
    examples = []
    for _ in range(count):
        person, city = ("".join(rng.choices(letters, k=4)).capitalize() + end for end in ("", "burg"))
        tokens = (person, rng.choice(("met", "saw", "left")), rng.choice(THINGS), "in", city)
        examples.append(Example(" ".join(tokens), tokens=tokens, tags=("B-PER", "O", "O", "O", "B-LOC")))
    return examples


@pytest.mark.parametrize("method", ["baseline", "iadvt"])
def test_names_that_were_never_seen_are_known_by_their_spelling(
    method: str, tmp_path: Path, nothing_at_hand: None
) -> None:
    config = TrainConfig(method, training=TrainingSettings(device="cpu", epochs=6))
    for name in ("one", "two"):
        train(config, tmp_path / name, train=named(60, "abdefgh"), quiet=True)
    first, second = (load_run(tmp_path / name) for name in ("one", "two"))
    assert first.config.model.kind == "spelling"
    for name, value in first.model.state_dict().items():
        assert torch.equal(value, second.model.state_dict()[name]), name
    unseen = named(20, "klmnop")
    assert not any(token in first.vocabulary for example in unseen for token in (example.tokens or ())[::4])
    assert first.evaluate(unseen).scores["entity_f1"].value > 0.9
    tags = [token.label for token in first.predict(["in Kolmburg Momo saw music"])[0].tokens or ()]
    assert tags == ["O", "B-LOC", "B-PER", "O", "O"]
    assert int(first.ordinary().max()) == first.vocabulary.plain - 1 < len(first.vocabulary) - 1  # no form is a word


def test_of_our_own_taggers_none_learns_by_self_training(tmp_path: Path, nothing_at_hand: None) -> None:
    config = TrainConfig("ivat", training=TrainingSettings(device="cpu", epochs=1, self_training=True))
    with pytest.raises(SettingError, match="of taggers only a Hugging Face model learns by `self_training`"):
        train(config, tmp_path / "run", train=tagged(40), quiet=True)


def test_a_tagger_stopped_and_resumed_is_the_one_never_stopped(tmp_path: Path, nothing_at_hand: None) -> None:
    config = TrainConfig("iadvt", training=TrainingSettings(device="cpu", epochs=2))
    train(config, tmp_path / "whole", train=named(40, "abdefgh"), quiet=True)
    closed = Trainer._close_epoch

    def stop(self: Trainer) -> None:
        closed(self)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "_close_epoch", stop)
        assert train(config, tmp_path / "cut", train=named(40, "abdefgh"), quiet=True)["stopped"]
    train(TrainConfig(), tmp_path / "cut", train=named(40, "abdefgh"), resume=True, quiet=True)
    whole, cut = (load_run(tmp_path / name).model.state_dict() for name in ("whole", "cut"))
    for name, value in whole.items():
        assert torch.equal(value, cut[name]), name


def test_a_kind_that_does_not_fit_the_task_is_refused_with_sizes_too(tmp_path: Path) -> None:
    quick = TrainingSettings(device="cpu", epochs=1)
    for kind, texts, reason in (("spelling", reviews(20), "have labels"), ("convolution", tagged(20), "have tags")):
        sized = TrainConfig("baseline", model=ModelSettings(kind=kind, dim=8, hidden=8), training=quick)  # type: ignore[arg-type]
        with pytest.raises(SettingError, match=reason):
            train(sized, tmp_path / kind, train=texts, quiet=True)


def test_a_table_of_another_language_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = {"a": 0, "warm": 1, "film": 2, "was": 3}
    monkeypatch.setattr(choosing, "installed_model", lambda: tmp_path)
    monkeypatch.setattr(choosing, "input_table", lambda folder: (known, None))
    monkeypatch.setattr(choosing, "_transformer_suits", lambda *rest: True)
    english, _ = choose(OPEN, [Example("A warm film", "good")], 2, tagging=False)
    german, _ = choose(replace(OPEN), [Example("Das war ein schöner Film", "gut")], 2, tagging=False)
    assert english.transformer == str(tmp_path)
    assert (german.transformer, german.vectors, german.model.kind) == (None, None, "convolution")


def test_a_transformer_on_a_cpu_only_if_it_takes_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = replace(OPEN, training=TrainingSettings(device="cpu"))
    short, long = [["word"] * 20], [["word"] * 120]
    assert choosing._transformer_suits(asked, 200, 14, short)
    assert not choosing._transformer_suits(asked, 20_000, 3, long)
    assert not choosing._transformer_suits(replace(asked, text=TextSettings(lowercase=True)), 200, 14, short)
    for text in (TextSettings(tokenizer="words"), TextSettings(min_documents=2)):
        assert not choosing._transformer_suits(replace(asked, text=text), 200, 14, short)
    for ours in ({"averaging": 0.9}, {"averaging": 0.0}, {"decay": 0.9998}, {"schedule": "exponential"}):
        given = TrainingSettings(device="cpu", **ours)  # type: ignore[arg-type]
        assert not choosing._transformer_suits(replace(asked, training=given), 200, 14, short)
    monkeypatch.setenv("WORLD_SIZE", "2")  # which one run of a Transformer does not take
    assert not choosing._transformer_suits(asked, 200, 14, short)


@pytest.fixture
def transformer_at_hand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setattr(choosing, "installed_model", lambda: tmp_path)
    monkeypatch.setattr(choosing, "input_table", lambda folder: (dict.fromkeys("the film was warm".split(), 0), None))
    monkeypatch.setattr(choosing, "width_of", lambda folder: 8)
    monkeypatch.setattr(choosing, "cores", lambda: 2)
    return str(tmp_path)


@pytest.mark.parametrize(
    ("method", "unlabelled", "expected"),
    [
        *[("ivat", True, (28, True)), ("iadvt+vat", True, (28, True)), ("ivat", False, (14, False))],
        *[("iadvt", True, (14, False)), ("baseline", True, (14, False))],
    ],
)
def test_a_transformer_reads_unlabelled_texts_in_as_many_epochs_again(
    method: str, unlabelled: bool, expected: tuple[int, bool], transformer_at_hand: str
) -> None:
    """Whether it is affordable is asked of the epochs that a baseline takes."""
    asked = replace(OPEN, method=method, training=TrainingSettings(device="cpu"))
    texts = [Example("the film was warm " * 15, "good")] * 200  # twice as many epochs would be too long
    chosen, _ = choose(asked, texts, 2, tagging=False, unlabelled=unlabelled)
    assert chosen.transformer == transformer_at_hand
    assert (chosen.training.epochs, chosen.training.self_training) == expected
    assert chosen.training.patience == expected[0]
    alone = replace(asked, training=TrainingSettings(device="cpu", self_training=False))
    left, _ = choose(alone, texts, 2, tagging=False, unlabelled=unlabelled)
    assert (left.training.epochs, left.training.self_training) == (14, False)


def test_a_transformer_for_tags_whatever_their_number_and_for_up_to_twenty_labels(transformer_at_hand: str) -> None:
    asked = replace(OPEN, training=TrainingSettings(device="cpu"))
    sentences = [Example("the film was warm", tokens=("the", "film", "was", "warm"), tags=("O", "B", "O", "O"))] * 200
    tagger, said = choose(replace(asked, method="baseline"), sentences, 50, tagging=True)
    assert (tagger.transformer, tagger.training.learning_rate) == (transformer_at_hand, 2e-4)
    assert said.startswith("chosen: the Transformer of")
    texts = [Example("the film was warm", "good")] * 200
    assert choose(asked, texts, 20, tagging=False)[0].transformer == transformer_at_hand
    assert choose(asked, texts, 21, tagging=False)[0].model.kind == "convolution"
    own = replace(asked, model=ModelSettings(kind="convolution"))
    assert choose(own, texts, 2, tagging=False)[0].transformer is None


@pytest.mark.parametrize(
    ("texts", "classes", "tagging", "width", "expected"),
    [
        *[(400, 2, False, 384, (10, 1e-4)), (100, 2, False, 512, (15, 1e-4)), (10_000, 2, False, 384, (3, 1e-4))],
        *[(400, 2, False, 768, (10, 2e-5)), (400, 2, False, None, (10, 2e-5)), (400, 50, False, 384, (20, 2e-4))],
        *[(400, 50, False, 1024, (20, 4e-5)), (400, 9, True, 384, (16, 2e-4)), (400, 9, True, 768, (16, 4e-5))],
    ],
)
def test_a_transformer_that_is_given_learns_as_long_as_suits_its_texts_and_as_fast_as_its_size_allows(
    texts: int, classes: int, tagging: bool, width: int | None, expected: tuple[int, float]
) -> None:
    asked = replace(OPEN, transformer="some")
    sizes: Any = {"texts": texts, "classes": classes, "tagging": tagging, "width": width}
    chosen, said = with_fine_tuning(asked, **sizes, keeps_labels=False)
    epochs, rate = expected
    training = chosen.training
    assert (training.epochs, training.patience, training.learning_rate) == (epochs, epochs, rate)
    assert said == f"chosen: {epochs} epochs, learning rate {rate:g}; `epochs` and `learning_rate` change that"
    halves = replace(asked, method="ivat", training=TrainingSettings(self_training=True))
    assert with_fine_tuning(halves, **sizes, keeps_labels=False)[0].training.epochs == 2 * epochs
    again, said = with_fine_tuning(chosen, **sizes, keeps_labels=True)  # as where a run is resumed
    assert again.training == training
    assert said is None


@pytest.mark.parametrize(("width", "tagging", "rate"), [(384, False, 1e-3), (384, True, 1e-3), (1024, False, 2e-4)])
def test_with_lora_a_transformer_learns_faster(width: int, tagging: bool, rate: float) -> None:
    asked = TrainConfig(transformer="some", finetuning=FineTuningSettings(lora=8))
    sizes: Any = {"texts": 400, "classes": 2, "tagging": tagging, "width": width}
    found = [with_fine_tuning(asked, **sizes, keeps_labels=kept)[0].training.learning_rate for kept in (False, True)]
    assert found == pytest.approx([rate, 2e-5])


def test_of_a_transformer_what_is_given_stays_and_its_own_labels_are_learnt_no_longer_than_before() -> None:
    asked = replace(OPEN, transformer="some", training=TrainingSettings(epochs=7))
    sizes: Any = {"texts": 400, "classes": 2, "tagging": False, "width": 384}
    chosen, said = with_fine_tuning(asked, **sizes, keeps_labels=False)
    assert (chosen.training.epochs, chosen.training.patience, chosen.training.learning_rate) == (7, 7, 1e-4)
    assert said == "chosen: learning rate 0.0001; `learning_rate` changes that"
    kept, said = with_fine_tuning(replace(OPEN, transformer="some"), **sizes, keeps_labels=True)
    assert (kept.training.epochs, kept.training.learning_rate) == (3, 2e-5)
    assert str(said).startswith("chosen: 3 epochs, learning rate 2e-05 for a classifier that keeps its labels; ")


@pytest.mark.parametrize(("texts", "epochs"), [(50, 28), (200, 28), (400, 16), (1_000, 6), (5_000, 3)])
@pytest.mark.parametrize(("method", "halves"), [("baseline", False), ("iadvt", False), ("ivat", True)])
def test_a_transformer_reads_few_tagged_sentences_for_longer_and_in_halves_with_a_kl_method(
    texts: int, epochs: int, method: str, halves: bool, transformer_at_hand: str
) -> None:
    asked = replace(OPEN, method=method, training=TrainingSettings(device="cpu"))
    sentence = Example("the film was warm", tokens=("the", "film", "was", "warm"), tags=("O", "B", "O", "O"))
    tagger, _ = choose(asked, [sentence] * texts, 2, tagging=True)
    assert tagger.transformer == transformer_at_hand
    assert (tagger.training.epochs, tagger.training.self_training) == (epochs * (2 if halves else 1), halves)


@pytest.mark.parametrize("method", ["baseline", "iadvt"])
def test_a_run_with_nothing_said_learns_and_is_the_same_again(
    method: str, tmp_path: Path, nothing_at_hand: None
) -> None:
    config = TrainConfig(method, training=TrainingSettings(device="cpu", epochs=4))
    results = [train(config, tmp_path / name, train=reviews(120), quiet=True) for name in ("one", "two")]
    assert results[0]["dev"]["error"] < 0.1
    first, second = (load_run(tmp_path / name) for name in ("one", "two"))
    for name, value in first.model.state_dict().items():
        assert torch.equal(value, second.model.state_dict()[name]), name
    settled = run_folder.load_config(tmp_path / "one", TrainConfig)
    assert (settled.model.kind, settled.training.schedule, settled.training.gradual) == (
        "convolution",
        "linear",
        True,
    )
    assert first.predict(["the film was warm and lovely"])[0].label == "good"


@pytest.mark.parametrize("more", [{}, {"unlabelled": [example.text for example in reviews(60)]}])
def test_a_run_stopped_and_resumed_is_the_one_never_stopped(
    more: dict[str, Any], tmp_path: Path, nothing_at_hand: None
) -> None:
    texts, method = reviews(80), "ivat" if more else "iadvt"
    config = TrainConfig(method, training=TrainingSettings(device="cpu", epochs=3, checkpoint_steps=1))
    train(config, tmp_path / "whole", train=texts, quiet=True, **more)
    assert load_run(tmp_path / "whole").config.training.self_training is bool(more)
    steps, saved = [0], Trainer.save

    def save(self: Trainer, written: bool = True) -> None:
        saved(self, written)
        steps[0] += 1
        if steps[0] == 5:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "save", save)
        assert train(config, tmp_path / "cut", train=texts, quiet=True, **more)["stopped"]
    train(TrainConfig(), tmp_path / "cut", train=texts, resume=True, quiet=True, **more)
    whole, cut = (load_run(tmp_path / name).model.state_dict() for name in ("whole", "cut"))
    assert run_folder.read_metrics(tmp_path / "cut")[-1]["epoch"] == 3
    for name, value in whole.items():
        assert torch.equal(value, cut[name]), name


def test_pretrained_needs_an_lstm() -> None:
    for kind in ("convolution", "spelling"):
        with pytest.raises(SettingError, match=f"kind is {kind}"):
            TrainConfig(pretrained="runs/lm", model=ModelSettings(kind=kind))


def test_pieces_of_a_word_are_the_longest_first() -> None:
    pieces = {piece: at for at, piece in enumerate(("film", "fil", "##s", "##m", "warm", "##ly"))}
    assert input_table.pieces_of("films", pieces) == [0, 2]
    assert input_table.pieces_of("warmly", pieces) == [4, 5]
    assert input_table.pieces_of("filz", pieces) == []


def test_of_epochs_that_are_equal_but_for_chance_the_last_is_kept(tmp_path: Path, nothing_at_hand: None) -> None:
    config = TrainConfig("baseline", training=TrainingSettings(device="cpu", epochs=4, schedule="linear"))
    result = train(config, tmp_path / "run", train=reviews(60), quiet=True)
    errors = [line["dev"]["error"] for line in run_folder.read_metrics(tmp_path / "run")]
    assert errors[-1] == min(errors)
    assert result["best_epoch"] == 4
    assert result["dev"]["error"] == errors[-1]


def test_a_transformer_at_hand_is_left_out_unless_what_was_asked_rules_it_out(transformer_at_hand: str) -> None:
    asked = replace(OPEN, training=TrainingSettings(device="cpu"))
    slow, taken = replace(asked, vectors=transformer_at_hand), replace(asked, transformer=transformer_at_hand)
    convolution, tagger = (replace(slow, model=ModelSettings(kind=kind)) for kind in ("convolution", "spelling"))
    assert left_out(asked, convolution)
    assert left_out(asked, tagger)
    assert not left_out(asked, taken)
    assert not left_out(asked, replace(convolution, vectors=None))  # texts of another language
    for given in (
        replace(asked, model=ModelSettings(kind="convolution")),
        replace(asked, vectors=transformer_at_hand),
        replace(asked, text=TextSettings(lowercase=True)),
    ):
        assert not left_out(given, convolution)
