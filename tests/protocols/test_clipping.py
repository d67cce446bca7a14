"""Means of numbers with a long tail: the threshold follows the numbers."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import units_of
from hubbub.core.noise import Noise
from hubbub.core.reports import Sketch
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import converse
from hubbub.protocols.topl.stream import ABOVE, LOST
from hubbub.protocols.window.clipping import WHOLE, _Recent, clipped_asks, clipped_means
from hubbub.simulate.conversation import run_stream
from hubbub.simulate.devices import ArrayStream
from tests.protocols.test_stream_coverage import fewest
from tests.shared.answers import answered, holds


def stream_of(tops: list[float], n: int = 20_000) -> ArrayStream:
    """Numbers evenly from 0 to the top, which changes with the step."""
    even = np.linspace(0.0, 1.0, n, dtype=np.float32)
    mixed = np.random.default_rng(5).permutation(even)
    return ArrayStream(np.array([top * mixed for top in tops], dtype=np.float32))


def watched(method: str, look: Callable[[Any], None], epsilon: float = 4.0, **options: Any) -> Any:
    """The protocol, whose asks are looked at."""
    protocol = clipped_means(method, epsilon=epsilon, w=5, bound=5000.0, **options)
    message = next(protocol)
    while True:
        if isinstance(message, Ask):
            look(message)
        message = protocol.send((yield message))


@pytest.mark.parametrize("method", ["LPU", "LPA", "LBU"])
def test_the_threshold_goes_where_the_numbers_go(method: str) -> None:
    tops = [10.0] * 60 + [400.0] * 100
    thresholds: list[float] = []

    def look(ask: Any) -> None:
        if hasattr(ask.mechanism, "high"):
            thresholds.append(ask.mechanism.high)

    run = run_stream(watched(method, look), stream_of(tops), hb.Random(seed=1))
    low, high = thresholds[int(len(thresholds) * 55 / 160)], thresholds[-1]
    assert low < 100 < high < 2000
    # The standard error of a step is about 10 (LBU: 100), of the mean over 60 steps far less than 40.
    assert abs(run.values[-60:].mean() - 200) < 40


QUIET, W = 9, 3
Held = dict[str, list[bool]]


def held_in_a_jump(method: str, runs: int, n: int = 6000) -> Held:
    """Which intervals hold in the step of a jump and the eight after: a lognormal crowd becomes eight times as large.

    "naive" takes the mean of the clipped numbers for the mean. What "the last steps" tell is looked at once in each
    run, as these intervals share reports; all others are of one step alone.
    """
    held: Held = {name: [] for name in ("mean", "naive", "whole", "above", "lost", "recent above", "recent lost")}
    for run in range(runs):
        rng, draws = np.random.default_rng(run), hb.Random(seed=f"{method} {run}")
        calm, places = rng.lognormal(1.0, 1.0, n), rng.integers(0, 1 << 32, n, dtype=np.uint64)
        crowd = [np.minimum(calm * (1 if step < QUIET else 8), 1000.0) for step in range(2 * QUIET)]

        def answer(ask: Ask, crowd: Any = crowd, places: Any = places, draws: Any = draws) -> Sketch:
            return answered(ask, crowd[ask.step - 1][ask.cohort.holds(places)], draws)

        protocol = clipped_means(method, epsilon=2.0, w=W, bound=1000.0, first=1000 / 2**16)
        for release in list(converse(protocol, answer, steps=2 * QUIET))[QUIET:]:
            above, lost = release.estimates[ABOVE], release.estimates[LOST]
            assert above.labels is not None
            clip = float(above.labels[0].split()[1].rstrip(","))
            count = int(above.labels[1].split()[-2])
            values, recent = crowd[release.step - 1], np.concatenate(crowd[release.step - count : release.step])
            truths = {
                "mean": (release.estimate, [np.minimum(values, clip).mean()]),
                "naive": (release.estimate, [values.mean()]),
                "above": (above, [np.mean(values > clip), np.mean(recent > clip)]),
                "lost": (lost, [np.maximum(values - clip, 0).mean(), np.maximum(recent - clip, 0).mean()]),
                "whole": (release.estimates[WHOLE], [values.mean()]),
            }
            for name, (estimate, truth) in truths.items():
                first, *rest = holds(estimate, truth).tolist()
                held[name].append(first)
                if rest and release.step == QUIET + W:
                    held[f"recent {name}"] += rest
    return held


@pytest.mark.parametrize(
    ("method", "runs"),
    [("LPU", 10), *(pytest.param(method, 120, marks=pytest.mark.slow) for method in ("LPU", "LPA", "LBU"))],
)
def test_intervals_hold_in_a_jump(method: str, runs: int) -> None:
    """Each of six fails with a probability of 1e-4; the naive interval shows that they can."""
    held = held_in_a_jump(method, runs)
    naive = held.pop("naive")
    for name, holding in held.items():
        assert sum(holding) >= fewest(len(holding)), (name, np.mean(holding))
    assert sum(naive) < fewest(len(naive))


def test_what_is_clipped_away_is_known_of_the_recent_steps_only() -> None:
    recent, lengths = _Recent(2), []
    for n in (100, 300, 200, 400, 500):
        recent.add(Estimate([n / 1000], [1e-4], n, noise=Noise(1e-4, 0.0)))
        lengths.append(recent.length)
    assert lengths == [1, 2, 3, 4, 3]
    assert recent.shares is not None
    assert recent.shares.n == 1100  # of the last three steps, each weighted by its reports
    assert recent.shares.value[0] == pytest.approx((200 * 0.2 + 400 * 0.4 + 500 * 0.5) / 1100)


def test_nothing_is_clipped_before_a_crowd_above_would_be_noticed() -> None:
    """300 devices with a fiftieth of .5 for a search cannot tell whether half of them are above any threshold."""
    thresholds: list[float] = []
    protocol = watched("LBU", lambda ask: thresholds.append(getattr(ask.mechanism, "high", 5000.0)), epsilon=0.5)
    run_stream(protocol, stream_of([10.0] * 12, n=300), hb.Random(seed=1))
    assert set(thresholds) == {5000.0}


@pytest.mark.parametrize(
    ("method", "options"), [("LPU", {}), ("LPA", {}), ("LBU", {}), ("LBA", {"beta": 0.3}), ("LSP", {})]
)
def test_all_that_is_asked_is_of_the_family(method: str, options: dict[str, Any]) -> None:
    family = clipped_asks(method, epsilon=4.0, w=5, bound=5000.0, **options)
    views: Any = family.views
    (searched, clipped), (name, units) = views, family.means
    asks_in_step: dict[int, int] = {}
    thresholds: set[float] = set()

    def look(ask: Any) -> None:
        asks_in_step[ask.step] = asks_in_step.get(ask.step, 0) + 1
        view = ask.view.spec()
        if view == searched:
            assert ask.mechanism.spec_id in family.mechanisms
            return
        assert clipped["high"]["from"] <= view["high"] <= clipped["high"]["to"]
        assert view == {**clipped, "high": view["high"]}
        assert type(ask.mechanism).__name__ == name
        assert units_of(ask.mechanism.epsilon) in units
        assert (ask.mechanism.low, ask.mechanism.high) == (view["low"], view["high"])
        thresholds.add(view["high"])

    protocol = watched(method, look, **options)
    run_stream(protocol, stream_of([10.0] * 30 + [400.0] * 30, n=5000), hb.Random(seed=1))
    assert max(asks_in_step.values()) <= family.rounds
    assert len(thresholds) > 1


BAD = [("method", "LPX"), ("bound", 0.5), ("bound", math.nan), ("search", 0.0), ("search", 1.0), ("w", 0)]


@pytest.mark.parametrize(("field", "value"), BAD)
def test_bad_input_is_named(field: str, value: Any) -> None:
    given: dict[str, Any] = {"method": "LPU", "epsilon": 1.0, "w": 5, "bound": 100.0}
    with pytest.raises(InvalidValue, match=f"^{field}:"):
        next(clipped_means(**given | {field: value}))
