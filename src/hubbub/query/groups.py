"""The groups of a query: their keys, strata and formulas; and HAVING, ORDER BY and LIMIT over them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from hubbub.core.domain import Numeric
from hubbub.query.errors import QueryError
from hubbub.query.formula import NEVER, AllOf, Formula, PrivateAtom, resolve_public
from hubbub.query.plan import QueryPlan
from hubbub.query.sandbox import check_time
from hubbub.query.schema import TableSchema
from hubbub.query.strata import MOST_STRATA, GroupPart, Strata

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST_PARTS = 100_000
"""The greatest number of parts of all groups together (a stratum and a formula each)."""


@dataclass(frozen=True, eq=False)
class PeopleGroup:
    """A group: its keys in the order of GROUP BY, and its parts, each a stratum and a formula for its people."""

    keys: tuple[Any, ...]
    parts: tuple[GroupPart, ...]


def groups_of(plan: QueryPlan, schema: TableSchema, strata: Strata) -> list[PeopleGroup]:
    """All groups that may have members.

    Public keys take the values that occur. Private keys take all values, as it is not known which ones occur.
    """
    shared: dict[tuple[Any, ...], list[GroupPart]] = {}
    for place, stratum in enumerate(strata.strata):
        formula = resolve_public(plan.condition.formula, stratum.truths)
        parts = shared.setdefault(stratum.keys, [])
        if formula != NEVER:
            parts.append((place, formula))
    if not plan.keys:
        return [PeopleGroup((), tuple(part for parts in shared.values() for part in parts))]
    private = [schema.private[place] for place in plan.private_keys]
    codes = [range(column.size) for column in private]
    values = math.prod(map(len, codes))
    number = len(shared) * values
    if sum(map(len, shared.values())) * values > MOST_PARTS:
        raise QueryError(
            "there are too many combinations of groups and public conditions",
            "group by fewer columns, or ask fewer public conditions in OR with private ones",
        )
    if number > MOST_STRATA:
        raise QueryError(
            f"there are {number:,} groups", f"at most {MOST_STRATA:,} are answered: group by fewer columns"
        )
    groups = []
    for public, parts in shared.items():
        if not parts:
            continue
        for chosen in product(*codes):
            check_time()
            labels = {place: private[k].label(chosen[k]) for k, place in enumerate(plan.private_keys)}
            narrowed = [(place, _narrowed(formula, plan.private_keys, chosen)) for place, formula in parts]
            left = iter(public)
            keys = tuple(next(left) if key.private is None else labels[key.private] for key in plan.keys)
            groups.append(PeopleGroup(keys, tuple(narrowed)))
    return groups


def comparable(plan: QueryPlan, schema: TableSchema, keys: Sequence[Any]) -> tuple[Any, ...]:
    """The keys of a group as HAVING and ORDER BY compare them: a cell of numbers counts as its middle."""
    values = []
    for key, value in zip(plan.keys, keys, strict=True):
        domain = None if key.private is None else schema.private[key.private].domain
        if isinstance(domain, Numeric) and value is not None:
            cell = (domain.labels or ()).index(value)
            value = float(domain.edges[cell] + domain.edges[cell + 1]) / 2
        values.append(value)
    return tuple(values)


def _narrowed(formula: Formula, columns: Sequence[int], codes: Sequence[int]) -> Formula:
    """A formula that also asks for given codes of some columns."""
    if not columns:
        return formula
    atoms = tuple(PrivateAtom(column, ((code, code),)) for column, code in zip(columns, codes, strict=True))
    return AllOf((formula, *atoms))


def choose_groups(
    connection: DuckDBPyConnection, plan: QueryPlan, keys: Sequence[Sequence[Any]], values: Sequence[Sequence[float]]
) -> list[int]:
    """The indices of the groups that are shown, in order. HAVING and ORDER BY compare the estimates.

    Parameters
    ----------
    connection
        A locked connection.
    plan
        The parts of the query.
    keys, values
        The keys and the estimates of each group.
    """
    if plan.having is None and not plan.order:
        shown = range(len(keys))[plan.offset :]
        return list(shown[: plan.limit] if plan.limit is not None else shown)
    import duckdb
    import pyarrow as pa

    check_time()
    columns: dict[str, Any] = {"i": pa.array(range(len(keys)), type=pa.int64())}
    for place in range(len(plan.keys)):
        columns[f"k{place}"] = pa.array([key[place] for key in keys])
    for place in range(len(values[0]) if values else len(plan.outputs)):
        numbers = [None if math.isnan(value[place]) else value[place] for value in values]
        columns[f"v{place}"] = pa.array(numbers, type=pa.float64())
    where = f" WHERE {plan.having}" if plan.having else ""
    order = ", ".join((*plan.order, "i"))
    limit = f" LIMIT {plan.limit}" if plan.limit is not None else ""
    connection.register("groups", pa.table(columns))
    try:
        text = f"SELECT i FROM groups{where} ORDER BY {order}{limit} OFFSET {plan.offset}"  # noqa: S608
        return [int(row[0]) for row in connection.execute(text).fetchall()]
    except duckdb.Error as error:
        raise QueryError(f"HAVING or ORDER BY cannot be read: {str(error).splitlines()[0]}") from None
    finally:
        connection.unregister("groups")
