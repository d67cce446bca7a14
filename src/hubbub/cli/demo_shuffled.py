"""The demonstration of shuffled reports in a terminal, or as a result."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from hubbub.cli.output import emit, page, percent, plain_table, say
from hubbub.core.errors import HubbubError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hubbub.demo.shuffled import ShuffledDemo, ShuffledResult

_GRACE = 60.0
"""Seconds that a run goes on beyond its end, if it has nothing to show yet: a machine may be busy."""


class NotReleasedYet(HubbubError):
    """The first step was not released in time."""


def run_shuffled(demo: ShuffledDemo, *, as_json: bool) -> None:
    """Start everything, wait for the first release, stop everything, and print the result."""
    with demo:
        collection = demo.collection
        if not as_json:
            say(f"the page: {demo.address}/; the shufflers: {', '.join(demo.urls)}")
            say(f"{demo.devices:,} devices, each of which seals its report to both; {demo.scene.source}")
        end = collection.opens(1) + collection.lateness_seconds + _GRACE
        while (result := demo.result()) is None:
            if time.time() > end:
                raise NotReleasedYet("nothing was released; this machine may be busy")
            time.sleep(0.5)
    if as_json:
        return emit(shuffled_answer(demo, result))
    page().print(_shown(demo, result))
    return None


def shuffled_answer(demo: ShuffledDemo, result: ShuffledResult) -> dict[str, Any]:
    """The result as JSON."""
    from hubbub.demo.live import covered

    low, high = result.estimate.interval(0.95)
    names, value = result.estimate.names(), result.estimate.value
    return {
        "devices": demo.devices,
        "processes": len(demo.processes),
        "outcomes": result.outcomes,
        "batch": result.batch,
        "coalitions": [asdict(coalition) for coalition in result.coalitions],
        "shufflers": [shuffler["counts"] for shuffler in result.shufflers],
        "covered": covered(result.estimate, result.truth),
        "estimates": [
            {
                "value": names[i],
                "estimate": float(value[i]),
                "low": float(low[i]),
                "high": float(high[i]),
                "truth": float(result.truth[i]),
            }
            for i in result.estimate.top(len(names))
        ],
    }


def _shown(demo: ShuffledDemo, result: ShuffledResult) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from hubbub.questions.words import rounded_up

    answer = shuffled_answer(demo, result)
    batch = answer["batch"]
    numbers = plain_table("", "estimate", "95% interval", "truth")
    for row in answer["estimates"][:8]:
        ends = f"{percent(max(row['low'], 0.0))} to {percent(min(max(row['high'], 0.0), 1.0))}"
        share = percent(min(max(row["estimate"], 0.0), 1.0))
        numbers.add_row(row["value"], share, ends, percent(row["truth"]))
    parties = plain_table("who works together", "epsilon", "delta")
    for coalition in answer["coalitions"]:
        delta = f"{coalition['delta']:g}" if coalition["delta"] else "0"
        parties.add_row(coalition["who"], rounded_up(coalition["epsilon"]), delta)
    local, central = answer["coalitions"][-1], answer["coalitions"][0]
    return Group(
        Text(f"One batch: {batch['people']:,} people's reports and {batch['fakes']:,} fakes, shuffled together."),
        Text("Which emoji is used most?", style="bold"),
        numbers,
        Text(f"{answer['covered']} of {len(answer['estimates'])} intervals hold the truth.\n"),
        Text("What can be learned of one report of the batch", style="bold"),
        parties,
        Text(
            f"The local epsilon, {rounded_up(local['epsilon'])}, is what a device spends; it holds even if everyone "
            f"works together. The central epsilon, {rounded_up(central['epsilon'])} with delta "
            f"{central['delta']:g}, holds against the collector alone, for this batch.",
            style="green",
        ),
    )
