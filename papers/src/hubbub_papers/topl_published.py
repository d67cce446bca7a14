"""ToPL on a stream of single values, as in the paper: each value is of another person and is reported once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import units_of
from hubbub.core.reports import Bools, Floats, Sketch
from hubbub.mechanisms.numeric.hybrid import Hybrid
from hubbub.mechanisms.numeric.square_wave import SquareWave
from hubbub.protocols.topl.threshold import clipped_away, magnitudes, range_errors, search_wave, tail_theta
from hubbub.protocols.views.basic import Binned, Clipped
from hubbub.random.source import Random

FINDER = "tail"
"""The search of collections (`protocols/topl/threshold.py`)."""
CORRECTED = "SW-W, Eq 8 corrected"
WAVE_FINDERS = ("SW-W", "SW", CORRECTED)
"""The paper's searches with Eq 8 as printed; and the first of them with the correct Eq 8, which is ours."""
POINTS = 1024
LEAST, CONSECUTIVE = 1e-4, 5


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
    if finder not in WAVE_FINDERS:
        raise InvalidValue("finder", finder, f"one of {', '.join((FINDER, *WAVE_FINDERS))}")
    wave = SquareWave(epsilon=search_epsilon, low=0.0, high=bound, cells=POINTS - 1)
    shares = wave.likeliest(wave.accumulate(wave.randomize(values, rng)), smooth=finder == "SW")
    shares = shares if finder == "SW" else pruned(shares)
    errors, thetas = range_errors if finder == CORRECTED else printed_errors, wave.points[1:]
    return float(thetas[int(np.argmin(errors(shares, wave.points, thetas, epsilon=epsilon, r=r)))])


def printed_errors(shares: Floats, points: Floats, thetas: Floats, *, epsilon: float, r: int) -> Floats:
    """Eq 8 as printed: r/3 variances, and r^2/24 times the squared bias, which is a quarter of its mean over ranges."""
    noise = Hybrid(epsilon=epsilon, low=0.0, high=1.0).variance(1) * thetas**2
    above = np.maximum(points[None, :] - thetas[:, None], 0.0) @ shares
    return np.asarray(r / 3 * noise + r**2 / 24 * above**2)


def pruned(shares: Floats) -> Floats:
    """The shares, set to 0 from the first of five consecutive points on that are all below 0.01% (section 4.1)."""
    small: Bools = np.concatenate([shares < LEAST, np.ones(CONSECUTIVE, dtype=bool)])
    windows = np.lib.stride_tricks.sliding_window_view(small, CONSECUTIVE)
    runs = np.asarray(np.all(windows, axis=1))[1:]
    # The first points may be rare too: at least one point that is not rare must remain.
    begun = np.cumsum(shares >= LEAST) > 0
    ends = np.flatnonzero(runs & begun)
    remaining = shares.copy()
    if len(ends):
        remaining[ends[0] + 1 :] = 0.0
    return remaining


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
    that is given. The longest range has r values. `finder` is "tail" or one of `WAVE_FINDERS`.
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
