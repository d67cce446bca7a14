"""Local hashing: a report is a random hash function, and a noisy bucket of the value under it. BLH, OLH and SOLH."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from hubbub.core.domain.base import Values
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.hashing import HASH, bucket, hash32
from hubbub.core.reports import Array, Bools, Columns, Ints, Reports, Words
from hubbub.mechanisms.base import Cases, ColumnSpec
from hubbub.mechanisms.frequency.oracle import FrequencyOracle, unsigned
from hubbub.mechanisms.weights import TWO_64, Blanket, choice_rates, choose
from hubbub.random.integers import exp_floor
from hubbub.random.source import Random

MOST_BUCKETS = 1 << 16


@dataclass(frozen=True, kw_only=True)
class LocalHashing(FrequencyOracle):
    """A report is a random seed and a bucket: the value's own with probability p, else one of the others.

    p = e^eps/(e^eps + g - 1) over g buckets; a report supports every value its hash puts in its bucket, so q = 1/g.
    Variance of a share, at share 0: (e^eps - 1 + g)^2 / (n (e^eps - 1)^2 (g - 1)), Eq 3.11.
    """

    buckets: int = 0
    other: int = 0
    server_work: ClassVar[str] = "d hashes"
    takes_open: ClassVar[bool] = True
    hash: str = HASH

    @abstractmethod
    def _default_buckets(self) -> int:
        """The number of buckets with the smallest variance."""

    def _resolve(self) -> None:
        self._one_of("hash", [HASH])
        self._resolve_domain()
        if self.buckets == 0:
            self._set("buckets", self._default_buckets())
        self._integer("buckets", 2, MOST_BUCKETS)
        self._resolve_other(self.buckets)

    @cached_property
    def rates(self) -> tuple[Fraction, Fraction]:
        return choice_rates(self.other, self.buckets)[0], Fraction(1, self.buckets)

    def pair_covariance(self) -> tuple[float, float]:
        return 0.0, 0.0  # under a random hash, whether two values collide is independent of the report

    def ratio(self) -> Fraction:
        truth, other = choice_rates(self.other, self.buckets)
        return truth / other

    def blanket(self) -> Blanket:
        # Two values that collide prefer the same bucket, but no hash promises how often they do: 0 is the worst case.
        return Blanket(self.buckets * choice_rates(self.other, self.buckets)[1], self.ratio(), both=Fraction(0))

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (
            ColumnSpec("public", "seed", "u8"),
            ColumnSpec("private", "bucket", unsigned(self.buckets), below=self.buckets),
        )

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        draws = rng.uint64(codes.size, 2)
        seed = self._drawn_seeds(draws[:, 0].copy())  # a view would carry the private draws along
        truth = bucket(hash32(seed, codes), self.buckets)
        return {"seed": seed, "bucket": choose(truth, draws[:, 1], self.other, self.buckets)}

    def _drawn_seeds(self, draws: Words) -> Words:
        """The seeds that random words select."""
        return draws

    def _seeds(self, public: Columns) -> Words:
        return public["seed"]

    def _same(self, reports: Reports, values: Values) -> Bools:
        codes = self.encode(values).astype(np.uint64)
        hashed = bucket(hash32(self._seeds(reports.public)[:, None], codes[None, :]), self.buckets)
        return np.asarray(hashed == reports.private["bucket"][:, None])

    def _cases(self, reports: Reports, values: Values) -> Cases:
        p, q = choice_rates(self.other, self.buckets)
        return (q, p), self._same(reports, values).astype(np.int64)

    def outputs(self, public: Columns | None = None) -> Reports:
        return self._with_public(public, {"bucket": np.arange(self.buckets)})

    def _support(self, reports: Reports, candidates: Words, weights: Ints | None) -> Ints:
        from hubbub.kernels.support import hash_support

        if weights is not None:
            return self._support_sums(reports, candidates, weights, 1)[0, :-1]
        seeds = self._seeds(reports.public)
        return hash_support(seeds, reports.private["bucket"], self.buckets, candidates)

    def _support_sums(self, reports: Reports, candidates: Words, weights: Ints, powers: int) -> Ints:
        from hubbub.kernels.support import hash_sums

        seeds, buckets = self._seeds(reports.public), reports.private["bucket"]
        return hash_sums(seeds, buckets, self.buckets, candidates, weights, powers=powers)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, domain=2)
        yield cls(epsilon=2.0, domain=["a", "b", "c", "d", "e"])
        yield cls(epsilon=1.0, domain=300)


class BLH(LocalHashing):
    """Shares of a large domain in one bit, by binary local hashing (random matrix projection).

    Variance of a share: (e^eps + 1)^2 / (n (e^eps - 1)^2): binary hashing loses too much where epsilon is large.

    Parameters
    ----------
    epsilon
        What one report may spend.
    domain
        A size, a list of names, or a Domain.
    buckets, other
        2, and of 2^64 the share of the false bit; 0 chooses it.
    hash
        The name of the function that a seed selects: "product32".

    Example:
        >>> from hubbub import Random
        >>> blh = BLH(epsilon=2.0, domain=4)
        >>> reports = blh.randomize([0] * 7000 + [2] * 3000, Random(seed=1))
        >>> blh.estimate(blh.accumulate(reports)).value.round(2).tolist()
        [0.7, 0.02, 0.31, -0.01]

    References
    ----------
    Bassily and Smith, 2015; T. Wang, Blocki et al., 2017; T. Wang, 2021, section 3.3.4.
    """

    def _default_buckets(self) -> int:
        return 2

    def _resolve(self) -> None:
        if self.buckets not in (0, 2):
            raise InvalidValue("buckets", self.buckets, "2: binary hashing")
        super()._resolve()


class OLH(LocalHashing):
    """Shares of a large domain, by optimised local hashing.

    The number of buckets is the integer that makes Eq 3.11 smallest, near e^eps + 1. Variance of a share, at share 0:
    about 4 e^eps / (n (e^eps - 1)^2), as good as OUE at a fraction of the size.

    Parameters
    ----------
    epsilon
        What one report may spend.
    domain
        A size, a list of names, or a Domain; `BitStrings` of which values are never listed.
    buckets, other
        How many buckets, and of 2^64 the share of each false one; 0 chooses them.
    hash
        The name of the function that a seed selects: "product32".

    Example:
        >>> from hubbub import Random
        >>> olh = OLH(epsilon=2.0, domain=1024)
        >>> reports = olh.randomize([0] * 7000 + [2] * 3000, Random(seed=1))
        >>> estimate = olh.estimate(olh.accumulate(reports))
        >>> estimate.top(2).tolist(), olh.buckets
        ([0, 2], 8)

    References
    ----------
    T. Wang, Blocki et al., 2017; T. Wang, 2021, section 3.3.5.
    """

    def _default_buckets(self) -> int:
        return best_buckets(self.epsilon)


def best_buckets(epsilon: float) -> int:
    """The integer that minimises Eq 3.11: one of the two next to e^eps + 1."""
    exact = exp_floor(epsilon)
    if exact > TWO_64:
        raise InvalidValue("epsilon", epsilon, f"at most {math.log(TWO_64):.2f}, which 64-bit probabilities can spend")
    power = float(exact)
    near = min(max(2, math.floor(min(power, MOST_BUCKETS) + 1)), MOST_BUCKETS - 1)
    return min((near, near + 1), key=lambda g: (power - 1 + g) ** 2 / (g - 1))


@dataclass(frozen=True, kw_only=True)
class SOLH(LocalHashing):
    """Shares of a large domain, for reports that are shuffled.

    Local hashing with more buckets than `OLH` would take: once reports are shuffled, a larger local epsilon costs
    little, and then more buckets serve better (`choose_shuffled` finds how many). A report has 64 bits, of which the
    bucket takes as many as it needs and the seed the rest. So every number below 2^64 is a report: a fake report is a
    uniform number, and so is each secret share of a report.

    Parameters
    ----------
    epsilon
        What one report may spend, of whoever sees it before it is shuffled.
    domain
        A size, a list of names, or a Domain.
    buckets, other
        How many buckets, a power of two, and of 2^64 the share of each false one; 0 chooses them.
    hash
        The name of the function that a seed selects: "product32".

    Example:
        >>> from hubbub import Random
        >>> solh = SOLH(epsilon=3.0, domain=1024, buckets=64)
        >>> reports = solh.randomize([0] * 7000 + [2] * 3000, Random(seed=1))
        >>> solh.estimate(solh.accumulate(reports)).top(2).tolist()
        [0, 2]
        >>> numbers = solh.numbers(reports)
        >>> numbers.dtype, solh.accumulate(solh.reports(numbers)) == solh.accumulate(reports)
        (dtype('uint64'), True)

    References
    ----------
    T. Wang, Ding, Xu et al., 2020; T. Wang, 2021, section 9.3.2. That all 2^64 numbers are reports is ours: else shares
    of fakes would not be uniform.
    """

    def _default_buckets(self) -> int:
        return 1 << round(math.log2(best_buckets(self.epsilon)))

    def _resolve(self) -> None:
        super()._resolve()
        if self.buckets & (self.buckets - 1):
            raise InvalidValue("buckets", self.buckets, "a power of two")

    @property
    def bucket_bits(self) -> int:
        """How many bits of a report say the bucket."""
        return self.buckets.bit_length() - 1

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (
            ColumnSpec("public", "seed", "u8", below=1 << 64 - self.bucket_bits),
            ColumnSpec("private", "bucket", unsigned(self.buckets), below=self.buckets),
        )

    def _drawn_seeds(self, draws: Words) -> Words:
        return draws >> np.uint64(self.bucket_bits)

    def numbers(self, reports: Reports) -> Words:
        """Each report as a number below 2^64."""
        self.check(reports)
        return reports.public["seed"] << np.uint64(self.bucket_bits) | reports.private["bucket"].astype(np.uint64)

    def reports(self, numbers: Array) -> Reports:
        """The reports of numbers; every number is one."""
        if numbers.dtype != np.uint64 or numbers.ndim != 1:
            raise DecodeError("numbers", f"{numbers.dtype}{list(numbers.shape)}", "a row of unsigned 64-bit numbers")
        seed, bucket = numbers >> np.uint64(self.bucket_bits), numbers & np.uint64(self.buckets - 1)
        return self._reports({"seed": seed, "bucket": bucket})

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, domain=2)
        yield cls(epsilon=3.0, domain=["a", "b", "c", "d", "e"], buckets=16)
        yield cls(epsilon=1.0, domain=300)
