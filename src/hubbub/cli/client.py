"""`hubbub client`: what a device's own files say."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli.options import AsJson

if TYPE_CHECKING:
    from hubbub.client import ClientStatus

__all__ = ["app"]

app = typer.Typer()
_UNITS = {"event": "this step", "window": "this window", "user": "for life"}


@app.callback(invoke_without_command=True)
def client(context: typer.Context) -> None:
    """A device's client: what it spent, and what waits."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("status")
def show_status(
    folder: Annotated[Path, typer.Argument(help="The client's folder.", show_default=False)], as_json: AsJson = False
) -> None:
    """Show what a device has spent, what remains and what waits to be sent. No server is asked."""
    from hubbub.cli.output import emit, page
    from hubbub.client import read_status

    status = read_status(folder)
    if as_json:
        return emit(_record(status))
    console = page()
    console.print(f"[bold]{status.collection}[/], version {status.version}, step {status.step:,}\n")
    console.print(_accounts(status))
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


def _accounts(status: ClientStatus) -> Any:
    from hubbub.cli.tables import plain_table

    table = plain_table("epsilon", "spent", "remains", "limit")
    for unit, words in _UNITS.items():
        account = getattr(status, unit)
        if account is not None:
            table.add_row(words, *map(_epsilon, account))
    if status.user is None:
        table.add_row("ever", _epsilon(status.spent), "", "")
    return table


def _record(status: ClientStatus) -> dict[str, Any]:
    """The status, in epsilon."""
    record = asdict(status)
    for unit in _UNITS:
        account = getattr(status, unit)
        names = ("spent", "remaining", "limit")
        record[unit] = account and dict(zip(names, map(_number, account), strict=True))
    return {**record, "spent": _number(status.spent)}


def _number(units: int) -> float:
    from hubbub.core.event import UNITS_PER_EPSILON

    return units / UNITS_PER_EPSILON


def _epsilon(units: int) -> str:
    return f"{_number(units):.6g}"
