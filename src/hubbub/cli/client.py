"""`hubbub client`: what a device's own files say."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli.options import AsJson
from hubbub.cli.output import emit, page, plain_table

if TYPE_CHECKING:
    from hubbub.client import ClientStatus

__all__ = ["app"]

app = typer.Typer()
_UNITS = ("event", "window", "user")


@app.callback(invoke_without_command=True)
def client(context: typer.Context) -> None:
    """A device's client: what it has spent, and what waits to be sent."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("status")
def show_status(
    folder: Annotated[Path, typer.Argument(help="The client's folder.", show_default=False)], as_json: AsJson = False
) -> None:
    """Show what a device has spent, what remains and what waits to be sent. No server is asked."""
    from hubbub.client import read_status

    status = read_status(folder)
    if as_json:
        return emit(_record(status))
    console = page()
    console.print(f"[bold]{status.collection}[/], version {status.version}, step {status.step:,}\n")
    console.print(_accounts(status))
    if status.recovered is not None:
        when = datetime.fromtimestamp(status.recovered, UTC).strftime("%Y-%m-%d %H:%M UTC")
        console.print(f"\nBegun anew on {when} after the database was lost: all limits counted as spent then.")
    rows = [
        ("permanent answers", ", ".join(f"{name} {count}" for name, count in status.memos.items())),
        ("waiting to be sent", f"{status.queued:,}"),
        *((name, f"{count:,}") for name, count in status.counts.items()),
    ]
    console.print()
    for name, value in rows:
        if value:
            console.print(f"{name:24}{value}", markup=False)
    return None


@app.command("recover")
def begin_anew(folder: Annotated[Path, typer.Argument(help="The client's folder.", show_default=False)]) -> None:
    """Begin anew where a device's database was lost. All that may have been spent counts as spent.

    Limits for life are spent for good: questions under them are answered no more. Those of a window are spent until it
    has passed. What is left of the database is kept aside. A folder that can be used is refused.
    """
    from hubbub.client import Client

    Client.recover(folder)
    typer.echo("Begun anew. Every limit counts as spent: for life for good, of a window until it has passed.")


def _accounts(status: ClientStatus) -> Any:
    from hubbub.collection.time import duration_text

    table = plain_table("epsilon", "spent", "remains", "limit")
    for promise in status.promises:
        words = "for life" if promise.seconds is None else f"in {duration_text(int(promise.seconds))}"
        table.add_row(words, *map(_epsilon, (promise.spent, promise.remaining, promise.limit)))
    if status.user is None:
        table.add_row("ever", _epsilon(status.spent), "", "")
    return table


def _record(status: ClientStatus) -> dict[str, object]:
    """The status, in epsilon."""
    record = asdict(status)
    for unit in _UNITS:
        account = getattr(status, unit)
        names = ("spent", "remaining", "limit")
        record[unit] = account and dict(zip(names, map(_number, account), strict=True))
    for promise in record["promises"]:
        promise.update({name: _number(promise[name]) for name in ("spent", "remaining", "limit")})
    return {**record, "spent": _number(status.spent)}


def _number(units: int) -> float:
    from hubbub.core.event import UNITS_PER_EPSILON

    return units / UNITS_PER_EPSILON


def _epsilon(units: int) -> str:
    return f"{_number(units):.6g}"
