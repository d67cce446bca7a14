"""The measured errors of three ways to estimate the distribution of a number: square waves, cells, or a hierarchy."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from hubbub.consistency import norm_sub
from hubbub.consistency.normalise import consistent_leaves
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Floats
from hubbub.core.spec import Json
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.numeric.square_wave import SquareWave
from hubbub.random.source import Random

Way = Callable[[Floats, float, Random], tuple[Floats, Floats]]
"""Takes numbers between 0 and 1, epsilon and randomness; returns borders and the estimated share below each."""

GOALS: Mapping[str, str] = {
    "distribution": "the mean distance of the distribution functions (Wasserstein)",
    "median": "the error of the median",
    "tail": "the error of the 95% quantile",
}
MOST_PEOPLE = 200_000
RUNS = 5


@dataclass(frozen=True)
class NumberRow:
    """One way to estimate the distribution: its error, as a part of the range, and the size of a report."""

    way: str
    error: float
    bytes: int

    def to_dict(self) -> dict[str, Json]:
        return asdict(self)


def compare_numbers(*, epsilon: float, n: int, goal: str = "distribution", runs: int = RUNS) -> list[NumberRow]:
    """The root mean squared error of every way over some runs, measured with fixed seeds; the best way first.

    The simulated numbers are skewed, as fares and durations are: half of them are in the lowest tenth of the range, few
    are near its end. At most 200,000 people are simulated.
    """
    if goal not in GOALS:
        raise InvalidValue("goal", goal, f"one of {', '.join(GOALS)}")
    if isinstance(n, bool) or not isinstance(n, int) or n < 100:
        raise InvalidValue("n", n, "at least 100 people")
    errors: dict[str, list[float]] = {way: [] for way in _WAYS}
    for run in range(runs):
        rng = Random(seed=f"numbers {run}")
        values = _skewed_numbers(min(n, MOST_PEOPLE), rng)
        for name, (way, _) in _WAYS.items():
            errors[name].append(_error(goal, values, *way(values, epsilon, rng)))
    rows = [
        NumberRow(name, math.sqrt(float(np.mean(np.square(run_errors)))), _WAYS[name][1](epsilon))
        for name, run_errors in errors.items()
    ]
    return sorted(rows, key=lambda row: row.error)


def _skewed_numbers(n: int, rng: Random) -> Floats:
    uniform = (rng.uint64(n, 2) + 0.5) / 2.0**64
    normal = np.sqrt(-2 * np.log(uniform[:, 0])) * np.cos(2 * np.pi * uniform[:, 1])
    return np.asarray(np.minimum(np.exp(-2.3 + 0.7 * normal), 1.0))


def _error(goal: str, values: Floats, borders: Floats, below: Floats) -> float:
    rising = np.maximum.accumulate(np.clip(below, 0.0, 1.0))
    if goal == "distribution":
        places = np.linspace(0.0, 1.0, 1025)
        truth = np.searchsorted(np.sort(values), places, side="right") / len(values)
        return float(np.abs(np.interp(places, borders, rising) - truth).mean())
    p = 0.5 if goal == "median" else 0.95
    quantile = np.interp(p, rising + np.arange(len(rising)) * 1e-12, borders)
    return float(abs(quantile - np.quantile(values, p)))


def _waves(values: Floats, epsilon: float, rng: Random) -> tuple[Floats, Floats]:
    wave = SquareWave(epsilon=epsilon, low=0.0, high=1.0)
    shares = wave.likeliest(wave.accumulate(wave.randomize(values, rng)))
    points = wave.points
    return np.concatenate([[0.0], (points[:-1] + points[1:]) / 2, [1.0]]), np.concatenate([[0.0], np.cumsum(shares)])


def _cells(values: Floats, epsilon: float, rng: Random, *, cells: int) -> tuple[Floats, Floats]:
    oracle = OLH(epsilon=epsilon, domain=cells)
    codes = np.minimum((values * cells).astype(np.int64), cells - 1)
    shares = norm_sub(oracle.estimate(oracle.accumulate(oracle.randomize(codes, rng)))).value
    return np.linspace(0.0, 1.0, cells + 1), np.concatenate([[0.0], np.cumsum(shares)])


def _tree(values: Floats, epsilon: float, rng: Random, *, fanout: int, depth: int) -> tuple[Floats, Floats]:
    """Each person reports their node on one random level."""
    leaves = fanout**depth
    codes = np.minimum((values * leaves).astype(np.int64), leaves - 1)
    level = rng.permutation(len(values)) % depth
    levels, variances = [], []
    for h in range(depth):
        oracle = OLH(epsilon=epsilon, domain=fanout ** (h + 1))
        nodes = codes[level == h] // fanout ** (depth - h - 1)
        estimate = oracle.estimate(oracle.accumulate(oracle.randomize(nodes, rng)))
        levels.append(estimate.value)
        variances.append(float(oracle.variance(len(nodes), 0.0)))
    shares = consistent_leaves(levels, variances, fanout=fanout)
    return np.linspace(0.0, 1.0, leaves + 1), np.concatenate([[0.0], np.cumsum(shares)])


def _bytes_of_cells(epsilon: float, cells: int) -> int:
    return OLH(epsilon=epsilon, domain=cells).report_bytes


_WAYS: dict[str, tuple[Way, Callable[[float], int]]] = {
    "SquareWave": (_waves, lambda epsilon: SquareWave(epsilon=epsilon).report_bytes),
    **{
        f"OLH, {cells} cells, Norm-Sub": (partial(_cells, cells=cells), partial(_bytes_of_cells, cells=cells))
        for cells in (16, 32, 64)
    },
    **{
        f"hierarchy of {fanout}^{depth}, consistent": (
            partial(_tree, fanout=fanout, depth=depth),
            partial(_bytes_of_cells, cells=fanout**depth),
        )
        for fanout, depth in ((4, 4), (16, 2))
    },
}
