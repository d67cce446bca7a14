"""Sets of codes of a private column as runs of neighbours: those for which a condition holds, and those of a key."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.domain import Categorical, Numeric, Ordinal
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array
from hubbub.protocols.ranges.dimension import Selection
from hubbub.query.errors import did_you_mean
from hubbub.query.rules.conditions import number
from hubbub.query.sandbox import interrupting, lock, open_database, quote_name
from hubbub.query.schema import PrivateColumn
from hubbub.query.trees import Tree, exp, refused

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Runs = tuple[tuple[int, int], ...]
"""The first and the last code of each run, in rising order, with a gap between any two."""
MOST_LISTED = 1 << 20
"""Several runs of more codes than this together are too many for one condition."""


def runs_of(pairs: Iterable[tuple[int, int]]) -> Runs:
    """Any first and last codes as runs; pairs whose first is above its last are empty."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(pair for pair in pairs if pair[0] <= pair[1]):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def both(left: Runs, right: Runs) -> Runs:
    """The codes that are in both."""
    return runs_of((max(a, c), min(b, d)) for a, b in left for c, d in right)


def without(left: Runs, right: Runs) -> Runs:
    """The codes of the first that are not in the second."""
    if not left:
        return ()
    ends = [(left[0][0] - 1, left[0][0] - 1), *right, (left[-1][1] + 1, left[-1][1] + 1)]
    gaps = [(before[1] + 1, after[0] - 1) for before, after in pairwise(runs_of(ends))]
    inside = (left[0][0], left[-1][1])
    return both(left, runs_of((max(low, inside[0]), min(high, inside[1])) for low, high in gaps))


def size_of(runs: Runs) -> int:
    """How many codes there are."""
    return sum(high - low + 1 for low, high in runs)


def as_selection(runs: Runs, size: int) -> Selection:
    """What a box says of a dimension of that size."""
    if runs == ((0, size - 1),):
        return None
    if len(runs) == 1:
        return runs[0]
    if size_of(runs) > MOST_LISTED:
        raise InvalidValue("condition", size_of(runs), f"at most {MOST_LISTED:,} values with gaps between")
    return frozenset(code for low, high in runs for code in range(low, high + 1))


LEAST, MOST = -(1 << 60), 1 << 60


def matching_codes(condition: Tree, column: PrivateColumn, notes: set[str]) -> Runs:
    """The codes of a private column for which a condition holds. The code of missing is among them for IS NULL alone.

    `condition`: a comparison with literals, IN, BETWEEN or IS NULL, perhaps with NOT before. `notes`: remarks for the
    user on how the condition was read are added here.
    """
    if isinstance(condition, exp.Paren):
        return matching_codes(condition.this, column, notes)
    if isinstance(condition, exp.Not):
        if isinstance(condition.this, exp.In) and condition.this.find(exp.Null):
            return ()  # as in SQL: x NOT IN (..., NULL) is never true
        whole = ((0, column.size - 1),) if isinstance(condition.this, exp.Is) else ((0, column.values - 1),)
        return without(whole, matching_codes(condition.this, column, notes))
    if not isinstance(condition.this, exp.Column):
        problem = f"{column.name} is private: it is compared as it is, not in an expression"
        raise refused(condition, problem, f"ask {column.name} < ..., with the arithmetic on the other side")
    if isinstance(condition, exp.Is):
        return _missing(condition, column)
    if isinstance(condition, exp.In) and condition.expressions:
        return runs_of(run for value in condition.expressions for run in _equal(condition, value, column, notes))
    if isinstance(condition, exp.Between):
        above = _ordered(exp.GTE, condition, condition.args["low"], column, notes)
        below = _ordered(exp.LTE, condition, condition.args["high"], column, notes)
        return runs_of([(max(above[0], below[0]), min(above[1], below[1]))])
    if isinstance(condition, exp.EQ):
        return _equal(condition, condition.expression, column, notes)
    if isinstance(condition, exp.NEQ):
        same = _equal(condition, condition.expression, column, notes)
        return () if isinstance(condition.expression, exp.Null) else without(((0, column.values - 1),), same)
    if isinstance(condition, exp.LT | exp.LTE | exp.GT | exp.GTE):
        return runs_of([_ordered(type(condition), condition, condition.expression, column, notes)])
    problem = f"{column.name} is private: {condition.key.upper()} of it is not answered"
    raise refused(condition, problem, "ask =, <>, <, <=, >, >=, IN, BETWEEN or IS NULL")


def _missing(condition: Tree, column: PrivateColumn) -> Runs:
    if not isinstance(condition.expression, exp.Null):
        raise refused(condition, f"{column.name} IS ... is answered for NULL alone")
    return ((column.values, column.values),) if column.missing else ()


def _equal(condition: Tree, value: Tree, column: PrivateColumn, notes: set[str]) -> Runs:
    domain = column.domain
    if isinstance(value, exp.Null):
        return ()
    if isinstance(domain, Categorical):
        if not (isinstance(value, exp.Literal) and value.is_string):
            raise _no_value(condition, value, column, "compare it with a text in single quotes")
        if value.name not in domain.names:
            raise refused(value, f"{column.name} has no value '{value.name}'", did_you_mean(value.name, domain.names))
        code = domain.names.index(value.name)
        return ((code, code),)
    point = _number(condition, value, column)
    if isinstance(domain, Numeric):
        cell = int(np.clip(np.searchsorted(domain.edges, point, side="right") - 1, 0, domain.cells - 1))
        low, high = domain.edges[cell : cell + 2]
        instead = f"ask {column.name} >= {low:g} AND {column.name} < {high:g}"
        raise refused(value, f"single values of {column.name} are not known, only cells of {high - low:g}", instead)
    return runs_of([(int(point), int(point))]) if 0 <= point < column.values and point == int(point) else ()


def _ordered(kind: type[Tree], condition: Tree, value: Tree, column: PrivateColumn, notes: set[str]) -> tuple[int, int]:
    """The first and the last code of those below or above a literal."""
    domain = column.domain
    if isinstance(value, exp.Null):
        return 1, 0
    if isinstance(domain, Categorical):
        raise refused(condition, f"the values of {column.name} have no order", f"ask {column.name} IN ('...', '...')")
    point = _number(condition, value, column)
    upper = kind in (exp.LT, exp.LTE)
    if isinstance(domain, Ordinal):
        point = min(max(point, LEAST), MOST)
        if upper:
            last = math.ceil(point) - 1 if kind is exp.LT else math.floor(point)
            return 0, min(last, column.values - 1)
        first = math.floor(point) + 1 if kind is exp.GT else math.ceil(point)
        return max(first, 0), column.values - 1
    assert isinstance(domain, Numeric)
    edge = cell_border(value, point, column)
    if kind in (exp.LTE, exp.GT) and 0 < edge < domain.cells:
        notes.add(
            f"{column.name} is known in cells: those of exactly {point:g} count as "
            f"{'not ' if kind is exp.LTE else ''}in {column.name} {'<=' if kind is exp.LTE else '>'} {point:g}"
        )
    return (0, edge - 1) if upper else (edge, column.values - 1)


def cell_border(value: Tree, point: float, column: PrivateColumn) -> int:
    """Which border between cells a number is; beyond the ends, the end."""
    assert isinstance(column.domain, Numeric)
    edges = column.domain.edges
    place = int(np.clip(np.searchsorted(edges, point, side="left"), 0, column.domain.cells))
    width = edges[1] - edges[0]
    for near in (place, place - 1):
        if 0 <= near < edges.size and abs(edges[near] - point) <= 1e-9 * max(width, abs(point)):
            return near
    if point < edges[0] or point > edges[-1]:
        return place
    instead = f"the borders next to {point:g} are {edges[place - 1]:g} and {edges[place]:g}"
    raise refused(value, f"{column.name} is known in cells of {width:g}, and {point:g} is no border", instead)


def _number(condition: Tree, value: Tree, column: PrivateColumn) -> float:
    point = number(value)
    if point is None:
        raise _no_value(condition, value, column, "compare it with a number")
    return point


def _no_value(condition: Tree, value: Tree, column: PrivateColumn, instead: str) -> Exception:
    if value.find(exp.Column):
        problem = f"{column.name} is private: it cannot be compared with a column"
        return refused(condition, problem, "compare it with a literal")
    return refused(value, f"{value.sql('duckdb')} is no value of {column.name}, {column.domain.describe()}", instead)


MOST_CODES = 1 << 20
"""An expression of a private column is worked out for at most this number of values."""


@cache
def _codes_database() -> DuckDBPyConnection:
    return lock(open_database())


def code_values(tree: Tree, column: PrivateColumn) -> Array:
    """The values of an expression of one private column for each of its codes, None where it is NULL."""
    import duckdb
    import pyarrow as pa

    if column.size > MOST_CODES:
        allowed = f"at most {MOST_CODES:,} are worked out; ask WHERE {column.name} ..."
        raise refused(tree, f"{column.name} has {column.size:,} values", allowed)
    ordinal = isinstance(column.domain, Ordinal)
    labels = [column.label(code) for code in range(column.size)]
    codes = pa.table({column.name: pa.array(labels, type=pa.int64() if ordinal else pa.string())})
    text = f"SELECT {tree.sql('duckdb')} AS x FROM {quote_name('#codes')}"  # noqa: S608 # a whitelisted tree
    connection = _codes_database().cursor()
    try:
        with interrupting(connection):
            connection.register("#codes", codes)
            return np.array(connection.execute(text).fetchall(), dtype=object)[:, 0]
    except duckdb.Error as error:
        reason = str(error).splitlines()[0].partition(": ")[2] or str(error).splitlines()[0]
        raise refused(tree, f"it cannot be worked out for every {column.name}: {reason}") from None
    finally:
        connection.close()


KeyValues = tuple[tuple[object, Runs], ...]
"""The values of a private key, and the codes of its column that have each."""


def key_values(tree: Tree, column: PrivateColumn) -> KeyValues:
    """The values of a private key: those of the column itself, or of an expression of it."""
    if isinstance(tree, exp.Column):
        return tuple((column.label(code), ((code, code),)) for code in range(column.size))
    if isinstance(column.domain, Numeric):
        return _buckets(tree, column)
    codes_of: dict[object, list[int]] = {}
    for code, value in enumerate(code_values(tree, column)):
        codes_of.setdefault(value, []).append(code)
    return tuple((value, runs_of((code, code) for code in codes)) for value, codes in codes_of.items())


def _buckets(tree: Tree, column: PrivateColumn) -> KeyValues:
    """The buckets of WIDTH_BUCKET of a column that is known in cells; each border must be one of cells."""
    assert isinstance(column.domain, Numeric)
    bucket_ends = ("min_value", "max_value", "num_buckets") if isinstance(tree, exp.WidthBucket) else ()
    ends = [number(tree.args[name]) for name in bucket_ends]
    if None in ends or not ends or not isinstance(tree.this, exp.Column):
        problem = f"{column.name} is known in cells: it is grouped as it is, or in buckets"
        raise refused(tree, problem, f"ask WIDTH_BUCKET({column.name}, 0, 100, 5) with borders of cells")
    low, high, count = (float(end or 0) for end in ends)
    first, cells = 0, column.domain.cells
    values: list[tuple[object, Runs]] = []
    for bucket in range(int(count) + 2):
        edge = low + (high - low) * bucket / count
        last = cells if bucket > count else cell_border(tree, edge, column)
        values.append((bucket, ((first, last - 1),) if last > first else ()))
        first = max(first, last)
    missing: KeyValues = ((None, ((column.values, column.values),)),) if column.missing else ()
    return (*((bucket, runs) for bucket, runs in values if runs), *missing)
