"""Numbers worked by hand, and intervals that mean what they say."""

import math
import random
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from wordward.runs.metrics import Interval, by_class, error_rate, macro_f1, perplexity, precision_recall_f


def wrong(errors: int, n: int) -> Interval:
    """The error rate of n texts of which some are wrong."""
    return error_rate([0] * n, [1] * errors + [0] * (n - errors))


def test_where_all_is_right_a_bootstrap_tells_nothing() -> None:
    gold = [0] * 30 + [1] * 30
    assert macro_f1(gold, gold, [0, 1]).tells_nothing
    assert not macro_f1(gold, [0] * 31 + [1] * 29, [0, 1]).tells_nothing
    assert not wrong(0, 3).tells_nothing  # Wilson's interval does tell


class TestErrorRate:
    @pytest.mark.parametrize(
        ("errors", "n", "low", "high"),
        # Known values of the Wilson score interval at 95 %.
        [(0, 10, 0.0, 0.2775), (1, 10, 0.0179, 0.4042), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0)],
    )
    def test_wilson_against_known_values(self, errors: int, n: int, low: float, high: float):
        interval = wrong(errors, n)
        assert interval.value == errors / n
        assert (interval.low, interval.high) == pytest.approx((low, high), abs=5e-5)

    def test_the_ends_solve_the_score_equation(self):
        # A second derivation: the ends are where |p - share| = z sqrt(p (1 - p) / n).
        share, low, high = wrong(137, 1000)
        for end in (low, high):
            assert abs(end - share) == pytest.approx(1.959964 * math.sqrt(end * (1 - end) / 1000), rel=1e-6)

    def test_one_standard_error_on_25000_reviews(self):
        share, low, high = wrong(1500, 25000)
        assert share == 0.06
        assert (high - low) / 2 == pytest.approx(1.96 * 0.0015, rel=0.01)

    @given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
    def test_the_value_lies_in_its_interval(self, counts: tuple[int, int]):
        share, low, high = wrong(*counts)
        assert 0 <= low <= share <= high <= 1

    def test_strings_and_arrays_count_alike(self):
        assert error_rate(["a", "b", "b"], ["a", "a", "b"]) == error_rate(np.array([0, 1, 1]), np.array([0, 0, 1]))
        assert error_rate(["a", "b", "b"], ["a", "a", "b"]).value == pytest.approx(1 / 3)

    @pytest.mark.parametrize(("gold", "predicted"), [([], []), ([1], []), ([1, 2], [1])])
    def test_missing_predictions_are_refused(self, gold: list[int], predicted: list[int]):
        with pytest.raises(ValueError, match=f"got {len(gold)} gold and {len(predicted)} predicted"):
            error_rate(gold, predicted)


class TestMacroF1:
    def test_by_hand(self):
        gold = ["a", "a", "a", "b", "b", "c"]
        said = ["a", "a", "b", "b", "c", "b"]
        # a: P 2/2, R 2/3, F 4/5.  b: P 1/3, R 1/2, F 2/5.  c: never right, F 0.
        assert macro_f1(gold, said, ["a", "b", "c"]).value == pytest.approx((0.8 + 0.4 + 0) / 3)

    @given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
    def test_equals_that_of_scikit_learn(self, pairs: list[tuple[int, int]]):
        gold, said = zip(*pairs, strict=True)
        expected = f1_score(gold, said, average="macro")
        assert macro_f1(gold, said, range(4), resamples=1).value == pytest.approx(expected)

    def test_a_class_that_never_occurs_does_not_count(self):
        assert macro_f1([0, 1] * 9, [0, 1] * 9, [0, 1, 2, 3]) == (1.0, 1.0, 1.0)

    def test_scores_of_each_class_by_hand(self):
        # a: 3, of which 2 are found among 4 said to be; b: 2, 1 found of 2 said to be; c: 1, said of none; d: none
        confusion = np.array([[2, 1, 0, 0], [1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]])
        assert by_class(confusion) == [
            (3, 4, 2 / 4, 2 / 3, pytest.approx(4 / 7)),
            (2, 2, 1 / 2, 1 / 2, 1 / 2),
            (1, 0, 0.0, 0.0, 0.0),
            (0, 0, 0.0, 0.0, 0.0),
        ]

    def test_perfect_and_hopeless(self):
        assert macro_f1([0, 1] * 50, [0, 1] * 50, [0, 1]) == (1.0, 1.0, 1.0)
        assert macro_f1([0, 1] * 50, [1, 0] * 50, [0, 1]) == (0.0, 0.0, 0.0)

    def test_the_order_of_classes_does_not_matter(self):
        gold, said = ["x", "y", "z", "x"], ["x", "z", "z", "y"]
        assert macro_f1(gold, said, "xyz").value == pytest.approx(macro_f1(gold, said, "zxy").value)

    def test_the_interval_is_a_bootstrap_over_texts(self):
        rng = np.random.default_rng(5)
        gold = rng.integers(0, 3, 400)
        said = np.where(rng.random(400) < 0.7, gold, rng.integers(0, 3, 400))

        def plain(rows: np.ndarray) -> float:
            scores = []
            for name in range(3):
                hits = ((gold[rows] == name) & (said[rows] == name)).sum()
                scores.append(2 * hits / ((gold[rows] == name).sum() + (said[rows] == name).sum()))
            return float(np.mean(scores))

        draws = [plain(rng.integers(0, 400, 400)) for _ in range(2000)]
        value, low, high = macro_f1(gold, said, range(3), resamples=2000)
        assert value == pytest.approx(plain(np.arange(400)))
        assert (low, high) == pytest.approx(tuple(np.percentile(draws, [2.5, 97.5])), abs=0.006)

    def test_the_interval_leaves_out_2_5_percent_at_each_end(self):
        # All gold is 0: F1 of 0 is 2 recall / (1 + recall), of 1 it is 0; recall is a share with deviation 0.01.
        value, low, high = macro_f1([0] * 2500, [0] * 1250 + [1] * 1250, [0, 1], resamples=20_000)
        recall = 0.5 + np.array([0, -1.959964, 1.959964]) * 0.01
        assert (value, low, high) == pytest.approx(tuple(recall / (1 + recall)), abs=3e-4)

    def test_a_label_outside_the_classes_is_refused(self):
        with pytest.raises(ValueError, match=r"among \['a', 'b'\]; got \['c'\]"):
            macro_f1(["a", "b"], ["a", "c"], ["a", "b"])


class TestPrecisionRecallF:
    gold = (["c", "i", "i"], ["c", "c"], ["i", "i", "c", "i"])
    said = (["c", "i", "c"], ["i", "c"], ["i", "c", "c", "i"])

    def test_by_hand(self):
        # 3 hits, 5 in gold, 4 predicted: P 3/4, R 3/5, F0.5 = 1.25 P R / (0.25 P + R) = 5/7.
        precision, recall, f = precision_recall_f(self.gold, self.said, "i")
        assert (precision.value, recall.value, f.value) == pytest.approx((0.75, 0.6, 5 / 7))

    def test_beta_weighs_recall(self):
        # F1 = 2 P R / (P + R) = 2/3; F2 = 5 P R / (4 P + R) = 0.625.
        assert precision_recall_f(self.gold, self.said, "i", beta=1.0).f.value == pytest.approx(2 / 3)
        assert precision_recall_f(self.gold, self.said, "i", beta=2.0).f.value == pytest.approx(0.625)

    def test_nothing_found_is_zero_and_not_an_error(self):
        precision, recall, f = precision_recall_f([["i"]], [["c"]], "i")
        assert precision == recall == f == (0.0, 0.0, 0.0)
        assert precision_recall_f([["c"]], [["c"]], "i").f.value == 0.0

    def test_an_empty_sentence_counts_nothing(self):
        assert precision_recall_f([*self.gold, []], [*self.said, []], "i").f.value == pytest.approx(5 / 7)

    def test_the_interval_is_a_bootstrap_over_sentences(self):
        rng = np.random.default_rng(2)
        gold = [(rng.random(rng.integers(1, 20)) < 0.4).astype(int) for _ in range(300)]
        said = [np.where(rng.random(len(row)) < 0.8, row, 1 - row) for row in gold]
        rows = np.array([[(g & s).sum(), g.sum(), s.sum()] for g, s in zip(gold, said, strict=True)])

        def plain(at: np.ndarray) -> list[float]:
            hits, golds, saids = rows[at].sum(axis=0)
            precision, recall = hits / saids, hits / golds
            return [precision, recall, 1.25 * precision * recall / (0.25 * precision + recall)]

        draws = np.percentile([plain(rng.integers(0, 300, 300)) for _ in range(2000)], [2.5, 97.5], axis=0)
        for number, interval in enumerate(precision_recall_f(gold, said, 1, resamples=2000)):
            assert interval.value == pytest.approx(plain(np.arange(300))[number])
            assert (interval.low, interval.high) == pytest.approx(tuple(draws[:, number]), abs=0.006)

    def test_a_seed_gives_the_same_interval_again(self):
        one, two, other = (precision_recall_f(self.gold, self.said, "i", seed=seed) for seed in (1, 1, 2))
        assert one == two
        assert [interval.value for interval in one] == [interval.value for interval in other]

    def test_the_test_set_of_the_paper_takes_well_under_a_second(self):
        choose = random.Random(0)
        gold = [[choose.choice("ci") for _ in range(15)] for _ in range(2720)]
        said = [[choose.choice("ci") for _ in row] for row in gold]
        start = time.process_time()  # whatever else the machine does
        precision_recall_f(gold, said, "i", resamples=1000)
        assert time.process_time() - start < 1

    def test_a_sentence_of_another_length_is_named(self):
        with pytest.raises(ValueError, match="sentence 1 has 2 tokens and 1 predictions"):
            precision_recall_f([["c"], ["c", "i"]], [["c"], ["c"]], "i")
        with pytest.raises(ValueError, match="got 1 gold and 2 predicted"):
            precision_recall_f([["c"]], [["c"], ["c"]], "i")


class TestPerplexity:
    def test_a_fair_die_has_perplexity_six(self):
        assert perplexity(10 * math.log(6), 10) == pytest.approx(6)

    def test_more_than_a_float_holds_is_infinite(self):
        assert perplexity(1e6, 1) == math.inf
        assert math.isnan(perplexity(math.nan, 1))

    def test_no_tokens_have_no_perplexity(self):
        with pytest.raises(ValueError, match="1 token or more"):
            perplexity(0.0, 0)
