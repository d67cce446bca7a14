"""Wheel: the items of a set cover arcs of a circle, and a report is a point, more often one that is covered."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import floor
from typing import ClassVar, Self

import numpy as np

from hubbub.core.domain import Ordinal, Sets, Values
from hubbub.core.domain.sets import ItemSets
from hubbub.core.errors import InvalidValue
from hubbub.core.hashing import HASH, bucket, hash32
from hubbub.core.reports import Array, Columns, Ints, Reports, Words
from hubbub.mechanisms.base import Cases, ColumnSpec
from hubbub.mechanisms.frequency.oracle import unsigned
from hubbub.mechanisms.sets.set_mechanism import SetMechanism
from hubbub.mechanisms.weights import TWO_64, Blanket, search_power
from hubbub.random.integers import bounded, exp_floor
from hubbub.random.source import Random

CELLS = 1 << 16
_ENUMERABLE = 1 << 12
_CHUNK = 1 << 20  # items looked at together


@dataclass(frozen=True, kw_only=True)
class Wheel(SetMechanism):
    """Shares of the items of sets, in a seed and a point of a circle, whatever the size of the domain.

    A report's seed selects a hash function, which puts every item somewhere on a circle of t `cells`; from there it
    covers an arc of a cells. Each cell that the set covers has the probability e^eps/Omega, Omega = s a e^eps + t -
    s a, for sets of at most s items; the rest is shared out evenly. A report supports every item whose arc has its
    cell: p = a e^eps/Omega, q = a/t. Arcs may overlap: then less is covered, and the other cells are likelier.

    Parameters
    ----------
    epsilon
        What one report may spend.
    domain
        A `Sets`; or its items, for any set of them.
    cells, arc, high
        How many cells, a power of two; how many an item covers; and of 2^64 the share of one that is covered; 0 chooses
        65,536 cells and the arc of the smallest mean variance if people hold half of what they may.
    hash
        The name of the function that a seed selects: "product32".

    Example:
        >>> wheel = Wheel(epsilon=2.0, domain=Sets(Ordinal(60), most=2))
        >>> reports = wheel.randomize([{0, 2}] * 15_000 + [{2}] * 5_000, Random(seed=1))
        >>> wheel.estimate(wheel.accumulate(reports)).value.round(1)[[0, 2]].tolist(), wheel.report_bytes
        ([0.8, 1.0], 10)

    References
    ----------
    S. Wang et al., 2020. The grid of cells is ours; sets are not filled up with dummies.
    """

    cells: int = 0
    arc: int = 0
    high: int = 0
    hash: str = HASH
    server_work: ClassVar[str] = "d hashes"

    @classmethod
    def best_for(cls, *, epsilon: float, domain: Sets, held: float) -> Self:
        arc = best_arc(epsilon, CELLS, domain.most, held / (domain.items.size or 1))
        return cls(epsilon=epsilon, domain=domain, cells=CELLS, arc=arc)

    def _resolve(self) -> None:
        self._one_of("hash", [HASH])
        self._resolve_sets()
        if self.cells == 0:
            self._set("cells", CELLS)
        self._integer("cells", 4, CELLS)
        if self.cells & (self.cells - 1):
            raise InvalidValue("cells", self.cells, "a power of two")
        if self.held >= self.cells:
            raise InvalidValue("domain", self.held, f"sets of fewer than {self.cells} items")
        if self.arc == 0:
            self._set("arc", best_arc(self.epsilon, self.cells, self.held, self.held / (2 * self.size)))
        self._integer("arc", 1, (self.cells - 1) // self.held)
        if self.high == 0:
            power = exp_floor(self.epsilon)
            self._set("high", floor(TWO_64 * power / (self._most_covered * (power - 1) + self.cells)))
        self._integer("high", 1, TWO_64 // self._most_covered)
        if self.high * self.cells <= TWO_64 or self._rest(self._most_covered) == 0:
            raise InvalidValue("high", self.high, "a share of 2^64 above that of the other cells, which is above 0")

    @property
    def held(self) -> int:
        """How many items a set may have: s."""
        return self.sets.most

    @property
    def _most_covered(self) -> int:
        return self.held * self.arc

    def _rest(self, covered: int) -> Fraction:
        """The probability of a cell that is not covered, where this number of cells is."""
        return Fraction(TWO_64 - covered * self.high, TWO_64 * (self.cells - covered))

    @cached_property
    def rates(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.arc * self.high, TWO_64), Fraction(self.arc, self.cells)

    def ratio(self) -> Fraction:
        return Fraction(self.high, TWO_64) / self._rest(self._most_covered)  # the more is covered, the less is left

    def blanket(self) -> Blanket:
        return Blanket(self.cells * self._rest(self._most_covered), self.ratio())

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (
            ColumnSpec("public", "seed", "u8"),
            ColumnSpec("private", "cell", unsigned(self.cells), below=self.cells),
        )

    def _randomize(self, codes: ItemSets, rng: Random) -> dict[str, Array]:  # type: ignore[override]
        step = max(1, _CHUNK // self.held)
        parts = []
        for start in range(0, max(len(codes), 1), step):
            people = codes[start : start + step]
            draws = rng.uint64(len(people), 3)
            parts.append(
                (draws[:, 0], self._respond(self._positions(draws[:, 0], people), draws[:, 1], draws[:, 2], rng))
            )
        seeds, cells = zip(*parts, strict=True)
        return {"seed": np.concatenate(seeds), "cell": np.concatenate(cells)}

    def _positions(self, seeds: Words, people: ItemSets) -> Ints:
        """Where the arcs of each set begin, in order; rows are filled up with a number past the circle."""
        positions = np.full((len(people), self.held), 2 * self.cells, dtype=np.int64)
        places = np.arange(people.items.size) - people.offsets[people.owners]
        positions[people.owners, places] = bucket(hash32(seeds[people.owners], people.items), self.cells)
        positions.sort(axis=1)
        return positions

    def _lengths(self, positions: Ints) -> tuple[Ints, Ints]:
        """How many cells are covered from the beginning of each arc to that of the next, and how many are not."""
        ends = np.append(positions[:, 1:], positions[:, :1], axis=1)
        last = np.append(positions[:, 1:], np.full((len(positions), 1), 2 * self.cells), axis=1) == 2 * self.cells
        gaps = np.where(last, positions[:, :1] + self.cells, ends) - positions
        gaps[positions == 2 * self.cells] = 0
        covered = np.minimum(gaps, self.arc)
        return covered, gaps - covered

    def _respond(self, positions: Ints, bits: Words, places: Words, rng: Random) -> Ints:
        covered, free = self._lengths(positions)
        total = covered.sum(axis=1)
        number = bounded(places, self.cells - total, rng)
        outside = np.where(total > 0, self._cell_at(number, positions + covered, free), number)
        inside = self._cell_at((bits // np.uint64(self.high)).astype(np.int64), positions, covered)
        return np.where(bits < total.astype(np.uint64) * np.uint64(self.high), inside, outside)

    def _cell_at(self, number: Ints, starts: Ints, lengths: Ints) -> Ints:
        """The cell of each number, where a row's runs of cells are counted through."""
        ends = lengths.cumsum(axis=1)
        run = np.minimum((ends <= number[:, None]).sum(axis=1), self.held - 1)
        rows = np.arange(len(number))
        return np.asarray((starts[rows, run] + number - (ends - lengths)[rows, run]) % self.cells)

    def _cases(self, reports: Reports, values: Values) -> Cases:
        people, seeds = self.encode(values), reports.public["seed"]
        total = np.empty((len(reports), len(people)), dtype=np.int64)
        hit = np.empty(total.shape, dtype=bool)
        for column in range(len(people)):
            positions = self._positions(seeds, people[np.full(len(reports), column)])
            total[:, column] = self._lengths(positions)[0].sum(axis=1)
            away = (reports.private["cell"][:, None] - positions) % self.cells
            hit[:, column] = ((away < self.arc) & (positions < self.cells)).any(axis=1)
        different, case = np.unique(total, return_inverse=True)
        rest = [self._rest(int(covered)) for covered in different]
        return [Fraction(self.high, TWO_64), *rest], np.where(hit, 0, 1 + case.reshape(total.shape))

    def outputs(self, public: Columns | None = None) -> Reports | None:
        return self._with_public(public, {"cell": np.arange(self.cells)}) if self.cells <= _ENUMERABLE else None

    def _support(self, reports: Reports, candidates: Words, weights: Ints | None) -> Ints:
        from hubbub.kernels.support import arc_intervals, hash_sums, hash_support

        seeds, cells, arcs = reports.public["seed"], reports.private["cell"], arc_intervals(self.cells, self.arc)
        if weights is None:
            return hash_support(seeds, cells, arcs, candidates)
        return np.asarray(hash_sums(seeds, cells, arcs, candidates, weights)[0, :-1])

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, domain=Sets(Ordinal(4), most=2), cells=64)
        yield cls(epsilon=2.0, domain=Sets(Ordinal(5), most=3), cells=16)
        yield cls(epsilon=1.0, domain=Sets(Ordinal(131), most=3))


@lru_cache(maxsize=256)
def best_arc(epsilon: float, cells: int, held: int, share: float) -> int:
    """The arc of the smallest mean variance where an item is held by this share of the people."""
    power = search_power(epsilon)
    arc = np.arange(1, (cells - 1) // held + 1, dtype=np.float64)
    p, q = arc * power / (held * arc * (power - 1) + cells), arc / cells
    error = (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2
    return int(arc[np.argmin(error)])
