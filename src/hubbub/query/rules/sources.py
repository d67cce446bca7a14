"""The rule that writes sub-queries behind FROM, and those that WITH names, into the query around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hubbub.query.errors import did_you_mean
from hubbub.query.rules.names import MOST_NODES, expand_aliases, name_results
from hubbub.query.rules.refusals import check_parts
from hubbub.query.sandbox import check_time
from hubbub.query.trees import Tree, exp, refused

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema

DEEPEST = 20
"""The greatest number of queries inside of each other."""


def merge_subqueries(select: Tree, schema: TableSchema) -> Tree:
    """Replace sub-queries behind FROM, and WITH, by one query of the table.

    Where a sub-query shows people, its columns are written into the query around it. Where it shows groups, the results
    of the query around it are written into the sub-query, and WHERE becomes HAVING.
    """
    return _merged(select, {}, schema, 0)


@dataclass(frozen=True, eq=False)
class NamedQuery:
    """A query that WITH names, and those that were named before."""

    select: Tree
    columns: tuple[str, ...]
    known: Mapping[str, NamedQuery]


def _merged(select: Tree, known: Mapping[str, NamedQuery], schema: TableSchema, depth: int) -> Tree:
    check_time()
    if depth > DEEPEST:
        raise refused(select, "there are too many queries inside of each other", f"at most {DEEPEST} are read")
    if (named := select.args.get("with_")) is not None:
        known = _named(named, known)
        select.set("with_", None)
    source = select.args.get("from_")
    if source is None:
        return select
    for holder in (source, *select.args.get("joins", [])):
        table = holder.this
        query = known.get(table.name.casefold()) if isinstance(table, exp.Table) and not table.args.get("db") else None
        if query is not None:
            alias = exp.TableAlias(
                this=exp.to_identifier(table.alias_or_name, quoted=True),
                columns=[exp.to_identifier(name, quoted=True) for name in query.columns],
            )
            table.replace(exp.Subquery(this=_merged(query.select.copy(), query.known, schema, depth + 1), alias=alias))
        elif isinstance(table, exp.Subquery) and isinstance(table.this, exp.Select):
            table.set("this", _merged(table.this, known, schema, depth + 1))
    if isinstance(source.this, exp.Subquery) and isinstance(source.this.this, exp.Select):
        inner = source.this.this
        if inner.args.get("from_") is not None and isinstance(inner.args["from_"].this, exp.Table):
            return _Fold(select, inner, source.this, schema).merged()
    return select


def _named(named: Tree, known: Mapping[str, NamedQuery]) -> Mapping[str, NamedQuery]:
    """The queries of WITH; each may use those before it."""
    if named.args.get("recursive"):
        raise refused(named, "RECURSIVE is not answered", "name queries that do not use themselves")
    for query in named.expressions:
        if not isinstance(query.this, exp.Select) or query.this.args.get("from_") is None:
            raise refused(query, f"{query.alias} has no FROM", "write a SELECT of the table, or VALUES")
        columns = tuple(column.name for column in query.args["alias"].args.get("columns") or ())
        known = {**known, query.alias.casefold(): NamedQuery(query.this, columns, known)}
    return known


class _Fold:
    """A query and the sub-query behind its FROM."""

    def __init__(self, outer: Tree, inner: Tree, subquery: Tree, schema: TableSchema) -> None:
        self._outer, self._inner, self._schema = outer, inner, schema
        self._alias = subquery.alias.casefold()
        check_parts(inner, schema)
        self._base = inner.args["from_"].this.alias_or_name
        self._groups = bool(inner.args.get("group") or inner.args.get("having") or _aggregates(inner))
        if self._groups:
            expand_aliases(inner, schema)
        elif inner.args.get("limit") is not None or inner.args.get("offset") is not None:
            raise refused(inner, "LIMIT of people is not answered: nobody's row is known", "leave LIMIT out")
        renamed = [column.name for column in subquery.args["alias"].args.get("columns") or ()] if self._alias else []
        self._star = any(isinstance(item, exp.Star) for item in inner.expressions)
        self._visible = self._names(renamed)
        self._results = {item.alias.casefold() for item in outer.expressions if isinstance(item, exp.Alias)}
        self._nodes = 0

    def _names(self, renamed: list[str]) -> dict[str, tuple[str, Tree]]:
        """What the query around sees: names, and the expressions that they are of."""
        visible: dict[str, tuple[str, Tree]] = {}
        if renamed and (self._star or len(renamed) != len(self._inner.expressions)):
            raise refused(
                self._inner, f"other than {len(renamed)} results for {len(renamed)} names", "name each result"
            )
        for place, item in enumerate(self._inner.expressions):
            if isinstance(item, exp.Star):
                if item.args.get("except_") or item.args.get("replace") or item.args.get("rename") or self._groups:
                    raise refused(item, "* with changes, or of groups, is not answered", "name the columns")
                continue
            name = renamed[place] if renamed else item.alias_or_name
            tree = item.unalias()
            if name.casefold() in visible:
                raise refused(item, f"two results are called {name}", "give them different names")
            if not self._inner.args.get("joins"):
                for column in tree.find_all(exp.Column):
                    column.set("table", exp.to_identifier(self._base, quoted=True))
            visible[name.casefold() or f"#{place}"] = name, tree
        return visible

    def merged(self) -> Tree:
        """One query in place of the two."""
        outer, inner = self._outer, self._inner
        for item in list(outer.expressions):
            if isinstance(item, exp.Column):
                item.replace(exp.alias_(item.copy(), exp.to_identifier(item.name, quoted=True)))
        if not any(isinstance(item, exp.Star) for item in outer.expressions):
            name_results(outer, self._schema)
        if self._groups:
            return self._of_groups()
        for part in ("expressions", "where", "group", "having", "order", "joins"):
            self._substitute(part)
        where = [query.args["where"].this for query in (inner, outer) if query.args.get("where") is not None]
        if where:
            outer.set("where", exp.Where(this=exp.and_(*where, copy=False)))
        outer.set("joins", [*inner.args.get("joins", []), *outer.args.get("joins", [])] or None)
        outer.set("from_", inner.args["from_"])
        return outer

    def _of_groups(self) -> Tree:
        outer, inner = self._outer, self._inner
        check_parts(outer, self._schema)
        for part in ("group", "joins", "having"):
            if outer.args.get(part):
                node = outer.args[part][0] if isinstance(outer.args[part], list) else outer.args[part]
                raise refused(node, "groups of a sub-query are not grouped or joined again", "ask for the groups alone")
        if calls := _aggregates(outer):
            problem = "an aggregate of estimates is not answered: their errors go together"
            raise refused(calls[0], problem, "ask the sub-query by itself, or aggregate people")
        changed = [part for part in ("where", "order", "limit", "offset") if outer.args.get(part) is not None]
        if changed and (inner.args.get("limit") is not None or inner.args.get("offset") is not None):
            raise refused(outer.args[changed[0]], "LIMIT inside, and a choice around it", "choose in one of the two")
        if any(isinstance(item, exp.Star) for item in outer.expressions):
            if len(outer.expressions) > 1:
                raise refused(outer, "* next to other results is not answered", "name the results")
            outer.set(
                "expressions",
                [
                    exp.alias_(tree.copy(), exp.to_identifier(name, quoted=True)) if name else tree.copy()
                    for name, tree in self._visible.values()
                ],
            )
        else:
            self._substitute("expressions")
        self._substitute("where")
        self._substitute("order")
        having = [] if inner.args.get("having") is None else [inner.args["having"].this]
        if outer.args.get("where") is not None:
            having.append(outer.args["where"].this)
        inner.set("expressions", outer.expressions)
        inner.set("having", exp.Having(this=exp.and_(*having, copy=False)) if having else None)
        for part in ("order", "limit", "offset"):
            if outer.args.get(part) is not None:
                inner.set(part, outer.args[part])
        return inner

    def _substitute(self, part: str) -> None:
        """Write the expressions of the sub-query in place of its results."""
        trees = self._outer.args.get(part) or []
        for tree in trees if isinstance(trees, list) else [trees]:
            for column in list(tree.find_all(exp.Column)):
                check_time()
                self._replace(column, part)

    def _replace(self, column: Tree, part: str) -> None:
        name = column.name.casefold()
        if column.table and column.table.casefold() != self._alias:
            return  # of a join
        result = not column.table and name in self._results and column.find_ancestor(exp.AggFunc, exp.Filter) is None
        if part in ("having", "order") and result:
            return
        if name in self._visible:
            tree = self._visible[name][1]
            self._nodes += sum(1 for _ in tree.walk())
            if self._nodes > MOST_NODES:
                raise refused(column, "the sub-queries make the query too long", "name fewer of their results")
            plain = isinstance(tree, exp.Column | exp.Literal | exp.Func)
            column.replace(tree.copy() if plain else exp.paren(tree.copy()))
        elif self._star:
            if column.table or name in {other.casefold() for other in self._schema.names}:
                column.set("table", exp.to_identifier(self._base, quoted=True))
        elif not (part == "group" and result) and not self._outer.args.get("joins"):
            raise refused(
                column,
                f"unknown column {column.name}",
                did_you_mean(column.name, [visible for visible, _ in self._visible.values() if visible]),
            )


def _aggregates(select: Tree) -> list[Tree]:
    """The aggregates among the results, and behind HAVING and ORDER BY."""
    parts = [*select.expressions, *(select.args[part] for part in ("having", "order") if select.args.get(part))]
    return [call for part in parts for call in part.find_all(exp.AggFunc)]
