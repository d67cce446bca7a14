"""What SaO2 says of its bias: a device that may not tell of every change of its value draws answers to the past."""

from __future__ import annotations

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.estimate import Estimate
from hubbub.protocols.sao2 import Answers, Sao2


def answered(changes: int, mechanism: str) -> Estimate:
    """A population that drifts from item to item, 3 changes for each of 4,000 people a level, seen at the last step."""
    plan = Sao2(epsilon=8.0, dimension=4, steps=4, changes=changes, mechanism=mechanism)
    answers, rng = Answers(plan), hb.Random(seed=1)
    history = np.eye(4, dtype=np.int8)[None, :, :].repeat(4_000, axis=0)  # item t at step t
    for level, (view, told) in enumerate(zip(plan.views, plan.mechanisms, strict=True)):
        answers.add(level, told.accumulate(told.randomize(view(history), rng)))
    answers.step = 4
    return answers.mean(4)


def test_where_changes_are_lost_the_bias_is_said() -> None:
    estimate = answered(changes=3, mechanism="Collision")
    low, high = estimate.interval(0.95)
    truth = np.array([0.0, 0.0, 0.0, 1.0])
    assert not ((low <= truth) & (truth <= high)).all()  # the last item is not seen by all
    assert estimate.bias == "heuristic"


def test_where_none_can_be_lost_there_is_no_bias() -> None:
    estimate = answered(changes=16, mechanism="Collision")
    assert estimate.value[3] == pytest.approx(1.0, abs=5 * estimate.stderr[3])
    assert estimate.bias == "none"


@pytest.mark.parametrize(
    ("plan", "clips"),
    [
        (Sao2(epsilon=1.0, dimension=3, steps=4, changes=7, one=True), False),
        (Sao2(epsilon=1.0, dimension=3, steps=4, changes=6, one=True), True),
        (Sao2(epsilon=1.0, dimension=1, steps=4, changes=4), False),
        (Sao2(epsilon=1.0, dimension=1, steps=4, changes=3), True),
    ],
    ids=str,
)
def test_a_plan_knows_whether_changes_can_be_lost(plan: Sao2, clips: bool) -> None:
    assert plan.clips(4) == clips
    assert not plan.clips(1) or plan.dimension > plan.changes
