"""Synthetic streams with the statistics of the paper's four, from Table 1 alone, and real streams."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from hubbub.data.baskets import retail
from hubbub.data.trips import flights3m, taxi

HOW = (
    "a stream made from Table 1: its 85th, 95th, 99.5th percentiles and maximum joined by Pareto pieces, below "
    "the 85th a power law that gives the average; whole numbers in random order, DNS with a daily wave of 14 days"
)
_LONGEST = (1 << 16) + (1 << 20)  # no figure reads further
_DAYS, _WAVE = 14, 0.8


@dataclass(frozen=True)
class PaperShape:
    """A row of Table 1."""

    n: int
    bound: int
    p85: float
    p95: float
    p995: float
    p100: float
    average: float


PAPER = {
    "DNS": PaperShape(1_141_961, 2_000, 63, 85, 135, 617, 37.9),
    "Fare": PaperShape(8_704_495, 30_000, 440, 1_036, 2_037, 26_770, 279.9),
    "Kosarak": PaperShape(990_002, 41_270, 10, 28, 133, 2_498, 8.1),
    "POS": PaperShape(515_597, 1_657, 13, 21, 39, 165, 7.5),
}

REAL = {
    "taxi fares": "fares of 50,000 taxi trips in cents, 16 below 0 taken as 0; bound 30,000",
    "basket sizes": "sizes of 88,162 shopping baskets; bound 1,657",
    "hourly flights": "flights of each hour from January to June 2001; bound 2,000",
}


@dataclass(frozen=True, eq=False)
class ValueStream:
    """The values of a stream in their order, and their bound."""

    name: str
    values: NDArray[np.float64]
    bound: float


@cache
def made(name: str, size: int = _LONGEST) -> ValueStream:
    """A synthetic stream with the statistics of one of the paper's; always the same one."""
    shape = PAPER[name]
    n = min(size, shape.n, _LONGEST)
    rng = np.random.default_rng([ord(letter) for letter in name])
    latent = rng.standard_normal(n)
    if name == "DNS":
        wave = np.sin(2 * np.pi * _DAYS * np.arange(n) / n)
        latent = np.sqrt(2) * _WAVE * wave + np.sqrt(1 - _WAVE**2) * latent
    ranks = np.empty(n)
    ranks[np.argsort(latent, kind="stable")] = (np.arange(n) + 0.5) / n
    values = np.rint(_quantiles(shape, ranks))
    return ValueStream(name, np.minimum(values, shape.bound), float(shape.bound))


def _quantiles(shape: PaperShape, ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """The value at each rank between 0 and 1."""
    points = np.log([0.15, 0.05, 0.005, 1 / shape.n])
    heights = np.log([shape.p85, shape.p95, shape.p995, shape.p100])
    tail = np.exp(np.interp(-np.log(np.maximum(1 - ranks, 1 / shape.n)), -points, heights))
    grid = (np.arange(100_000) + 0.5) / 100_000
    upper = np.exp(np.interp(-np.log(1 - grid[grid > 0.85]), -points, heights)).mean() * 0.15
    # The mean of p85 (u/0.85)^a over the lower 85% is p85/(a + 1).
    wanted = max((shape.average - upper) / 0.85, 1e-3)
    power = brentq(lambda a: shape.p85 / (a + 1) - wanted, 1e-6, 1e6)
    return np.where(ranks > 0.85, tail, shape.p85 * (ranks / 0.85) ** power)


@cache
def real(name: str) -> ValueStream:
    """One of the real streams."""
    if name == "taxi fares":
        return ValueStream(name, np.rint(taxi()["fare_amount"] * 100).clip(0, 30_000), 30_000.0)
    if name == "basket sizes":
        return ValueStream(name, retail().sizes.astype(np.float64), 1_657.0)
    hours = flights3m()["date"].astype("datetime64[h]").astype(np.int64)
    return ValueStream(name, np.bincount(hours - hours.min()).astype(np.float64), 2_000.0)
