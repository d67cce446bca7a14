"""From a query's text to its keys, results and conditions, and the selection and order of its groups."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hubbub.core.errors import needs
from hubbub.query.errors import QueryError, Tree, refused
from hubbub.query.formula import Condition, condition_of
from hubbub.query.sandbox import check_time
from hubbub.query.schema import private_names

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema

DIALECT = "duckdb"
LONGEST = 20_000
"""A query of more characters is refused."""
_EXPLAIN = re.compile(r"\s*explain\b", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Statement:
    """A parsed query, and whether only its plan is wanted."""

    select: Tree
    explain: bool


def parse(text: str) -> Statement:
    """The one SELECT, or EXPLAIN SELECT, of a text."""
    with needs("sql"):
        from sqlglot import exp
        from sqlglot import parse as read
        from sqlglot.errors import ParseError, SqlglotError
    if not isinstance(text, str) or not text.strip():
        raise QueryError("there is no query", "ask SELECT ... FROM ...")
    if len(text) > LONGEST:
        raise QueryError(f"the query has {len(text):,} characters", f"at most {LONGEST:,} are read")
    explained = _EXPLAIN.match(text)
    plain = text if explained is None else " " * explained.end() + text[explained.end() :]
    try:
        trees = [tree for tree in read(plain, dialect=DIALECT) if tree is not None]
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        width = len(str(first.get("highlight") or ""))
        line, column = first.get("line"), first.get("col")
        place = {"line": line, "column": max(int(column) - width + 1, 1)} if line and column else {}
        raise QueryError(f"this is no SQL: {_plain(first.get('description') or error)}", **place) from None
    except (SqlglotError, RecursionError) as error:
        raise QueryError(f"this is no SQL: {_plain(error)}") from None
    if len(trees) != 1:
        raise QueryError(f"{len(trees)} statements", "ask one query at a time")
    select = trees[0]
    if isinstance(select, exp.SetOperation):
        raise QueryError(f"{select.key.upper()} of several queries", "ask each for itself")
    if not isinstance(select, exp.Select):
        word = plain.split()[0].upper()[:20]
        raise QueryError(f"{word} is no query", "ask SELECT ... FROM ..., or EXPLAIN SELECT ...")
    return Statement(select, explained is not None)


def _plain(message: object) -> str:
    """The first line of a parser's message, without what it points with."""
    line = re.sub(r"\x1b\[[0-9;]*m", "", str(message).strip().split("\n")[0])
    line = re.sub(r"Required keyword: '\w+' missing for <class '[\w.]*?(\w+)'>", r"something is missing in \1", line)
    return line[:200].rstrip(".")


def sql(node: Tree) -> str:
    """A tree as SQL again."""
    return str(node.sql(dialect=DIALECT))


@dataclass(frozen=True, eq=False)
class GroupKey:
    """An expression of GROUP BY. `private` is the index of a private column, or None if the expression is public."""

    tree: Tree
    private: int | None

    @property
    def sql(self) -> str:
        """The expression as SQL."""
        return str(self.tree.sql("duckdb"))


@dataclass(frozen=True, eq=False)
class ResultColumn:
    """A column of the answer: its name, and the index of its key or of its aggregate."""

    name: str
    key: int | None
    output: int | None


@dataclass(frozen=True, eq=False)
class QueryPlan:
    """The parts of a query.

    Parameters
    ----------
    keys
        The expressions of GROUP BY.
    columns
        The columns of the answer, in order.
    outputs
        The aggregates that are estimated, including those of HAVING and ORDER BY.
    condition
        WHERE.
    having, order
        HAVING and ORDER BY as SQL, in which `k0`, `k1`, ... are keys and `v0`, `v1`, ... outputs.
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
        """The keys that are public expressions."""
        return [key for key in self.keys if key.private is None]

    @property
    def private_keys(self) -> list[int]:
        """The indices of the private columns that are keys."""
        return [key.private for key in self.keys if key.private is not None]


def plan_query(select: Tree, schema: TableSchema) -> QueryPlan:
    """Split a normalised query into its parts."""
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
    filters = [] if having is None else [_over_groups(having.this, keys, outputs)]
    ordered = [_over_groups(tree, keys, outputs) for tree in ([] if order is None else order.expressions)]
    deciding = [*filters, *(ordered if limit is not None or offset else ())]
    return QueryPlan(
        keys=tuple(keys),
        columns=tuple(columns),
        having=filters[0].sql("duckdb") if filters else None,
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
    """The index of an aggregate among the outputs; a new aggregate is added."""
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
