"""The paper's four streams: from a file, or made with the statistics of Table 1; and other real streams."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from hubbub.core.errors import InvalidValue
from hubbub.data.baskets import retail
from hubbub.data.trips import flights3m, taxi
from hubbub_papers.harness import Context

HOW = (
    "a stream made from Table 1: its 85th, 95th, 99.5th percentiles and maximum joined by Pareto pieces, below "
    "the 85th a power law that gives the average, from 1 on in Kosarak and 2 in POS; whole numbers in random order, "
    "DNS with a daily wave of 14 days"
)
_LONGEST = (1 << 16) + (1 << 20)  # no figure reads further
_DAYS, _WAVE = 14, 0.8


@dataclass(frozen=True)
class PaperShape:
    """A row of Table 1, and the smallest value: a transaction has an item, and the authors count one more in POS."""

    n: int
    bound: int
    p85: float
    p95: float
    p995: float
    p100: float
    average: float
    least: int = 0


PAPER = {
    "DNS": PaperShape(1_141_961, 2_000, 63, 85, 135, 617, 37.9),
    "Fare": PaperShape(8_704_495, 30_000, 440, 1_036, 2_037, 26_770, 279.9),
    "Kosarak": PaperShape(990_002, 41_270, 10, 28, 133, 2_498, 8.1, 1),
    "POS": PaperShape(515_597, 1_657, 13, 21, 39, 165, 7.5, 2),
}
DATA = tuple(name.lower() for name in PAPER)
"""The names of the paper's streams in `--data`."""

REAL = {
    "taxi fares": "real: fares of 50,000 taxi trips in cents, 16 below 0 taken as 0; bound 30,000",
    "basket sizes": "real: sizes of 88,162 shopping baskets; bound 1,657",
    "hourly flights": "real: flights of each hour from January to June 2001; bound 2,000",
}


@dataclass(frozen=True, eq=False)
class ValueStream:
    """The values of a stream in their order, their bound, and where they are from."""

    name: str
    values: NDArray[np.float64]
    bound: float
    note: str = ""


def paper_stream(context: Context, name: str, size: int = _LONGEST) -> ValueStream:
    """One of the paper's streams, or its first `size` values: from its file where one is given, else made."""
    if name.lower() not in context.data:
        return made(name, size)
    values = _read(name, context.data[name.lower()])[:size]
    return ValueStream(name, values, float(PAPER[name].bound), "the paper's stream, from a file")


@cache
def _read(name: str, file: Path) -> NDArray[np.float64]:
    """The values of a file, one a line, below a heading if it has one; refused if they are not those of Table 1."""
    shape, field = PAPER[name], f"data, {name.lower()}"
    try:
        lines = np.loadtxt(file, dtype=np.str_, ndmin=1)
        values = lines[0 if lines[:1].astype(str)[0].replace(".", "", 1).isdigit() else 1 :].astype(np.float64)
    except (OSError, ValueError, IndexError) as problem:
        raise InvalidValue(field, str(file), f"a file with a number a line ({problem})") from None
    if values.size != shape.n:
        raise InvalidValue(field, f"{values.size:,} values", f"a file of {shape.n:,} values, as in Table 1")
    printed = {85: shape.p85, 95: shape.p95, 99.5: shape.p995, 100: shape.p100}
    for percentile, wanted in printed.items():
        found = float(np.percentile(values, percentile))
        if abs(found - wanted) > 1:
            raise InvalidValue(field, found, f"a file whose percentile {percentile:g} is Table 1's {wanted:g}")
    if abs(values.mean() - shape.average) > 0.1:
        raise InvalidValue(field, float(values.mean()), f"a file whose average is Table 1's {shape.average:g}")
    return values


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
    return ValueStream(name, np.minimum(values, shape.bound), float(shape.bound), HOW)


def _quantiles(shape: PaperShape, ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """The value at each rank between 0 and 1."""
    points = np.log([0.15, 0.05, 0.005, 1 / shape.n])
    heights = np.log([shape.p85, shape.p95, shape.p995, shape.p100])
    tail = np.exp(np.interp(-np.log(np.maximum(1 - ranks, 1 / shape.n)), -points, heights))
    grid = (np.arange(100_000) + 0.5) / 100_000
    upper = np.exp(np.interp(-np.log(1 - grid[grid > 0.85]), -points, heights)).mean() * 0.15
    # Rounded, the lower 85% begin at the smallest value. The mean of low + (p85 - low) (u/0.85)^a over them is below.
    low = shape.least - 0.5 if shape.least else 0.0
    wanted = max((shape.average - upper) / 0.85, 1e-3)
    power = brentq(lambda a: low + (shape.p85 - low) / (a + 1) - wanted, 1e-6, 1e6)
    return np.where(ranks > 0.85, tail, low + (shape.p85 - low) * (ranks / 0.85) ** power)


@cache
def real(name: str) -> ValueStream:
    """One of the real streams."""
    if name == "taxi fares":
        return ValueStream(name, np.rint(taxi()["fare_amount"] * 100).clip(0, 30_000), 30_000.0, REAL[name])
    if name == "basket sizes":
        return ValueStream(name, retail().sizes.astype(np.float64), 1_657.0, REAL[name])
    hours = flights3m()["date"].astype("datetime64[h]").astype(np.int64)
    return ValueStream(name, np.bincount(hours - hours.min()).astype(np.float64), 2_000.0, REAL[name])
