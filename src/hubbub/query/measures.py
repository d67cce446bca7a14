"""Looks at the values of a public expression before it is summed: its type, range, and missing values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from hubbub.query.sandbox import check_time
from hubbub.query.sums import EVERYBODY, Form, Monomial
from hubbub.query.trees import Tree, refused

if TYPE_CHECKING:
    from hubbub.query.schema import PrivateTable

LARGEST = 1e140
"""Of a measure: squares of sums over all people must be finite."""
NUMBERS = ("INT", "DOUBLE", "FLOAT", "DECIMAL", "BOOLEAN")


class Measure(Protocol):
    """What is summed, averaged or counted, as sums of weights."""

    @property
    def total(self) -> Form: ...
    @property
    def count(self) -> Form: ...
    @property
    def centred(self) -> tuple[Form, Form]: ...
    @property
    def away(self) -> Form: ...
    @property
    def farthest(self) -> float: ...
    @property
    def least(self) -> float: ...
    @property
    def most(self) -> float: ...
    @property
    def lowest(self) -> float: ...
    @property
    def kind(self) -> str: ...


@dataclass(frozen=True)
class MeasureProfile:
    """The range and the missing values of a public expression, over the people who meet the public conditions."""

    sql: str
    missing: int
    least: float
    most: float
    centre: float
    """A number near the mean with few digits. Sums of squares are taken around it."""
    away: Form = ()
    farthest: float = 0.0
    """Its numbers are known exactly."""
    kind: str = ""
    """The type of an expression that is not a number and can only be counted; `sql` is then 1, or NULL if missing."""

    @property
    def lowest(self) -> float:
        """The least number that is summed."""
        return self.least

    @property
    def total(self) -> Form:
        """The sum of the expression."""
        return ((1.0, Monomial(self.sql)),)

    @property
    def count(self) -> Form:
        """How many people have it."""
        return ((1.0, Monomial(self.sql, 0) if self.missing else EVERYBODY),)

    @property
    def centred(self) -> tuple[Form, Form]:
        """The sums of the differences from the centre, and of their squares."""
        base = f"CAST(({self.sql}) AS DOUBLE) - ({self.centre!r})"
        return ((1.0, Monomial(base)),), ((1.0, Monomial(base, 2)),)


def profile(table: PrivateTable, tree: Tree, public: Sequence[str]) -> MeasureProfile:
    """The profile of a public expression; an error if a value is not finite."""
    text = tree.sql("duckdb")
    kind = expression_type(table, tree)
    where = " AND ".join(f"({part})" for part in public) or "TRUE"
    if not any(number in kind for number in NUMBERS):
        rows = evaluate(table, f"SELECT COUNT(*) - COUNT({text}) FROM {table.relation} WHERE {where}", tree)  # noqa: S608
        known = f"CASE WHEN ({text}) IS NULL THEN NULL ELSE 1 END"
        return MeasureProfile(known, int(rows[0][0]), math.nan, math.nan, 0.0, kind=kind)
    number = f"CAST(({text}) AS DOUBLE)"
    selected = "COUNT(*) - COUNT(x), MIN(x), MAX(x), AVG(x), COUNT(*) FILTER (WHERE NOT isfinite(x))"
    rows = evaluate(table, f"SELECT {selected} FROM (SELECT {number} AS x FROM {table.relation} WHERE {where})", tree)  # noqa: S608
    missing, least, most, mean, wrong = rows[0]
    if wrong:
        raise refused(tree, f"{text} is NaN or infinite for {wrong:,} people", "leave them out by a condition")
    if max(abs(_number(least)), abs(_number(most))) > LARGEST:
        raise refused(tree, f"{text} is larger than {LARGEST:g}", "divide it by a number")
    # sixteenths, so that differences are exact wherever the values are
    centre = round(mean * 16) / 16 if isinstance(mean, float) and math.isfinite(mean) else 0.0
    return MeasureProfile(text, int(missing), _number(least), _number(most), centre)


def check_number(tree: Tree, measure: Measure) -> None:
    """Refuse to sum or to order an expression that is not a number."""
    if measure.kind:
        raise refused(tree, f"{tree.sql('duckdb')} is {measure.kind}, no number", "sum, average and order numbers")


def expression_type(table: PrivateTable, tree: Tree) -> str:
    """The DuckDB type of a public expression; an error if types do not fit."""
    text = f"DESCRIBE SELECT {tree.sql('duckdb')} FROM {table.relation}"  # noqa: S608
    return str(evaluate(table, text, tree)[0][1])


def evaluate(table: PrivateTable, text: str, tree: Tree) -> list[tuple[Any, ...]]:
    """Run a statement of the database. If it fails, the error names the place of an expression in the query."""
    import duckdb

    check_time()
    try:
        return table.connection().execute(text).fetchall()
    except duckdb.Error as error:
        reason = str(error).splitlines()[0].partition(": ")[2] or str(error).splitlines()[0]
        if isinstance(error, duckdb.BinderException | duckdb.ConversionException):
            raise refused(tree, f"types do not fit: {reason}", "CAST(... AS DOUBLE) makes a number of a text") from None
        raise refused(tree, f"it cannot be worked out: {reason}", "leave such values out by a condition") from None


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan
