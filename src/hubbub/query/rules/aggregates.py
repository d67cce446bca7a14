"""Says AVG, STDDEV, MEDIAN and the like by the few aggregates that are estimated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.query.errors import refused
from hubbub.query.rules.constants import number
from hubbub.query.tree import Tree

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema


def expand_aggregates(select: Tree, schema: TableSchema) -> Tree:
    """The query with AVG(x) as SUM(x) / COUNT(x), STDDEV as the root of VAR_SAMP, and all quantiles as QUANTILE_DISC.

    What a result was called stays its alias.
    """
    from sqlglot import exp

    items: list[Tree] = []
    for item in select.expressions:
        if isinstance(item, exp.Alias | exp.Column):
            items.append(item)
        else:
            items.append(exp.alias_(item, exp.to_identifier(_spelt(item), quoted=True)))
    select.set("expressions", items)
    return select.transform(_expanded, copy=False)


def _spelt(item: Tree) -> str:
    """What a result without an alias is called: its own text."""
    plain = item.copy()
    from sqlglot import exp

    for name in plain.find_all(exp.Identifier):
        if name.name.isidentifier():
            name.set("quoted", False)
    text = plain.sql("duckdb", normalize_functions="lower")
    return str(text)[:60]


def _expanded(node: Tree) -> Tree:
    from sqlglot import exp

    if isinstance(node, exp.Avg):
        ratio = exp.Div(this=exp.Sum(this=node.this), expression=exp.Count(this=node.this.copy()))
        return ratio if isinstance(node.parent, exp.Alias | exp.Ordered | None) else exp.Paren(this=ratio)
    if isinstance(node, exp.Count) and node.this is None:
        return exp.Count(this=exp.Star())
    if isinstance(node, exp.Stddev | exp.StddevSamp):
        return exp.Sqrt(this=exp.Variance(this=node.this))
    if isinstance(node, exp.StddevPop):
        return exp.Sqrt(this=exp.VariancePop(this=node.this))
    if isinstance(node, exp.Median):
        return exp.PercentileDisc(this=node.this, expression=exp.Literal.number("0.5"))
    if isinstance(node, exp.Quantile | exp.PercentileCont | exp.PercentileDisc | exp.ApproxQuantile):
        wanted = node.args.get("quantile") or node.args.get("expression")
        share = None if wanted is None else number(wanted)
        if share is None or not 0 < share < 1:
            raise refused(node, "the share of a quantile is no number between 0 and 1", "ask QUANTILE_DISC(x, 0.9)")
        return exp.PercentileDisc(this=node.this, expression=exp.Literal.number(share))
    return node
