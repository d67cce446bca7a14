"""A normalised query taken apart: keys, results, conditions, and what is done with the groups at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hubbub.query.columns_of import private_names
from hubbub.query.errors import refused
from hubbub.query.formula import Condition, condition_of
from hubbub.query.time_limit import check_time
from hubbub.query.tree import Tree

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema


@dataclass(frozen=True, eq=False)
class GroupKey:
    """An expression that groups are told apart by; of a private column, its place."""

    tree: Tree
    private: int | None

    @property
    def sql(self) -> str:
        """The expression as SQL."""
        return str(self.tree.sql("duckdb"))


@dataclass(frozen=True, eq=False)
class ResultColumn:
    """A column of the answer: its name, and the place of its key or of its aggregate."""

    name: str
    key: int | None
    output: int | None


@dataclass(frozen=True, eq=False)
class QueryPlan:
    """What is asked, taken apart.

    Parameters
    ----------
    keys
        What groups are told apart by.
    columns
        The columns of the answer, in order.
    outputs
        The aggregates that are estimated, those of HAVING and ORDER BY too.
    condition
        Who is asked for.
    having, order
        Conditions on groups, and what they are ordered by: `k0`, `k1`, ... are keys and `v0`, `v1`, ... outputs.
    limit, offset
        How many groups are shown, and how many are skipped before.
    chooses
        Whether estimates decide which groups are shown.
    """

    keys: tuple[GroupKey, ...]
    columns: tuple[ResultColumn, ...]
    outputs: tuple[Tree, ...]
    condition: Condition
    having: str | None
    order: tuple[str, ...]
    limit: int | None
    offset: int
    chooses: bool = False

    @property
    def public_keys(self) -> list[GroupKey]:
        """The keys that public columns tell."""
        return [key for key in self.keys if key.private is None]

    @property
    def private_keys(self) -> list[int]:
        """The places of the private columns that are keys."""
        return [key.private for key in self.keys if key.private is not None]


def plan_query(select: Tree, schema: TableSchema) -> QueryPlan:
    """Take a normalised query apart.

    Example:
        >>> from hubbub import Ordinal
        >>> from hubbub.query.parse import parse
        >>> from hubbub.query.rules import normalise
        >>> from hubbub.query.schema import PrivateColumn, PublicColumn, TableSchema
        >>> schema = TableSchema("people", (PrivateColumn("age", Ordinal(100)),), (PublicColumn("os", "VARCHAR"),))
        >>> text = "SELECT os, COUNT(*) AS n FROM people WHERE age > 9 GROUP BY os HAVING n > 5 ORDER BY n DESC LIMIT 3"
        >>> plan = plan_query(normalise(parse(text).select, schema), schema)
        >>> [column.name for column in plan.columns], plan.having, plan.order, plan.limit
        (['os', 'n'], 'v0 > 5', ('v0 DESC',), 3)
        >>> plan.chooses
        True
    """
    from sqlglot import exp

    group = select.args.get("group")
    keys = [_key(tree, schema) for tree in ([] if group is None else group.expressions)]
    outputs: dict[str, Tree] = {}
    columns = []
    names: set[str] = set()
    for item in select.expressions:
        tree, name = item.unalias(), item.alias_or_name
        if name.casefold() in names:
            raise refused(item, f"two results are called {name}", "give them different names")
        names.add(name.casefold())
        place = next((k for k, key in enumerate(keys) if key.sql == tree.sql("duckdb")), None)
        columns.append(ResultColumn(name, place, None if place is not None else _output(tree, outputs)))
    where = select.args.get("where")
    condition = condition_of(None if where is None else where.this, schema)
    having = select.args.get("having")
    order = select.args.get("order")
    bounds = [select.args.get(part) for part in ("limit", "offset")]
    limit, offset = (None if bound is None else int(bound.expression.name) for bound in bounds)
    kept = [] if having is None else [_over_groups(having.this, keys, outputs)]
    ordered = [_over_groups(tree, keys, outputs) for tree in ([] if order is None else order.expressions)]
    deciding = [*kept, *(ordered if limit is not None or offset else ())]
    return QueryPlan(
        keys=tuple(keys),
        columns=tuple(columns),
        having=kept[0].sql("duckdb") if kept else None,
        order=tuple(tree.sql("duckdb") for tree in ordered),
        outputs=tuple(outputs.values()),
        condition=condition,
        limit=limit,
        offset=offset or 0,
        chooses=any(column.name.startswith("v") for tree in deciding for column in tree.find_all(exp.Column)),
    )


def _key(tree: Tree, schema: TableSchema) -> GroupKey:
    private = private_names(tree, schema)
    place = next((k for k, column in enumerate(schema.private) if private and column.name == private[0]), None)
    return GroupKey(tree, place)


def _output(tree: Tree, outputs: dict[str, Tree]) -> int:
    """The place of an aggregate among the outputs, added if it is new."""
    from sqlglot import exp

    if not tree.find(exp.AggFunc):
        raise refused(tree, f"{tree.sql('duckdb')} is no aggregate", "ask COUNT(*), SUM(...), AVG(...) or a key")
    text = tree.sql("duckdb")
    outputs.setdefault(text, tree)
    return list(outputs).index(text)


def _over_groups(tree: Tree, keys: list[GroupKey], outputs: dict[str, Tree]) -> Tree:
    """A condition or an order with its keys and aggregates replaced by the columns of the groups."""
    from sqlglot import exp

    names = {key.sql: f"k{place}" for place, key in enumerate(keys)}

    def replaced(node: Tree) -> Tree:
        check_time()
        text = node.sql("duckdb")
        if text in names:
            return exp.column(names[text])
        root = isinstance(node, exp.Sqrt) and isinstance(node.this, exp.AggFunc)
        if isinstance(node, exp.AggFunc) or root or text in outputs:
            return exp.column(f"v{_output(node, outputs)}")
        return node

    return tree.transform(replaced, copy=True)
