"""From a query's text to its keys, results and conditions, and the selection and order of its groups."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hubbub.query.codes import KeyValues, key_values
from hubbub.query.errors import QueryError
from hubbub.query.formula import Condition, ConditionReader
from hubbub.query.pieces import PieceReader, Pieces
from hubbub.query.rules.conditions import conjuncts, number
from hubbub.query.sandbox import check_time
from hubbub.query.trees import Tree, exp, private_names, refused

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema

DIALECT = "duckdb"
LONGEST = 20_000
"""A query of more characters is refused."""
_EXPLAIN = re.compile(r"\s*explain\b", re.IGNORECASE)
_TURNED = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE, exp.EQ: exp.EQ}
"""The comparisons, by what they are with their two sides exchanged."""
_DESCRIBE = re.compile(r"^\s*describe\s*;?\s*$", re.IGNORECASE)
"""DESCRIBE alone, which lists the tables."""


@dataclass(frozen=True, eq=False)
class Statement:
    """A parsed query, whether only its plan is wanted, or which table is described ("": tables are listed)."""

    select: Tree
    explain: bool
    described: str | None = None


def parse(text: str) -> Statement:
    """The one SELECT, or EXPLAIN SELECT, of a text."""
    from sqlglot import parse as read
    from sqlglot.errors import ParseError, SqlglotError

    if not isinstance(text, str) or not text.strip():
        raise QueryError("there is no query", "ask SELECT ... FROM ...")
    if len(text) > LONGEST:
        raise QueryError(f"the query has {len(text):,} characters", f"at most {LONGEST:,} are read")
    explained = _EXPLAIN.match(text)
    plain = text if explained is None else " " * explained.end() + text[explained.end() :]
    try:
        trees = [tree for tree in read(_DESCRIBE.sub("SHOW TABLES", plain), dialect=DIALECT) if tree is not None]
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        width = len(str(first.get("highlight") or ""))
        line, column = first.get("line"), first.get("col")
        place = {"line": line, "column": max(int(column) - width + 1, 1)} if line and column else {}
        raise QueryError(f"this is no SQL: {_plain(first.get('description') or error)}", **place) from None
    except RecursionError:
        raise QueryError("the query is nested too deeply", "ask in fewer levels") from None
    except SqlglotError as error:
        raise QueryError(f"this is no SQL: {_plain(error)}") from None
    if len(trees) != 1:
        raise QueryError(f"{len(trees)} statements", "ask one query at a time")
    select = trees[0]
    if explained is None and isinstance(select, exp.Show) and select.name.upper() == "TABLES":
        return Statement(select, explain=False, described="")
    if explained is None and isinstance(select, exp.Describe) and isinstance(select.this, exp.Table):
        return Statement(select, explain=False, described=select.this.name)
    if isinstance(select, exp.SetOperation):
        raise QueryError(f"{select.key.upper()} of several queries", "ask each for itself")
    if not isinstance(select, exp.Select):
        word = plain.split()[0].upper()[:20]
        known = "SELECT ... FROM ..., EXPLAIN SELECT ..., DESCRIBE a table or SHOW TABLES"
        raise QueryError(f"{word} is no query", f"ask {known}")
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
    """An expression of GROUP BY.

    `private`: the index of the private column that it is of, or None if the expression is public. `values`: if it is
    private: its values, and the codes of the column that have each.
    """

    tree: Tree
    private: int | None
    values: KeyValues = ()

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
    outputs
        The aggregates that are estimated, including those of HAVING and ORDER BY.
    condition
        WHERE; its public conditions are also those of the pieces.
    pieces
        What the measure of each aggregate is made of in which private columns stand, by the text of the aggregate.
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
    pieces: Mapping[str, Pieces] = field(default_factory=dict)

    @property
    def public_keys(self) -> list[GroupKey]:
        """The keys that are public expressions."""
        return [key for key in self.keys if key.private is None]

    @property
    def private_keys(self) -> list[GroupKey]:
        """The keys that are a private column, or an expression of one."""
        return [key for key in self.keys if key.private is not None]


def plan_query(select: Tree, schema: TableSchema) -> QueryPlan:
    """Split a normalised query into its parts."""
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
    conditions = ConditionReader(schema)
    condition = conditions.where(None if where is None else where.this)
    having = select.args.get("having")
    order = select.args.get("order")
    bounds = [select.args.get(part) for part in ("limit", "offset")]
    limit, offset = (None if bound is None else int(bound.expression.name) for bound in bounds)
    filters = [] if having is None else [_over_groups(having.this, keys, outputs)]
    ordered = [_over_groups(tree, keys, outputs) for tree in ([] if order is None else order.expressions)]
    deciding = [*filters, *(ordered if limit is not None or offset else ())]
    reader = PieceReader(conditions)
    pieces = {}
    for call in (call for tree in outputs.values() for call in tree.find_all(exp.AggFunc)):
        if private_names(call, schema):
            pieces[str(call.sql("duckdb"))] = reader.read(call)
    return QueryPlan(
        keys=tuple(keys),
        columns=tuple(columns),
        having=filters[0].sql("duckdb") if filters else None,
        order=tuple(tree.sql("duckdb") for tree in ordered),
        outputs=tuple(outputs.values()),
        condition=conditions.finished(condition),
        pieces=pieces,
        limit=limit,
        offset=offset or 0,
        chooses=any(column.name.startswith("v") for tree in deciding for column in tree.find_all(exp.Column)),
    )


def column_range(select: Tree, name: str) -> tuple[int | None, int | None]:
    """Between which whole numbers a column is, by the conditions behind WHERE that must all hold; None: no end."""
    where = select.args.get("where")
    ends: list[tuple[float, float]] = []
    for part in [] if where is None else conjuncts(where.this):
        if {column.name.casefold() for column in part.find_all(exp.Column)} == {name.casefold()}:
            ends += _condition_range(part)
    low, high = max((low for low, _ in ends), default=-math.inf), min((high for _, high in ends), default=math.inf)
    return (None if math.isinf(low) else math.ceil(low)), (None if math.isinf(high) else math.floor(high))


def with_numbers(text: str, name: str, first: Callable[[str], int], last: Callable[[str], int]) -> str:
    """A query whose comparisons of a column of whole numbers with texts, such as dates, have numbers instead.

    `first` gives the first number that is not before a text, `last` the last that is not after it.
    """
    statement = parse(text)
    changed = False
    for column in list(statement.select.find_all(exp.Column)):
        part = column.parent
        if column.name.casefold() != name.casefold() or part is None:
            continue
        comparison: type = type(part)
        if isinstance(part, exp.Between) and part.this is column:
            texts = (part.args["low"], part.args["high"])
        elif type(part) in _TURNED:
            comparison = type(part) if part.left is column else _TURNED[type(part)]
            texts = (part.right if part.left is column else part.left,) * 2
        else:
            continue
        if not all(isinstance(literal, exp.Literal) and literal.is_string for literal in texts):
            continue
        low, high = exp.Literal.number(first(texts[0].this)), exp.Literal.number(last(texts[1].this))
        if comparison in (exp.Between, exp.EQ):
            part.replace(exp.Between(this=column.copy(), low=low, high=high))
        else:
            part.replace(comparison(this=column.copy(), expression=low if comparison in (exp.GTE, exp.LT) else high))
        changed = True
    return f"{'EXPLAIN ' * statement.explain}{statement.select.sql(DIALECT)}" if changed else text


def _condition_range(part: Tree) -> list[tuple[float, float]]:
    while isinstance(part, exp.Paren):
        part = part.this
    if isinstance(part, exp.Between) and isinstance(part.this, exp.Column):
        low, high = number(part.args["low"]), number(part.args["high"])
        return [] if low is None or high is None else [(low, high)]
    if isinstance(part, exp.In) and isinstance(part.this, exp.Column):
        listed = [value for value in map(number, part.expressions) if value is not None]
        return [(min(listed), max(listed))] if listed and len(listed) == len(part.expressions) else []
    if type(part) not in _TURNED:
        return []
    comparison, left, right = type(part), part.left, part.right
    if isinstance(right, exp.Column):
        comparison, left, right = _TURNED[comparison], right, left
    value = number(right)
    if value is None or not isinstance(left, exp.Column):
        return []
    above, below = (value, math.inf), (-math.inf, value)
    strict = {exp.GT: (math.floor(value) + 1, math.inf), exp.LT: (-math.inf, math.ceil(value) - 1)}
    return [{exp.EQ: (value, value), exp.GTE: above, exp.LTE: below, **strict}[comparison]]


def _key(tree: Tree, schema: TableSchema) -> GroupKey:
    private = private_names(tree, schema)
    place = next((k for k, column in enumerate(schema.private) if private and column.name == private[0]), None)
    return GroupKey(tree, place, () if place is None else key_values(tree, schema.private[place]))


def _output(tree: Tree, outputs: dict[str, Tree]) -> int:
    """The index of an aggregate among the outputs; a new aggregate is added."""
    if not tree.find(exp.AggFunc):
        raise refused(tree, f"{tree.sql('duckdb')} is no aggregate", "ask COUNT(*), SUM(...), AVG(...) or a key")
    text = tree.sql("duckdb")
    outputs.setdefault(text, tree)
    return list(outputs).index(text)


def _over_groups(tree: Tree, keys: list[GroupKey], outputs: dict[str, Tree]) -> Tree:
    """A condition or an order with its keys and aggregates replaced by the columns of the groups."""
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
