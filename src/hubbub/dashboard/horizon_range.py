"""A range of steps of a question that follows changes: a form that asks for it, and the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Self

from hubbub.dashboard.answers import Value, sentence_of, values_of
from hubbub.dashboard.bars import MOST_ROWS, BarTable, ranked_bars
from hubbub.dashboard.layout import path_to
from hubbub.dashboard.markup import Html, count, el, join, part, step_time
from hubbub.questions.collection import Collection
from hubbub.service.collector.candidates import RangeBody


class AskedRange(NamedTuple):
    """The steps that a form asks for; None where it leaves one open."""

    first: int | None
    last: int | None

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Self:
        """From the fields of a form; a field that is no number is left open."""
        texts = (query.get(name, "").strip() for name in ("from", "to"))
        return cls(*(int(text) if text.isdecimal() and len(text) < 16 else None for text in texts))


def range_section(collection: Collection, name: str, asked: AskedRange, answer: RangeBody | str | None) -> Html:
    """The form, and the mean of the steps with its interval, or why there is none."""
    body = answer if isinstance(answer, RangeBody) else None
    shown = AskedRange(body.first, body.last) if body is not None else asked
    steps = [
        el("label", f"{word} step ", el("input", name=key, inputmode="numeric", size=8, value="" if at is None else at))
        for word, key, at in (("from", "from", shown.first), ("to", "to", shown.last))
    ]
    version = el("input", type="hidden", name="version", value=collection.version)
    form = el(
        "form",
        el("p", "The mean over steps of one horizon: ", steps, el("button", "Show"), class_="choose"),
        version,
        method="get",
        action=path_to("results", collection.name, name),
    )
    title = f"q-{name}-range"
    return el(
        "section",
        el("h3", "Over a range of steps", id=title),
        form,
        el("p", answer, class_="notice", role="alert") if isinstance(answer, str) else None,
        _range_answer(collection, name, body) if body is not None else None,
        aria_labelledby=title,
    )


def _range_answer(collection: Collection, name: str, answer: RangeBody) -> Html:
    if answer.mean.withheld is not None:
        return el("p", f"Withheld: {answer.mean.withheld}.")
    values: list[Value] = [value.possible(0.0, 1.0) for value in values_of(answer.mean)]
    lost = [abs(off) for off in answer.lost or [] if off is not None]
    missing = answer.due - answer.came
    return join(
        el("p", sentence_of(values), class_="said"),
        ranked_bars(BarTable(values, "share", f"range-{name}"), most=MOST_ROWS),
        el(
            "p",
            f"The mean of {count(answer.steps, 'step')}, from ",
            step_time(collection, answer.first),
            " to ",
            step_time(collection, answer.last),
            f", from all reports of {count(answer.mean.n, 'device')} until step {answer.as_of:,}. Its interval is that "
            "of the range, not of its steps. ",
            f"{count(missing, 'report')} are missing, which may have biased it by up to {part(max(lost, default=0.0))}."
            if missing
            else "",
            class_="note",
        ),
    )
