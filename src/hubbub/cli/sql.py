"""`hubbub sql`: a query over a table whose private columns are known by report alone."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli.options import AsJson, Plot, Token
from hubbub.cli.output import check_plot, emit, page, save_plot

if TYPE_CHECKING:
    from hubbub.query.answer import QueryAnswer


def sql(
    store: Annotated[
        str,
        typer.Argument(
            help="A DuckDB file or a folder that `hubbub table` has made, or a collector's address.", show_default=False
        ),
    ],
    query: Annotated[
        str, typer.Argument(help="SELECT ..., or EXPLAIN SELECT ...; - reads it from stdin.", show_default=False)
    ],
    level: Annotated[float, typer.Option("--level", help="How surely each interval holds the truth.")] = 0.95,
    explain: Annotated[bool, typer.Option("--explain", help="Show how it is answered as well.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, and nothing else, on stdout.")] = False,
    plot: Plot = None,
    collection: Annotated[
        str | None, typer.Option("--collection", help="Of a collector: which collection.", show_default="the address's")
    ] = None,
    question: Annotated[
        str | None, typer.Option("--question", help="Of a collector: which table.", show_default="the address's")
    ] = None,
    token: Token = None,
    first: Annotated[
        str | None,
        typer.Option("--from", help="Of a collector: the first step, or a date or time.", show_default="the latest"),
    ] = None,
    last: Annotated[
        str | None,
        typer.Option("--to", help="Of a collector: the last step, or a date or time.", show_default="the latest"),
    ] = None,
    tables: Annotated[
        list[str] | None,
        typer.Option(
            "--with", help="A public table to join: NAME=FILE (CSV, TSV, JSON lines or Parquet).", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask a private table in SQL; every number comes with its interval.

    COUNT, SUM, AVG, STDDEV and quantiles, also of private numbers; CASE and FILTER; WHERE on private and public
    columns; GROUP BY, HAVING, ORDER BY, LIMIT; sub-queries behind FROM, WITH, joins with public tables; EXPLAIN,
    DESCRIBE, SHOW TABLES. docs/sql.md tells more.
    """
    from hubbub.cli.watch_remote import is_address, read_token
    from hubbub.core.errors import InvalidValue
    from hubbub.query.connect import connect

    if as_csv and as_json:
        raise InvalidValue("csv", True, "either --csv or --json")
    check_plot(plot)
    secret = read_token(token) if is_address(store) else None
    steps = {"first": _step(first), "last": _step(last)}
    table = connect(store, token=secret, collection=collection, question=question, **steps)
    text = sys.stdin.read() if query == "-" else query
    answer = table.sql(text, level=level, explain=explain, tables=_public_tables(tables or []))
    if plot is not None:
        save_plot(answer.plot().figure, plot)
    return _csv(answer) if as_csv else show_answer(answer, as_json=as_json)


def _step(text: str | None) -> int | str | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else text


def _public_tables(options: list[str]) -> dict[str, dict[str, list[Any]]]:
    """The files of --with, by name."""
    from hubbub.core.errors import InvalidValue
    from hubbub.query.build import read_rows

    tables = {}
    for option in options:
        name, equals, path = option.partition("=")
        if not name or not equals:
            raise InvalidValue("with", option, "NAME=FILE, such as regions=regions.csv")
        tables[name] = read_rows(Path(path))
    return tables


def show_answer(answer: QueryAnswer, *, as_json: bool) -> None:
    """Print the answer of a query, with remarks; or as JSON."""
    if as_json:
        return emit(answer.to_json())
    console = page()
    if answer.columns:
        console.print(answer.table())
        console.print(_remarks(answer), style="dim")
    if answer.plan:
        console.print(answer.plan, markup=False)
    return None


def _csv(answer: QueryAnswer) -> None:
    if not answer.columns:
        typer.echo(answer.plan)
        return
    table = answer.to_arrow()
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _remarks(answer: QueryAnswer) -> str:
    words = [f"\n{answer.n:,} people reported.", *(f"{note[0].upper()}{note[1:]}." for note in answer.notes)]
    if answer.level != 0.95:
        words.append(f"Intervals hold the truth in {answer.level:.0%} of cases.")
    return " ".join(words)
