"""The commands together, and what becomes of an error: one line on stderr, and an exit code."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hubbub.cli import (
    amplify,
    audit,
    backup,
    check,
    client,
    data,
    demo,
    estimate,
    itemsets,
    plan,
    release,
    reproduce,
    restore,
    serve,
    shuffler,
    sql,
    table,
    top,
    watch,
)
from hubbub.core.errors import HubbubError

__all__ = ["app"]

WRONG = 2
INTERRUPTED = 130

# Newer versions of typer carry a click of their own, older ones use the installed one: this is either's base of errors.
_WrongUsage: type[Exception] = typer.BadParameter.__mro__[2]


class Commands(TyperGroup):
    """The commands in the order they are read about; errors in one place."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def main(self, *args: Any, **options: Any) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a terminal without emoji still shows the numbers
        try:
            code = super().main(*args, **{**options, "standalone_mode": False})
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        except _WrongUsage as error:
            code = _refuse(error.format_message())  # type: ignore[attr-defined]
        except HubbubError as error:
            code = _refuse(str(error))
        except OSError as error:
            code = _refuse(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
        sys.exit(code if isinstance(code, int) else 0)


def _refuse(message: str) -> int:
    """One line; what follows a blank one, such as a file's rewritten text, stays as it is."""
    line, blank, rest = message.partition("\n\n")
    typer.echo(f"hubbub: {' '.join(line.split())}{blank}{rest}", err=True)
    return WRONG


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from hubbub import __version__

        typer.echo(f"hubbub {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def hubbub(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Private analytics: hear the crowd, never the person."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command()(demo.demo)
app.command()(plan.plan)
app.command()(check.check)
app.command()(serve.serve)
app.command()(backup.backup)
app.command()(restore.restore)
app.command()(audit.audit)
app.command()(amplify.amplify)
app.command()(estimate.estimate)
app.command()(top.top)
app.command()(itemsets.itemsets)
app.command()(release.release)
app.command()(table.table)
app.command()(sql.sql)
app.command()(watch.watch)
app.command()(reproduce.reproduce)
app.add_typer(client.app, name="client")
app.add_typer(data.app, name="data")
app.add_typer(shuffler.app, name="shuffler")
