"""`hubbub table`: a table of private and public columns, as a collection would have it, for `hubbub sql`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.options import Epsilon, FreshSeed

if TYPE_CHECKING:
    from hubbub.query.build import RecordSource
    from hubbub.query.schema import PrivateColumn

_RANGE = re.compile(r"(-?[\d.]+)\.\.(-?[\d.]+)(?:/(\d+))?")


def table(
    source: Annotated[
        str,
        typer.Argument(
            help="A CSV, TSV, JSON lines or Parquet file, or a data set: census, adult.", show_default=False
        ),
    ],
    store: Annotated[
        Path, typer.Argument(help="What to make: NAME.duckdb, or a folder of Parquet files.", show_default=False)
    ],
    private: Annotated[
        list[str],
        typer.Option(
            "--private",
            "-p",
            help="A private column: NAME (names), NAME=0..99 (integers), NAME=0..50000/100 (numbers in 100 cells); "
            "NAME? or NAME=0..99? where it may be missing.",
            show_default=False,
        ),
    ],
    epsilon: Epsilon,
    public: Annotated[list[str] | None, typer.Option("--public", help="A public column.", show_default="none")] = None,
    method: Annotated[str, typer.Option("--method", "-m", help="HIO, HI, MG, SC or HDG.")] = "HIO",
    name: Annotated[str, typer.Option("--name", help="The name of the table, after FROM.")] = "people",
    seed: FreshSeed = None,
) -> None:
    """Rehearse a private table: each record reports on its private columns as on a device.

    The table holds the public columns, and of the private ones only the reports. Query it with `hubbub sql`.
    """
    from hubbub.cli.options import named
    from hubbub.cli.output import progress, say
    from hubbub.query.build import RecordSource, build_table
    from hubbub.query.schema import METHODS, TableSchema
    from hubbub.random.source import Random

    declared = [_declared(text) for text in private]
    chosen = named("method", method, [*METHODS, "HDG"])
    columns = [*(column for column, _, _ in declared), *(public or [])]
    with progress(store.name) as follow:
        records = RecordSource(source, columns)
        hidden = tuple(_column(*column, records) for column in declared)
        schema = TableSchema(
            name,
            hidden,
            records.public(public or []),
            method=chosen,
            epsilon=epsilon,
            expected=max(records.n, 1) if chosen == "HDG" else None,
        )
        texts = [column.name for column in hidden if not column.domain.in_order]
        n = build_table(
            store,
            schema,
            records.chunks(texts),
            rng=Random(seed=seed),
            progress=lambda done: follow(done, records.n, f"{done:,} reports"),
        )
    say(f"{store}: {n:,} people; ask it with hubbub sql")


def _declared(text: str) -> tuple[str, str, bool]:
    """A column's name, its range, and whether it may be missing."""
    missing = text.endswith("?")
    name, _, values = text.removesuffix("?").partition("=")
    return name, values, missing


def _column(name: str, values: str, missing: bool, records: RecordSource) -> PrivateColumn:
    from hubbub.core.domain import Categorical, Numeric, Ordinal
    from hubbub.core.errors import InvalidValue
    from hubbub.query.schema import PrivateColumn

    if not values:
        return PrivateColumn(name, Categorical(records.names(name)), missing)
    match = _RANGE.fullmatch(values)
    try:
        if match is None:
            raise ValueError
        low, high = float(match[1]), float(match[2])
        if match[3] is not None:
            return PrivateColumn(name, Numeric(low, high, cells=int(match[3])), missing)
        if low != 0 or not high.is_integer():
            raise ValueError
        return PrivateColumn(name, Ordinal(int(high) + 1), missing)
    except ValueError as error:
        if isinstance(error, InvalidValue):
            raise
        raise InvalidValue(
            "private", f"{name}={values}", "integers as 0..99, or numbers in cells as 0..50000/100"
        ) from None
