"""Rules for names: aliases and positions replaced, columns as in the table, aggregates by the few estimated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.query.errors import Tree, did_you_mean, refused
from hubbub.query.rules.conditions import number

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema

MOST_NODES = 20_000
"""The greatest number of parts of expressions that aliases behind HAVING and ORDER BY are replaced by."""


def expand_aliases(select: Tree, schema: TableSchema) -> Tree:
    """Replace aliases of SELECT, GROUP BY 1, ORDER BY 1 and GROUP BY ALL by the expressions they refer to.

    Behind GROUP BY a column goes before an alias of its name; behind HAVING and ORDER BY the alias does.
    """
    from sqlglot import exp

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
    from sqlglot import exp

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
    from sqlglot import exp

    sizes = {name: sum(1 for _ in meaning.walk()) for name, meaning in meanings.items()}
    nodes = 0

    def replaced(node: Tree) -> Tree:
        nonlocal nodes
        if isinstance(node, exp.Column) and not node.table and node.find_ancestor(exp.AggFunc) is None:
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
    from sqlglot import exp

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


def expand_aggregates(select: Tree, schema: TableSchema) -> Tree:
    """Write AVG(x) as SUM(x) / COUNT(x), STDDEV as the root of VAR_SAMP, and all quantiles as QUANTILE_DISC.

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
    """The name of a result without an alias: its own text."""
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
