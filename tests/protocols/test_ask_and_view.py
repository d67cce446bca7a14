"""Asks and views travel as JSON and come back the same."""

from __future__ import annotations

import json

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.core.plugins import PluginRefused
from hubbub.mechanisms import MECHANISMS
from hubbub.protocols.ask import Arc, Ask
from hubbub.protocols.views.basic import Binned, Clipped, Field, View, Whole

VIEWS = [Whole(), Field("age"), Clipped(-1.0, 2.5), Binned(first=0.5, factor=1.5, cells=9)]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: type(view).__name__)
def test_views_round_trip(view: View) -> None:
    assert View.from_spec(json.loads(json.dumps(view.spec()))) == view


@pytest.mark.parametrize(
    "spec", [None, {}, {"kind": "no such"}, {"kind": "clipped", "low": 0.0}, {"kind": "whole", "x": 1}]
)
def test_hostile_views_are_refused(spec: object) -> None:
    with pytest.raises(InvalidValue, match="view"):
        View.from_spec(spec)


def test_views_are_total() -> None:
    odd = [float("nan"), float("inf"), -float("inf"), 1e300, -1e300]
    assert Clipped(0.0, 1.0)(odd).tolist() == [0.0, 1.0, 0.0, 1.0, 0.0]
    cells = Binned(first=1.0, factor=2.0, cells=5)(odd)
    assert cells.tolist() == [0, 4, 0, 4, 0]
    assert Field("age")([{}, {"age": None}]) == [None, None]


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_asks_round_trip_for_every_mechanism(name: str) -> None:
    for mechanism in MECHANISMS[name].examples():
        ask = Ask(mechanism=mechanism, step=7, view=Clipped(0.0, 1.0), cohort=Arc(3, 9), standing=True)
        back = Ask.from_spec(json.loads(json.dumps(ask.spec())))
        assert back == ask
        assert back.ask_id == ask.ask_id
        assert back.event().step == 7
        assert back.event().spent == mechanism.event().spent


def test_asks_that_differ_have_different_ids() -> None:
    grr = hb.GRR(epsilon=1.0, domain=2)
    asks = [
        Ask(mechanism=grr, step=1),
        Ask(mechanism=grr, step=2),
        Ask(mechanism=grr, step=1, cohort=Arc(0, 5)),
        Ask(mechanism=grr, step=1, view=Clipped(0.0, 1.0)),
        Ask(mechanism=hb.GRR(epsilon=1.1, domain=2), step=1),
    ]
    assert len({ask.ask_id for ask in asks}) == len(asks)


def test_an_ask_that_would_spend_more_than_it_says_is_refused() -> None:
    spec = Ask(mechanism=hb.GRR(epsilon=1.0, domain=2), step=1).spec()
    spec["mechanism"]["other"] = int(spec["mechanism"]["other"]) // 2  # type: ignore[index, call-overload, arg-type]
    with pytest.raises(InvalidValue, match="epsilon"):
        Ask.from_spec(spec)


@pytest.mark.parametrize("field", ["mechanism", "step", "view", "cohort", "standing"])
def test_hostile_asks_are_refused(field: str) -> None:
    spec = Ask(mechanism=hb.GRR(epsilon=1.0, domain=2), step=1).spec()
    for bad in (None, -1, "x", [], {"start": 0, "length": 2**40}, {"kind": "whole", "more": 1}):
        with pytest.raises((InvalidValue, AttributeError, TypeError)) as caught:
            Ask.from_spec({**spec, field: bad})
        assert isinstance(caught.value, InvalidValue), f"{field}={bad!r} gave {caught.value!r}"
    with pytest.raises(InvalidValue):
        Ask.from_spec({key: value for key, value in spec.items() if key != field})


def test_binned_borders_are_where_cells_begin() -> None:
    view = Binned(first=1.0, factor=3.0, cells=4)
    assert view(view.borders).tolist() == [1, 2, 3]
    assert view(np.nextafter(view.borders, 0)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["Whole", "Prefix"], ids=["loaded", "perhaps not loaded yet"])
def test_a_view_of_another_package_takes_no_name_of_ours(name: str) -> None:
    with pytest.raises(PluginRefused, match=rf"{name}: the view {name.lower()} is defined in hubbub\.protocols"):
        type(name, (View,), {"__module__": "their_package"})
    assert View.from_spec({"kind": "whole"}) == Whole()
