"""The pure test of one quantity, and the many of the simulations that must be the same."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hubbub.alarms.limits import AlarmLimits, limits_for
from hubbub.alarms.sequential import SequentialTest, WatchState
from tests.alarms.many import Many

TESTS = {
    "above": {"sides": ("above",), "threshold": 0.3, "ends": 0.2},
    "below": {"sides": ("below",), "threshold": 0.3},
    "change": {"sides": ("above", "below"), "baseline": 8},
    "change with an end": {"sides": ("above",), "baseline": 8, "ends": 0.1},
    "single steps": {"sides": ("above", "below"), "baseline": 8, "independent": False},
}


def make(name: str) -> SequentialTest:
    given = dict(TESTS[name])
    limits = limits_for(1 / 60, baseline=given.get("baseline", 0), independent=given.get("independent", True))  # type: ignore[arg-type]
    return SequentialTest(raises=limits, clears=limits_for(1 / 20, independent=given.get("independent", True)), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", TESTS)
def test_many_judge_as_one_does_and_a_state_goes_through_json(name: str) -> None:
    test, rng, copies = make(name), np.random.default_rng(4), 12
    many, states = Many(test, (copies,)), [WatchState()] * copies
    found = set()
    for step in range(90):
        truth = 0.3 + 0.5 * ((step // 20) % 2) * np.where(np.arange(copies) % 2, 1, -1)
        stderr = rng.uniform(0.05, 0.2, copies)
        values = truth + stderr * rng.standard_normal(copies)
        verdicts = many.update(values, stderr)
        for copy in range(copies):
            state = WatchState.from_json(json.loads(json.dumps(states[copy].to_json())))
            states[copy], verdict = test.update(state, step, float(values[copy]), float(stderr[copy]))
            expected = 0.0 if verdict is None else 2.0 if verdict.state == "cleared" else 1.0
            if verdict is not None and verdict.state == "raised" and verdict.direction == "below":
                expected = -1.0
            assert verdicts[copy] == expected, (step, copy)
            if verdict is not None:
                assert verdict.since <= step
                found.add((verdict.state, verdict.direction))
    assert found == {(state, side) for state in ("raised", "cleared") for side in test.sides}


def test_an_alarm_is_cleared_only_past_where_it_ends() -> None:
    limits = AlarmLimits(k=0.5, h=4.0, z=4.0)
    test = SequentialTest(sides=("above",), raises=limits, clears=limits, threshold=0.3, ends=0.2)
    state, verdict = test.update(WatchState(), 0, 0.5, 0.01)
    assert (verdict is not None, state.raised, state.clears) == (True, "above", 0.2)
    for step in range(1, 50):
        state, verdict = test.update(state, step, 0.204, 0.01)
        assert verdict is None
    state, verdict = test.update(state, 50, 0.1, 0.01)
    assert verdict is not None
    assert (verdict.state, state.raised) == ("cleared", None)


def test_a_change_ends_half_way_back() -> None:
    limits = AlarmLimits(k=0.5, h=8.0, z=4.0)
    test = SequentialTest(sides=("above",), raises=limits, clears=limits, baseline=8)
    state = WatchState()
    for step in range(8):
        state, _ = test.update(state, step, 0.2, 0.01)
    state, verdict = test.update(state, 8, 0.26, 0.01)
    assert verdict is not None
    assert state.clears == pytest.approx(0.23)
    assert verdict.since == 8


def test_a_step_more_accurate_than_the_baseline_is_judged_as_one_of_it() -> None:
    """Otherwise the error of the baseline would weigh more than the limits count."""
    test = make("change")
    state = WatchState()
    for step in range(8):
        state, _ = test.update(state, step, 0.2 + 0.1 * (-1) ** step, 0.1)
    for step in range(8, 60):
        state, verdict = test.update(state, step, 0.24, 0.0001)  # one standard error of the baseline
        assert verdict is None
