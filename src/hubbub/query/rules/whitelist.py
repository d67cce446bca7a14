"""Refuses every expression that is not on a list: nothing else ever reaches the database."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from hubbub.core.errors import needs
from hubbub.query.errors import refused
from hubbub.query.tree import Tree

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema

STRUCTURE = "Select From Table TableAlias Where Group Having Order Ordered Limit Offset Alias Identifier Column Star"
LOGIC = "And Or Not Paren EQ NEQ GT GTE LT LTE In Between Is Like ILike Null Boolean Literal Case If Coalesce"
ARITHMETIC = "Add Sub Mul Div IntDiv Mod Neg Abs Round Floor Ceil Ln Log Exp Sqrt Pow Least Greatest Sign Nullif"
TEXTS = "Lower Upper Length Trim Substring Left Right Concat DPipe StartsWith Contains"
TIMES = "Extract Year Month Day Week Quarter DayOfWeek TimestampTrunc DateTrunc Date Var"
CASTS = "Cast TryCast DataType DataTypeParam"
AGGREGATES = (
    "Count Sum Avg Stddev StddevSamp StddevPop Variance VariancePop Median Quantile PercentileDisc PercentileCont "
    "ApproxQuantile"
)
CAST_TYPES = frozenset(
    [
        "BOOLEAN",
        "INT",
        "SMALLINT",
        "TINYINT",
        "BIGINT",
        "FLOAT",
        "DOUBLE",
        "TEXT",
        "VARCHAR",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMPNTZ",
        "DECIMAL",
    ]
)
DEEPEST = 200
"""Trees may not be deeper than this."""


@cache
def allowed() -> frozenset[type[Tree]]:
    """The kinds of expressions that a query may have."""
    with needs("sql"):
        from sqlglot import exp

    names = " ".join((STRUCTURE, LOGIC, ARITHMETIC, TEXTS, TIMES, CASTS, AGGREGATES)).split()
    return frozenset(getattr(exp, name) for name in names)


def check_whitelist(select: Tree, schema: TableSchema) -> Tree:
    """The same query, if all of its expressions are known."""
    from sqlglot import exp

    known = allowed()
    for node in select.walk():
        if type(node) not in known:
            raise _unknown(node)
        if node.depth > DEEPEST:
            raise refused(node, "the query is nested too deeply", f"at most {DEEPEST} levels are read")
        if isinstance(node, exp.DataType) and (node.this.name not in CAST_TYPES or node.args.get("nested")):
            raise refused(
                node.parent or node, f"unknown type {node.sql('duckdb')}", "known are BIGINT, DOUBLE, VARCHAR ..."
            )
        if isinstance(node, exp.Between) and node.args.get("symmetric"):
            raise refused(node, "SYMMETRIC is not answered", "ask BETWEEN the smaller AND the larger")
        if isinstance(node, exp.Ordered) and isinstance(node.this, exp.Var):
            raise refused(node, "ORDER BY ALL is not answered", "name what the groups are ordered by")
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
            raise _unknown(node.this)
    return select


def _unknown(node: Tree) -> Exception:
    from sqlglot import exp

    if isinstance(node, exp.Max | exp.Min):
        name = node.key.upper()
        instead = "ask for a quantile: the ends of a group whose members nobody knows cannot be estimated"
        return refused(node, f"{name} is not answered", instead)
    if isinstance(node, exp.Distinct):
        return refused(node, "DISTINCT is not answered", "ask GROUP BY")
    if isinstance(node, exp.Filter):
        return refused(node, "FILTER is not answered", "put its condition behind WHERE, or GROUP BY it")
    if isinstance(node, exp.Parameter | exp.Placeholder):
        return refused(node, "parameters have no values here", "write the value itself")
    if isinstance(node, exp.Func):
        name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
        functions = "COUNT, SUM, AVG, STDDEV, QUANTILE_DISC, ABS, ROUND, LN, EXP, LOWER, LENGTH, YEAR, CASE and CAST"
        return refused(node, f"unknown function {name.upper()}", f"known are {functions}")
    return refused(node, f"{node.key.upper()} is not answered", "ask with arithmetic and comparisons of columns")
