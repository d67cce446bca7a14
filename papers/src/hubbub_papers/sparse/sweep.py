"""The sweep of mechanisms over random sparse vectors, its expected errors, and its lines in a figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hubbub.data.synthetic import sparse_vectors
from hubbub.mechanisms.ternary.vectors import Ternary
from hubbub_papers.harness import Context, RunScores
from hubbub_papers.plots import draw_lines, finish
from hubbub_papers.sparse.errors import Errors, measure
from hubbub_papers.sparse.methods import look, mechanism

if TYPE_CHECKING:
    from matplotlib.axes import Axes

THREADS = 2
"""Runs made at the same time: numpy's loops let another thread run."""


class Place(NamedTuple):
    """A population: n people with vectors of length d, of which s entries are not 0.

    Example:
        >>> str(Place(100_000, 256, 8))
        'n = 100,000, d = 256, s = 8'
    """

    n: int
    d: int
    s: int

    def scaled(self, context: Context) -> Place:
        """The same with the number of people scaled as the context says."""
        return self._replace(n=context.size(self.n))

    def __str__(self) -> str:
        return f"n = {self.n:,}, d = {self.d}, s = {self.s}"


Key = tuple[Place, float, str]
"""A place, epsilon, and a method."""
Runs = RunScores[Key]
PeopleKey = tuple[str, float, str]
"""The name of real people, epsilon, and a method."""
AnyKey = TypeVar("AnyKey")
Of = Literal["mean", "sign"]


def sweep(
    context: Context, places: Mapping[Place, Sequence[str]], epsilons: Sequence[float]
) -> dict[Key, NDArray[np.float64]]:
    """Measure the methods of every place at every epsilon: an array of `Errors`, one row a run.

    In one run, all methods have the same people. The randomness of a run depends on nothing but its own setting, so
    that figures that share settings share numbers.
    """

    @lru_cache(maxsize=2)
    def people(place: Place, run: int) -> Ternary:
        rng = context.rng.child("sparse vectors", *place, run)
        return sparse_vectors(context.size(place.n), place.d, place.s, rng)

    def run_step(step: tuple[Place, int, float, str]) -> dict[Key, Errors]:
        place, run, epsilon, method = step
        rng = context.rng.child("sparse", *place, str(epsilon), method, run)
        built = mechanism(method, epsilon, place.d, place.s, place.n)
        return {(place, epsilon, method): measure(built, people(place, run), rng)}

    runs = range(context.repeats)
    steps = [(place, run, e, m) for place, methods in places.items() for run in runs for e in epsilons for m in methods]
    return context.gather(steps, run_step, lambda s: f"{s[0]}, eps = {s[2]:g}, {s[3]}, run {s[1] + 1}", threads=THREADS)


def sweep_people(
    context: Context,
    name: str,
    people: Mapping[str, tuple[Ternary, int]],
    epsilons: Sequence[float],
    methods: Sequence[str],
) -> dict[PeopleKey, NDArray[np.float64]]:
    """Measure every method at every epsilon on real people, given by name as vectors and the number s of entries."""

    def run_once(key: PeopleKey, run: int) -> dict[PeopleKey, Errors]:
        who, epsilon, method = key
        vectors, sparsity = people[who]
        built = mechanism(method, epsilon, vectors.dimension, sparsity, len(vectors))
        rng = context.rng.child(name, who, str(epsilon), method, run)
        return {key: measure(built, vectors, rng, exactly=False)}

    settings = [(who, epsilon, method) for who in people for epsilon in epsilons for method in methods]
    return context.measure(settings, run_once, "{0[0]}, eps = {0[1]:g}, {0[2]}".format)


def average(runs: RunScores[AnyKey], key: AnyKey, field: str) -> float:
    """The mean over the runs of one of the `Errors`, by name."""
    return float(runs[key][:, Errors._fields.index(field)].mean())


def logs(runs: Runs, key: Key, field: str) -> float:
    """The mean over the runs of the natural logarithm of one of the `Errors`, which is what the papers draw."""
    return float(np.log(runs[key][:, Errors._fields.index(field)]).mean())


def expected_tve(name: str, epsilon: float, place: Place, of: Of = "mean") -> float:
    """The expected TVE without post-processing: a sum of mean absolute normal errors, sqrt(2 variance/pi) each."""
    positions, deviation = _normal(name, epsilon, place, of)
    return positions * math.sqrt(2 / math.pi) * deviation


def expected_mae(name: str, epsilon: float, place: Place, of: Of = "mean") -> float:
    """The expected MAE without post-processing: the mean of the largest of as many independent normal errors."""
    positions, deviation = _normal(name, epsilon, place, of)
    x = np.linspace(0.0, 10.0, 4001)
    below = np.array([math.erf(number / math.sqrt(2)) for number in x])  # the chance that one error is no larger
    return float(np.trapezoid(1 - below**positions, x)) * deviation


def _normal(name: str, epsilon: float, place: Place, of: Of) -> tuple[int, float]:
    """The number of errors, and the deviation of each, where everyone holds s of d positions: a share of s/d each."""
    built = mechanism(name, epsilon, place.d, place.s, place.n)
    share = place.s / place.d
    mean, frequency = (
        share * held + (1 - share) * missing
        for held, missing in (built.variances("mean"), built.variances("frequency"))
    )
    variance, positions = (mean, place.d) if of == "mean" else ((mean + frequency) / 4, 2 * place.d)
    return positions, math.sqrt(variance / place.n)


def draw(
    panel: Axes,
    runs: Runs,
    place: Place,
    epsilons: Sequence[float],
    methods: Sequence[str],
    field: str,
    *,
    title: str,
    y: str,
) -> None:
    """A line for each method over epsilon; errors on a logarithmic axis."""
    heights = {method: [math.exp(logs(runs, (place, e, method), field)) for e in epsilons] for method in methods}
    draw_lines(panel, epsilons, heights, look)
    finish(panel, "$\\epsilon$", y, title, log="xy")
