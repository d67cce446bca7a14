"""`hubbub serve`: the collector of some collections, until it is told to stop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["serve"]


def serve(
    collections: Annotated[list[Path], typer.Argument(help="Collection files (TOML).", show_default=False)],
    store: Annotated[str, typer.Option("--store", help="sqlite:///path or postgresql://...")] = "sqlite:///hubbub.db",
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The port; 0 takes a free one.", min=0, max=65535)] = 8000,
    metrics_port: Annotated[
        int | None, typer.Option("--metrics-port", help="Serve metrics, on this port.", min=0, max=65535)
    ] = None,
    keys: Annotated[Path, typer.Option("--keys", help="The folder of the signing key and the token.")] = Path(
        "hubbub-keys"
    ),
    reports: Annotated[
        Path | None,
        typer.Option("--reports", help="Where single reports go, if a question keeps them; beside the store."),
    ] = None,
    quota: Annotated[float, typer.Option("--quota", help="Reports a second that each collection takes.")] = 500_000.0,
    sender_quota: Annotated[
        float, typer.Option("--sender-quota", help="Reports a second that are taken from one sender.")
    ] = 5_000.0,
    proxy_secret: Annotated[
        Path | None,
        typer.Option("--proxy-secret", help="A file with the secret by which a proxy signs X-Hubbub-Sender."),
    ] = None,
    ceiling: Annotated[
        int, typer.Option("--ceiling", help="Reports that are taken to one question in one step.", min=1)
    ] = 30_000_000,
    connections: Annotated[int, typer.Option("--connections", help="Connections at a time.", min=1)] = 4096,
) -> None:
    """Collect reports over HTTP, and show what they tell at /.

    The first run makes a signing key, whose public half devices are built with, and a token for reading results.
    """
    from hubbub.cli.output import say
    from hubbub.collection import SystemClock, load_collection
    from hubbub.core.errors import MissingDependency

    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingDependency(error.name or "starlette", "server") from None
    from hubbub.dashboard.app import dashboard
    from hubbub.service.archive import Archive, beside
    from hubbub.service.auth import Tokens
    from hubbub.service.collector import Collector
    from hubbub.service.limits import Ceilings, ConnectionLimits, Limits, SenderLimits
    from hubbub.service.logs import set_up
    from hubbub.service.senders import read_secret
    from hubbub.service.server import KeyFolder, bind, run
    from hubbub.service.store import open_store

    secret = read_secret(proxy_secret) if proxy_secret is not None else None
    limits = Limits(
        rate=quota,
        burst=max(1, round(2 * quota)),
        ceilings=Ceilings(ask=ceiling, kept_ask=min(ceiling, Ceilings.kept_ask), held=2 * ceiling),
        senders=SenderLimits(rate=sender_quota, burst=max(1, round(4 * sender_quota)), secret=secret),
        connections=ConnectionLimits(connections=connections),
    )
    loaded = [load_collection(path) for path in collections]
    folder = KeyFolder(keys)
    signing, token = folder.keys(), folder.token()
    # The port first: a second collector on one store would end the first.
    sockets = [bind(host, port)]
    if metrics_port is not None:
        sockets.append(bind(host, metrics_port))
    files = reports or beside(store)
    keeps = any(question.keep_reports for one in loaded for question in one.questions.values())
    archive = Archive(files) if keeps or files.exists() else None
    collector = Collector(loaded, open_store(store), clock=SystemClock(), keys=signing, limits=limits, archive=archive)
    set_up()

    def ready() -> None:
        shown = f"[{host}]" if ":" in host else host
        say(f"serving {', '.join(collector.collections)} at http://{shown}:{port_of[0]}")
        if len(port_of) > 1:
            say(f"metrics at http://{shown}:{port_of[1]}/metrics")
        say(f"public key {signing.public.hex()}")
        say(f"token in {folder.token_path}")

    port_of = [listening.getsockname()[1] for listening in sockets]
    tokens = Tokens([token])
    raise typer.Exit(run(collector, tokens, sockets, routes=dashboard(tokens), on_ready=ready))
