"""`hubbub watch URL`: follows a collector."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from hubbub.core.errors import InvalidValue

VARIABLE = "HUBBUB_TOKEN"


def is_address(source: str | None) -> bool:
    """Whether a source is a collector's address, not a file."""
    return source is not None and source.lower().startswith(("http://", "https://"))


def follow(
    url: str,
    *,
    collection: str | None,
    question: str | None,
    watched: str | None,
    token: Path | None,
    steps: int | None,
    live: bool,
    plot: Path | None,
) -> None:
    """Show what a collector releases, as it does."""
    from hubbub.cli.output import say
    from hubbub.cli.watch_remote_view import remote_frame, remote_summary
    from hubbub.cli.watch_show import WatchView, show_moments
    from hubbub.demo.collector_api import Away, CollectorApi
    from hubbub.demo.remote_watch import RemoteWatch
    from hubbub.service.exposure import public_address

    secret = read_token(token)
    where = urlsplit(url)
    if secret is not None and where.scheme == "http" and public_address(where.hostname or ""):
        say(f"the token goes to {where.hostname} unencrypted: use https")
    api = CollectorApi(url, token=secret)
    try:
        run = RemoteWatch(api, collection=collection, question=question, watched=watched, steps=steps)
    except Away as away:
        raise InvalidValue("url", url, f"the address of a collector that answers: {away}") from None
    if not run.moments:
        say(f"watching {run.question} of {run.collection} at {url}")
    state: list[str | None] = [None]

    def news() -> None:
        if (run.away is None) != (state[0] is None):
            say("the collector is back" if run.away is None else f"the collector is away: {run.away}")
        state[0] = run.away

    head = f"{run.collection} at {url}"
    view = WatchView(partial(remote_frame, run), lambda: remote_summary(run), run.question, head, news)
    show_moments(run, run, view, live=live, plot=plot)


def read_token(file: Path | None) -> str | None:
    """The token, from a file or the environment: a command line can be read by others."""
    if file is None:
        return os.environ.get(VARIABLE) or None
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue("token", str(file), f"a file with the collector's token: {error}") from None
    if not token.isascii() or not token.isprintable() or not token:
        raise InvalidValue("token", str(file), "a file with the collector's token in a line")
    return token
