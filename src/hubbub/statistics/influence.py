"""Poisoning: how far forged reports can move an answer that is a mean over reports."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Floats


class Shift(NamedTuple):
    """How far forged reports can move an answer: up, and down; both are distances, of at least 0."""

    up: float
    down: float

    @property
    def largest(self) -> float:
        """The larger of the two."""
        return max(self)


class Influence(NamedTuple):
    """How much one forged report can move an answer that is a mean over reports.

    Estimates are means: every report stands for a number, and the estimate is the mean of those numbers. If n honest
    reports estimate A, and m forged ones that stand for a are added, the estimate is exactly

        (n A + m a)/(n + m)  =  A + m/(n + m) (a - A),

    and a forger may choose any report that the format check accepts. The honest estimate A is the truth f on average,
    so that forged reports move the expected answer by m/(n + m) (a - f).

    `least`, `most`: the smallest and the largest number that an accepted report stands for. `low`, `high`: the range of
    the truth: 0 and 1 for a share.
    """

    least: Fraction
    most: Fraction
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(1)

    def shift(self, part: float | Fraction, truth: float | None = None) -> Shift:
        """How far the answer moves if `part` of all reports is forged, at a truth; at the worst truth if none is
        given."""
        if not 0 <= part <= 1:
            raise InvalidValue("forged", part, "a part of all reports, from 0 to 1")
        part, below, above = Fraction(part), self.low, self.high
        if truth is not None:
            if not self.low <= truth <= self.high:
                raise InvalidValue("truth", truth, f"a number from {float(self.low):g} to {float(self.high):g}")
            below = above = Fraction(truth)
        up, down = part * (self.most - below), part * (above - self.least)
        return Shift(up=float(max(up, Fraction(0))), down=float(max(down, Fraction(0))))

    def lost(self, part: float | Fraction) -> Shift:
        """How far the answer moves at most if an adversary chooses that part of all reports, and drops them."""
        part = _checked(part)
        up, down = self.high - self.least, self.most - self.low
        return Shift(up=float(part / (1 - part) * up), down=float(part / (1 - part) * down))

    def honest(self, estimate: Estimate, part: float | Fraction, level: float = 0.95) -> tuple[Floats, Floats]:
        """Intervals that cover the truth with probability `level` even if up to `part` of all reports are forged.

        If the estimate from all reports is B, that from the honest ones alone is (B - part a)/(1 - part), for some a
        between `least` and `most`: the ends take the two, and the noise that the fewer honest reports have there.

        Example:
            >>> import hubbub as hb
            >>> oracle = hb.OUE(epsilon=1.0, domain=8)
            >>> reports = oracle.randomize([3] * 4000 + [5] * 6000, hb.Random(seed=1))
            >>> estimate = oracle.estimate(oracle.accumulate(reports))
            >>> [float(end[3].round(2)) for end in estimate.interval()]
            [0.38, 0.46]
            >>> [float(end[3].round(2)) for end in oracle.influence().honest(estimate, 0.01)]
            [0.36, 0.48]
        """
        part = float(_checked(part))
        low, high = estimate.interval(level)
        below, above = (
            (end - part * float(number)) / (1 - part) for end, number in ((low, self.most), (high, self.least))
        )
        if estimate.noise is None:
            return below, above
        shares = [
            estimate.value,
            *((estimate.value - part * float(end)) / (1 - part) for end in (self.most, self.least)),
        ]
        noise = [np.maximum(estimate.noise.variance(share), 0.0) for share in shares]  # of the honest ones alone
        grown = np.sqrt(np.maximum.reduce(noise) / np.maximum(noise[0], np.finfo(float).tiny))
        more = (np.clip(grown, 1.0, 10.0) - 1) / (1 - part)
        return below - more * (estimate.value - low), above + more * (high - estimate.value)

    @property
    def weight(self) -> float:
        """How many honest people one forged report counts for at most; 1 is a person who lies about the value only."""
        return float(max(self.most - self.low, self.high - self.least) / (self.high - self.low))


def forged_part(forged: int, n: int) -> Fraction:
    """The part of all reports that is forged, with n honest reports."""
    for name, value, least in (("forged", forged, 0), ("n", n, 1)):
        check_integer(name, value, least)
    return Fraction(forged, n + forged)


def _checked(part: float | Fraction) -> Fraction:
    if isinstance(part, bool) or not 0 <= part < 1:
        raise InvalidValue("part", part, "a part of all reports, from 0 to below 1")
    return Fraction(part)
