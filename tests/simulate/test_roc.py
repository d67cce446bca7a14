"""The ROC curve against brute force: every bar tried, every pair compared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.core.errors import InvalidValue
from hubbub_papers.roc import auc, event_threshold, roc

# Few different values, so that ties are common.
PAIRS = st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=40).filter(
    lambda pairs: len({event for _, event in pairs}) == 2
)


def pairwise_area(scores: np.ndarray, event: np.ndarray) -> float:
    gaps = scores[event][:, None] - scores[~event][None, :]
    return float(np.mean((gaps > 0) + 0.5 * (gaps == 0)))


@given(PAIRS)
def test_the_curve_and_the_area_are_those_of_brute_force(pairs):
    scores = np.array([score for score, _ in pairs]) / 6
    event = np.array([event for _, event in pairs])
    false, true = roc(scores, event.astype(float), 0.5)
    bars = [np.inf, *sorted(set(scores.tolist()), reverse=True)]
    assert false.tolist() == pytest.approx([np.mean(scores[~event] >= bar) for bar in bars])
    assert true.tolist() == pytest.approx([np.mean(scores[event] >= bar) for bar in bars])
    assert auc(false, true) == pytest.approx(pairwise_area(scores, event))


def test_equal_values_pass_together():
    # Taken one after the other, in the order of the steps, the events of a constant release would come out ahead.
    false, true = roc([0.3] * 4, [1.0, 1.0, 0.0, 0.0], 0.5)
    assert (false.tolist(), true.tolist()) == ([0.0, 1.0], [0.0, 1.0])
    assert auc(false, true) == 0.5


def test_a_perfect_and_a_reversed_release():
    truth = np.linspace(0.0, 1.0, 50)
    assert auc(*roc(truth, truth, event_threshold(truth))) == 1.0
    assert auc(*roc(-truth, truth, event_threshold(truth))) == 0.0


def test_the_threshold_is_the_papers():
    assert event_threshold([0.1, 0.5, 0.3]) == pytest.approx(0.75 * (0.5 - 0.1) + 0.1)


@pytest.mark.parametrize(
    ("values", "truth", "field"),
    [
        ([0.1, 0.2], [0.0, 0.0], "threshold"),
        ([0.1, 0.2], [1.0, 1.0], "threshold"),
        ([0.1], [0.0, 1.0], "values"),
        ([[0.1, 0.2]], [[0.0, 1.0]], "values"),
        ([0.1, np.nan], [0.0, 1.0], "values"),
    ],
)
def test_what_is_refused(values, truth, field):
    with pytest.raises(InvalidValue, match=field):
        roc(values, truth, 0.5)
