"""Applies HAVING, ORDER BY, LIMIT and OFFSET to the estimated groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hubbub.query.errors import QueryError
from hubbub.query.plan import QueryPlan
from hubbub.query.time_limit import check_time

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


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
