"""Divides people into strata by their public columns, and what a reporting method must estimate for them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from hubbub.core.reports import Array, Floats, Ints
from hubbub.query.errors import QueryError
from hubbub.query.formula import PrivateFactor
from hubbub.query.sandbox import check_time, quote_name
from hubbub.query.schema import ROW, PrivateTable
from hubbub.query.sums import JointEstimate, Monomial, with_products

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST_STRATA = 10_000
"""The greatest number of strata, and of groups, of a query."""
MOST_WEIGHTS = 5
"""The most weights for which fourth moments are summed: the number of sums grows with its fourth power."""


@dataclass(frozen=True, eq=False)
class Stratum:
    """People who have the same keys, and for whom the same public conditions hold."""

    name: str
    """A digest of the query's conditions and of the stratum's keys, under which its counts are cached."""
    keys: tuple[object, ...]
    truths: tuple[bool, ...]
    n: int
    totals: dict[Monomial, float]
    """The exact sum of each weight over the people of the stratum."""


@dataclass(frozen=True, eq=False)
class BlockRows:
    """The people of a block: their rows, the index of the stratum of each, and their weights."""

    rows: Ints
    strata: Ints
    weights: dict[Monomial, Floats]


class PeopleStrata:
    """People divided into strata."""

    strata: list[Stratum]

    def factors(self, part: GroupPart, weights: Iterable[Monomial]) -> list[PrivateFactor]:
        """What private columns multiply each weight with, of the people of a part; 0 for all others."""
        place, factor = part
        truths = self.strata[place].truths
        return [(factor * weight.private).known(truths) for weight in weights]

    def pair_factors(self, part: GroupPart, pairs: Iterable[Monomial]) -> list[PrivateFactor]:
        """What private columns multiply each product of two weights with: of each the own factor, and the part's."""
        place, factor = part
        return self.factors((place, factor * factor if factor.scores else factor), pairs)


class Strata(PeopleStrata):
    """The strata of a query. `blocks` goes through the people with the stratum and the weights of each.

    Parameters
    ----------
    public
        Conditions, as SQL, that everybody in a stratum meets.
    keys, atoms
        Expressions and conditions, as SQL, whose values define the strata.
    weights
        The weights whose sums are needed. Of what private columns multiply them with, strata know nothing.
    private_groups
        The number of groups into which private keys divide each stratum.
    """

    def __init__(
        self,
        table: PrivateTable,
        *,
        public: Sequence[str],
        keys: Sequence[str],
        atoms: Sequence[str],
        weights: Sequence[Monomial],
        private_groups: int = 1,
    ) -> None:
        self.table = table
        self.weights = tuple(weights)
        known = sorted({weight.public for weight in weights})
        self._exact = with_products(known)
        self._summed = with_products(self._exact) if len(known) <= MOST_WEIGHTS else self._exact
        self._connection: DuckDBPyConnection = table.connection()
        self._where = " AND ".join(f"({part})" for part in public) or "TRUE"
        self._parts = [*keys, *(f"COALESCE(({atom}), FALSE)" for atom in atoms)]
        self._keys = len(keys)
        self._products: dict[object, Floats] = {}
        self.strata = self._query_strata(table)
        self.formulas = private_groups * len({stratum.truths for stratum in self.strata})
        """An upper bound of the number of different formulas over private columns."""

    def _query_strata(self, table: PrivateTable) -> list[Stratum]:
        parts = [f"{part} AS {_part(place)}" for place, part in enumerate(self._parts)]
        sums = [f"SUM({weight.sql()})" for weight in self._summed]
        columns = [*map(_part, range(len(parts))), "COUNT(*)", *sums]
        inner = f"SELECT *{', ' if parts else ''}{', '.join(parts)} FROM {self.table.relation} WHERE {self._where}"  # noqa: S608
        grouped = f" GROUP BY {', '.join(columns[: len(parts)])} ORDER BY ALL" if parts else ""
        rows = self._run(f"SELECT {', '.join(columns)} FROM ({inner}){grouped} LIMIT {MOST_STRATA + 1}")  # noqa: S608
        if len(rows) > MOST_STRATA:
            raise QueryError(f"there are more than {MOST_STRATA:,} groups", "group by fewer or coarser columns")
        strata = []
        for row in rows:
            values, n, totals = row[: len(parts)], int(row[len(parts)]), row[len(parts) + 1 :]
            sums_of = {w: float(t or 0.0) for w, t in zip(self._summed, totals, strict=True)}
            if not all(math.isfinite(sums_of[weight]) for weight in self._exact):
                raise QueryError("a measure is not a finite number everywhere", "leave NaN and infinite values out")
            # A digest: the conditions may be 10,000 characters long, there may be 10,000 strata, and names are kept.
            name = blake2b(
                repr((table.relation, self._where, tuple(self._parts), values)).encode(), digest_size=16
            ).hexdigest()
            truths = tuple(bool(value) for value in values[self._keys :])
            strata.append(Stratum(name, tuple(values[: self._keys]), truths, n, sums_of))
        return strata

    def products_of(self, weights: Sequence[Monomial], order: int) -> Floats:
        """The sums over the people of each stratum (first axis) of all products of 2 or 4 weights (an axis each)."""
        known = [weight.public for weight in weights]
        key = tuple(known), order
        if key not in self._products:
            pairs = [a * b for a in known for b in known]
            every = pairs if order == 2 else [a * b for a in pairs for b in pairs]
            distinct = sorted(set(every))
            place = {monomial: spot for spot, monomial in enumerate(distinct)}
            sums = np.array([[stratum.totals[monomial] for monomial in distinct] for stratum in self.strata])
            shape = (len(self.strata), *[len(weights)] * order)
            self._products[key] = sums.reshape(-1, len(distinct))[:, [place[m] for m in every]].reshape(shape)
        return self._products[key]

    def blocks(self, weights: Sequence[Monomial]) -> Iterator[tuple[range, BlockRows]]:
        """The people of each block with the values of the public part of some weights."""
        self._join()
        bases = sorted({monomial.base for monomial in weights if monomial.base})
        selected = [f"CAST(({base}) AS DOUBLE) AS w{place}" for place, base in enumerate(bases)]
        parts = [f"{part} AS {_part(place)}" for place, part in enumerate(self._parts)]
        inner = ", ".join([quote_name(ROW) + " AS r", *parts, *selected])
        on = " AND ".join(f"b.{_part(place)} IS NOT DISTINCT FROM s.{_part(place)}" for place in range(len(parts)))
        joined = f" JOIN strata s ON {on}" if parts else ""
        place = "s.id" if parts else "0"
        columns = ", ".join(["b.r AS r", f"{place} AS id", *(f"b.w{k} AS w{k}" for k in range(len(bases)))])
        for rows in self.table.blocks():
            check_time()
            within = f"{quote_name(ROW)} >= {rows.start} AND {quote_name(ROW)} < {rows.stop}"
            source = f"SELECT {inner} FROM {self.table.relation} WHERE {within} AND {self._where}"  # noqa: S608
            arrays = self._connection.execute(f"SELECT {columns} FROM ({source}) b{joined} ORDER BY r").fetchnumpy()  # noqa: S608
            values = {base: _floats(arrays[f"w{k}"]) for k, base in enumerate(bases)}
            ones = np.ones(len(arrays["r"]))
            by_weight = {m.public: m.of(values[m.base]) if m.base else ones for m in weights}
            yield (rows, BlockRows(np.asarray(arrays["r"]), np.asarray(arrays["id"], dtype=np.int64), by_weight))

    def _join(self) -> None:
        """Make a table of the strata and their numbers, with which blocks are joined."""
        if not self._parts:
            return
        parts = ", ".join(f"{part} AS {_part(place)}" for place, part in enumerate(self._parts))
        names = ", ".join(map(_part, range(len(self._parts))))
        inner = f"SELECT DISTINCT {parts} FROM {self.table.relation} WHERE {self._where}"  # noqa: S608
        numbered = f"SELECT row_number() OVER (ORDER BY {names}) - 1 AS id, {names} FROM ({inner})"  # noqa: S608
        self._run(f"CREATE OR REPLACE TEMP TABLE strata AS {numbered}")

    def _run(self, text: str) -> list[tuple[Any, ...]]:
        import duckdb

        check_time()
        try:
            return self._connection.execute(text).fetchall()
        except duckdb.Error as error:
            raise QueryError(f"the database refused the query: {str(error).splitlines()[0]}") from None


def _part(place: int) -> str:
    """The column of a key or a condition: a name that no column of a table can have."""
    return quote_name(f"#part{place}")


def _floats(column: Array) -> Floats:
    """A column as floats, NULL as NaN."""
    if isinstance(column, np.ma.MaskedArray):
        return np.asarray(column.filled(np.nan), dtype=np.float64)
    return np.asarray(column, dtype=np.float64)


GroupPart = tuple[int, PrivateFactor]
"""The index of a stratum, and the formula over private columns that selects its people, perhaps with scores."""


class PartSums(Protocol):
    """The sums of one part, as a method keeps them."""

    @property
    def step(self) -> Floats:
        """The products of what one report of a person of weight 1 typically adds to each two sums; 0 if nothing."""


Sums = TypeVar("Sums", bound=PartSums)


class SumsMethod(ABC, Generic[Sums]):
    """Estimates sums of public weights over the people for whom a formula holds, for one reporting method.

    `measure` and `predict` return one object for each part. Its type belongs to the method.
    """

    @abstractmethod
    def measure(self, strata: Strata, parts: Sequence[GroupPart]) -> Sequence[Sums]:
        """Estimate, from the reports, the sums of `strata.weights` over the people of each stratum and factor."""

    @abstractmethod
    def predict(self, strata: Strata, parts: Sequence[GroupPart]) -> Sequence[Sums]:
        """Predict the same without reading a report, as if people were spread evenly over all values."""

    @abstractmethod
    def joint(self, parts: Sequence[tuple[Sums, Floats]]) -> JointEstimate:
        """Add up measured parts. Each comes with the matrix that maps its weights (columns) to the sums (rows)."""

    def bound(self, strata: Strata, part: GroupPart) -> tuple[str, float] | None:
        """The number of a bound in T. Wang, 2021, and the greatest variance if the squared weights add up to 1."""
        return None

    @abstractmethod
    def describe(self, strata: Strata, part: GroupPart) -> list[str]:
        """Lines of EXPLAIN: how the sums of one part are estimated."""

    @property
    @abstractmethod
    def passes(self) -> int:
        """How many times the reports were read so far."""
