"""Joint distributions of several fields: what goes together, a table of each marginal, and any that one chooses."""

import math
from collections.abc import Sequence
from itertools import islice, product

from hubbub.core.errors import InvalidValue
from hubbub.dashboard.answers import LEVEL, why_withheld
from hubbub.dashboard.layout import path_to, table
from hubbub.dashboard.markup import Child, Html, Scale, count, el, join, part
from hubbub.protocols.marginals.field_marginals import FieldMarginals
from hubbub.questions.collection import Collection
from hubbub.questions.words import listed
from hubbub.service.base.api import ReleaseBody
from hubbub.service.collector.marginals import marginal_body
from hubbub.service.rounds.releases import released_marginals

_MOST_TABLES = 6
_MOST_ROWS = 200


def marginals_headline(collection: Collection, release: ReleaseBody) -> Html:
    """Which two values go together most, in a sentence."""
    withheld, released = why_withheld(release), released_marginals(collection.questions[release.question], release)
    if withheld is not None or released is None:
        return join(f"Withheld: {withheld or 'nobody answered'}.")
    pair = released.goes_together(LEVEL)
    if pair is None:
        return join("No two values are clearly more often together than by chance: the reports so far do not show any.")
    (first, second), (one_value, other_value) = pair.fields, pair.values
    scale = Scale.of("share", reaches=[pair.share - pair.low, pair.high - pair.share])
    return join(
        el("bdi", first), " ", el("bdi", one_value), " and ", el("bdi", second), " ", el("bdi", other_value),
        " go together most: ", el("strong", scale.text(pair.share)),
        f" have both ({scale.text(max(pair.low, 0.0))} to {scale.text(min(pair.high, 1.0))}), and "
        f"{scale.text(pair.expected)} would if the two were independent.",
    )  # fmt: skip


def marginals_figure(
    collection: Collection, release: ReleaseBody | None, chosen: Sequence[str] = (), *, most: int = _MOST_TABLES
) -> Html | None:
    """A table for each of the first marginals that devices reported on, and for the one that was chosen.

    `chosen`: the fields of a marginal that somebody asks for. `most`: how many marginals are shown that nobody chose.
    """
    if release is None:
        return None
    released = released_marginals(collection.questions[release.question], release)
    if released is None:
        return None
    views = [[released.fields[place] for place in view] for view in islice(released.reported, most)]
    more = len(released.reported) - len(views)
    return join(
        _chooser(collection, release, released, chosen),
        _marginal(released, release, chosen) if chosen else None,
        [_marginal(released, release, view) for view in views if sorted(view) != sorted(chosen)],
        el("p", f"Devices reported on {count(more, 'more marginal')}, which can be chosen too.", class_="note")
        if more
        else None,
    )


def _chooser(collection: Collection, release: ReleaseBody, released: FieldMarginals, chosen: Sequence[str]) -> Html:
    boxes = [
        el("label", el("input", type="checkbox", name="of", value=name, checked="checked" if name in chosen else None),
           " ", el("bdi", name), " ")
        for name in released.known_fields
    ]  # fmt: skip
    version = el("input", type="hidden", name="version", value=collection.version)
    return el(
        "form",
        el("p", "Any of these fields together: ", boxes, el("button", "Show")),
        version,
        method="get",
        action=path_to("results", collection.name, release.question),
        class_="choose",
    )


def _marginal(released: FieldMarginals, release: ReleaseBody, fields: Sequence[str]) -> Html:
    """A marginal as a table: the values of its last field side by side, all others below each other."""
    try:
        body = marginal_body(released, fields, question=release.question, step=release.step, level=LEVEL)
    except InvalidValue as error:
        return el("p", str(error), class_="notice", role="alert")
    *others, across = body.values
    rows, width = list(product(*(body.values[name] for name in others))), len(body.values[across])
    ends = list(zip(body.low or [], body.high or [], strict=True))
    scale = Scale.of("share", reaches=[(high - low) / 2 for low, high in ends if low is not None and high is not None])

    def cell(place: int) -> Child:
        share = scale.text(body.value[place])
        if not ends:
            return share
        low, high = (min(max(end, 0.0), 1.0) for end in ends[place] if end is not None)
        return join(el("b", share), " ", el("span", f"{scale.text(low)} to {scale.text(high)}", class_="reach"))

    shown = [
        [", ".join(row) or "all", *(cell(place * width + column) for column in range(width))]
        for place, row in islice(enumerate(rows), _MOST_ROWS)
    ]
    heading = f"{', '.join(others)} \\ {across}" if others else across
    title = f"Shares of {', '.join(body.values)}{' together' if others else ''}"
    return join(
        el("h3", el("bdi", listed(list(body.values)))),
        table(title, [heading, *(f"#{label}" for label in body.values[across])], shown),
        el("p", _remark(body.n, released, known=bool(ends), rest=len(rows) - len(shown)), class_="note"),
    )


def _remark(n: int, released: FieldMarginals, *, known: bool, rest: int) -> str:
    more = f" {count(rest, 'row')} more are in the API." if rest else ""
    if known:
        return f"From {count(n, 'report')} on these fields together.{more}"
    error = released.left_out
    text = "No device reported on these fields together: the table is reconstructed, and its error is not known."
    if error is None:
        return f"{text} How well reconstruction does cannot be checked here.{more}"
    cell = math.sqrt(max(error.squared, 0.0))
    checked = f"{count(error.marginals, 'marginal')} that devices did report on"
    return f"{text} Left out and reconstructed, {checked} came out {part(cell)} off (root of the summed squares).{more}"
