"""MLE-Apx, the most likely shares under normal noise; Power and PowerNS, the expected shares given a power law."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from hubbub.consistency.normalise import adjusted, noise_of, norm_sub, project_simplex, shares_of
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Floats


def mle_apx(estimate: Estimate) -> Estimate:
    """The shares of at least 0, summing to 1, that minimise sum (f_i - f~_i)^2 / (floor + slope f_i).

    With x = (1 - sum f~)/(k floor + slope) over the k shares above 0, f_i = (floor x + f~_i)/(1 - slope x), Eq 8.6 (x,
    gamma and delta are printed with the opposite sign of the slope, and then the shares do not sum to 1). Shares that
    come out negative become 0, and the rest is solved again. With slope 0 this is `norm_sub`. The noise is that of the
    randomisation alone, without the sampling term: the shares among those who answered obey the constraints too. The
    variance stays that of the estimate before.

    `estimate`: shares with the noise of their mechanism. An estimate at which floor + slope f is not above 0 has no
    normal likelihood (no pure oracle can produce one): then the slope is left out.

    Example:
        >>> from hubbub.core.noise import Noise
        >>> estimate = Estimate(value=[0.75, 0.5, -0.25], variance=[0.01] * 3, n=100, noise=Noise(0.01, 0.02))
        >>> mle_apx(estimate).value.round(4).tolist()
        [0.6111, 0.3889, 0.0]

    References
    ----------
    T. Wang, 2021, section 8.1.4.
    """
    value = shares_of(estimate)
    noise = noise_of(estimate, "mle_apx")
    if not (noise.floor + noise.slope * value > 0).all():
        return adjusted(estimate, project_simplex(value))
    return adjusted(estimate, _most_likely(value, noise.slope / noise.floor))


def _most_likely(value: Floats, slope: float) -> Floats:
    """The minimum in units of the floor, by the active-set method: a share that is dropped would stay negative."""
    active = np.arange(value.size)
    while True:
        estimates = value[active]
        total = estimates.sum()
        # Eq 8.6 with x substituted, numerator and denominator multiplied by k + slope: no step divides by 0.
        shares = ((1 - total) + estimates * (active.size + slope)) / (active.size + slope * total)
        if (shares >= 0).all():
            out = np.zeros_like(value)
            out[active] = shares
            return out
        active = active[shares > 0]


_STEEPEST = 10.0  # past this exponent, all but one in a thousand values are held by one person
_SINGLY = 256  # counts up to here are summed one by one, the rest by quadrature
_NEAR, _REACH = 24.0, 12.0  # in standard deviations: where 0 is out of sight, and how far an observation sees
_SPIKY = 16  # noise, in people, below which counts far from 0 too are summed one by one
_ENTRIES = 1 << 20  # of an array at a time
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class PowerLaw:
    """Shares k/n for k = 1..n with probability proportional to k^-exponent, observed with normal noise.

    Sums over k are exact up to k = 256; further on they are integrals by Gauss-Legendre, in panels no wider than
    twice the noise or their own distance from 0. An observation far from 0 needs the counts around it only. Against
    the sum over every k the relative error is below 1e-6 (for an observation above 1, below a hundredth of the
    noise); memory does not depend on n.

    `deviation`: the standard deviation of the noise, in shares. `exponent`: from 0, where every share is as likely as
    any other, to 10.

    Example:
        >>> law = PowerLaw(n=1000, deviation=0.02, exponent=1.5)
        >>> law.means(np.array([-0.05, 0.01, 0.5])).round(4).tolist()
        [0.0022, 0.0047, 0.4988]
    """

    n: int
    deviation: float
    exponent: float

    def __post_init__(self) -> None:
        if self.n < 1:
            raise InvalidValue("n", self.n, "at least 1")
        if not (math.isfinite(self.deviation) and self.deviation > 0):
            raise InvalidValue("deviation", self.deviation, "a finite number above 0")
        if not 0 <= self.exponent <= _STEEPEST:
            raise InvalidValue("exponent", self.exponent, f"a number from 0 to {_STEEPEST:g}")

    @classmethod
    def fit(cls, observed: Floats, n: int, deviation: float) -> PowerLaw:
        """The exponent under which the observations are most likely: by steps of a half, then by golden section.

        Observations within 1/16 of the noise of each other are taken as one, at their mean.
        """
        bins, where, times = np.unique(np.floor(observed * (16 / deviation)), return_inverse=True, return_counts=True)
        middles = np.bincount(where, weights=observed, minlength=bins.size) / times
        counts, weights = _rule(n, math.inf)
        blocks = [(block, times[block.rows]) for block in cls(n, deviation, 0.0)._blocks(middles)]

        @cache
        def unlikely(exponent: float) -> float:
            log_total = math.log(weights @ counts**-exponent)
            return -sum(float(count @ (np.log(block.sums(exponent)[0]) - log_total)) for block, count in blocks)

        start = min(np.arange(0.0, _STEEPEST + 0.25, 0.5).tolist(), key=unlikely)
        low, high = max(start - 0.5, 0.0), min(start + 0.5, _STEEPEST)
        while high - low > 1e-5:
            left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
            low, high = (low, right) if unlikely(left) <= unlikely(right) else (left, high)
        return cls(n, deviation, min((start, (low + high) / 2), key=unlikely))

    def means(self, observed: Floats) -> Floats:
        """The mean share given each observation: Eq 8.7, the guess of least expected squared error.

        It rises with the observation, strictly but for rounding.
        """
        distinct, where = np.unique(observed, return_inverse=True)
        out = np.empty_like(distinct)
        for block in self._blocks(distinct):
            mass, moment = block.sums(self.exponent)
            out[block.rows] = moment / mass
        # Quadrature nodes differ from one observation to the next: rounding must not reverse the order of the means.
        return np.clip(np.maximum.accumulate(out)[where] / self.n, 1 / self.n, 1.0)

    def _blocks(self, observed: Floats) -> Iterator[_Block]:
        """The sorted observations in blocks of rows, with the counts that matter for each block."""
        n = self.n
        tau = max(self.deviation * n, 1e-6)  # noise far below one person is no noise
        counted = np.clip(observed * n, -40 * tau, n + _REACH * tau)  # further away, the result does not change
        near = int(np.searchsorted(counted, _NEAR * tau, side="right"))
        counts, weights = _rule(min(n, math.ceil((_NEAR + 16) * tau)), 2 * tau)
        for rows in _pieces(0, near, counts.size):
            yield _Block.of(
                rows, counted[rows], np.broadcast_to(counts, (len(counted[rows]), counts.size)), weights, tau
            )
        centre = np.minimum(counted, n)
        first, last = centre - _REACH * tau, np.minimum(centre + _REACH * tau, n + 0.5)
        if tau < _SPIKY:
            offsets = np.arange(math.ceil(2 * _REACH * tau) + 2)
            for rows in _pieces(near, counted.size, offsets.size):
                around = np.floor(first[rows])[:, None] + offsets
                inside = (around >= 1) & (around <= n)
                yield _Block.of(rows, counted[rows], np.clip(around, 1, n), inside.astype(np.float64), tau)
        else:
            places, widths = _panels(np.linspace(0.0, 1.0, 13))
            for rows in _pieces(near, counted.size, places.size):
                span = (last - first)[rows, None]
                yield _Block.of(rows, counted[rows], first[rows, None] + span * places, span * widths, tau)


class _Block(NamedTuple):
    rows: slice
    counts: Floats
    kernel: Floats

    @classmethod
    def of(cls, rows: slice, observed: Floats, counts: Floats, weights: Floats, tau: float) -> _Block:
        """Weights times the normal density, scaled so that the largest density of a row is 1."""
        log_kernel = -0.5 * ((counts - observed[:, None]) / tau) ** 2
        log_kernel = np.where(weights > 0, log_kernel, -np.inf)
        return cls(rows, counts, weights * np.exp(log_kernel - log_kernel.max(axis=1, keepdims=True)))

    def sums(self, exponent: float) -> tuple[Floats, Floats]:
        """Of each row, the sum of density k^-exponent, and of k times that."""
        shared = self.counts.strides[0] == 0  # all rows see the same counts
        prior = (self.counts[0] if shared else self.counts) ** -exponent
        if shared:
            return self.kernel @ prior, self.kernel @ (prior * self.counts[0])
        weighed = self.kernel * prior
        return weighed.sum(axis=1), (weighed * self.counts).sum(axis=1)


def _rule(last: int, widest: float) -> tuple[Floats, Floats]:
    """Nodes and weights of the sum over k = 1..last of a function smooth at the scale of `widest` and of k."""
    singly = np.arange(1.0, min(last, _SINGLY) + 1)
    edges = [_SINGLY + 0.5]
    while edges[-1] < last + 0.5:
        edges.append(min(2 * edges[-1], edges[-1] + max(widest, 1.0), last + 0.5))
    nodes, weights = _panels(np.array(edges))
    return np.append(singly, nodes), np.append(np.ones_like(singly), weights)


def _panels(edges: Floats) -> tuple[Floats, Floats]:
    """Gauss-Legendre of 8 points between each edge and the next."""
    places, weights = _legendre()
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1 + places)).ravel(), (half * weights).ravel()


@cache
def _legendre() -> tuple[Floats, Floats]:
    return np.polynomial.legendre.leggauss(8)


def _pieces(start: int, stop: int, columns: int) -> Iterable[slice]:
    step = max(1, _ENTRIES // columns)
    return (slice(row, min(row + step, stop)) for row in range(start, stop, step))


def power(estimate: Estimate) -> Estimate:
    """The posterior mean of each share, its prior a power law fitted to all of them.

    f_i = E[x | f~_i] with Pr[x] proportional to x^-s over x = 1/n, 2/n, ..., 1 and f~_i normal around x with variance
    Var*, that at share 0 (Eq 8.7). The chapter leaves open how s is fitted: here by maximum likelihood of the
    estimates under prior and noise together, s from 0 to 10. Every share is at least 1/n, and the sum is not
    constrained. The bias is called "consistent", since non-negativity is enforced; but the result depends on the prior,
    and can be poor where shares do not follow a power law. The variance stays that of the estimate before.

    `estimate`: shares with the noise of their mechanism.

    Example:
        >>> from hubbub.core.noise import Noise
        >>> value = [0.5, 0.2, 0.1, 0.05, -0.03] + [0.01, -0.01] * 20
        >>> estimate = Estimate(value=value, variance=[4e-4] * 45, n=10_000, noise=Noise(4e-4, 0.0))
        >>> power(estimate).value[:6].round(3).tolist()
        [0.499, 0.197, 0.094, 0.019, 0.001, 0.002]

    References
    ----------
    T. Wang, 2021, section 8.1.5.
    """
    value = shares_of(estimate)
    deviation = math.sqrt(noise_of(estimate, "power").floor)
    return adjusted(estimate, PowerLaw.fit(value, estimate.n, deviation).means(value))


def power_ns(estimate: Estimate) -> Estimate:
    """`power`, then `norm_sub`: shares near a power law that are at least 0 and sum to 1.

    The chapter's choice for sums over sets of values. The variance stays that of the estimate before.

    Example:
        >>> from hubbub.core.noise import Noise
        >>> value = [0.5, 0.2, 0.1, 0.05, -0.03] + [0.01, -0.01] * 20
        >>> estimate = Estimate(value=value, variance=[4e-4] * 45, n=10_000, noise=Noise(4e-4, 0.0))
        >>> round(float(power_ns(estimate).value.sum()), 9)
        1.0

    References
    ----------
    T. Wang, 2021, section 8.1.5.
    """
    return norm_sub(power(estimate))
