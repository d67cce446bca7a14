"""`hubbub table`: a table of private and public columns, as a collection would have it, for `hubbub sql`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from hubbub.cli.options import Epsilon, FreshSeed, named, range_domain
from hubbub.cli.output import progress, say

if TYPE_CHECKING:
    from hubbub.query.build import RecordSource
    from hubbub.query.schema import PrivateColumn


def table(
    source: Annotated[
        str, Argument(help="A CSV, TSV, JSON lines or Parquet file, or a data set: census, adult.", show_default=False)
    ],
    store: Annotated[
        Path, Argument(help="What to make: NAME.duckdb, or a folder of Parquet files.", show_default=False)
    ],
    private: Annotated[
        list[str],
        Option(
            "--private",
            "-p",
            help="A private column: NAME (names), NAME=0..99 (integers), NAME=0..50000/100 (numbers in 100 cells); "
            "NAME? or NAME=0..99? where it may be missing.",
            show_default=False,
        ),
    ],
    epsilon: Epsilon,
    public: Annotated[list[str] | None, Option("--public", help="A public column.", show_default="none")] = None,
    method: Annotated[
        list[str] | None,
        Option("--method", "-m", help="HIO, HI, MG, SC or HDG; several divide the people.", show_default="HIO"),
    ] = None,
    share: Annotated[
        list[float] | None,
        Option("--share", help="The part of the people of each --method.", show_default="equal parts"),
    ] = None,
    fanout: Annotated[int, Option("--fanout", help="How many intervals of a column make one of the next level.")] = 5,
    name: Annotated[str, Option("--name", help="The name of the table, after FROM.")] = "people",
    seed: FreshSeed = None,
) -> None:
    """Rehearse a private table: each record reports on its private columns as on a device.

    The table holds the public columns, and of the private ones only the reports. Query it with `hubbub sql`.
    """
    from hubbub.query.build import RecordSource, build_table
    from hubbub.query.schema import METHODS, TableSchema
    from hubbub.random.source import Random

    declared = [_declared(text) for text in private]
    chosen = tuple(named("method", name, [*METHODS]) for name in method or ["HIO"])
    columns = [*(column for column, _, _ in declared), *(public or [])]
    with progress(store.name) as follow:
        records = RecordSource(source, columns)
        hidden = tuple(_column(*column, records) for column in declared)
        schema = TableSchema(
            name,
            hidden,
            records.public(public or []),
            methods=chosen,
            shares=tuple(share or ()),
            epsilon=epsilon,
            fanout=fanout,
            expected=max(records.n, 1) if "HDG" in chosen else None,
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
    from hubbub.core.domain import Categorical
    from hubbub.query.schema import PrivateColumn

    domain = range_domain("private", name, values) if values else Categorical(records.names(name))
    return PrivateColumn(name, domain, missing)
