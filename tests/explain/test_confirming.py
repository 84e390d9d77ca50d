"""Of the strongest pulls the model is asked, with each word put in, which tells most against the label."""

from pathlib import Path

import numpy as np
import pytest
import torch
from untrained import MODEL

from wordward.config.settings import MethodSettings, TrainConfig
from wordward.explain import confirming
from wordward.explain.confirming import Answer, Question, Telling, telling_pulls
from wordward.explain.explanation import Explanation
from wordward.explain.filtering import Sensible
from wordward.explain.places import PlaceMaker
from wordward.explain.pulls import TextPulls
from wordward.explain.wording import effect, marked
from wordward.runs.evidence import evidence_in
from wordward.runs.fingerprint import fingerprint
from wordward.runs.reading import Reading, Row, Words
from wordward.runs.run import Run
from wordward.runs.word_run import WordRun
from wordward.runs.word_space import WordSpace
from wordward.text.vocabulary import SPECIALS, Vocabulary

WORDS = "match goal striker engine gearbox motor soup spoon flour".split()
SPORT, CARS, FOOD = range(3)


class Bag(torch.nn.Module):
    """The logits of a text are the sums over its words, whose numbers are given."""

    def __init__(self, says: dict[str, tuple[float, float, float]], vocabulary: Vocabulary) -> None:
        super().__init__()
        self.table = torch.zeros(len(vocabulary), 3)
        for word, logits in says.items():
            self.table[vocabulary[word]] = torch.tensor(logits)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return (self.table[ids] * mask.unsqueeze(-1)).sum(1)


def a_run(says: dict[str, tuple[float, float, float]]) -> tuple[Run, Sensible]:
    """Three topics of three words each, each mostly in its texts; the model says what it is told to."""
    vocabulary = Vocabulary((*SPECIALS, *WORDS), np.array([0, 0, 3, *[40] * len(WORDS)]))
    config = TrainConfig(task="classify", model=MODEL, perturbation=MethodSettings(epsilon=1.0, k=3))
    labels = ("sport", "cars", "food")
    model = Bag(says, vocabulary)
    run = WordRun(Path("nowhere"), config, vocabulary, labels, model, torch.device("cpu"))  # type: ignore[arg-type]
    counts = torch.eye(3).repeat_interleave(3, 0) * 38 + 2
    counts = torch.cat([torch.full((len(SPECIALS), 3), 100.0), counts])
    table = torch.cat([torch.zeros(len(SPECIALS), 3), torch.eye(3).repeat_interleave(3, 0)])
    evidence = evidence_in(counts)
    return run, Sensible(run, evidence, WordSpace(table, table.abs().sum(-1) > 0, "here"))


def a_question(run: Run, text: str, pulls: list[list[tuple[str, float]]]) -> Question:
    """A text about sport, and for each of its words what pulls it, how strongly."""
    words = text.split()
    ids = np.array([run.vocabulary[word] for word in words])
    row = Row(ids, np.arange(len(ids)), np.arange(len(ids)), ids)
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    spans = [(int(end) - len(word), int(end)) for word, end in zip(words, ends, strict=True)]
    reading = Reading.of(text, Words(spans, [True] * len(ids), len(ids), 0, row), lowercase=True)
    toward = np.array([[run.vocabulary[word] for word, _ in of_word] for of_word in pulls])
    strengths = np.array([[strength for _, strength in of_word] for of_word in pulls])
    logits = run.model(torch.from_numpy(ids)[None], torch.ones(1, len(ids), dtype=torch.bool))[0]
    found = TextPulls(0, logits.softmax(-1).numpy(), toward, strengths, strengths, logits.numpy())
    return Question(reading, found, SPORT, lambda _: np.ones(len(ids), dtype=bool))


def found(answers: list[list[Answer]]) -> list[tuple[int, int] | None]:
    """Which word of each text is pulled most tellingly, and the number of its pull."""
    return [(of_text[0].position, of_text[0].column) if of_text else None for of_text in answers]


SAYS = {"match": (2.0, 0.0, 0.0), "goal": (1.0, 0.0, 0.0), "engine": (0.0, 3.0, 0.0), "soup": (0.0, 0.0, 0.5)}
PULLS = [[("engine", 1.0), ("soup", 5.0)], [("motor", 2.0), ("striker", 9.0)]]


def test_most_telling_is_what_changes_the_odds_most_not_what_pulls_hardest() -> None:
    run, sensible = a_run(SAYS)
    question = a_question(run, "match goal", PULLS)
    assert found(telling_pulls(run, sensible, [question, question])) == [(0, 0)] * 2  # match -> engine
    run, sensible = a_run(SAYS | {"engine": (0.0, 0.1, 0.0)})
    assert found(telling_pulls(run, sensible, [question])) == [(0, 1)]  # match -> soup, now that engine says little


def test_a_word_that_speaks_for_the_label_or_may_not_be_pulled_is_not_asked_about() -> None:
    run, sensible = a_run(SAYS | {"striker": (-9.0, 0.0, 0.0)})  # whatever the model says of it
    question = a_question(run, "match goal", PULLS)
    assert found(telling_pulls(run, sensible, [question])) == [(0, 0)]
    assert found(telling_pulls(run, sensible, [question._replace(whole=lambda _: np.array([False, True]))])) == [
        (1, 0)
    ]
    assert telling_pulls(run, sensible, [question._replace(whole=lambda _: np.array([False, False]))]) == [[]]


def explained(run: Run, sensible: Sensible, question: Question) -> Explanation:
    """The explanation of a text after the model was asked about its pulls."""
    (answers,) = telling_pulls(run, sensible, [question])
    places = PlaceMaker(run.vocabulary, run.labels, False, 3, False, False, sensible)(
        question.text, question.found, "sport", lambda: answers
    )
    says = dict(zip(run.labels, question.found.probabilities.tolist(), strict=True))
    return Explanation(question.text.text, "classify", "iadvt", "sport", False, "sport", says, places)


def test_if_the_odds_of_the_label_fall_with_no_word_that_is_told_and_nothing_marked() -> None:
    run, sensible = a_run(dict.fromkeys(WORDS[3:], (1.5, 0.0, 0.0)) | {"match": (1.0, 0.0, 0.0)})
    question = a_question(run, "match goal", PULLS)
    (answers,) = telling_pulls(run, sensible, [question])
    assert len(answers) == 1
    found = explained(run, sensible, question)
    assert answers[0].probability > found.probabilities["sport"]
    assert [pull.probability is None for place in found.places for pull in place.pulls].count(False) == 1
    assert marked(found) == []
    assert effect(found) == "sport does not fall below 57.6 % with the strongest pulls, one at a time"
    assert telling_pulls(run, sensible, []) == []


def test_where_no_pull_may_be_shown_the_model_is_asked_about_those_that_are() -> None:
    pulls = [[("striker", 5.0), ("goal", 4.0)], [("match", 4.0), ("goal", 3.0)]]  # all speak for the label
    run, sensible = a_run(SAYS | {"match": (1.5, 0.0, 0.0)})
    found = explained(run, sensible, a_question(run, "match goal", pulls))
    assert [place.word for place in marked(found)] == ["match"]  # with "match" for "goal" the odds rise
    assert found.strongest is not None
    assert found.strongest.pulls[0].probability == pytest.approx(np.exp(1) / (np.exp(1) + 2), abs=1e-6)
    still, sensible = a_run(dict.fromkeys(WORDS, (1.0, 0.0, 0.0)))
    assert marked(explained(still, sensible, a_question(still, "match goal", pulls))) == []


def test_of_each_word_the_most_telling_pull_is_found_that_of_the_most_telling_word_first() -> None:
    run, sensible = a_run(SAYS)
    (answers,) = telling_pulls(run, sensible, [a_question(run, "match goal", PULLS)])
    assert [(each.position, each.column) for each in answers] == [(0, 0), (1, 0)]  # engine, and motor for goal
    assert [each.predicted for each in answers] == [CARS, SPORT]
    after = torch.tensor([[1.0, 3.0, 0.0], [2.0, 0.0, 0.0]]).softmax(-1)[:, SPORT]
    assert [each.probability for each in answers] == pytest.approx(after.tolist())
    run, sensible = a_run(SAYS | {"motor": (5.0, 0.0, 0.0)})  # with which the odds rise
    (answers,) = telling_pulls(run, sensible, [a_question(run, "match goal", PULLS)])
    assert [each.position for each in answers] == [0]


def test_of_each_word_what_is_stronger_but_tells_less_is_not_shown_and_the_model_s_answer_is() -> None:
    run, sensible = a_run(SAYS | {"soup": (0.0, 0.0, 2.0)})
    pulls = [[("soup", 5.0), ("engine", 3.0), ("spoon", 1.0)], [("motor", 3.5), ("flour", 2.5), ("spoon", 0.5)]]
    question = a_question(run, "match goal", pulls)
    maker = PlaceMaker(run.vocabulary, run.labels, False, 3, False, False, sensible)

    def shown(*answers: Answer) -> list[list[tuple[str, float | None, str | None]]]:
        places = maker(question.text, question.found, "sport", lambda: answers)
        return [[(pull.toward, pull.probability, pull.prediction) for pull in place.pulls] for place in places]

    first, second = Answer(0, 1, 0.25, CARS), Answer(1, 1, 0.5, SPORT)
    engine, flour = ("engine", 0.25, "cars"), ("flour", 0.5, "sport")
    spoon = ("spoon", None, None)
    assert shown(first, second) == [[engine, spoon], [flour, spoon]]
    assert shown(first) == [[engine, spoon], [("flour", None, None), spoon]]  # motor pulls harder than engine
    hard = Answer(1, 0, 0.5, SPORT)  # motor, too
    assert shown(first, hard) == [[engine, spoon], [("flour", None, None), spoon]]
    assert shown()[0][0] == ("soup", None, None)


def test_of_two_like_falls_the_word_tells_more_that_speaks_for_the_label_that_gains() -> None:
    run, sensible = a_run({"match": (2.0, 0.0, 0.0), "engine": (0.0, 1.0, 0.0), "soup": (0.0, 1.0, 0.0)})
    question = a_question(run, "match goal", [[("soup", 5.0), ("engine", 1.0)], [("goal", 0.0), ("goal", 0.0)]])
    assert found(telling_pulls(run, sensible, [question])) == [(0, 1)]  # cars gain with either


def test_as_many_are_asked_about_as_were_said(monkeypatch: pytest.MonkeyPatch) -> None:
    run, sensible = a_run(SAYS)
    question = a_question(run, "match goal", PULLS)
    monkeypatch.setattr(confirming, "ASKED", 1)
    assert found(telling_pulls(run, sensible, [question])) == [(0, 1)]  # the strongest that may be shown
    monkeypatch.setattr(confirming, "ASKED", 8)
    monkeypatch.setattr(confirming, "EACH", 1)
    assert found(telling_pulls(run, sensible, [question])) == [(0, 1)]  # of the first word only its strongest


def test_all_texts_are_asked_about_at_once_when_one_is_first_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    run, sensible = a_run(SAYS)
    question, calls = a_question(run, "match goal", PULLS), []
    read = confirming._read

    def counted(run: Run, rows: list[np.ndarray]) -> torch.Tensor:
        calls.append(len(rows))
        return read(run, rows)

    monkeypatch.setattr(confirming, "_read", counted)
    telling = Telling(run, sensible, [question, question], fingerprint(run.model))
    assert calls == []
    assert found([telling(1), telling(0)]) == [(0, 0)] * 2
    assert calls == [6]  # three pulls of each that may be shown
    assert run not in vars(telling).values()
