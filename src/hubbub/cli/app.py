"""All commands of the program; an error becomes one line on stderr and an exit code."""

import inspect
import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperGroup, TyperOption

from hubbub.cli import (
    amplify,
    attack,
    audit,
    backup,
    changes,
    check,
    client,
    data,
    demo,
    estimate,
    fold,
    itemsets,
    marginals,
    plan,
    promise,
    release,
    serve,
    shuffler,
    sql,
    table,
    top,
    watch,
)
from hubbub.cli import backup as restore
from hubbub.cli.options import MECHANISM_FIELDS
from hubbub.core.errors import HubbubError

__all__ = ["app"]

WRONG = 2
INTERRUPTED = 130

# The base class of click's errors: newer versions of typer contain a copy of click, older ones use the installed one.
_WrongUsage: type[Exception] = typer.BadParameter.__mro__[2]


class Commands(TyperGroup):
    """The group of all commands: lists them, lets options come from the environment, and handles errors."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        _reflow_help(self)
        for name, command in self.commands.items():
            _take_from_environment(command, f"HUBBUB_{name}")

    def list_commands(self, ctx: Any) -> list[str]:
        first = ("demo", "plan")  # then as they were added: typer adds groups after all single commands
        return [*first, *(name for name in self.commands if name not in first)]

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


def _take_from_environment(command: Any, prefix: str) -> None:
    """Let each option of a command, and of its subcommands, be given as a variable, such as HUBBUB_SERVE_PORT."""
    for parameter in command.params:
        if isinstance(parameter, TyperOption):
            before = [parameter.envvar] if isinstance(parameter.envvar, str) else list(parameter.envvar or ())
            option = max(parameter.opts, key=len).lstrip("-")
            parameter.envvar = [f"{prefix}_{option}".replace("-", "_").upper(), *before]
            parameter.show_envvar = bool(before)
    for name, subcommand in getattr(command, "commands", {}).items():
        _take_from_environment(subcommand, f"{prefix}_{name}")


def _refuse(message: str) -> int:
    """Print an error as one line."""
    typer.echo(f"hubbub: {' '.join(message.split())}", err=True)
    return WRONG


_HELP = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    cls=Commands,
    pretty_exceptions_enable=False,
    epilog="Every option of a command can come from the environment: HUBBUB_SERVE_PORT=80 is `hubbub serve --port 80`.",
    context_settings=_HELP,
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
app.add_typer(plan.app, name="plan")
app.command()(check.check)
app.command()(promise.promise)
app.command()(serve.serve)
app.command()(backup.backup)
app.command()(restore.restore)
app.command(context_settings=MECHANISM_FIELDS)(audit.audit)
app.command(context_settings=MECHANISM_FIELDS)(amplify.amplify)
app.command()(attack.attack)
app.command()(estimate.estimate)
app.command()(fold.fold)
app.command()(top.top)
app.command()(itemsets.itemsets)
app.command()(changes.changes)
app.command()(marginals.marginals)
app.command()(marginals.synthesize)
app.command()(table.table)
app.command()(sql.sql)
app.command()(watch.watch)
app.add_typer(release.app, name="release")
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
        program = typer.Typer(add_completion=False, context_settings=_HELP)
        program.command(plugin.name)(command)
        called = typer.main.get_command(program)
        _take_from_environment(called, f"HUBBUB_{plugin.name}")
        return called(context.args, prog_name=f"hubbub {plugin.name}", standalone_mode=False)

    package = "another package" if plugin.dist is None else plugin.dist.name
    settings = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    app.command(plugin.name, help=f"Of {package}.", context_settings=settings)(call)


_OURS = {info.name or getattr(info.callback, "__name__", "") for info in app.registered_commands}
for plugin in sorted(entry_points(group="hubbub.commands")):
    if plugin.name not in _OURS:
        _add_foreign(plugin)
