"""Compares the two counters, the hierarchy and the factorisation, by formula and by simulation."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Floats, Ints
from hubbub.curator.factorised import FactorisedCounter
from hubbub.curator.tree import NoiseTree
from hubbub.kernels.curator import FINE, make_consistent
from hubbub.random.integers import ceil_div
from hubbub.random.noise import MOST_SCALE, gaussian_cells, laplace_cells, laplace_variance
from hubbub.random.source import Random

FAN_OUT = 16
_CELLS = 1 << 16


class CounterChoice(NamedTuple):
    """A counter, its guarantee, and the variance of an answer in squared thetas: by formula, and in simulated noise."""

    name: str
    guarantee: str
    on_paper: float
    measured: float


def choose_counter(
    length: int,
    *,
    queries: Literal["prefixes", "ranges"],
    epsilon: float | None = None,
    rho: float | None = None,
    rng: Random,
    count: int = 200,
    runs: int = 3,
) -> list[CounterChoice]:
    """The two counters for a number of values, the better first: under pure epsilon, or under rho (zCDP).

    `queries`: "prefixes" asks for running sums, "ranges" for sums between two random positions. `epsilon`, `rho`: the
    budget of a value: one of the two. `count`, `runs`: how many queries, and how often the noise is drawn.
    """
    if (epsilon is None) == (rho is None):
        raise InvalidValue("epsilon", epsilon, "epsilon or rho, one of the two")
    if isinstance(length, bool) or not isinstance(length, int) or not 2 <= length <= 1 << 24:
        raise InvalidValue("length", length, f"an integer from 2 to {1 << 24}")
    if queries not in ("prefixes", "ranges"):
        raise InvalidValue("queries", queries, "prefixes or ranges")
    for field, number in (("epsilon", epsilon), ("rho", rho)):
        if number is not None and not 0 < number < math.inf:
            raise InvalidValue(field, number, "a finite number above 0")
    ranges = _ranges(length, queries, count, rng)
    makers = (_tree_noise, _factorised_noise)
    choices = []
    for name, make in zip(("hierarchy", "factorisation"), makers, strict=True):
        on_paper, draw = make(length, ranges, epsilon, rho)
        measured = float(np.mean([_squares(draw(rng), ranges) for _ in range(runs)]))
        guarantee = f"epsilon {epsilon:g}, pure" if epsilon is not None else f"rho {rho:g}, zCDP"
        choices.append(CounterChoice(name, guarantee, on_paper, measured))
    return sorted(choices, key=lambda choice: choice.on_paper)


Draw = Callable[[Random], Floats]
"""Noise of all running sums, in multiples of theta."""


def _ranges(length: int, queries: str, count: int, rng: Random) -> Ints:
    last = 1 + rng.below(length, count)
    first = np.zeros(count, dtype=np.int64) if queries == "prefixes" else rng.below(length, count)
    return np.stack([np.minimum(first, last - 1), np.maximum(first + 1, last)], axis=1)


def _squares(sums: Floats, ranges: Ints) -> float:
    padded = np.concatenate([[0.0], sums])
    return float(np.mean((padded[ranges[:, 1]] - padded[ranges[:, 0]]) ** 2))


def _tree_noise(length: int, ranges: Ints, epsilon: float | None, rho: float | None) -> tuple[float, Draw]:
    layers = next(h for h in range(1, 30) if FAN_OUT**h >= length)
    tree = NoiseTree(epsilon=Fraction(epsilon or 1), fan_out=FAN_OUT, layers=layers)
    trees = -(-length // tree.leaves)
    if rho is None:
        variance, cells, draw = tree.node_variance(), tree.cells, tree.noise
    else:
        cells = _CELLS
        sigma = math.ceil(math.sqrt(layers * cells**2 / (2 * rho)))
        variance = sigma**2 / cells**2

        def draw(rng: Random) -> Ints:
            return make_consistent(gaussian_cells(tree.nodes, sigma, rng) * FINE, FAN_OUT, layers).copy()

    def sums(rng: Random) -> Floats:
        noise = np.concatenate([draw(rng) for _ in range(trees)])
        return np.asarray(np.cumsum(noise)[:length] / (cells * FINE))

    on_paper = variance * float(np.mean([tree.row_variance(int(a), int(b)) for a, b in ranges]))
    return on_paper, sums


def _factorised_noise(length: int, ranges: Ints, epsilon: float | None, rho: float | None) -> tuple[float, Draw]:
    counter = FactorisedCounter(rho=rho or 0.5, length=length)
    if epsilon is None:
        cells, sigma = counter.cells, counter.sigma
        variance = (sigma / cells) ** 2

        def noise(rng: Random) -> Ints:
            return gaussian_cells(length, sigma, rng)
    else:
        moved = float(counter.column().sum())  # of the L1 norm
        cells = _CELLS
        while cells > 1 and ceil_div(Fraction(moved * cells), Fraction(epsilon)) > MOST_SCALE:
            cells //= 2
        scale = ceil_div(Fraction(moved * cells), Fraction(epsilon))
        variance = laplace_variance(scale) / cells**2

        def noise(rng: Random) -> Ints:
            return laplace_cells(length, scale, rng)

    def sums(rng: Random) -> Floats:
        return counter.sums_of(noise(rng) / cells)

    on_paper = variance * float(np.mean([counter.squared_weights(int(a), int(b)) for a, b in ranges]))
    return on_paper, sums
