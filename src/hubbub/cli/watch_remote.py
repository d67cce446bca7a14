"""`hubbub watch URL`: follows a collector; and how other commands find one of its questions."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urlencode, urlsplit

import typer
from rich.text import Text

from hubbub.cli.output import save_plot, say
from hubbub.cli.watch_view import BAND, FAINT, YELLOW, fact, figure, layout, legend, state_of, turns, written
from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hubbub.watch.moment import Moment, Watched
    from hubbub.watch.remote import RemoteWatch


def remote_frame(run: RemoteWatch, width: int, height: int, *, over: bool = False) -> RenderableType:
    """The view after the last moment, in a terminal of this size; without the facts once it is over."""
    facts = _facts(run)[-1:] if over else _facts(run)
    below = remote_summary(run) if over else []
    return layout(run, f"{run.collection} at {run.api.url}", run.name, facts, width, height, below)


def remote_summary(run: RemoteWatch) -> list[str]:
    """What there is to say at the end."""
    moments = run.moments
    known = sum(not math.isnan(moment.value) for moment in moments)
    lines = [f"{len(moments)} release{'s' * (len(moments) != 1)} of {run.question}, {known} of them with numbers."]
    if run.times is not None and moments:
        first, last = (run.times.label(moments[place].step) for place in (0, -1))
        lines.append(f"From {first} to {last} UTC.")
    if run.alarms:
        lines.append(f"Alarm: {turns(run, run.changes) or 'no change'}; now {'; '.join(run.alarms.raised) or 'quiet'}.")
    if run.away is not None:
        lines.append(f"The collector is away: {run.away}.")
    return lines


def _facts(run: RemoteWatch) -> list[Text]:
    now, show = run.moments[-1], written(run.share)
    if math.isnan(now.value):
        estimate = fact("estimate", ("no number", "bold"), f"  {run.withheld or 'nothing published yet'}")
    else:
        interval = "interval unknown" if math.isnan(now.low) else f"{show(now.low)} to {show(now.high)}"
        fresh = ("● published", f"bold {BAND[0, 1]}") if now.published else ("· approximated", FAINT)
        estimate = fact("estimate", (show(now.value), "bold"), f"  {interval}  ", fresh)
    step = f"step {now.step:,}" + ("" if run.times is None else f", {run.times.label(now.step)} UTC")
    people = "" if math.isnan(now.n) else f"; about {now.n:,.0f} devices"
    here = "it answers" if run.away is None else f"AWAY: {run.away}"
    alarms = run.alarms or ()
    quiet = turns(run, run.changes[-4:]) or (f"{len(alarms)} watched" if alarms else "none is set")
    raised = "; ".join(run.alarms.raised) if run.alarms is not None else ""
    return [
        fact("alarm", state_of(now.alarm), " ", (raised, "bold") if raised else quiet),
        estimate,
        fact("newest", step + people),
        fact("collector", (here, "" if run.away is None else f"bold {YELLOW}")),
        legend(),
    ]


class FrameDrawing(Protocol):
    """Draws the view after the last moment, in a terminal of a size; without the facts once it is over."""

    def __call__(self, width: int, height: int, *, over: bool = False) -> RenderableType: ...


class WatchView(NamedTuple):
    """What is shown of a run: its view, its summary, a title of its figure, and what to say where nothing is drawn."""

    frame: FrameDrawing
    summary: Callable[[], list[str]]
    name: str
    head: str
    news: Callable[[], None] = lambda: None


def show_moments(
    run: Watched, moments: Iterable[Moment | None], view: WatchView, *, live: bool, plot: Path | None
) -> None:
    """Show moments as they come, and what there is to say once they end or somebody has seen enough."""
    try:
        _draw(run, moments, view) if live else _print(moments, view)
    except KeyboardInterrupt:
        _end(run, view, live, plot)
        raise
    _end(run, view, live, plot)


def _print(moments: Iterable[Moment | None], view: WatchView) -> None:
    for moment in moments:
        if moment is None:
            view.news()
        else:
            fields = moment.to_dict().items()
            typer.echo(json.dumps({key: None if value != value else value for key, value in fields}))  # NaN is null


def _draw(run: Watched, moments: Iterable[Moment | None], view: WatchView) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False) as live:
        try:
            for _ in moments:
                if run.moments:
                    live.update(view.frame(console.width, console.height), refresh=True)
        finally:  # a last frame that leaves room for what is said below it
            if run.moments:
                live.update(view.frame(console.width, console.height, over=True), refresh=True)


def _end(run: Watched, view: WatchView, live: bool, plot: Path | None) -> None:
    if run.moments:
        typer.echo("\n".join(view.summary()), err=not live)
        if plot is not None:
            save_plot(figure(run, view.name, view.head), plot)


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
    from hubbub.service.http.key_folder import public_address
    from hubbub.watch.remote import Away, CollectorApi, RemoteWatch

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


class RemoteQuestion:
    """A question of a collector: the one that is named, or the only one whose answers have a wanted shape.

    Parameters
    ----------
    url, token
        The collector's address, and a file with its token.
    collection, question
        The names; where they are None there must be only one.
    wanted
        Whether answers of this shape, as JSON, can be asked.
    always
        What is added to every query.
    """

    def __init__(
        self,
        url: str,
        collection: str | None,
        question: str | None,
        token: Path | None,
        wanted: Callable[[Mapping[str, Any]], bool],
        always: Sequence[tuple[str, object]] = (),
    ) -> None:
        from hubbub.watch.remote import CollectorApi, chosen_name

        self._api, self._always = CollectorApi(url, token=read_token(token)), always
        names = [document["name"] for document in self._api.get("/v1/collections")["collections"]]
        root = f"/v1/collections/{chosen_name('collection', collection, names)}"
        questions = json.loads(self._api.get(root)["payload"])["questions"]
        shapes = {name: self._api.get(f"{root}/questions/{name}/releases?most=1")["shape"] for name in questions}
        fitting = [name for name, shape in shapes.items() if wanted(shape)]
        self._path = f"{root}/questions/{chosen_name('question', question, fitting)}"

    def get(self, route: str, *query: tuple[str, object]) -> Any:
        """What the collector answers about the question."""
        return self._api.get(f"{self._path}/{route}?{urlencode([*query, *self._always])}")
