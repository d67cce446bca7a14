"""The second moments of an estimate as functions of its shares, and how wide normal intervals of a level are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from operator import attrgetter
from statistics import NormalDist

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Floats
from hubbub.core.spec import Json


@dataclass(frozen=True)
class Noise:
    """Variances and covariances: linear in the shares, plus the multinomial terms of sampling.

    A share f_i has variance floor + slope f_i + square f_i^2 + sampling f_i (1-f_i). Two shares have the covariance
    pair_floor + pair_slope (f_i+f_j) - sampling f_i f_j, unless `pairs` is false: then it is not known.
    Every frequency oracle has this form: the floor is Eq 3.3 and the slope the frequency term of Eq 3.2.
    Unary encodings and local hashing have no covariance; an oracle whose report supports a fixed number of
    values (GRR, subset selection) has a negative one. `sampling` is 0 unless a cohort answers for a population, and
    `square` is 0 unless the estimator has a bias that depends on the other shares.
    """

    floor: float
    slope: float
    pair_floor: float = 0.0
    pair_slope: float = 0.0
    sampling: float = 0.0
    square: float = 0.0
    pairs: bool = True

    @property
    def knows_pairs(self) -> bool:
        """Whether `cross_terms` is known."""
        return self.pairs

    def moments(self) -> dict[str, Json]:
        """The numbers by name, as JSON."""
        return {part.name: getattr(self, part.name) for part in fields(Noise)}

    def variance(self, share: Floats) -> Floats:
        return self.floor + self.slope * share + self.square * share**2 + self.sampling * share * (1 - share)

    def cross_terms(self, share: Floats, weights: Floats) -> Floats:
        """What the covariances add to the variance of each row's weighted sum."""
        total = weights.sum(axis=1)
        squares = weights**2
        constant = self.pair_floor * (total**2 - squares.sum(axis=1))
        sums = weights @ share
        return np.asarray(
            constant + 2 * self.pair_slope * (sums * total - squares @ share) + self._sampled(share, weights)
        )

    def _sampled(self, share: Floats, weights: Floats) -> Floats:
        return np.asarray(-self.sampling * ((weights @ share) ** 2 - weights**2 @ share**2))

    def sampled(self, n: int, size: int) -> Noise:
        """The moments when the n who answered are a random part of `size` people."""
        return self.with_sampling((1 - n / size) / max(n, 1))

    def with_sampling(self, rate: float) -> Noise:
        """The moments with this much more multinomial sampling."""
        return replace(self, sampling=self.sampling + rate)

    @staticmethod
    def of_sum(parts: Iterable[tuple[float, Noise]]) -> Noise:
        """The moments of a weighted sum of independent estimates of the same shares: the form is kept."""
        parts = list(parts)
        moments = np.sum(
            [weight**2 * np.array(_MOMENTS(noise), dtype=np.float64) for weight, noise in parts], axis=0
        ).tolist()
        return replace(Noise(*moments), pairs=all(noise.pairs for _, noise in parts))

    def centred(self, size: int, total: float) -> Noise:
        """The moments after subtracting the mean of `size` shares that sum to `total`: the form is kept."""
        # The mean covariance of share i with all of them is base + tilt f_i; of the mean with itself, grand.
        base = (self.floor + (size - 1) * self.pair_floor + self.pair_slope * total) / size
        tilt = (self.slope + (size - 2) * self.pair_slope) / size
        grand = base + tilt * total / size
        return Noise(
            floor=self.floor - 2 * base + grand,
            slope=self.slope - 2 * tilt,
            pair_floor=self.pair_floor - 2 * base + grand,
            pair_slope=self.pair_slope - tilt,
            sampling=self.sampling,  # multinomial: already sums to zero
            pairs=self.pairs,
        )


_MOMENTS = attrgetter(*(part.name for part in fields(Noise)))
"""A noise's numbers in the order of its fields; `astuple` copies them, which takes a stream's forecast too long."""
MARGIN = 1e-12
"""How near to 0 and 1 a level may be: nearer, floats no longer tell the normal quantile."""


def check_level(level: float) -> float:
    """Refuse a confidence level that is not a probability inside 0 and 1; returns the level."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not MARGIN <= level <= 1 - MARGIN:
        raise InvalidValue("level", level, f"a probability between 0 and 1, at least {MARGIN:g} from both")
    return level


@lru_cache(64)
def normal_reach(level: float) -> float:
    """Half the width of a normal interval of this level, in standard errors. Cached: pages need it for many values."""
    return NormalDist().inv_cdf(0.5 + check_level(level) / 2)
