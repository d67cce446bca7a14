"""`hubbub shuffler`: a shuffler of a collection."""

from pathlib import Path
from typing import Annotated

import typer

from hubbub.core.errors import needs

__all__ = ["app"]

app = typer.Typer()


@app.callback(invoke_without_command=True)
def shuffler(context: typer.Context) -> None:
    """A shuffler of a collection: it mixes the reports, so that nobody knows whose is whose."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


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
def homomorphic_key(
    keys: Annotated[Path, typer.Option("--keys", help="The folder that `hubbub serve` is given.")] = Path(
        "hubbub-keys"
    ),
) -> None:
    """Make the collector's key that decrypts shares, and say what goes into the file of an oblivious collection."""
    from hubbub.service.http.key_folder import KeyFolder

    public = KeyFolder(keys).homomorphic_key().public
    typer.echo("[shuffle.homomorphic_key]")
    for name in ("modulus", "g", "h"):
        typer.echo(f'{name} = "{getattr(public, name):x}"')
    typer.echo(f"subgroup_bits = {public.subgroup_bits}")


@app.command()
def serve(
    config: Annotated[Path, typer.Option("--config", help="Which collection, where, and with which keys (TOML).")],
) -> None:
    """Shuffle the reports of a collection, until it is told to stop."""
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
    """Send reports of the collector's own to the shufflers: how many come back tells whether they drop any.

    Run it where devices are, not where the collector is: a shuffler that knows it would let it pass.
    """
    from hubbub.shuffler.spot_check import send_spot_checks

    for answer, sent in send_spot_checks(server, collection, token.read_text().strip(), public_key, count).items():
        typer.echo(f"{answer}: {sent} reports sent; the privacy page says how many were lost")
