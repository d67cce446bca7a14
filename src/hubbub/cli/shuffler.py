"""`hubbub shuffler`: one party of an oblivious shuffle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.options import AsJson

__all__ = ["app"]

app = typer.Typer(help="Shuffle reports with others, so that nobody knows whose is whose.")


@app.callback(invoke_without_command=True)
def shuffler(
    context: typer.Context,
    config: Annotated[Path | None, typer.Option("--config", help="Who takes part, and which of them this is.")] = None,
    as_json: AsJson = False,
) -> None:
    """Take part in one run: a shuffler, or, if its number is the last, the server that hears the result."""
    if context.invoked_subcommand is not None:
        return
    if config is None:
        typer.echo(context.get_help())
        return
    from hubbub.shuffle.program import ShuffleConfig, receive_batch, run_shuffler

    read = ShuffleConfig.load(config)

    def say(line: str) -> None:
        typer.echo(line, err=True)

    begun = _cpu_seconds()
    outcome = run_shuffler(read, say=say) if read.reports is None else receive_batch(read, say=say)
    if as_json:
        from hubbub.cli.output import emit

        emit({**outcome._asdict(), "cpu_seconds": _cpu_seconds() - begun})
    elif read.reports is None:
        typer.echo(f"{outcome.batch_size:,} shares handed to the server")
    else:
        typer.echo(f"{outcome.batch_size:,} reports in {read.reports}")


@app.command()
def keys(
    private: Annotated[Path, typer.Argument(help="The server's private key, to be made.")],
    public: Annotated[Path, typer.Argument(help="What devices and shufflers encrypt to.")],
    bits: Annotated[int, typer.Option("--bits", help="The size of the modulus.")] = 3072,
) -> None:
    """Make the server's encryption key."""
    from hubbub.shuffle.dgk import DGKPrivate
    from hubbub.shuffle.keys import write_keys

    write_keys(DGKPrivate.generate(bits), private, public)
    typer.echo(f"{private} is for the server alone; {public} is for everyone")


def _cpu_seconds() -> float:
    """Of this process, and of those that worked for it and have ended."""
    import os

    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system
