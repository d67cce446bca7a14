"""A power law seen through normal noise: its exponent by maximum likelihood, and what each observation suggests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue

Floats = NDArray[np.float64]

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

    Parameters
    ----------
    n
        How many people the shares are of.
    deviation
        The standard deviation of the noise, in shares.
    exponent
        From 0, where every share is as likely as any other, to 10.

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

        Example:
            >>> PowerLaw.fit(np.full(50, 0.001), n=1000, deviation=0.02).exponent > 3
            True
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

        Example:
            >>> PowerLaw(n=10, deviation=0.1, exponent=0.0).means(np.array([0.55])).round(3).tolist()
            [0.55]
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
