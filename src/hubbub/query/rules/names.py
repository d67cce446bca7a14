"""Rules for names: aliases and positions replaced, columns as in the table, aggregates by the few estimated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.core.domain import Numeric
from hubbub.query.errors import did_you_mean
from hubbub.query.rules.conditions import number
from hubbub.query.trees import Tree, exp, refused

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema

MOST_NODES = 20_000
"""The greatest number of parts of expressions that aliases behind HAVING and ORDER BY are replaced by."""


def expand_aliases(select: Tree, schema: TableSchema) -> Tree:
    """Replace aliases of SELECT, GROUP BY 1, ORDER BY 1 and GROUP BY ALL by the expressions they refer to.

    Behind GROUP BY a column goes before an alias of its name; behind HAVING and ORDER BY the alias does.
    """
    meanings: dict[str, Tree] = {}
    for item in select.expressions:
        if isinstance(item, exp.Alias):
            name = item.alias.casefold()
            if name in meanings:
                raise refused(item.args["alias"], f"two results are called {item.alias}", "give them different names")
            meanings[name] = item.this
    group = select.args.get("group")
    if group is not None:
        _check_grouping(group)
        if group.args.get("all"):
            keys = [item.unalias().copy() for item in select.expressions if not item.find(exp.AggFunc)]
            group.set("all", None)
            group.set("expressions", keys)
        columns = {name.casefold() for name in schema.names}
        for key in list(group.expressions):
            key.replace(_meant(key, select, {name: m for name, m in meanings.items() if name not in columns}))
        if not group.expressions:
            select.set("group", None)
    having = select.args.get("having")
    if having is not None:
        having.set("this", _written_out(having.this, meanings))
    order = select.args.get("order")
    if order is not None:
        for ordered in order.expressions:
            ordered.set("this", _written_out(_meant(ordered.this, select, meanings), meanings))
    return select


def _check_grouping(group: Tree) -> None:
    for part in ("grouping_sets", "cube", "rollup", "totals"):
        if group.args.get(part):
            raise refused(group, f"{part.replace('_', ' ').upper()} is not answered", "ask one GROUP BY at a time")


def _meant(key: Tree, select: Tree, meanings: dict[str, Tree]) -> Tree:
    """The expression that a position, or an alias by itself, refers to."""
    if isinstance(key, exp.Literal) and key.is_int:
        place = int(key.name)
        if not 1 <= place <= len(select.expressions):
            raise refused(key, f"there is no result {place}", f"there are {len(select.expressions)}")
        return select.expressions[place - 1].unalias().copy()
    if isinstance(key, exp.Column) and not key.table and key.name.casefold() in meanings:
        return meanings[key.name.casefold()].copy()
    return key


def _written_out(tree: Tree, meanings: dict[str, Tree]) -> Tree:
    """Replace the aliases in a condition or a key, except inside aggregates, where names are columns."""
    sizes = {name: sum(1 for _ in meaning.walk()) for name, meaning in meanings.items()}
    nodes = 0

    def replaced(node: Tree) -> Tree:
        nonlocal nodes
        if isinstance(node, exp.Column) and not node.table and node.find_ancestor(exp.AggFunc, exp.Filter) is None:
            name = node.name.casefold()
            meaning = meanings.get(name)
            if meaning is not None:
                nodes += sizes[name]
                if nodes > MOST_NODES:
                    raise refused(node, "the aliases make the query too long", "name fewer of them")
                return exp.paren(meaning.copy()) if isinstance(meaning, exp.Binary) else meaning.copy()
        return node

    return tree.transform(replaced, copy=True)


def resolve_columns(select: Tree, schema: TableSchema) -> Tree:
    """Quote every name and spell it as in the table, without the table's name before it."""
    spelling = {name.casefold(): name for name in schema.names}
    table = select.args["from_"].this
    known_as = {schema.name.casefold(), table.alias_or_name.casefold()}
    for column in select.find_all(exp.Column):
        if column.args.get("db") or (column.table and column.table.casefold() not in known_as):
            raise refused(column, f"unknown table {column.table}", did_you_mean(column.table, known_as))
        name = spelling.get(column.name.casefold())
        if name is None:
            raise refused(column, f"unknown column {column.name}", did_you_mean(column.name, spelling.values()))
        column.set("table", None)
        column.this.set("this", name)
        column.this.set("quoted", True)
    for alias in select.find_all(exp.Alias):
        alias.args["alias"].set("quoted", True)
    table.replace(exp.to_table(exp.to_identifier(schema.name, quoted=True).sql("duckdb"), dialect="duckdb"))
    return select


def name_results(select: Tree, schema: TableSchema) -> Tree:
    """Give each result without a name its own text as its name."""
    items = [
        item
        if isinstance(item, exp.Alias | exp.Column)
        else exp.alias_(item, exp.to_identifier(_spelt(item), quoted=True))
        for item in select.expressions
    ]
    select.set("expressions", items)
    return select


MOST_BUCKETS = 4096


def write_conditions_as_case(select: Tree, schema: TableSchema) -> Tree:
    """Write FILTER, COUNT_IF, IF and CASE x WHEN 1 as CASE WHEN, and WIDTH_BUCKET of what is no cell as arithmetic."""
    cells = {column.name for column in schema.private if isinstance(column.domain, Numeric)}

    def written(node: Tree) -> Tree:
        if isinstance(node, exp.Filter):
            return _filtered(node)
        if isinstance(node, exp.CountIf):
            return exp.Count(this=_case(node.this, exp.Literal.number("1")))
        if isinstance(node, exp.If) and not isinstance(node.parent, exp.Case):
            return _case(node.this, node.args["true"], node.args.get("false"))
        if isinstance(node, exp.Case) and node.this is not None:
            for branch in node.args["ifs"]:
                branch.set("this", exp.EQ(this=node.this.copy(), expression=branch.this))
            node.set("this", None)
        if isinstance(node, exp.WidthBucket):
            return _bucket(node, keep=isinstance(node.this, exp.Column) and node.this.name in cells)
        return node

    nodes = list(select.find_all(exp.Filter, exp.CountIf, exp.If, exp.Case, exp.WidthBucket))
    for node in reversed(nodes):  # the inner ones first
        other = written(node)
        if other is not node:
            node.replace(other)
    return select


def _filtered(node: Tree) -> Tree:
    """The aggregate of CASE WHEN the condition holds."""
    call, condition = node.this, node.expression.this
    if isinstance(call, exp.CountIf):
        call = exp.Count(this=_case(call.this, exp.Literal.number("1")))
    if not isinstance(call, exp.AggFunc) or call.this is None or isinstance(call.this, exp.Distinct):
        raise refused(node, "FILTER stands behind an aggregate", "ask SUM(...) FILTER (WHERE ...)")
    measure = exp.Literal.number("1") if isinstance(call.this, exp.Star) else call.this
    return type(call)(**{**call.copy().args, "this": _case(condition, measure), "big_int": None})


def _case(condition: Tree, true: Tree, false: Tree | None = None) -> Tree:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=true.copy())], default=false and false.copy())


def _bucket(node: Tree, *, keep: bool) -> Tree:
    """The number of the interval of equal width that holds a number: 0 below all, one more than their number above."""
    low, high, count = (number(node.args[name]) for name in ("min_value", "max_value", "num_buckets"))
    if low is None or high is None or not low < high:
        raise refused(node, "the ends of WIDTH_BUCKET are no two rising numbers", "ask WIDTH_BUCKET(x, 0, 100, 5)")
    if not isinstance(count, int) or not 1 <= count <= MOST_BUCKETS:
        raise refused(node, "WIDTH_BUCKET has no number of buckets", f"1 to {MOST_BUCKETS:,}, such as 5")
    if keep:
        return node
    value, width = exp.paren(node.this.copy()), exp.Literal.number(repr(high - low))
    lowest, highest = node.args["min_value"], node.args["max_value"]
    away = exp.paren(exp.Sub(this=value.copy(), expression=exp.paren(lowest.copy())))
    spot = exp.Div(this=exp.Mul(this=away, expression=exp.Literal.number(str(count))), expression=width)
    inside = exp.Add(this=exp.cast(exp.Floor(this=spot), "BIGINT"), expression=exp.Literal.number("1"))
    below = exp.If(this=exp.LT(this=value.copy(), expression=lowest.copy()), true=exp.Literal.number("0"))
    above = exp.If(this=exp.GTE(this=value.copy(), expression=highest.copy()), true=exp.Literal.number(str(count + 1)))
    return exp.Case(ifs=[below, above], default=inside)


def expand_aggregates(select: Tree, schema: TableSchema) -> Tree:
    """Write AVG(x) as SUM(x) / COUNT(x), STDDEV as the root of VAR_SAMP, and all quantiles as QUANTILE_DISC."""
    return select.transform(_expanded, copy=False)


def _spelt(item: Tree) -> str:
    """The name of a result without an alias: its own text."""
    plain = item.copy()
    for name in plain.find_all(exp.Identifier):
        if name.name.isidentifier():
            name.set("quoted", False)
    text = plain.sql("duckdb", normalize_functions="lower")
    return str(text)[:60]


def write_quantiles_as_calls(select: Tree, schema: TableSchema) -> Tree:
    """PERCENTILE_DISC(p) WITHIN GROUP (ORDER BY x) is QUANTILE_DISC(x, p)."""
    for node in list(select.find_all(exp.WithinGroup)):
        call, ordered = node.this, node.expression.expressions
        if (
            not isinstance(call, exp.PercentileDisc | exp.PercentileCont)
            or len(ordered) != 1
            or ordered[0].args["desc"]
        ):
            problem = "WITHIN GROUP is answered of a quantile by one rising order"
            raise refused(call, problem, "ask QUANTILE_DISC(x, 0.9)")
        node.replace(exp.PercentileDisc(this=ordered[0].this, expression=call.this))
    return select


def _expanded(node: Tree) -> Tree:
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
