"""ToPL on a stream of single values, as in the paper: each of another person, each reported once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import units_of
from hubbub.core.random import Random
from hubbub.mechanisms.numeric.hybrid import Hybrid
from hubbub.mechanisms.numeric.square_wave import SquareWave
from hubbub.protocols.topl.tail import magnitudes, search_wave, tail_theta
from hubbub.protocols.topl.threshold import best_theta
from hubbub.protocols.view import Clipped

FINDER = "tail"
"""The search of `tail`, which collections have. "SW-W" and "SW" are the paper's, as printed."""
POINTS = 1024


@dataclass(frozen=True, eq=False)
class PublishedStream:
    """A private stream: an unbiased number for each clipped value after the first m, and the variance of each.

    Parameters
    ----------
    theta
        What values were clipped to.
    values
        The numbers.
    variance
        Of one of them.

    Example:
        >>> stream = PublishedStream(theta=2.0, values=np.array([1.0, 3.0, -1.0]), variance=4.0)
        >>> stream.range_sum(0, 2).value.tolist(), stream.range_sum(0, 2).stderr.round(2).tolist()
        ([4.0], [2.83])
    """

    theta: float
    values: NDArray[np.float64]
    variance: float

    def range_sum(self, start: int, end: int) -> Estimate:
        """The sum of the clipped values from `start` up to, and without, `end`."""
        if not 0 <= start < end <= len(self.values):
            raise InvalidValue("end", (start, end), f"a range within the {len(self.values)} values")
        total, count = float(self.values[start:end].sum()), end - start
        most = self.theta * count
        variance = np.array([self.variance * count])
        return Estimate(np.array([total]), variance, count, "heuristic", "quantity", bounds=(0.0, most))


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
    """The threshold from values that are reported as square waves, and not otherwise; parameters as of `publish`.

    Example:
        >>> values = np.tile([20.0, 30.0], 20_000)
        >>> 15 < find_theta(values, bound=1000.0, epsilon=1.0, search_epsilon=2.0, r=1 << 16, rng=Random(seed=1)) < 60
        True
    """
    if finder == FINDER:
        wave, view = search_wave(units_of(search_epsilon)), magnitudes(bound)
        heard = wave.accumulate(wave.randomize(view(values), rng))
        return tail_theta(wave, view, heard, most=bound, epsilon=epsilon, r=r)[0]
    wave = SquareWave(epsilon=search_epsilon, low=0.0, high=bound, cells=POINTS - 1)
    heard = wave.accumulate(wave.randomize(values, rng))
    return best_theta(wave, heard, epsilon=epsilon, r=r, finder=finder)


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

    Every value is reported once, by whichever of the two mechanisms: epsilon for each event, by parallel composition.

    Parameters
    ----------
    values
        The stream, from 0 to `bound`.
    epsilon, search_epsilon
        What a report spends, and one of the first m if that is another.
    bound
        The largest value there can be.
    m, r
        How many values are held out, and the longest range that will be asked for.
    finder
        "tail"; or the paper's "SW-W" or "SW".

    Example:
        >>> stream = np.tile([3.0, 5.0, 9.0], 20_000)
        >>> told = publish(stream, epsilon=2.0, bound=1000.0, m=30_000, r=30_000, rng=Random(seed=1))
        >>> total = told.range_sum(0, 30_000)
        >>> bool(abs(total.value[0] / 30_000 - 17 / 3) < 0.5), 5 < told.theta < 50
        (True, True)
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not ((numbers >= 0) & (numbers <= bound)).all():
        raise InvalidValue("values", values, f"numbers from 0 to {bound:g}")
    if not 1 <= m < len(numbers):
        raise InvalidValue("m", m, f"an integer from 1 to {len(numbers) - 1}: the stream has {len(numbers)} values")
    search_epsilon = search_epsilon or epsilon
    theta = find_theta(
        numbers[:m], bound=bound, epsilon=epsilon, search_epsilon=search_epsilon, r=r, rng=rng, finder=finder
    )
    hybrid = Hybrid(epsilon=epsilon, low=0.0, high=theta)
    reports = hybrid.randomize(Clipped(0.0, theta)(numbers[m:]), rng)
    return PublishedStream(theta, hybrid.numbers_of(reports), hybrid.variance(1))
