"""SUCCINCT: the sum of the entries with random signs, which is clipped and gets Laplace noise."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.hashing import HASH, bucket, hash32
from hubbub.core.reports import Reports, Sketch
from hubbub.mechanisms.base import ColumnSpec, fractions
from hubbub.mechanisms.frequency.oracle import unsigned
from hubbub.mechanisms.ternary.every_sign import MeanOnly
from hubbub.mechanisms.ternary.ternary import Quantity
from hubbub.mechanisms.ternary.vectors import Ternary, symbols_of_rows
from hubbub.random.integers import exp_floor, log_fraction
from hubbub.random.noise import at_least, discrete_laplace
from hubbub.random.source import Random
from hubbub.statistics.influence import Influence
from hubbub_papers.baselines.heavy_hitters.drawing import generator

UNIT = 1 << 32
_REACH = 12  # noise is clamped at this multiple of its scale
_MOST_CLIP = 1 << 10
_MOST_CLAMP = 1 << 15
_MOST_SIGNS = 1 << 22


@dataclass(frozen=True, kw_only=True)
class Succinct(MeanOnly):
    """Means of sparse ternary vectors, in a seed and one noisy number.

    A hash gives every position a sign. The entries times their signs add up to a number S. A vector with fewer than s
    entries is filled up with stubs, whose signs are fair coins, so that S is always a sum of s fair signs. S is clipped
    to [-clip, clip] and gets discrete Laplace noise of scale 2 clip/eps. The report times a position's sign is the
    estimate there, divided by c = E[sign times clipped S] of an entry that differs from 0: clipping shrinks every mean
    alike, and is undone. The error of the mean is (d E[report^2]/c^2 - s)/n.

    Parameters
    ----------
    epsilon
        What one report may spend.
    dimension, sparsity
        The length d of the vectors, and how many entries s of one may differ from 0.
    clip
        As odd or even as s, at most s; 0 chooses the one with the smallest error.
    clamp, decay
        How many steps of two the noise may reach past the clip; of 2^32, how much less likely each is. 0 chooses them.
    hash
        The name of the function that gives signs: "product32".

    Example:
        >>> succinct = Succinct(epsilon=2.0, dimension=16, sparsity=2)
        >>> reports = succinct.randomize([{3: 1, 5: -1}] * 40_000, Random(seed=1))
        >>> succinct.estimate(succinct.accumulate(reports)).value.round(1)[[3, 5]].tolist()
        [1.0, -1.0]

    References
    ----------
    Zhou et al., 2022; S. Wang, Li, Xin et al., 2023, section 2.2; S. Wang, Li, Li et al., 2023, section 3.1. Ours: the
    stubs and the division by c, which make it unbiased, a clip of smaller error, noise on the grid of the sums.
    `PublishedSuccinct` has none of it.
    """

    whole_only = True

    clip: int = 0
    clamp: int = 0
    decay: int = 0
    hash: str = HASH

    def _resolve(self) -> None:
        self._one_of("hash", [HASH])
        self._resolve_shape()
        if self.clip == 0:
            self._set("clip", best_clip(self.epsilon, self.sparsity))
        self._integer("clip", 1, min(self.sparsity, _MOST_CLIP))
        if (self.sparsity - self.clip) % 2:
            raise InvalidValue("clip", self.clip, f"a number as odd or even as sparsity = {self.sparsity}")
        if self.clamp == 0:
            self._set("clamp", max(1, min(math.ceil(_REACH * self.clip / self.epsilon), _MOST_CLAMP)))
        self._integer("clamp", 1, _MOST_CLAMP)
        if self.decay == 0:
            self._set("decay", math.ceil(UNIT / exp_floor(Fraction(self.epsilon) / self.clip)))
        if self.decay == UNIT:
            raise InvalidValue("epsilon", self.epsilon, "an epsilon that 32-bit weights can tell from 0")
        self._integer("decay", 1, UNIT - 1)

    def ratio(self) -> Fraction:
        return Fraction(UNIT, self.decay) ** self.clip  # the steps from -clip to clip

    @property
    def rates(self) -> NoReturn:
        raise InvalidValue("rates", "Succinct", "a mechanism whose reports support signs: here a report is a number")

    # -- one report -------------------------------------------------------------------------------------------

    @property
    def cells(self) -> int:
        """How many different numbers a report can be: -(clip + 2 clamp) to clip + 2 clamp, in steps of two."""
        return self.clip + 2 * self.clamp + 1

    def _chance(self, place: int, cell: int) -> Fraction:
        """The exact probability of a report given the place of the clipped sum; the two ends hold the tails."""
        shift = cell - self.clamp - place
        least = Fraction(1) if cell == 0 else at_least(shift, self.decay, UNIT)
        return least - (Fraction(0) if cell == self.cells - 1 else at_least(shift + 1, self.decay, UNIT))

    @cached_property
    def _log_chances(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """ln of the chance that the noise is 0, 1, ... cells, and that it is at least that number."""
        a, k = Fraction(self.decay, UNIT), np.arange(self.clip + self.clamp + 1, dtype=np.float64)
        tails = k * log_fraction(a) - log_fraction(1 + a)
        return tails + log_fraction(1 - a), tails

    @cached_property
    def moments(self) -> tuple[float, float]:
        """E[sign times report] where an entry is held, and E[report^2]."""
        number = 2.0 * np.arange(self.cells) - (self.cells - 1)
        mean, square = np.empty(self.clip + 1), np.empty(self.clip + 1)
        for place in range(self.clip + 1):
            chances = np.exp(self._logs(np.full(self.cells, place), np.arange(self.cells)))
            mean[place], square[place] = chances @ number, chances @ number**2
        s = self.sparsity
        before, sums = np.arange(2 - s, s + 1, 2), np.arange(-s, s + 1, 2)
        return float(_sums(s - 1) @ mean[self._place(before)]), float(_sums(s) @ square[self._place(sums)])

    def _logs(self, place: NDArray[np.int64], cell: NDArray[np.int64]) -> NDArray[np.float64]:
        inside, tails = self._log_chances
        shift = np.abs(cell - self.clamp - place)
        return np.asarray(np.where((cell == 0) | (cell == self.cells - 1), tails[shift], inside[shift]))

    def _place(self, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        """Clipped sums, counted from 0 in steps of two."""
        return np.asarray((np.clip(sums, -self.clip, self.clip) + self.clip) // 2)

    @cached_property
    def square(self) -> float:
        shrunk, square = self.moments
        return square / shrunk**2

    def gap(self, of: Quantity) -> float:
        return self.moments[0] / (self.cells - 1)  # one report's number is at most 1 over it

    def influence(self, of: Quantity = "mean") -> Influence:
        """The largest noise that the format allows, with the sign of the forger's choice."""
        if of not in self.answers:
            raise InvalidValue("of", of, f"one of {', '.join(self.answers)}")
        most = Fraction(self.cells - 1) / Fraction(self.moments[0])
        return Influence(-most, most, Fraction(-1), Fraction(1))

    # -- the sampler ------------------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (
            ColumnSpec("public", "seed", "u8"),
            ColumnSpec("private", "cell", unsigned(self.cells), below=self.cells),
        )

    @property
    def words(self) -> int:
        return 3

    def _sum(self, seed: NDArray[np.uint64], symbols: NDArray[np.int64]) -> NDArray[np.int64]:
        """The place of each row's clipped sum."""
        filled = np.where(symbols >= 0, symbols, 2 * (self.dimension + np.arange(self.sparsity)))
        positive = bucket(hash32(seed[:, None], filled >> 1), 2) ^ (filled & 1)
        return self._place(2 * positive.sum(axis=1) - self.sparsity)

    def _respond(self, symbols: NDArray[np.int64], draws: NDArray[np.uint64], rng: Random) -> dict[str, NDArray[Any]]:
        seed = draws[:, 0]
        noise = discrete_laplace(draws[:, 1:], self.decay, UNIT, self.clip + self.clamp, rng)
        cell = self._sum(seed, symbols) + self.clamp + noise
        return {"seed": seed, "cell": np.clip(cell, 0, self.cells - 1)}

    def _pairs(self, reports: Reports, values: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The place of each value's sum (column) under each report's seed (row), and the report's cell."""
        seed = reports.public["seed"]
        rows = [self._sum(seed, np.broadcast_to(row, (len(seed), row.size))) for row in self.symbols(values)]
        place = np.stack(rows, axis=1)
        return place, np.broadcast_to(reports.private["cell"].astype(np.int64)[:, None], place.shape)

    def prob(self, reports: Reports, values: Any) -> NDArray[np.object_]:
        place, cell = self._pairs(reports, values)
        codes, index = np.unique(place * self.cells + cell, return_inverse=True)
        chances = [self._chance(*divmod(code, self.cells)) for code in codes.tolist()]
        return fractions(chances, index.reshape(place.shape))

    def log_prob(self, reports: Reports, values: Any) -> NDArray[np.float64]:
        return self._logs(*self._pairs(reports, values))

    def outputs(self, public: Mapping[str, NDArray[Any]] | None = None) -> Reports:
        given = np.zeros(1, dtype="u8") if public is None else public["seed"]
        every = np.arange(self.cells, dtype=unsigned(self.cells))
        return Reports(self.spec_id, public={"seed": np.repeat(given, self.cells)}, private={"cell": every})

    # -- counts -----------------------------------------------------------------------------------------------

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        return (self.dimension,)

    def _fold(self, reports: Reports) -> NDArray[np.int64]:
        """For every position, the sum of the reports' numbers times its signs."""
        from hubbub.kernels.support import hash_sums

        number = 2 * reports.private["cell"].astype(np.int64) - (self.cells - 1)
        plus, every = np.ones(len(reports), dtype=np.int64), np.arange(self.dimension, dtype=np.uint64)
        sums = hash_sums(reports.public["seed"], plus, 2, every, number)[0]
        return np.asarray(2 * sums[:-1] - sums[-1])

    def _means(self, sketch: Sketch) -> NDArray[np.float64]:
        most = sketch.n * (self.cells - 1)
        if np.abs(sketch.counts).max() > most:
            raise InvalidValue("counts", int(np.abs(sketch.counts).max()), f"-{most} to {most}, as n = {sketch.n}")
        return np.asarray(sketch.counts / sketch.n / self.moments[0])

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=2.0, dimension=3, sparsity=2)
        yield cls(epsilon=2.0, dimension=2, sparsity=1)
        yield cls(epsilon=0.5, dimension=19, sparsity=4)


def best_clip(epsilon: float, sparsity: int) -> int:
    """The clip with the smallest error of the mean, by trying all."""
    sums, before = np.arange(-sparsity, sparsity + 1, 2), 1 + np.arange(1 - sparsity, sparsity, 2)
    clips = np.arange(2 - sparsity % 2, min(sparsity, _MOST_CLIP) + 1, 2)
    errors = []
    for clip in clips.tolist():
        least = max(epsilon / clip, 1e-12)
        noise = 8 * math.exp(-least) / math.expm1(-least) ** 2
        shrunk = _sums(sparsity - 1) @ np.clip(before, -clip, clip)
        errors.append((_sums(sparsity) @ np.clip(sums, -clip, clip) ** 2 + noise) / shrunk**2)
    return int(clips[np.argmin(errors)])


@dataclass(frozen=True, kw_only=True)
class PublishedSuccinct:
    """SUCCINCT as it was published, for comparison: in floats, and with the bias of clipping left in.

    A sum of signs is clipped to sqrt(s ln n)/2.5 for n people, gets Laplace noise of scale 2 clip/eps, and is the
    estimate, times a position's sign. The 2.5 is in the code of Zhou et al. (github.com/DPSparseVector/dp-sparse,
    estimator.cpp), from which the code of S. Wang, Li, Xin et al., 2023, has it (github.com/wangsw/OnlineLDP,
    succinct.py).
    """

    epsilon: float
    sparsity: int
    n: int

    @property
    def clip(self) -> float:
        """The largest sum that is not clipped."""
        return math.sqrt(self.sparsity * math.log(max(self.n, 2))) / 2.5

    def variances(self, of: Quantity = "mean") -> tuple[float, float]:
        """The mean squared error of one report's number, bias included, where something is held and where not."""
        if of != "mean":
            return math.inf, math.inf
        sums = np.arange(-self.sparsity, self.sparsity + 1, 2)
        square = float(_sums(self.sparsity) @ np.clip(sums, -self.clip, self.clip) ** 2)
        square += 8 * (self.clip / self.epsilon) ** 2
        kept = _sums(self.sparsity - 1) @ np.clip(sums[1:], -self.clip, self.clip)  # given that one's own sign is +
        return square - 2 * float(kept) + 1, square

    def means(self, people: Ternary, rng: Random) -> NDArray[np.float64]:
        """Estimated means from a new report of each person."""
        draws, total = generator(rng), np.zeros(people.dimension)
        step = max(1, _MOST_SIGNS // people.dimension)
        for start in range(0, len(people), step):
            rows = people[start : start + step]
            symbols = symbols_of_rows(rows.entries, rng.uint64(len(rows)), self.sparsity)
            signs = 2 * draws.integers(0, 2, (len(rows), people.dimension), dtype=np.int8) - 1
            own = np.take_along_axis(signs, np.maximum(symbols, 0) >> 1, axis=1) * (1 - 2 * (symbols & 1))
            sums = np.clip(np.where(symbols < 0, 0, own).sum(axis=1), -self.clip, self.clip)
            total += (sums + draws.laplace(0.0, 2 * self.clip / self.epsilon, len(rows))) @ signs
        return np.asarray(total / len(people))


def _sums(signs: int) -> NDArray[np.float64]:
    """The chances that this number of fair signs adds up to -signs, -signs + 2, ..., signs."""
    k = np.arange(1, signs + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(signs + 1 - k) - np.log(k))])
    return np.asarray(np.exp(logs - signs * math.log(2)))
