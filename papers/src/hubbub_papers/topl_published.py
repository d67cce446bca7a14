"""ToPL on a stream of single values, as in the paper: each value is of another person and is reported once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import units_of
from hubbub.core.reports import Sketch
from hubbub.mechanisms.numeric.hybrid import Hybrid
from hubbub.mechanisms.numeric.square_wave import SquareWave
from hubbub.protocols.topl.threshold import best_theta, clipped_away, magnitudes, search_wave, tail_theta
from hubbub.protocols.views.basic import Binned, Clipped
from hubbub.random.source import Random

FINDER = "tail"
"""The search of `tail.py`, which collections use. "SW-W" and "SW" are the paper's, as printed."""
POINTS = 1024


@dataclass(frozen=True, eq=False)
class PublishedStream:
    """A private stream: an unbiased estimate of each clipped value after the first m.

    `search` has the mechanism, the view and the sketch of the search, from which `clipped_away` is estimated; it is
    None with the paper's finders.
    """

    theta: float
    values: NDArray[np.float64]
    variance: float
    search: tuple[SquareWave, Binned, Sketch] | None = None

    def clipped_away(self) -> tuple[Estimate, Estimate] | None:
        """The share of people above the threshold, and what clipping hides of the mean (see `tail.clipped_away`)."""
        return None if self.search is None else clipped_away(*self.search, self.theta)

    def range_sum(self, start: int, end: int) -> Estimate:
        """The sum of the clipped values from `start` up to `end`, `end` excluded."""
        if not 0 <= start < end <= len(self.values):
            raise InvalidValue("end", (start, end), f"a range within the {len(self.values)} values")
        total, count = float(self.values[start:end].sum()), end - start
        variance = np.array([self.variance * count])
        return Estimate(np.array([total]), variance, count, "heuristic", "quantity", bounds=(0.0, self.theta * count))


def find_theta(
    values: NDArray[np.float64],
    *,
    bound: float,
    epsilon: float,
    search_epsilon: float,
    r: int,
    rng: Random,
    finder: str = FINDER,
) -> float:
    """Estimate the threshold from the square wave reports of some values; parameters as of `publish`."""
    if finder == FINDER:
        search = _searched(values, bound, search_epsilon, rng)
        return tail_theta(*search, most=bound, epsilon=epsilon, r=r)[0]
    wave = SquareWave(epsilon=search_epsilon, low=0.0, high=bound, cells=POINTS - 1)
    sketch = wave.accumulate(wave.randomize(values, rng))
    return best_theta(wave, sketch, epsilon=epsilon, r=r, finder=finder)


def _searched(
    values: NDArray[np.float64], bound: float, epsilon: float, rng: Random
) -> tuple[SquareWave, Binned, Sketch]:
    """The mechanism and the view of the search, and the sketch of the reports of some values."""
    wave, view = search_wave(units_of(epsilon)), magnitudes(bound)
    return wave, view, wave.accumulate(wave.randomize(view(values), rng))


def publish(
    values: NDArray[np.float64],
    *,
    epsilon: float,
    bound: float,
    m: int,
    r: int,
    rng: Random,
    search_epsilon: float | None = None,
    finder: str = FINDER,
) -> PublishedStream:
    """Find the threshold from the first m values, and publish the others clipped to it.

    Every value is reported once, by one of the two mechanisms: epsilon for each event, by parallel composition.

    The search takes the first m values, which are from 0 to `bound`; a report of theirs spends `search_epsilon`, if
    that is given. The longest range has r values. `finder` is "tail", or the paper's "SW-W" or "SW".
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not ((numbers >= 0) & (numbers <= bound)).all():
        raise InvalidValue("values", values, f"numbers from 0 to {bound:g}")
    if not 1 <= m < len(numbers):
        raise InvalidValue("m", m, f"an integer from 1 to {len(numbers) - 1}: the stream has {len(numbers)} values")
    search_epsilon = search_epsilon or epsilon
    search = _searched(numbers[:m], bound, search_epsilon, rng) if finder == FINDER else None
    if search is not None:
        theta, _ = tail_theta(*search, most=bound, epsilon=epsilon, r=r)
    else:
        theta = find_theta(
            numbers[:m], bound=bound, epsilon=epsilon, search_epsilon=search_epsilon, r=r, rng=rng, finder=finder
        )
    hybrid = Hybrid(epsilon=epsilon, low=0.0, high=theta)
    reports = hybrid.randomize(Clipped(0.0, theta)(numbers[m:]), rng)
    return PublishedStream(theta, hybrid.numbers_of(reports), hybrid.variance(1), search)
