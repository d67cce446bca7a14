"""`hubbub oblivious`: one party of an oblivious shuffle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.options import AsJson

__all__ = ["app"]

app = typer.Typer()


@app.callback(invoke_without_command=True)
def oblivious(context: typer.Context) -> None:
    """An oblivious shuffle of one batch: shufflers and a server, of whom nobody learns whose report is whose."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="Who takes part, and which of them this is.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Take part in one run: a shuffler, or, if its number is the last, the server that hears the result."""
    from hubbub.cli.output import emit, say
    from hubbub.shuffle.program import ShuffleConfig, receive_batch, run_shuffler

    config = ShuffleConfig.load(file)
    begun = _cpu_seconds()
    outcome = run_shuffler(config, say=say) if config.reports is None else receive_batch(config, say=say)
    if as_json:
        emit({**outcome._asdict(), "cpu_seconds": _cpu_seconds() - begun})
    elif config.reports is None:
        typer.echo(f"{outcome.batch_size:,} shares handed to the server")
    else:
        typer.echo(f"{outcome.batch_size:,} reports in {config.reports}")
        if outcome.dropped:
            typer.echo(f"{outcome.dropped:,} more were dropped: a device sent a share that cannot be decrypted")


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
