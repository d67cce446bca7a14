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
    questions = reader.shuffled(collection.name)["questions"]
    rows = [row for name, question in questions.items() for row in _coalitions(name, question)]
    batches = [row for name, question in questions.items() for row in _batches(name, question)]
    text = (
        "Reports pass shufflers before they are read here. What one person's report says changes the probability of "
        "anything that those who work together could look for in a batch by at most the factor e^epsilon, plus delta. "
        "Shufflers that work with the collector can also hold back the reports of other people and put in their own: "
        "then it is as if everyone else worked with them."
    )
    headings = (
        "Question",
        "Who works together",
        "#Epsilon, smallest batch",
        "#Epsilon, latest batch",
        "Protection left",
    )
    parts = [el("p", text), table("Epsilon by who works together", headings, rows)]
    if batches:
        columns = ("Question", "#Step", "#People", "#Fakes", "#Unreadable", "#Repeated", "#Own reports lost")
        parts.append(table("The latest batches", columns, batches))
    else:
        parts.append(el("p", "No batch has come yet.", class_="note"))
    return el("section", el("h2", "Who must work together to see what", id="shuffle-title"), join(*parts))


def _coalitions(name: str, question: Mapping[str, Any]) -> list[tuple[Child, ...]]:
    latest = question["latest"] or [None] * len(question["smallest"])
    return [
        (el("code", name), smallest["who"], _epsilon(smallest), "" if now is None else _epsilon(now), smallest["left"])
        for smallest, now in zip(question["smallest"], latest, strict=True)
    ]


def _epsilon(coalition: Mapping[str, Any]) -> str:
    return rounded_up(coalition["epsilon"]) + (f" (delta {coalition['delta']:g})" if coalition["delta"] else "")


def _batches(name: str, question: Mapping[str, Any]) -> list[tuple[Child, ...]]:
    keys = ("people", "fakes", "unreadable", "repeated")
    return [
        (
            el("code", name),
            count(batch["step"]),
            *(count(batch[key]) for key in keys),
            f"{batch['lost_checks']} of {batch['checks']}" if batch["checks"] else "none sent",
        )
        for batch in question["batches"]
    ]
