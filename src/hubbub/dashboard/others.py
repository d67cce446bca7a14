"""What a release says beside its main estimate: such as the quantiles and the mean of a distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hubbub.dashboard.answer import Value
from hubbub.dashboard.facts import table
from hubbub.dashboard.markup import Html, join
from hubbub.dashboard.words import Scale


def other_numbers(others: Mapping[str, Sequence[Value]]) -> Html | None:
    """A table for each of the named estimates."""
    headings = ("#value", "#from", "#to")
    tables = [
        table(name, [name.capitalize(), *headings], [_row(value) for value in values])
        for name, values in others.items()
    ]
    return join(tables) if tables else None


def _row(value: Value) -> tuple[str, str, str, str]:
    scale = Scale.of("quantity" if value.signed else "share", reaches=[value.reach or 0.0])
    if value.low == value.high:  # a number that is known, and no estimate
        number = value.value
        return value.label, scale.text(number) if number is None else f"{number:,.3g}", "", ""
    return value.label, scale.text(value.value), scale.text(value.low), scale.text(value.high)
