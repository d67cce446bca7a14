"""From a query's text to the tree of one SELECT, by sqlglot."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hubbub.core.errors import needs
from hubbub.query.errors import QueryError
from hubbub.query.tree import Tree

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
