"""Budgets are whole numbers: limits round down, debits round up, and sums are exact."""

import json
import math
import pickle
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub import GRR
from hubbub.core.errors import InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON, Event, epsilon_of
from hubbub.core.spec import canonical
from hubbub.ledger.promise import MOST_UNITS, Budget, BudgetExceeded, Window
from tests.ledger.budget_ledger import Ledger, StepClock

LIMITS = st.none() | st.integers(1, MOST_UNITS)


@settings(deadline=None, database=None)
@given(LIMITS, st.none() | st.builds(Window, st.integers(1, MOST_UNITS), st.integers(1, 10**9)), LIMITS)
def test_spec_round_trip(event: int | None, window: Window | None, user: int | None) -> None:
    if event is None and window is None and user is None:
        return
    budget = Budget(event=event, window=window, user=user)
    assert Budget.from_spec(budget.spec()) == budget
    assert Budget.from_spec(json.loads(canonical(budget.spec()))) == budget  # large integers are strings there


@pytest.mark.parametrize(
    ("epsilon", "units"),
    [
        (1.0, 10**12),
        (0.1, 10**11),
        (0.3, 3 * 10**11),  # the binary 0.3 is below 3/10
        (Fraction(1, 3), 333333333333),
        (1 / 3, 333333333333),
        (0.9999999999999, 999999999999),
        (2, 2 * 10**12),
    ],
)
def test_limits_round_down(epsilon: float, units: int) -> None:
    assert Budget.of(event=epsilon, window=(epsilon, 7), user=epsilon) == Budget(
        event=units, window=Window(units, 7), user=units
    )


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"event": 0},
        {"event": -1},
        {"event": 1.0},
        {"event": True},
        {"event": MOST_UNITS + 1},
        {"user": "1"},
        {"window": 5},
        {"window": (5,)},
        {"window": (0, 5)},
        {"window": (5, 0)},
        {"window": (5, 2.0)},
    ],
)
def test_bad_limits_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        Budget(**fields)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1e-13, math.nan, math.inf, True, "1", 1e7])
def test_bad_epsilons_are_refused(epsilon: Any) -> None:
    with pytest.raises(InvalidValue):
        Budget.of(event=epsilon)
    with pytest.raises(InvalidValue):
        Budget.of(window=(epsilon, 5))


@pytest.mark.parametrize(
    "spec",
    [
        {"event": 1},
        {"event": 1, "window": None, "user": None, "more": 1},
        {"event": 1, "window": {"limit": 1}, "user": None},
        {"event": 1, "window": [1, 2], "user": None},
        {"event": 1.5, "window": None, "user": None},
        {"event": None, "window": None, "user": None},
        [],
    ],
)
def test_bad_specs_are_refused(spec: Any) -> None:
    with pytest.raises(InvalidValue):
        Budget.from_spec(spec)


@pytest.mark.parametrize("parts", [3, 7, 10, 20, 49, 1000])
def test_equal_parts_of_a_budget_exactly_fit_the_window(parts: int) -> None:
    budget = Budget.of(window=(1, parts + 5))
    units = UNITS_PER_EPSILON // parts
    grr = GRR(epsilon=epsilon_of(units), domain=4)
    assert grr.event().spent <= units  # a real mechanism's own, exact epsilon
    event = Event("GRR", grr.spec_id, units)
    clock = StepClock()
    with Ledger(":memory:", budget, clock=clock) as ledger:
        for step in range(parts):
            clock.step = step
            ledger.answer(f"ask {step}", step, event, lambda: b"")
        clock.step = parts
        with pytest.raises(BudgetExceeded) as refused:
            ledger.answer(f"ask {parts}", parts, event, lambda: b"")
        assert (refused.value.unit, refused.value.requested, refused.value.limit) == ("window", units, 10**12)
        assert refused.value.spent == parts * units <= 10**12


def test_a_twentieth_as_floats_would_not_fit() -> None:
    """Why asks are rounded down: the float 0.05 is above 1/20, and its debit rounds up."""
    assert 20 * Event.of("GRR", "0" * 32, Fraction(1, 20)).spent == 10**12
    assert 20 * Event.of("GRR", "0" * 32, 0.05).spent == 10**12 + 20
    assert 20 * Event.of("GRR", "0" * 32, epsilon_of(10**12 // 20)).spent == 10**12


def test_the_refusal_names_the_unit_and_survives_pickling() -> None:
    refused = BudgetExceeded("window", spent=950_000_000_000, requested=10**11, limit=10**12)
    again = pickle.loads(pickle.dumps(refused))
    assert str(again) == str(refused) == "window: 0.95 epsilon spent, 0.1 asked, limit 1"
    assert (again.unit, again.spent, again.requested, again.limit) == ("window", 950_000_000_000, 10**11, 10**12)
