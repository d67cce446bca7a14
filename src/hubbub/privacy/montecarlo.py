"""A lower confidence bound on the epsilon that a sampler really spends, from its reports alone."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.errors import InvalidValue, needs
from hubbub.core.noise import check_level
from hubbub.core.reports import Floats, Ints
from hubbub.core.spec import Json
from hubbub.mechanisms.base import Mechanism
from hubbub.random.source import Random


def lower_bound(hits: ArrayLike, trials: ArrayLike, alpha: float) -> Floats:
    """A lower bound of the probability, at confidence 1 - alpha."""
    with needs("analytics"):
        from scipy.special import betaincinv
    count, total = np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    return np.where(count > 0, betaincinv(np.maximum(count, 1), total - count + 1, alpha), 0.0)


def upper_bound(hits: ArrayLike, trials: ArrayLike, alpha: float) -> Floats:
    """An upper bound of the probability, at confidence 1 - alpha."""
    return 1.0 - lower_bound(np.asarray(trials) - np.asarray(hits), trials, alpha)


MOST_VALUES = 8
FEWEST = 1000
_CUTS = 32  # thresholds tried a pair
_CHUNK = 1 << 12  # reports at a time: a unary report of a large domain takes kilobytes
_SURE = 1e300  # the log likelihood ratio of a report that is impossible under the other value
_SLACK = 1e-9  # between log likelihood ratios that differ by rounding only


@dataclass(frozen=True)
class MonteCarlo:
    """The result of sampling: the event that distinguishes two values best, and how often it happened under each.

    Parameters
    ----------
    samples
        Reports drawn, in all.
    level
        The confidence of `epsilon_low`.
    threshold
        The event: the log likelihood ratio of the two values is at least this.
    trials, hits
        Fresh reports of each value, and on how many of them the event happened.
    epsilon_low
        The sampler spends more than this, but for a chance of 1 - level.
    """

    samples: int
    level: float
    values: tuple[Any, Any]
    threshold: float
    trials: int
    hits: tuple[int, int]
    epsilon_low: float

    def to_dict(self) -> dict[str, Json]:
        """The findings as JSON."""
        return {
            "epsilon_low": self.epsilon_low,
            "level": self.level,
            "samples": self.samples,
            "values": [str(value) for value in self.values],
            "threshold": self.threshold,
            "trials": self.trials,
            "hits": list(self.hits),
        }


def sample_epsilon(mechanism: Mechanism, samples: int, rng: Random, level: float = 0.999) -> MonteCarlo | None:
    """Bound the epsilon of `randomize` from below; None where no values to try are known.

    One half of the samples chooses two values and an event, through `log_prob`; the other half is drawn afresh from
    those two values and only counts it. Both probabilities get a Clopper-Pearson bound at (1 - level)/2, so that by the
    union bound ln(low/high) holds at `level`, whatever was chosen.
    """
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < FEWEST:
        raise InvalidValue("montecarlo", samples, f"0, or at least {FEWEST} samples")
    check_level(level)
    values = mechanism.example_values(MOST_VALUES)
    if len(values) < 2:
        return None
    alpha = (1 - level) / 2
    training = samples // 2 // len(values)
    first, second, threshold = _worst_event(mechanism, values, training, rng, alpha)
    pair = [values[first], values[second]]
    trials = (samples - training * len(values)) // 2
    hits = [int((_log_ratio(_sample(mechanism, value, pair, trials, rng), 0, 1) >= threshold).sum()) for value in pair]
    bound = float(_epsilon_low(hits[0], hits[1], trials, alpha))
    return MonteCarlo(
        training * len(values) + 2 * trials, level, (pair[0], pair[1]), threshold, trials, (hits[0], hits[1]), bound
    )


def _worst_event(
    mechanism: Mechanism, values: list[object], count: int, rng: Random, alpha: float
) -> tuple[int, int, float]:
    """The two values (by position) and the threshold with the largest lower bound on the training half."""
    logs = [_sample(mechanism, value, values, count, rng) for value in values]
    best = (-np.inf, 0, 1, 0.0)
    for first in range(len(values)):
        for second in range(len(values)):
            if first == second:
                continue
            of_first, of_second = (np.sort(_log_ratio(logs[value], first, second)) for value in (first, second))
            cuts = np.unique(of_first[np.linspace(0, count - 1, min(_CUTS, count)).astype(int)]) - _SLACK
            hits, misses = (count - np.searchsorted(sample, cuts) for sample in (of_first, of_second))
            bounds = _epsilon_low(hits, misses, count, alpha)
            top = int(np.argmax(bounds))
            best = max(best, (float(bounds[top]), first, second, float(cuts[top])))
    return best[1:]


def _sample(mechanism: Mechanism, value: object, values: list[object], n: int, rng: Random) -> Floats:
    """The log probabilities under each of `values` of n reports of one value."""
    chunks = (min(_CHUNK, n - start) for start in range(0, n, _CHUNK))
    return np.concatenate([mechanism.log_prob(mechanism.randomize([value] * size, rng), values) for size in chunks])


def _log_ratio(logs: Floats, first: int, second: int) -> Floats:
    with np.errstate(invalid="ignore"):  # a report that both call impossible tells nothing: inf - inf
        ratio: Floats = logs[:, first] - logs[:, second]
    return np.asarray(np.nan_to_num(ratio, nan=0.0, posinf=_SURE, neginf=-_SURE))


def _epsilon_low(hits: Ints | int, misses: Ints | int, trials: int, alpha: float) -> Floats:
    with np.errstate(divide="ignore"):  # an event never seen bounds nothing: log 0
        bound = np.log(lower_bound(hits, trials, alpha)) - np.log(upper_bound(misses, trials, alpha))
    return np.asarray(np.maximum(bound, 0.0))
