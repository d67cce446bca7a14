"""`hubbub serve`: the collector of some collections, until it is told to stop."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from hubbub.cli.options import ReportsFolder, StoreUrl
from hubbub.core.errors import InvalidValue, needs

if TYPE_CHECKING:
    from hubbub.questions.collection import Collection
    from hubbub.service.collector.collector import Collector
    from hubbub.service.http.key_folder import KeyFolder
    from hubbub.service.webhooks.config import Webhook


_Collections = Annotated[list[Path], Argument(help="Collection files (TOML).", show_default=False)]
_Host = Annotated[str, Option("--host", help="The address to listen on.")]
_Port = Annotated[int, Option("--port", help="The port; 0 takes a free one.", min=0, max=65535)]
_MetricsPort = Annotated[int | None, Option("--metrics-port", help="Serve metrics, on this port.", min=0, max=65535)]
_Keys = Annotated[Path, Option("--keys", help="The folder of the signing key and the token.")]
_Quota = Annotated[float, Option("--quota", help="Reports per second that each collection takes.")]
_SenderQuota = Annotated[float, Option("--sender-quota", help="Reports per second that are taken from one sender.")]
_ProxySecret = Annotated[
    Path | None, Option("--proxy-secret", help="A file with the secret by which a proxy signs X-Hubbub-Sender.")
]
_Ceiling = Annotated[int, Option("--ceiling", help="Reports that are taken to one question in one step.", min=1)]
_Connections = Annotated[int, Option("--connections", help="Connections at a time.", min=1)]
_Webhooks = Annotated[
    Path | None, Option("--webhooks", help="A file (TOML) of webhooks that are told of alarms.", show_default=False)
]
_ClockHold = Annotated[
    float | None,
    Option(
        "--clock-hold",
        help="Seconds for which a jump of the clock is held in doubt; half a step, at most 300.",
        min=0,
        show_default=False,
    ),
]
_StuckAfter = Annotated[
    float, Option("--stuck-after", help="Seconds that a question's code may run before the collector ends.", min=1)
]


_Workers = Annotated[
    int, Option("--workers", help="Processes that take reports; more than one needs PostgreSQL.", min=1)
]
_Role = Annotated[
    str,
    Option("--role", help="alone on the store; or one of several processes: all (takes reports, may lead) or ingest."),
]
_Shards = Annotated[
    int,
    Option(
        "--shards",
        help="Of several processes: rows that lock the ids of an ask.",
        min=1,
        max=64,
    ),
]
ROLES = ("alone", "all", "ingest")


def serve(
    collections: _Collections,
    store: StoreUrl = "sqlite:///hubbub.db",
    host: _Host = "127.0.0.1",
    port: _Port = 8000,
    metrics_port: _MetricsPort = None,
    keys: _Keys = Path("hubbub-keys"),
    reports: ReportsFolder = None,
    quota: _Quota = 500_000.0,
    sender_quota: _SenderQuota = 5_000.0,
    proxy_secret: _ProxySecret = None,
    ceiling: _Ceiling = 30_000_000,
    connections: _Connections = 4096,
    webhooks: _Webhooks = None,
    clock_hold: _ClockHold = None,
    stuck_after: _StuckAfter = 120.0,
    workers: _Workers = 1,
    role: _Role = "alone",
    shards: _Shards = 1,
) -> None:
    """Collect reports over HTTP, and show the results at /.

    The first run makes a signing key and a token. Devices need the public half of the key, which is printed as
    `public_key`; the token opens the results.
    """
    with needs("server"):
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    from hubbub.authoring.toml import load_alarms, load_collection
    from hubbub.dashboard.pages import dashboard
    from hubbub.service.base.limits import Ceilings, ConnectionLimits, Limits, SenderLimits
    from hubbub.service.base.logs import log, set_up
    from hubbub.service.http.guard import read_secret
    from hubbub.service.http.problems import Tokens
    from hubbub.service.http.server import KeyFolder, bind, run
    from hubbub.service.http.workers import Worker, fork_workers
    from hubbub.service.kept.archive import reports_folder
    from hubbub.service.rounds.watchdog import Watchdog
    from hubbub.service.webhooks.config import load_webhooks

    set_up()
    role = _checked_role(role, workers, store)
    secret = read_secret(proxy_secret) if proxy_secret is not None else None
    limits = Limits(
        rate=quota,
        burst=max(1, round(2 * quota)),
        ceilings=Ceilings(ask=ceiling, kept_ask=min(ceiling, Ceilings.kept_ask), held=2 * ceiling),
        senders=SenderLimits(rate=sender_quota, burst=max(1, round(4 * sender_quota)), secret=secret),
        connections=ConnectionLimits(connections=connections),
    )
    loaded = [load_collection(path) for path in collections]
    alarms = {collection.name: load_alarms(path) for collection, path in zip(loaded, collections, strict=True)}
    hooks = [] if webhooks is None else load_webhooks(webhooks)
    for webhook in hooks:
        webhook.wants(collection.name for collection in loaded)
    folder = KeyFolder(keys)
    signing, token = folder.keys(), folder.token()
    # The port first: a second collector on one store would end the first.
    listening = bind(host, port)
    ports = [] if metrics_port is None else [metrics_port + number * bool(metrics_port) for number in range(workers)]
    metrics = [bind(host, each) for each in ports]
    at, *metrics_at = (
        f"http://{f'[{host}]' if ':' in host else host}:{bound.getsockname()[1]}" for bound in (listening, *metrics)
    )
    serving: dict[str, Any] = {
        "collections": [collection.name for collection in loaded],
        "at": at,
        "metrics": f"{metrics_at[0]}/metrics" if metrics_at else None,
        "public_key": signing.public.hex(),
        "token_file": str(folder.token_path),
    }
    _warn(host, folder, proxy_secret, hooks)
    worker: Worker | int | None = None
    if workers > 1:
        worker = fork_workers(workers, lambda: log("serving", **serving, workers=workers))
        if isinstance(worker, int):
            raise typer.Exit(worker)
    options = {"keys": signing, "limits": limits, "alarms": alarms, "watchdog": Watchdog(stuck_after)}
    archive = reports or reports_folder(store)
    collector = _collector(loaded, store, archive, folder, clock_hold, (role, shards), options)

    def ready() -> None:
        if isinstance(worker, Worker):
            worker.ready()
            log(
                "worker ready",
                worker=worker.number,
                pid=os.getpid(),
                metrics=metrics_at[worker.number : worker.number + 1],
            )
        else:
            log("serving", **serving)

    number = worker.number if isinstance(worker, Worker) else 0
    sockets = [listening, *metrics[number : number + 1]]
    tokens = Tokens([token])
    raise typer.Exit(run(collector, tokens, sockets, routes=dashboard(tokens), on_ready=ready, webhooks=hooks))


def _collector(
    collections: list[Collection],
    store: str,
    reports: Path,
    folder: KeyFolder,
    clock_hold: float | None,
    role: tuple[str, int],
    options: dict[str, Any],
) -> Collector:
    """The collector of these collections on a store, in a role and with as many shards.

    Exits with 1 if a replay does not reproduce what is stored.
    """
    from hubbub.service.base.logs import log
    from hubbub.service.base.trusted_clock import TrustedClock, hold_for
    from hubbub.service.collector.collector import Collector
    from hubbub.service.collector.joint import JointCollector
    from hubbub.service.kept.archive import Archive
    from hubbub.service.rounds.question_run import ReplayMismatch
    from hubbub.service.store import open_store
    from hubbub.service.store.joint import JointStore

    questions = [question for collection in collections for question in collection.questions.values()]
    keeps = any(question.keeps or question.searches for question in questions)
    archive = Archive(reports) if keeps or reports.exists() else None
    opened = open_store(store) if role[0] == "alone" else JointStore(store, shards=role[1])
    clock = TrustedClock(opened.clock(), hold=hold_for(collections) if clock_hold is None else clock_hold)
    try:
        onion_key = folder.onion_key() if any(collection.shuffle for collection in collections) else None
        shared = any(collection.trust == "oblivious" for collection in collections)
        options = {**options, "onion_key": onion_key, "homomorphic_key": folder.homomorphic_key() if shared else None}
        options = {**options, "clock": clock, "archive": archive}
        with options["watchdog"]:  # the start of a collector runs the questions' code
            if isinstance(opened, JointStore):
                return JointCollector(collections, opened, url=store, may_lead=role[0] == "all", **options)
            return Collector(collections, opened, **options)
    except ReplayMismatch as error:
        log("stopped", level=logging.ERROR, error=type(error).__name__, detail=str(error))
        raise typer.Exit(1) from None


def _checked_role(role: str, workers: int, store: str) -> str:
    """The role of each process; refused where several processes cannot share the store."""
    from hubbub.service.store import sqlite_path

    if role not in ROLES:
        raise InvalidValue("role", role, f"one of {', '.join(ROLES)}")
    if workers > 1 and role == "alone":
        role = "all"
    if role != "alone" and sqlite_path(store) is not None:
        raise InvalidValue(
            "store",
            "a SQLite file",
            "PostgreSQL for several processes: a SQLite store belongs to one process, whose memory has its ids",
        )
    return role


def _warn(host: str, folder: KeyFolder, proxy_secret: Path | None, hooks: list[Webhook]) -> None:
    """Log a warning for each secret that other users may read, and for plain HTTP to or from other machines."""
    from hubbub.service.base.logs import log
    from hubbub.service.http.key_folder import public_address, warn_of_open_secrets

    secrets = [folder.key_path, folder.token_path, folder.onion_path, folder.homomorphic_path, proxy_secret]
    warn_of_open_secrets(*secrets, *(webhook.secret_file for webhook in hooks))
    if public_address(host):
        detail = f"{host} can be reached from elsewhere, and this is plain HTTP: put a proxy with TLS before it"
        log("not encrypted", level=logging.WARNING, detail=detail)
    for webhook in hooks:
        if webhook.address.scheme == "http" and public_address(webhook.address.hostname or ""):
            detail = f"the webhook {webhook.name} is on another machine, and plain HTTP: use https"
            log("not encrypted", level=logging.WARNING, detail=detail)
