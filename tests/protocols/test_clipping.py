"""Means of numbers with a long tail: the threshold follows the numbers."""

from __future__ import annotations

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.core.event import units_of
from hubbub.protocols.ask import Ask
from hubbub.protocols.window.clipping import clipped_asks, clipped_means
from hubbub.simulate.conversation import run_stream
from hubbub.simulate.devices import ArrayStream


def stream_of(tops: list[float], n: int = 20_000) -> ArrayStream:
    """Numbers evenly from 0 to the top, which changes with the step."""
    even = np.linspace(0.0, 1.0, n, dtype=np.float32)
    mixed = np.random.default_rng(5).permutation(even)
    return ArrayStream(np.array([top * mixed for top in tops], dtype=np.float32))


@pytest.mark.parametrize("method", ["LPU", "LPA", "LBU"])
def test_the_threshold_goes_where_the_numbers_go(method: str) -> None:
    tops = [10.0] * 60 + [400.0] * 100
    thresholds: list[float] = []

    def recording():
        protocol = clipped_means(method, epsilon=4.0, w=5, most=5000.0)
        message = next(protocol)
        while True:
            if isinstance(message, Ask) and hasattr(message.mechanism, "high"):
                thresholds.append(message.mechanism.high)
            message = protocol.send((yield message))

    run = run_stream(recording(), stream_of(tops), hb.Random(seed=1))
    low, high = thresholds[int(len(thresholds) * 55 / 160)], thresholds[-1]
    assert low < 100 < high < 2000
    # The standard error of a step is about 10 (LBU: 100), of the mean over 60 steps far less than 40.
    assert abs(run.values[-60:].mean() - 200) < 40


def test_intervals_admit_what_clipping_may_have_taken() -> None:
    run = run_stream(clipped_means("LPU", epsilon=1.0, w=5, most=5000.0), stream_of([300.0] * 60), hb.Random(seed=1))
    assert run.coverage() > 0.93


@pytest.mark.parametrize("method", ["LPU", "LPA", "LBU", "LBA", "LSP"])
def test_all_that_is_asked_is_of_the_family(method: str) -> None:
    family = clipped_asks(method, epsilon=4.0, w=5, most=5000.0)
    searched, clipped = family.views
    name, units = family.means
    asks_in_step: dict[int, int] = {}
    thresholds = set()

    def checking():
        protocol = clipped_means(method, epsilon=4.0, w=5, most=5000.0)
        message = next(protocol)
        while True:
            if isinstance(message, Ask):
                asks_in_step[message.step] = asks_in_step.get(message.step, 0) + 1
                if message.view.spec() == searched:
                    assert message.mechanism.spec_id in family.mechanisms
                else:
                    view = message.view.spec()
                    assert clipped["high"]["from"] <= view["high"] <= clipped["high"]["to"]
                    assert view == {**clipped, "high": view["high"]}
                    assert type(message.mechanism).__name__ == name
                    assert units_of(message.mechanism.epsilon) in units
                    assert (message.mechanism.low, message.mechanism.high) == (view["low"], view["high"])
                    thresholds.add(view["high"])
            message = protocol.send((yield message))

    run_stream(checking(), stream_of([10.0] * 30 + [400.0] * 30, n=5000), hb.Random(seed=1))
    assert max(asks_in_step.values()) <= family.rounds
    assert len(thresholds) > 1


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("method", {"method": "LPX"}),
        ("most", {"most": 0.5}),
        ("most", {"most": float("nan")}),
        ("search", {"search": 0.0}),
        ("search", {"search": 1.0}),
        ("w", {"w": 0}),
    ],
)
def test_bad_input_is_named(field: str, options: dict[str, object]) -> None:
    usual: dict[str, object] = {"method": "LPU", "epsilon": 1.0, "w": 5, "most": 100.0}
    with pytest.raises(InvalidValue, match=f"^{field}:"):
        next(clipped_means(**(usual | options)))  # type: ignore[arg-type]
