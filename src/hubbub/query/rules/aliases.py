"""Puts what an alias or a position stands for in its place, behind GROUP BY, HAVING and ORDER BY."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.query.errors import refused
from hubbub.query.tree import Tree

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema


MOST_NODES = 20_000
"""Aliases behind HAVING and ORDER BY may stand for so many parts of expressions in all."""


def expand_aliases(select: Tree, schema: TableSchema) -> Tree:
    """The query with aliases of SELECT, GROUP BY 1, ORDER BY 1 and GROUP BY ALL written out.

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
    """What a position or an alias that stands alone is of."""
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
    """A condition or a key with aliases replaced everywhere but inside aggregates, where columns are meant."""
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
                    raise refused(node, "the aliases stand for too long a query", "name fewer of them")
                return exp.paren(meaning.copy()) if isinstance(meaning, exp.Binary) else meaning.copy()
        return node

    return tree.transform(replaced, copy=True)
