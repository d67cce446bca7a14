"""Who shuffles, who must work together to see what, and what became of the latest batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hubbub.collection import Collection
from hubbub.dashboard.facts import table
from hubbub.dashboard.markup import Child, Html, el, join
from hubbub.dashboard.reader import Reader
from hubbub.dashboard.words import count
from hubbub.questions.words import rounded_up


def shuffled_section(reader: Reader, collection: Collection) -> Html:
    """The part of the privacy page that is about shufflers."""
    told = reader.shuffled(collection.name)["questions"]
    rows = [row for name, each in told.items() for row in _coalitions(name, each)]
    batches = [row for name, each in told.items() for row in _batches(name, each)]
    text = (
        "Reports pass shufflers before they are read here. Whatever some of those who take part look for in a batch, "
        "what one person's report says changes its probability by at most the factor e^epsilon, and delta more. "
        "Shufflers that work with the collector can keep others' reports back and put in their own: then it is as if "
        "everyone else worked with them."
    )
    headings = ("Question", "Who works together", "#Epsilon, smallest batch", "#Epsilon, latest batch", "What is left")
    parts = [el("p", text), table("Epsilon by who works together", headings, rows)]
    if batches:
        columns = ("Question", "#Step", "#People", "#Fakes", "#Unreadable", "#Repeated", "#Own reports lost")
        parts.append(table("The latest batches", columns, batches))
    else:
        parts.append(el("p", "No batch has come yet.", class_="note"))
    return el("section", el("h2", "Who must work together to see what", id="shuffle-title"), join(*parts))


def _coalitions(name: str, told: Mapping[str, Any]) -> list[tuple[Child, ...]]:
    latest = told["latest"] or [None] * len(told["smallest"])
    return [
        (el("code", name), each["who"], _epsilon(each), "" if now is None else _epsilon(now), each["left"])
        for each, now in zip(told["smallest"], latest, strict=True)
    ]


def _epsilon(each: Mapping[str, Any]) -> str:
    return rounded_up(each["epsilon"]) + (f" (delta {each['delta']:g})" if each["delta"] else "")


def _batches(name: str, told: Mapping[str, Any]) -> list[tuple[Child, ...]]:
    keys = ("people", "fakes", "unreadable", "repeated")
    return [
        (
            el("code", name),
            count(batch["step"]),
            *(count(batch[key]) for key in keys),
            f"{batch['lost_checks']} of {batch['checks']}" if batch["checks"] else "none sent",
        )
        for batch in told["batches"]
    ]
