"""All commands of the program; an error becomes one line on stderr and an exit code."""

from __future__ import annotations

import inspect
import sys
from importlib.metadata import EntryPoint, entry_points
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
    serve,
    shuffler,
    sql,
    table,
    top,
    watch,
)
from hubbub.cli import backup as restore
from hubbub.core.errors import HubbubError

__all__ = ["app"]

WRONG = 2
INTERRUPTED = 130

# The base class of click's errors: newer versions of typer contain a copy of click, older ones use the installed one.
_WrongUsage: type[Exception] = typer.BadParameter.__mro__[2]


class Commands(TyperGroup):
    """The group of all commands: lists them in the order in which they were added, and handles all errors."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        _reflow_help(self)

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


def _reflow_help(command: Any) -> None:
    """Join the lines of each paragraph of a command's help, and of its subcommands': rich keeps breaks of lines."""
    if command.help:
        paragraphs = inspect.cleandoc(command.help).split("\n\n")
        command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    for subcommand in getattr(command, "commands", {}).values():
        _reflow_help(subcommand)


def _refuse(message: str) -> int:
    """Print an error as one line. What follows a blank line, such as a file's rewritten text, stays as it is."""
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
app.add_typer(client.app, name="client")
app.add_typer(data.app, name="data")
app.add_typer(shuffler.app, name="shuffler")


class BrokenCommand(HubbubError):
    """A command of another package that cannot be loaded: which, and why."""


def _add_foreign(plugin: EntryPoint) -> None:
    """Add a command of another package. It is imported when it is called: a broken one stops no other."""

    def call(context: typer.Context) -> Any:
        try:
            command = plugin.load()
        except Exception as error:
            raise BrokenCommand(f"{plugin.name}, of {plugin.value}: {type(error).__name__}: {error}") from error
        program = typer.Typer(add_completion=False)
        program.command(plugin.name)(command)
        # Not as a program of its own: errors are handled by the group of all commands.
        run = typer.main.get_command(program).main
        return run(context.args, prog_name=f"hubbub {plugin.name}", standalone_mode=False)

    package = "another package" if plugin.dist is None else plugin.dist.name
    settings = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    app.command(plugin.name, help=f"Of {package}.", context_settings=settings)(call)


_OURS = {info.name or getattr(info.callback, "__name__", "") for info in app.registered_commands}
for plugin in sorted(entry_points(group="hubbub.commands")):
    if plugin.name not in _OURS:
        _add_foreign(plugin)
