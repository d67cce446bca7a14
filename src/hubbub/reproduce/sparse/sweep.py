"""Every mechanism in every setting over random sparse vectors, and what is drawn and said of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.ternary import Ternary
from hubbub.data.synthetic import sparse_vectors
from hubbub.reproduce.harness import Context
from hubbub.reproduce.plots import finish
from hubbub.reproduce.sparse.errors import Errors, measure
from hubbub.reproduce.sparse.methods import look, mechanism

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_AT_ONCE = 2


class Place(NamedTuple):
    """How many people, how long their vectors are, and how many entries each holds.

    Example:
        >>> str(Place(100_000, 256, 8))
        'n = 100,000, d = 256, s = 8'
    """

    n: int
    d: int
    s: int

    def scaled(self, context: Context) -> Place:
        """With as many people as there are in a quick look."""
        return self._replace(n=context.size(self.n))

    def __str__(self) -> str:
        return f"n = {self.n:,}, d = {self.d}, s = {self.s}"


Key = tuple[Place, float, str]
"""A place, epsilon, and a method."""
Runs = Mapping[Key, NDArray[np.float64]]
Of = Literal["mean", "sign"]


def sweep(
    context: Context, places: Mapping[Place, Sequence[str]], epsilons: Sequence[float]
) -> dict[Key, NDArray[np.float64]]:
    """Measure the methods of every place at every epsilon: an array of `Errors`, one row a run.

    The people of a run are the same for all; the randomness of a run depends on nothing but its own setting, so that
    figures that share settings share numbers.
    """
    runs = range(context.repeats)
    plan = [(place, run, e, m) for place, methods in places.items() for run in runs for e in epsilons for m in methods]
    measured: dict[Key, list[Errors]] = {}

    @lru_cache(maxsize=2)
    def people(place: Place, run: int) -> Ternary:
        rng = context.rng.child("sparse vectors", *place, run)
        return sparse_vectors(context.size(place.n), place.d, place.s, rng)

    def one(step: tuple[Place, int, float, str]) -> Errors:
        place, run, epsilon, method = step
        rng = context.rng.child("sparse", *place, str(epsilon), method, run)
        return measure(mechanism(method, epsilon, place.d, place.s, place.n), people(place, run), rng)

    pool = ThreadPoolExecutor(_AT_ONCE)  # numpy's loops let the other thread run
    try:
        results = pool.map(one, plan)
        for step in context.track(plan, lambda p: f"{p[0]}, eps = {p[2]:g}, {p[3]}, run {p[1] + 1}"):
            place, _, epsilon, method = step
            measured.setdefault((place, epsilon, method), []).append(next(results))
    finally:
        pool.shutdown(cancel_futures=True)  # whoever interrupts does not wait for all that was planned
    return {key: np.array(rows) for key, rows in measured.items()}


def average(runs: Runs, key: Key, what: str) -> float:
    """The mean over the runs of one of the `Errors`."""
    return float(runs[key][:, Errors._fields.index(what)].mean())


def logs(runs: Runs, key: Key, what: str) -> float:
    """The mean over the runs of its natural logarithm, which is what the papers draw."""
    return float(np.log(runs[key][:, Errors._fields.index(what)]).mean())


def expected_tve(name: str, epsilon: float, place: Place, of: Of = "mean") -> float:
    """The TVE on paper of answers as they are: the sum of the mean sizes of normal errors, sqrt(2 variance/pi) each.

    Example:
        >>> round(expected_tve("Collision", 1.0, Place(50_000, 128, 8)), 3)
        4.001
    """
    positions, deviation = _normal(name, epsilon, place, of)
    return positions * math.sqrt(2 / math.pi) * deviation


def expected_mae(name: str, epsilon: float, place: Place, of: Of = "mean") -> float:
    """The MAE on paper of answers as they are: the mean of the largest of as many independent normal errors.

    Example:
        >>> round(expected_mae("Collision", 1.0, Place(50_000, 128, 8)), 3)
        0.111
    """
    positions, deviation = _normal(name, epsilon, place, of)
    x = np.linspace(0.0, 10.0, 4001)
    below = np.array([math.erf(number / math.sqrt(2)) for number in x])  # the chance that one error is no larger
    return float(np.trapezoid(1 - below**positions, x)) * deviation


def _normal(name: str, epsilon: float, place: Place, of: Of) -> tuple[int, float]:
    """How many errors there are, and the deviation of one: everyone holds s of the d positions, a share s/d each."""
    built = mechanism(name, epsilon, place.d, place.s, place.n)
    share = place.s / place.d
    mean, frequency = (
        share * held + (1 - share) * missing
        for held, missing in (built.variances("mean"), built.variances("frequency"))
    )
    each, positions = (mean, place.d) if of == "mean" else ((mean + frequency) / 4, 2 * place.d)
    return positions, math.sqrt(each / place.n)


def draw(
    panel: Axes,
    runs: Runs,
    place: Place,
    epsilons: Sequence[float],
    methods: Sequence[str],
    what: str,
    *,
    title: str,
    y: str,
) -> None:
    """A line for each method over epsilon; errors on a logarithmic axis."""
    for method in methods:
        panel.plot(epsilons, [math.exp(logs(runs, (place, e, method), what)) for e in epsilons], **look(method))
    finish(panel, "$\\epsilon$", y, title, log="xy")
