"""Mechanisms whose reports support values, and how supports of candidates are counted, with weights or without."""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.domain import Domain, Values, as_domain
from hubbub.core.domain.texts import BitStrings
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Ints, Reports, Sketch, Words
from hubbub.core.spec import spec_id
from hubbub.mechanisms.base import Linkable, Mechanism
from hubbub.mechanisms.weights import TWO_64, other_weight, truth_weight

if TYPE_CHECKING:
    from hubbub.core.estimate import Estimate
    from hubbub.core.noise import Noise
    from hubbub.statistics.influence import Influence

DomainLike: TypeAlias = Domain | int | Sequence[str]


@dataclass(frozen=True, kw_only=True)
class CandidateCounts(Mechanism):
    """A mechanism over a domain whose reports each support some of its values."""

    linkable: ClassVar[Linkable] = "never"
    domain: DomainLike
    takes_open: ClassVar[bool] = False
    """Whether the domain may be open (`BitStrings`). A sketch then holds n alone: `support` counts candidates."""

    @abstractmethod
    def _support(self, reports: Reports, candidates: Words, weights: Ints | None) -> Ints:
        """For each candidate, the number (or total weight) of reports that support it."""

    def _support_sums(self, reports: Reports, candidates: Words, weights: Ints, powers: int) -> Ints:
        """The weight of the reports that support each candidate, then of all; for 2 powers, the same of squares."""
        columns = [weights**power for power in range(1, powers + 1)]
        return np.array([np.append(self._support(reports, candidates, row), row.sum()) for row in columns])

    @cached_property
    def _domain(self) -> Domain:
        return as_domain("domain", self.domain)

    @cached_property
    def size(self) -> int:
        """How many values there are."""
        domain = self._domain
        if isinstance(domain, BitStrings):
            return 1 << domain.bits
        assert domain.size is not None
        return domain.size

    @property
    def is_open(self) -> bool:
        """Whether the values are too many to list: then only candidates are estimated, by `support`."""
        return self._domain.size is None

    def support(self, reports: Reports, candidates: Values, weights: ArrayLike | None = None) -> Sketch:
        """Count supports of some candidates only, each report counting as its integer weight.

        The sketch's id covers the candidates, so that sketches of different candidates do not merge. With weights
        (fixed-point numbers), the counts have a row for weights and one for squared weights, each with its total last.
        """
        self.check(reports)
        codes = self._codes(candidates)
        if weights is None:
            return Sketch(self._support_id(codes, False), len(reports), self._support(reports, codes, None))
        return Sketch(self._support_id(codes, True), len(reports), self.weighted_supports(reports, codes, weights))

    def supports(self, reports: Reports, codes: Words) -> Ints:
        """How many reports support each code; codes may repeat. The fast form of `support` for many candidates."""
        self.check(reports)
        return self._support(reports, codes, None)

    def weighted_supports(self, reports: Reports, codes: Words, weights: ArrayLike) -> Ints:
        """The weight of the reports that support each code, then of all; in the second row, of squared weights."""
        self.check(reports)
        return self._support_sums(reports, codes, _weights(weights, len(reports)), 2)

    def support_sketch(self, candidates: Values, n: int, counts: ArrayLike) -> Sketch:
        """The sketch that `support` returned for n reports, with or without weights, rebuilt from its counts."""
        codes = self._codes(candidates)
        array = np.asarray(counts, dtype=np.int64)
        if array.shape not in ((codes.size,), (2, codes.size + 1)):
            raise InvalidValue("counts", array.shape, f"{codes.size} counts, one per candidate")
        return Sketch(self._support_id(codes, array.ndim == 2), n, array)

    def _codes(self, candidates: Values) -> Words:
        codes = self._domain.encode(candidates).astype(np.uint64)
        if np.unique(codes).size < codes.size:
            raise InvalidValue("candidates", candidates, "candidates that differ from each other")
        return codes

    def _support_id(self, codes: Words, weighted: bool) -> str:
        digest = hashlib.sha256(codes.astype("<u8").tobytes()).hexdigest()
        return spec_id({"support": self.spec_id, "candidates": digest, "weighted": weighted})


def _weights(weights: ArrayLike, n: int) -> Ints:
    array = np.asarray(weights)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise InvalidValue("weights", array, f"{n} integers, one per report")
    most = max(abs(int(array.min(initial=0))), int(array.max(initial=0)))
    if most * most * max(n, 1) >= 1 << 63:
        raise InvalidValue("weights", most, "weights whose squares sum to less than 2^63")
    return array.astype(np.int64, copy=False)


class Moments(NamedTuple):
    """The first two moments of one report's support of a value: from a holder of it, and from anyone else."""

    true_mean: float
    false_mean: float
    true_variance: float
    false_variance: float


@dataclass(frozen=True, kw_only=True)
class SupportMechanism(CandidateCounts):
    """A protocol whose reports each support some values; it is pure if two rates describe it (Definition 3.2.1).

    `p` is the chance that a report supports a value its sender holds, `q` that it supports any other. With C_i
    supports among n reports, the share of holders of i is estimated by (C_i/n - q)/(p - q), Eq 3.1, unbiased, with
    variance [q(1-q) + f_i (p-q)(1-p-q)] / (n (p-q)^2), Eq 3.2. People hold one value each (`FrequencyOracle`) or a set
    of them (`SetMechanism`).
    """

    support_range: ClassVar[tuple[int, int]] = (0, 1)
    server_work: ClassVar[str] = "d operations"
    """The work of folding in one report, in words."""

    @cached_property
    def rates(self) -> tuple[Fraction, Fraction]:
        """The exact p and q of a pure protocol."""
        raise InvalidValue("rates", type(self).__name__, "a pure protocol")

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        return (0,) if self.is_open else (self.size,)

    def moments(self) -> Moments:
        """The mean and variance of one report's support of a value, from a holder and from anyone else."""
        p, q = (float(rate) for rate in self.rates)
        return Moments(p, q, p * (1 - p), q * (1 - q))

    @abstractmethod
    def pair_covariance(self) -> tuple[float, float] | None:
        """The covariance of one report's supports of two values, if its sender holds one of them, and if neither.

        None where it depends on how many people hold both, which no count tells.
        """

    def noise(self, n: int) -> Noise:
        """The variance and covariance of estimates from n reports, as functions of the shares (Eq 3.2)."""
        from hubbub.core.noise import Noise

        moments = self.moments()
        scale = n * (moments.true_mean - moments.false_mean) ** 2
        pairs = self.pair_covariance()
        holder, neither = pairs or (0.0, 0.0)
        return Noise(
            floor=moments.false_variance / scale,
            slope=(moments.true_variance - moments.false_variance) / scale,
            pair_floor=neither / scale,
            pair_slope=(holder - neither) / scale,
            pairs=pairs is not None,
        )

    def server_operations(self, n: int) -> float:
        """The elementary operations of folding in one of n reports, with its part of the work done once for all."""
        return float(self.size)

    @property
    def confusion(self) -> float:
        """Times f^2, the variance that another value of share f adds at any n: 0 unless hash functions are few."""
        return 0.0

    @property
    def values_held(self) -> int:
        """The sum of all shares: how many values a person holds, as the reports count them."""
        return 1

    @property
    def values_counted(self) -> int:
        """How many values reports can support, whether they are estimated or not."""
        return self.size

    def variance(self, n: int, share: float = 0.0) -> float:
        """The predicted variance of an estimated share (Eq 3.2; at share 0, Eq 3.3)."""
        return float(self.noise(n).variance(np.array([share]))[0])

    def threshold(self, n: int, alpha: float = 0.05) -> float:
        """The share above which an estimate is significant (Eq 3.13): of d absent values, alpha exceed it by chance."""
        if not 0 < alpha < self.size:
            raise InvalidValue("alpha", alpha, f"a number between 0 and {self.size}")
        return -NormalDist().inv_cdf(alpha / self.size) * math.sqrt(self.variance(n))

    def influence(self, values: int = 1) -> Influence:
        """The numbers that one forged report can stand for in a value's share, or in the sum of several chosen shares.

        A report with support s of a value stands for (s - q)/(p - q). For one value the numbers are attained. For
        several they are a bound under local hashing: a forger looks for a seed that puts all of them in one bucket.
        """
        from hubbub.statistics.influence import Influence

        if isinstance(values, bool) or not isinstance(values, int | np.integer) or not 1 <= values <= self.size:
            raise InvalidValue("values", values, f"an integer from 1 to {self.size}")
        held, missing = self._support_means()
        least, most = ((support - values * missing) / (held - missing) for support in self._supported(int(values)))
        return Influence(least, most)

    def _support_means(self) -> tuple[Fraction, Fraction]:
        """The mean support of a value, from a holder of it and from anyone else."""
        return self.rates

    def _supported(self, values: int) -> tuple[int, int]:
        """The least and the most support that an accepted report can give to this number of chosen values together."""
        low, high = self.support_range
        return low * values, high * values

    def _fold(self, reports: Reports) -> Ints:
        if self.is_open:
            return np.zeros(0, dtype=np.int64)
        return self._support(reports, np.arange(self.size, dtype=np.uint64), None)

    def _estimate(self, sketch: Sketch, candidates: Values | None = None) -> Estimate:
        if candidates is None and self.is_open:
            allowed = "a list of candidates, and a sketch of their support: the domain is open"
            raise InvalidValue("candidates", None, allowed)
        if candidates is None:
            self._check_sketch(sketch, self.spec_id, self.sketch_shape)
            estimate = self._pure(self._support_counts(sketch), sketch.n, self._domain.labels)
            return self._with_sketch_noise(sketch, estimate)
        codes = self._codes(candidates)
        labels = tuple(map(str, candidates))
        if sketch.counts.ndim == 1:
            self._check_sketch(sketch, self._support_id(codes, False), (codes.size,))
            return self._pure(sketch.counts, sketch.n, labels)
        self._check_sketch(sketch, self._support_id(codes, True), (2, codes.size + 1))
        return self._weighted(sketch, labels)

    def _support_counts(self, sketch: Sketch) -> Ints:
        """The support of every value of the domain, from the sketch."""
        return sketch.counts

    def _with_sketch_noise(self, sketch: Sketch, estimate: Estimate) -> Estimate:
        """The estimate with the covariances that only the whole sketch tells; the same, unless overridden."""
        return estimate

    def _pure(self, counts: Ints, n: int, labels: tuple[str, ...] | None) -> Estimate:
        from hubbub.core.estimate import Estimate  # devices do not load it

        low, high = self.support_range
        if counts.size and not (low * n <= int(counts.min()) and int(counts.max()) <= high * n):
            raise InvalidValue("counts", [int(counts.min()), int(counts.max())], f"{low * n} to {high * n}, as n = {n}")
        moments = self.moments()
        value = (counts / n - moments.false_mean) / (moments.true_mean - moments.false_mean)
        noise = self.noise(n)
        estimate = Estimate(value, noise.variance(value), n, bias=self.bias, labels=labels, noise=noise)
        return self._confused(estimate, float(self.values_held))

    def _weighted(self, sketch: Sketch, labels: tuple[str, ...]) -> Estimate:
        """The total weight of the holders of each candidate: Eq 3.1 with weights, unbiased."""
        from hubbub.core.estimate import Estimate

        moments = self.moments()
        gap = moments.true_mean - moments.false_mean
        (supported, squares), (total, total_squares) = sketch.counts[:, :-1], sketch.counts[:, -1]
        value = (supported - moments.false_mean * total) / gap
        of_holders = (squares - moments.false_mean * total_squares) / gap  # the squared weights, estimated likewise
        slope = moments.true_variance - moments.false_variance
        variance = np.maximum((moments.false_variance * total_squares + slope * of_holders) / gap**2, 0.0)
        estimate = Estimate(value, variance, sketch.n, bias=self.bias, kind="quantity", labels=labels)
        # The sum of the weights' sizes is no larger: they are integers, and there are n of them.
        most = min(int(total_squares), math.sqrt(sketch.n * int(total_squares)))
        return self._confused(estimate, self.values_held * most)

    def _confused(self, estimate: Estimate, total: float) -> Estimate:
        """The estimate with the error of confusion, where all values together come to `total`."""
        if not self.confusion:
            return estimate
        return add_confusion(estimate, confusion=self.confusion, total=total, size=self.values_counted)


def unsigned(below: int) -> str:
    """The smallest unsigned type that holds 0..below-1."""
    return next(f"u{size}" for size in (1, 2, 4, 8) if below <= 1 << 8 * size)


def add_confusion(estimate: Estimate, *, confusion: float, total: float, size: int) -> Estimate:
    """The estimate with the mean square of that error added to its variances.

    For a value i it is `confusion` times the sum of the squares of all other values. The squares of the estimated
    values are estimated from them. Values that are not listed have what is left of `total`, and the sum of their
    squares is largest where one of them has it all.

    `estimate`: shares with their `noise`, or totals of weights without one. `confusion`: `SupportMechanism.confusion`
    of the oracle. `total`, `size`: the sum over all values and their number, those included that are not listed.
    """
    known = float((estimate.value if estimate.noise is not None else np.abs(estimate.value)).sum())
    rest = 0.0 if len(estimate) == size else max(0.0, total - known)
    squares = float((estimate.value**2 - estimate.variance).sum()) + rest**2
    squares = min(max(squares, total**2 / size), total**2)
    if estimate.noise is None:
        added = confusion * np.maximum(squares - estimate.value**2, 0.0)
        return replace(estimate, variance=estimate.variance + added)
    noise = replace(estimate.noise, floor=estimate.noise.floor + confusion * squares, square=-confusion)
    return replace(estimate, variance=np.maximum(noise.variance(estimate.value), 0.0), noise=noise)


@dataclass(frozen=True, kw_only=True)
class FrequencyOracle(SupportMechanism):
    """The share of each value of a domain, of which everyone holds one; `SupportMechanism` has the estimator."""

    def _resolve_domain(self) -> None:
        domain = as_domain("domain", self.domain)
        if domain.size is None and not (self.takes_open and isinstance(domain, BitStrings)):
            raise InvalidValue("domain", domain, "a domain with a size")
        self._set("domain", domain)

    def _resolve_other(self, options: int, field: str = "other") -> None:
        """Choose and check a field that holds, of 2^64, the share of each false answer among the options."""
        if getattr(self, field) == 0:
            self._set(field, other_weight(self.epsilon, options))
        self._integer(field, 1, TWO_64 // options)
        if truth_weight(getattr(self, field), options) <= getattr(self, field):
            raise InvalidValue("epsilon", self.epsilon, "an epsilon that 64-bit probabilities can tell from 0")

    def encode(self, values: Values) -> Array:
        return self._domain.encode(values)

    def example_values(self, most: int) -> list[object]:
        return self._domain.examples(most)
