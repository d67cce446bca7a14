"""The demo of one collection as it is shown: each function a part of the story, in 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from hubbub.cli.output import painted, percent, plain_table, shorten

if TYPE_CHECKING:
    from hubbub.cli.output import ShareRow
    from hubbub.demo.crowd import Demo, Other
    from hubbub.privacy.audit import Audit

_BYTES = 8
_BAR = 10
_NAME = 26


def people(run: Demo) -> RenderableType:
    """Who is asked, and how."""
    mechanism = run.mechanism
    return _part(
        "the people",
        f"{run.crowd.source}.\nEach holds one value, and sends one report of {mechanism.report_bytes} bytes, made by "
        f"[bold]{type(mechanism).__name__}[/] at epsilon {mechanism.epsilon:g} (chosen by adaptive).",
    )


def devices(run: Demo) -> RenderableType:
    """The first few devices, one by one."""
    table = plain_table("holds", "sends", "belief before", "after", left=["sends"])
    for client in run.clients:
        more = f" ... {len(client.sent)} bytes" if len(client.sent) > _BYTES else ""
        sent = client.sent[:_BYTES].hex(" ") + more
        table.add_row(client.holds, f"[dim]{sent}[/]", percent(client.before), percent(client.after))
    return _part(
        "on their devices",
        f"The first {len(run.clients)} devices. Belief is the probability that an observer gives to the value that "
        "the device holds, if the observer thought all values equally likely before the report.",
        table,
    )


def server(run: Demo) -> RenderableType:
    """Sharded and merged."""
    size = len(run.merged.to_bytes())
    digest = next(iter(run.digests.values()))[:16]
    orders = ", ".join(run.digests)
    caption = (
        f"[green]the same {size:,} bytes[/] each time (sha256 {digest}...)" if run.identical else "[red]they differ[/]"
    )
    return _part(
        "at the server",
        f"{run.crowd.n:,} reports were folded in {len(run.shards)} shards, none of which saw a value, and "
        f"merged {orders}: {caption}.",
    )


def top(run: Demo, shown: Sequence[ShareRow]) -> RenderableType:
    """The largest estimates beside the truth."""
    crowd = run.crowd
    name = dict(zip(crowd.labels, crowd.names, strict=True))
    most = max(max(row.estimate, row.truth) for row in shown)
    table = plain_table("", "value", "truth", "estimate", "95% interval", "", left=["value", ""])
    for row in shown:
        glyph = "" if name[row.value] == row.value else row.value
        interval = f"{percent(row.low)} to {percent(row.high)}"
        bar = painted(row.estimate, most, _BAR, mark=row.truth)
        style = None if row.significant else "dim"
        spelled = shorten(name[row.value], _NAME)
        table.add_row(glyph, spelled, percent(row.truth), percent(row.estimate), interval, bar, style=style)
    significant = int((run.estimate.value > run.threshold).sum())
    raw, better = run.crowd.error(run.estimate), run.crowd.error(run.consistent)
    size = len(run.crowd.labels)
    return _part(
        "what it learns",
        "The truth (the diamond) is known here because this is a demo.",
        table,
        Text(
            f"{significant} of {size} values rise above {percent(run.threshold)}, which chance alone passes in one run "
            f"of twenty; the others are dim. Of all {size} intervals, {run.covered} hold the truth "
            f"({run.covered / size:.1%}). Made consistent by Norm-Sub (no share below 0, all sum to 1), the error over "
            f"all values falls from {percent(raw)} to {percent(better)}."
        ),
    )


def others(run: Demo, compared: Sequence[Other]) -> RenderableType:
    """What every other mechanism would have given."""
    estimates = list(compared[0].estimates)
    table = plain_table("mechanism", "bytes", "error predicted", "measured", *estimates)
    truth = dict(zip(run.crowd.labels, run.crowd.truth.tolist(), strict=True))
    table.add_row("the truth", "", "", "", *(percent(truth[label]) for label in estimates), style="bold")
    used, *rest = compared
    for row in (used, *sorted(rest, key=lambda row: row.measured)):
        predicted = "no formula" if row.predicted is None else percent(row.predicted)
        shares = (percent(share) for share in row.estimates.values())
        style = "bold blue" if row is used else None
        table.add_row(row.mechanism, f"{row.report_bytes:,}", predicted, percent(row.measured), *shares, style=style)
    return _part(
        "by every other mechanism",
        "The same people and epsilon: the standard error of a share as predicted by a formula and as "
        "measured (root mean square over all values), and the estimates of the most frequent values.",
        table,
    )


def privacy(audit: Audit) -> RenderableType:
    """The promise."""
    return Panel(Text(audit.statement()), title="what each of them is promised", border_style="green")


def next_steps(files: Sequence[str]) -> RenderableType:
    """What was saved, and what to try."""
    steps = plain_table("", "", left=[""])
    for command, purpose in (
        ("hubbub demo --once --epsilon 4", "less privacy, less noise"),
        ("hubbub demo", "the whole system, live, with its page"),
        ("hubbub plan -d 1024 -n 100000 -e 1", "which mechanism, before you collect"),
        ("hubbub audit --all", "what every mechanism spends, exactly"),
        ("hubbub estimate FILE --column C -e 1", "a rehearsal on a file of your own"),
    ):
        steps.add_row(f"[bold]{command}[/]", purpose)
    return _part("next", "Saved " + ", ".join(files) + ". To try:", steps)


def _part(title: str, text: str, *more: RenderableType) -> RenderableType:
    rule = Rule(f"[bold]{title}[/]", align="left", style="dim")
    return Group(rule, Text.from_markup(text), *(Padding(part, (1, 0, 0, 0)) for part in more), Text())
