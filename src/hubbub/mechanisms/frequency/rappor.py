"""RAPPOR: a Bloom filter of the value, its bits flipped, decoded by regression over candidates."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from hubbub.core.domain import Domain, Strings, Values, as_domain
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.hashing import HASH, bucket, hash32, spread_seeds
from hubbub.core.reports import Array, Columns, Floats, Ints, Reports, Sketch
from hubbub.mechanisms.base import Cases, ColumnSpec, Linkable, Mechanism
from hubbub.mechanisms.frequency.oracle import DomainLike, unsigned
from hubbub.mechanisms.frequency.unary import flip_bits
from hubbub.random.integers import ceil_div, every_row, exp_floor, unpack
from hubbub.random.source import Random

_ANY_TEXT = Strings(longest=256)
_WIDTH = 32
_ENUMERABLE = 12


@dataclass(frozen=True, kw_only=True)
class Rappor(Mechanism):
    """Shares of candidate strings, from Bloom filters.

    A value sets up to `hashes` of `bits` bits, by hash functions of its sender's cohort; each bit is then flipped with
    probability zero/2^32. Epsilon is 2 hashes ln((1-q)/q), attained by two values without a common bit. The protocol
    is not pure: values share bits. The shares of a list of candidates are estimated by least squares, together with
    those that LASSO selects in the other half of the cohorts (`rappor_decode`). That assumes that all other values set
    bits at random, which is no theorem: the bias is "heuristic". Intervals hold for candidates selected or not.

    Parameters
    ----------
    epsilon
        What one report may spend.
    domain
        What values may be; any text of at most 256 bytes unless given.
    bits, hashes, cohorts
        The size of the filter, the hash functions a value sets bits by, the number of cohorts.
    zero
        Of 2^32, how often a bit is flipped; 0 chooses the smallest that epsilon allows.
    hash
        The name of the function that sets the bits: "product32".

    Example:
        >>> rappor = Rappor(epsilon=4.0)
        >>> reports = rappor.randomize(["yes"] * 6000 + ["no"] * 4000, Random(seed=1))
        >>> estimate = rappor.estimate(rappor.accumulate(reports), candidates=["yes", "no", "maybe"])
        >>> estimate.value.round(1).tolist(), estimate.bias
        ([0.6, 0.4, 0.0], 'heuristic')

    References
    ----------
    Erlingsson, Pihur and Korolova, 2014; T. Wang, 2021, section 3.1.2.
    """

    linkable: ClassVar[Linkable] = "never"
    domain: DomainLike = _ANY_TEXT
    bits: int = 128
    hashes: int = 2
    cohorts: int = 8
    zero: int = 0
    hash: str = HASH
    bias: ClassVar[Literal["none", "heuristic"]] = "heuristic"
    fixed_block: ClassVar[bool] = False  # the cohorts of a batch are drawn before its bits

    def _resolve(self) -> None:
        self._one_of("hash", [HASH])
        self._set("domain", as_domain("domain", self.domain))
        self._integer("bits", 2, 1 << 16)
        self._integer("hashes", 1, min(self.bits, 16))
        self._integer("cohorts", 1, 1 << 16)
        if self.zero == 0:
            power = exp_floor(Fraction(self.epsilon) / (2 * self.hashes))
            self._set("zero", ceil_div(1 << _WIDTH, power + 1))
        self._integer("zero", 1, 1 << (_WIDTH - 1))
        if 2 * self.zero >= 1 << _WIDTH:
            raise InvalidValue("epsilon", self.epsilon, "an epsilon that 32-bit probabilities can tell from 0")

    @cached_property
    def _domain(self) -> Domain:
        return as_domain("domain", self.domain)

    @property
    def rates(self) -> tuple[Fraction, Fraction]:
        """The chance of a 1 where the filter has one, and where not."""
        q = Fraction(self.zero, 1 << _WIDTH)
        return 1 - q, q

    def ratio(self) -> Fraction:
        p, q = self.rates
        return (p / q) ** (2 * self.hashes)

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (
            ColumnSpec("public", "cohort", unsigned(self.cohorts), below=self.cohorts),
            ColumnSpec.packed("bits", self.bits),
        )

    def encode(self, values: Values) -> Array:
        return self._domain.encode(values)

    def example_values(self, most: int) -> list[object]:
        return self._domain.examples(most)

    def filters(self, cohorts: Array, codes: Array) -> Ints:
        """The bits that each code sets in each cohort (the two broadcast); a bit set twice is -1 the second time."""
        first, words = cohorts.astype(np.uint64) * np.uint64(self.hashes), codes.astype(np.uint64)
        seeds = [spread_seeds(first + np.uint64(k)) for k in range(self.hashes)]
        places = [bucket(hash32(seed, words), self.bits) for seed in seeds]
        out = np.stack(np.broadcast_arrays(*places), axis=-1)
        for k in range(1, self.hashes):
            out[..., k] = np.where((out[..., :k] == out[..., k : k + 1]).any(axis=-1), -1, out[..., k])
        return out

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        cohort = rng.below(self.cohorts, codes.size)
        ones = self.filters(cohort, codes)
        return {"cohort": cohort, "bits": flip_bits(ones, self.bits, _WIDTH, (1 << _WIDTH) - self.zero, self.zero, rng)}

    def _flips(self, reports: Reports, values: Values) -> Ints:
        """How many bits of each report differ from the filter of each value."""
        sent = unpack(reports.private["bits"], self.bits).astype(bool)
        places = self.filters(reports.public["cohort"][:, None], self.encode(values)[None, :])
        wanted = np.zeros((*places.shape[:2], self.bits + 1), dtype=bool)
        np.put_along_axis(wanted, places, True, axis=2)  # -1 is the spare place at the end
        return np.asarray((wanted[:, :, :-1] != sent[:, None, :]).sum(axis=2))

    def _cases(self, reports: Reports, values: Values) -> Cases:
        p, q = self.rates
        return [q**k * p ** (self.bits - k) for k in range(self.bits + 1)], self._flips(reports, values)

    def outputs(self, public: Columns | None = None) -> Reports | None:
        return None if self.bits > _ENUMERABLE else self._with_public(public, {"bits": every_row(self.bits)})

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        return (self.cohorts, self.bits + 1)

    def _fold(self, reports: Reports) -> Ints:
        """How often each bit was set in each cohort, and the cohort's size at the end."""
        from hubbub.kernels.estimators import column_sums

        counts = np.zeros(self.sketch_shape, dtype=np.int64)
        cohort = reports.public["cohort"]
        for c in np.unique(cohort):
            bits = reports.private["bits"][cohort == c]
            counts[c, :-1] = column_sums(bits)[: self.bits]
            counts[c, -1] = len(bits)
        return counts

    def _estimate(self, sketch: Sketch, candidates: Values | None = None) -> Estimate:

        self._check_sketch(sketch, self.spec_id, self.sketch_shape)
        if candidates is None:
            if self._domain.size is None:
                raise InvalidValue("candidates", None, "a list of candidate values: the domain is open")
            names: Sequence[Any] = self._domain.labels or range(self._domain.size)
        else:
            names = list(candidates)
        codes = self.encode(names)
        if len(codes) == 0 or np.unique(codes).size < codes.size:
            raise InvalidValue("candidates", names, "at least one candidate, all different")
        value, variance = decode(self, sketch, codes)
        return Estimate(value, variance, sketch.n, bias="heuristic", labels=tuple(map(str, names)))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=2.0, domain=["a", "b", "c", "d", "e"], bits=8, cohorts=4)
        yield cls(epsilon=4.0)


ROUNDS = 8
_CERTAIN = 1e-6
_CHUNK = 1 << 12


class _Equations(NamedTuple):
    """The equations of some cohorts: each candidate's rows, one over the noise of each row, the scaled right side."""

    rows: Ints
    scale: Floats
    target: Floats

    @property
    def weight(self) -> Floats:
        """The squared length of each candidate's column."""
        return np.asarray(np.where(self.rows >= 0, self.scale[self.rows] ** 2, 0.0).sum(axis=1))

    def column(self, candidate: Any) -> Floats:
        """The coefficients of a candidate in every row."""
        column = np.zeros_like(self.scale)
        hit = self.rows[candidate][self.rows[candidate] >= 0]
        column[hit] = self.scale[hit]
        return column


def decode(rappor: Rappor, sketch: Sketch, codes: Array) -> tuple[Floats, Floats]:
    """The shares of the candidates, selected or not, and their variances.

    Each bit of each cohort is an equation: the unbiased share of the cohort that set it is the sum of the shares of the
    candidates that set it, a background (what everyone else sets, alike for all bits), and noise of known variance,
    by which it is divided. There are too many candidates to solve for all. So a LASSO over half of the cohorts selects
    those that matter, and in the other half every candidate, selected or not, is estimated by least squares with the
    selected ones and the background; then the other way round, and the two estimates are pooled. The noise that led to
    the selection is not the noise of the estimate. So the estimate is unbiased (and may be negative), and its interval
    allows for the selection. Values that were not selected, or not listed, set bits at random: the residuals tell how
    many there are, and widen all intervals.
    """
    cohorts = np.flatnonzero(sketch.counts[:, -1])
    halves = [_equations(rappor, sketch, codes, cohorts[first::2]) for first in (0, 1)]
    precision, total, spread = np.zeros(len(codes)), np.zeros(len(codes)), np.zeros(len(codes))
    for half, other in zip(halves, halves[::-1], strict=True):
        if half.target.size:
            most = min(half.target.size, other.target.size) // 2
            selected = _select(other, most) if most else np.empty(0, dtype=np.int64)
            own, value, noise = _least_squares(half, selected)
            precision, total, spread = precision + own, total + own * value, spread + own * noise
    estimable = precision > 0
    safe = np.where(estimable, precision, 1.0)
    return np.where(estimable, total / safe, 0.0), np.where(estimable, spread / safe**2, np.inf)


def _equations(rappor: Rappor, sketch: Sketch, codes: Array, cohorts: Ints) -> _Equations:
    p, q = (float(rate) for rate in rappor.rates)
    sizes = sketch.counts[cohorts, -1].astype(np.float64)[:, None]
    share = (sketch.counts[cohorts, :-1] / sizes - q) / (p - q)
    noise = np.sqrt(q * (1 - q) / sizes) / (p - q) * np.ones_like(share)  # p = 1 - q: the same at any share
    places = rappor.filters(cohorts[None, :], codes[:, None])  # candidate, cohort, hash
    rows = np.where(places >= 0, places + rappor.bits * np.arange(cohorts.size)[None, :, None], -1)
    scale = 1 / noise.reshape(-1)
    return _Equations(rows.reshape(len(codes), -1), scale, share.reshape(-1) * scale)


def _least_squares(half: _Equations, selected: Ints) -> tuple[Floats, Floats, float]:
    """Each candidate's precision and coefficient with the selected ones and the background; and the noise."""
    basis, corner = np.linalg.qr(np.column_stack([half.scale, *(half.column(candidate) for candidate in selected)]))
    apart = np.abs(np.diag(corner)) > _CERTAIN * np.abs(corner).max()
    if not apart.all():  # two candidates of the same bits: the first represents both
        return _least_squares(half, selected[apart[1:]])
    fitted = basis.T @ half.target
    rest = half.target - basis @ fitted
    noise = max(1.0, float(rest @ rest) / max(half.target.size - basis.shape[1], 1))

    own, value, weight = np.zeros(len(half.rows)), np.zeros(len(half.rows)), half.weight
    for start in range(0, len(half.rows), _CHUNK):
        rows = half.rows[start : start + _CHUNK]
        scaled = np.where(rows >= 0, half.scale[rows], 0.0)
        explained = np.einsum("ck,ckb->cb", scaled, basis[rows])  # what the others say of the candidate already
        own[start : start + _CHUNK] = weight[start : start + _CHUNK] - (explained**2).sum(axis=1)
        value[start : start + _CHUNK] = (scaled * rest[rows]).sum(axis=1)
    own = np.where(own > _CERTAIN * weight, own, 0.0)
    value = np.where(own > 0, value / np.where(own > 0, own, 1.0), 0.0)
    inverse = np.linalg.inv(corner)
    own[selected], value[selected] = 1 / (inverse**2).sum(axis=1)[1:], (inverse @ fitted)[1:]
    return own, value, noise


def _select(half: _Equations, most: int) -> Ints:
    """The candidates that the LASSO selects, at most `most`: with as many unknowns as equations least squares would
    only amplify the noise. They and the background are fitted in turn, each to the rest of the other.

    The penalty is the universal one, sqrt(2 ln candidates) noise standard deviations a column. Without the background,
    rare values that cannot be told apart would be attributed to some candidates by chance.
    """
    from hubbub.kernels.estimators import nonnegative_lasso

    penalty = np.sqrt(half.weight) * math.sqrt(2 * math.log(max(2, len(half.rows))))
    background = 0.0
    for _ in range(ROUNDS):
        share = nonnegative_lasso(half.rows, half.scale, half.target - background * half.scale, penalty)
        selected = np.flatnonzero(share)
        fitted = sum((share[candidate] * half.column(candidate) for candidate in selected), np.zeros_like(half.target))
        background = max(float(np.mean((half.target - fitted) / half.scale)), 0.0)
    return np.sort(selected[np.argsort(-share[selected], kind="stable")[:most]])
