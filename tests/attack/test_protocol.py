"""The published protocol: its search, its candidates, and the table of models."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from any_model import Guard, good, word_vectors
from reviews import reviews, write_csv

import wordward
from wordward.attack import YardstickSettings, standard, wordnet, yardsticks
from wordward.attack.counter_fitting import counter_fitted
from wordward.attack.greedy import TOGETHER, Ask, Compare, Outcome, Words, greedy, together
from wordward.attack.ngrams import NGrams, split
from wordward.attack.protocol import fitted_temperature, softmax
from wordward.attack.protocol_tables import accuracy_table, cost_table
from wordward.attack.textattack import probabilities
from wordward.attack.wordnet import Relations
from wordward.cli.main import main
from wordward.datasets import Example
from wordward.support.errors import DataError, MissingExtraError, SettingError

ALONE = YardstickSettings(similarity_model="none", max_share=1.0)
TEXT = "so warm , and funny !"


def answered(search: Any, probability: Any, alike: Any = lambda one, other: 1.0) -> tuple[Any, list[str]]:
    """The outcome of a search on a function from text to the probability of label 1, and what it asked for."""
    asked, answer = [], None
    while True:
        try:
            request = search.send(answer)
        except StopIteration as end:
            return end.value, asked
        if isinstance(request, Ask):
            asked += request.texts
            answer = [np.array([1 - probability(text), probability(text)]) for text in request.texts]
        else:
            assert isinstance(request, Compare)
            answer = [alike(*pair) for pair in request.pairs]


def by_word(new: dict[str, Sequence[str]], text: str = TEXT) -> list[Sequence[str]]:
    return [new.get(word, ()) for word in Words.of(text).words]


class TestWords:
    @pytest.mark.parametrize("text", ["", "...", "A film, isn’t it?  (yes)\n", "two words"])
    def test_are_the_text(self, text: str):
        assert Words.of(text).text == text

    def test_around(self):
        words = Words.of("a b, c d e f g")
        assert words.around(3, 3) == "c d e"
        assert words.around(0, 5) == "a b, c"
        assert words.put(2, "x y").around(1, 3) == "a b, x y"

    def test_without(self):
        assert [Words.of("a b, c").without(at) for at in range(3)] == [" b, c", "a, c", "a b,"]


class TestGreedy:
    def test_the_word_that_matters_most_comes_first(self):
        def probability(text: str) -> float:
            return 0.2 + 0.5 * ("funny" in text) + 0.2 * ("warm" in text)

        new = by_word({"warm": ["cold"], "funny": ["sad", "grim"]})
        outcome, asked = answered(greedy(TEXT, 1, new, ALONE), probability)
        assert asked == [TEXT, "so , and funny !", "so warm , and !", "so warm , and sad !", "so warm , and grim !"]
        assert (outcome.outcome, outcome.text, outcome.changed) == ("flipped", "so warm , and sad !", 1)
        assert (outcome.words, outcome.queries) == (4, len(asked))

    def test_of_those_that_flip_the_most_alike_is_taken(self):
        new = by_word({"funny": ["sad", "grim", "droll"]})
        outcome, _ = answered(
            greedy(TEXT, 1, new, YardstickSettings(max_share=1.0)),
            lambda text: 0.9 * ("funny" in text or "droll" in text),
            lambda one, other: 0.9 + 0.05 * ("grim" in other),
        )
        assert outcome.text == "so warm , and grim !"

    def test_what_is_not_alike_is_never_asked_for(self):
        new = by_word({"funny": ["sad", "grim"]})
        outcome, asked = answered(
            greedy(TEXT, 1, new, YardstickSettings(max_share=1.0)),
            lambda text: 0.9 * ("grim" not in text),
            lambda one, other: 0.83 if "grim" in other else 0.84,
        )
        assert outcome.outcome == "kept"
        assert not any("grim" in text for text in asked)

    @pytest.mark.parametrize(("share", "outcome"), [(0.24, "kept"), (0.25, "kept"), (0.5, "flipped")])
    def test_no_more_words_than_allowed(self, share: float, outcome: str):
        new = by_word({"warm": ["cold"], "funny": ["sad"]})
        settings = YardstickSettings(similarity_model="none", max_share=share)
        found, asked = answered(
            greedy(TEXT, 1, new, settings), lambda text: 0.8 - 0.2 * ("cold" in text) - 0.2 * ("sad" in text)
        )
        assert found.outcome == outcome
        assert found.changed == int(share * 4)
        assert len(asked) == found.queries

    def test_no_more_queries_than_allowed(self):
        new = by_word({"warm": [f"x{n}" for n in range(30)], "funny": [f"y{n}" for n in range(30)]})
        settings = YardstickSettings(similarity_model="none", max_share=1.0, queries=3)
        found, asked = answered(greedy(TEXT, 1, new, settings), lambda text: 0.9)
        assert found.queries == len(asked) == 12

    def test_a_text_predicted_wrongly_is_left_alone(self):
        found, asked = answered(greedy(TEXT, 1, by_word({"warm": ["cold"]}), ALONE), lambda text: 0.1)
        assert (found.outcome, found.text, asked) == ("wrong", TEXT, [TEXT])

    def test_a_text_that_cannot_be_read_is_no_flip(self):
        new = by_word({"warm": ["zz"]})
        found, _ = answered(greedy(TEXT, 1, new, ALONE), lambda text: math.nan if "zz" in text else 0.9)
        assert (found.outcome, found.text) == ("kept", TEXT)


@pytest.mark.parametrize("count", [0, 1, 31, 100])
def test_side_by_side_is_as_one_by_one(count: int):
    """In their order, whatever each takes; never more than so many have begun and not ended."""
    begun: list[int] = []

    def one(number: int) -> Any:
        begun.append(number)
        for step in range(number * 7 % 5):
            told = (yield Ask([f"{number} {step}"])) if step % 2 else (yield Compare([(f"{number}", f"{step}")] * 2))
            assert told == ([f"{number} {step}!"] if step % 2 else [number + step] * 2)
        return Outcome("kept", str(number), 0, 1, number)

    largest: list[int] = []

    def ask(texts: list[str]) -> Any:
        largest.append(len(texts))
        return [f"{text}!" for text in texts]

    found = list(together(map(one, range(count)), ask, lambda pairs: [int(a) + int(b) for a, b in pairs]))
    assert [outcome.queries for outcome in found] == begun == list(range(count))
    assert not count > TOGETHER or 1 < max(largest) <= TOGETHER


SYNSETS = {
    "noun": "",
    "verb": "",
    "adv": "",
    "adj": """  1 a licence
00000100 00 a 02 warm 0 heated(p) 0 002 & 00000300 s 0000 ! 00000200 a 0101 | "so | warm"
00000200 00 a 01 Cold 0 002 ! 00000100 a 0101 & 00000400 s 0000 | x
00000300 00 s 02 cosy 0 snug_as 0 001 & 00000100 a 0000 | x
00000400 00 s 01 icy 0 001 & 00000200 a 0000 | x
00000500 00 a 02 warm 0 angry 0 000 | a rare sense

""",
}
SENSES = """  1 a licence
warm a 4 2 & ! 4 0 00000100 00000601 00000602 00000500
heated a 1 2 & ! 1 0 00000100
cold a 1 2 & ! 1 0 00000200
cosy a 1 1 & 1 0 00000300
icy a 1 1 & 1 0 00000400
angry a 1 0 1 0 00000500
"""


def test_wordnet_as_its_files_have_it(tmp_path: Path):
    for name, text in SYNSETS.items():
        (tmp_path / f"data.{name}").write_text(text, encoding="utf-8")
        (tmp_path / f"index.{name}").write_text(SENSES if name == "adj" else "", encoding="utf-8")
    found = wordnet.relations(tmp_path)
    assert found.synonyms == {("heated", "warm")}  # not angry, of a fourth sense
    clusters = {(a, b) for a in ("warm", "heated", "cosy") for b in ("cold", "icy")}
    assert found.antonyms == {tuple(sorted(pair)) for pair in clusters}
    assert found.opposite("warm", "icy")
    assert found.opposite("icy", "warm")
    (tmp_path / "data.adj").write_text("00000100 00 a\n", encoding="utf-8")
    wordnet.relations.cache_clear()
    with pytest.raises(DataError, match=r"WordNet's index.adj and data.adj"):
        wordnet.relations(tmp_path)


def test_wordnet_is_needed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(wordnet, "find_spec", lambda name: None)
    wordnet.relations.cache_clear()
    with pytest.raises(MissingExtraError, match=r"wordward\[yardsticks\]"):
        wordnet.relations()


def test_the_setting_of_vectors_is_named_where_there_are_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("wordward.attack.near_words.installed_model", lambda: None)
    monkeypatch.setattr(standard, "relations", lambda: Relations(frozenset(), frozenset()))
    with pytest.raises(SettingError, match="`vectors`") as refused:
        standard.near_words.__wrapped__("auto")
    assert refused.value.name == "vectors"


def test_counter_fitting_draws_synonyms_together_and_antonyms_apart():
    rng = np.random.default_rng(0)
    words = ["good", "fine", "bad", "goods", "fines", "odd", "far"]
    table = rng.normal(size=(len(words), 8)) + 1.5 * rng.normal(size=8)
    table[6] = -table[1]
    fitted = counter_fitted(
        words, table, Relations(frozenset({("fine", "good"), ("far", "good")}), frozenset({("bad", "good")}))
    )
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    np.testing.assert_allclose(np.linalg.norm(fitted, axis=1), 1, rtol=1e-5)
    before, after = unit @ unit.T, fitted @ fitted.T
    assert after[0, 1] > before[0, 1] + 0.02
    assert after[3, 4] > before[3, 4] + 0.02  # inflected alike
    assert after[0, 2] < before[0, 2] - 0.1
    np.testing.assert_allclose(fitted[5], unit[5], atol=1e-5)  # in no pair
    np.testing.assert_allclose(fitted[6], unit[6], atol=1e-5)  # too far from its synonym to mean the same


class TestCandidates:
    def test_textbugger_edits_letters(self):
        assert standard.bugs("funny") == ["fu nny", "fnuny", "funy", "funn\u0443"]
        assert standard.bugs("dull") == ["du ll", "dlul", "dul"]
        assert standard.bugs("it") == ["\u0456t"]

    def test_nearest_words_written_as_the_old(self, tmp_path: Path):
        near = standard.CounterFitted(str(word_vectors(tmp_path / "vectors.txt")), None)
        (found,) = standard.textfooler(near, 50)(["The Warm film was FUNNY"])
        assert found == [[], ["Dull"], [], [], ["COLD"]]
        (found,) = standard.textbugger(near, 50)(["warm"])
        assert found == [[*standard.bugs("warm"), "dull"]]

    def test_words_of_a_language_model_but_for_antonyms(self):
        texts = ["the film was dull", "the film was bright", "the film was warm", "a film was the end", "it was cold"]
        model = NGrams([split(text) for text in texts * 2])
        opposite = Relations(frozenset(), frozenset({("bright", "warm")}))
        ranked = model.likeliest(["the", "film", "was"], [], 10)
        assert set(ranked[:3]) == {"dull", "bright", "warm"}
        assert set(ranked) == {"dull", "bright", "warm", "cold", "the", "end"}
        (found,) = standard.bert_attack(model, opposite, 2)(["the film was Warm"])
        assert found[3] == ["Dull", "Cold"]
        assert found[0] == found[2] == []  # words of grammar stay


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_the_temperature_is_that_of_the_labels(temperature: float):
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(20_000, 3))
    labels = np.array([rng.choice(3, p=row) for row in softmax(logits)])
    logits = np.concatenate([logits * temperature, [[np.nan] * 3]])
    assert fitted_temperature(logits, np.append(labels, 0)) == pytest.approx(temperature, rel=0.05)


@pytest.fixture
def settings(tmp_path: Path) -> YardstickSettings:
    vectors = str(word_vectors(tmp_path / "vectors.txt"))
    return YardstickSettings(("textfooler", "textbugger"), vectors=vectors, similarity_model="none")


def test_a_table_of_models(settings: YardstickSettings):
    texts = reviews(40)
    flat = wordward.open_model(lambda texts: [[0.2, 0.8] for _ in texts], labels=("bad", "good"))
    rows = yardsticks([wordward.open_model(Guard()), flat], texts, settings, held_out=reviews(60, seed=2))
    assert [(row.attack, row.calibrated) for row in rows[:4]] == [("textfooler", False), ("textfooler", True)] * 2
    guard, firm = rows[0], rows[2]
    assert guard.clean.value == 1.0
    assert guard.success is not None
    assert guard.under_attack.value == pytest.approx(1 - guard.success.value)
    for example, outcome in zip(texts, guard.outcomes, strict=True):
        flipped = (good(outcome.text) > 0.5) != (example.label == "good")
        assert flipped == (outcome.outcome == "flipped")
        assert outcome.changed <= 0.3 * outcome.words
    assert guard.success.value > 0.3
    assert firm.clean.value == firm.under_attack.value == sum(text.label == "good" for text in texts) / 40
    assert firm.success is not None
    assert firm.success.value == 0.0
    assert rows[1].temperature != 1.0
    assert rows[1].outcomes == rows[0].outcomes  # of two labels, unless precision hides what a change does
    assert "TextBugger-style, calibrated" in accuracy_table(rows)
    assert len(cost_table(rows).splitlines()) == 2 + len(rows)


def test_a_sure_model_hides_its_weakness_from_a_raw_attack(settings: YardstickSettings):
    """Its probabilities are 1 in single precision whatever one word is changed to; calibrated they are not."""

    class Sure(Guard):
        def __call__(self, texts: Sequence[str]) -> Any:
            return softmax(8 * np.log(np.array(super().__call__(texts))))

    texts = [Example("a warm film , a funny cast and a lovely clever ending", "good")]
    wrong = [Example("the film was dull", label) for label in ("good", "bad", "bad")] * 20
    raw, calibrated = yardsticks(
        [wordward.open_model(Sure())],
        texts,
        YardstickSettings(("textfooler",), vectors=settings.vectors, similarity_model="none", max_share=0.4),
        held_out=wrong,
    )
    assert raw.outcomes[0].changed == 0
    assert calibrated.temperature > 10
    assert calibrated.outcomes[0].outcome == "flipped"


def test_the_command(tmp_path: Path, settings: YardstickSettings, capsys: pytest.CaptureFixture[str]):
    file, out = write_csv(tmp_path / "texts.csv", reviews(80)), tmp_path / "out.jsonl"
    arguments = ["yardsticks", "any_model:Guard", str(file), "--limit", "20", "--attacks", "textbugger", "--quiet"]
    arguments += ["--similarity-model", "none", "--vectors", settings.vectors, "--out", str(out)]
    assert main([*arguments, "--json"]) == 0
    raw, calibrated = json.loads(capsys.readouterr().out)
    assert (raw["calibrated"], calibrated["calibrated"]) == (False, True)  # on the 60 texts that are not attacked
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 40
    flipped = sum(line["outcome"] == "flipped" for line in lines[:20])
    assert raw["under_attack"]["value"] == pytest.approx(1 - flipped / 20)
    assert main(arguments) == 0
    assert "TextBugger-style, calibrated" in capsys.readouterr().out
    assert main(["yardsticks", "any_model:Guard"]) == 1


def test_a_function_is_asked_anew_and_reads_symbols(settings: YardstickSettings):
    class Learning:
        labels, likely = ("bad", "good"), 0.9

        def __call__(self, texts: list[str]) -> Any:
            return [[1 - self.likely, self.likely]] * len(texts)

    function = Learning()
    run, texts = wordward.open_model(function), [Example("the film was warm", "good"), Example("😀😀", "good")]
    for likely, right in ((0.9, 1.0), (0.1, 0.0), (0.9, 1.0)):
        function.likely = likely
        assert all(found.clean.value == right for found in yardsticks([run], texts, settings))
        function.likely = 1 - likely
        np.testing.assert_allclose(probabilities(run, ["😀😀"]), [[likely, 1 - likely]], atol=1e-6)


def test_refuses_what_cannot_be_measured(settings: YardstickSettings):
    run = wordward.open_model(Guard())
    with pytest.raises(DataError, match="one of bad, good; got 'great'"):
        yardsticks([run], [Example("a film", "great")], settings)
    with pytest.raises(DataError, match="there are none"):
        yardsticks([run], [], settings)
    with pytest.raises(SettingError, match="bert-attack needs a language model"):
        yardsticks([run], reviews(2), YardstickSettings(("bert-attack",), similarity_model="none"))
    with pytest.raises(SettingError, match="attacks must be among"):
        YardstickSettings(("pwws",))
