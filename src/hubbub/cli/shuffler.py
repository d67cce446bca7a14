"""`hubbub shuffler`: one party of an oblivious shuffle, or a shuffler of a collection."""

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


@app.command()
def own_keys(
    path: Annotated[Path, typer.Argument(help="The file of the private keys, to be made.")],
    url: Annotated[str, typer.Option("--url", help="Where the shuffler will be.")] = "https://shuffler.example",
) -> None:
    """Make the keys of a shuffler of a collection, and say what goes into the collection's file."""
    from hubbub.shuffler.config import ShufflerKeys

    keys = ShufflerKeys.generate()
    keys.save(path)
    typer.echo("[[shuffle.shufflers]]")
    for name, value in {"url": url, **keys.public()}.items():
        typer.echo(f'{name} = "{value}"')


@app.command()
def collector_key(
    keys: Annotated[Path, typer.Option("--keys", help="The folder that `hubbub serve` is given.")] = Path(
        "hubbub-keys"
    ),
) -> None:
    """Make the collector's own key, which opens shuffled reports, and say what goes into the collection's file."""
    from hubbub.service.http.key_folder import KeyFolder

    typer.echo("[shuffle]")
    typer.echo(f'collector_key = "{KeyFolder(keys).onion_key().public.hex()}"')


@app.command()
def serve(
    config: Annotated[Path, typer.Option("--config", help="Which collection, where, and with which keys (TOML).")],
) -> None:
    """Shuffle the reports of a collection, until it is told to stop."""
    from hubbub.core.errors import needs

    with needs("server"):
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    from hubbub.service.base.logs import set_up
    from hubbub.shuffler.app import serve_hop
    from hubbub.shuffler.config import HopConfig

    set_up()
    serve_hop(HopConfig.load(config))


@app.command()
def spot_check(
    server: Annotated[str, typer.Argument(help="The collector's address.")],
    collection: Annotated[str, typer.Argument(help="The collection's name.")],
    token: Annotated[Path, typer.Option("--token", help="The file of the collector's token.")],
    public_key: Annotated[str, typer.Option("--public-key", help="The key that the collection is signed with.")],
    count: Annotated[int, typer.Option("--count", help="Reports to each open ask.", min=1, max=1000)] = 10,
) -> None:
    """Send reports of the collector's own to the first shuffler: how many come back tells whether it drops any.

    Run it where devices are, not where the collector is: a shuffler that knows it would let it pass.
    """
    from hubbub.shuffler.spot_check import send_spot_checks

    for answer, sent in send_spot_checks(server, collection, token.read_text().strip(), public_key, count).items():
        typer.echo(f"{answer}: {sent} reports sent; the privacy page says how many were lost")


def _cpu_seconds() -> float:
    """Of this process, and of those that worked for it and have ended."""
    import os

    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system
