"""Small pieces that several pages have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hubbub.dashboard.markup import Child, Html, el, join


def facts(pairs: Iterable[tuple[str, Child]], *, class_: str = "facts") -> Html:
    """A list of names and values; a value of None is left out."""
    items = [el("div", el("dt", name), el("dd", value)) for name, value in pairs if value is not None]
    return el("dl", items, class_=class_)


def numbered(when: Child, step: int) -> Html:
    """A step's time with its number."""
    return join(when, el("span", f" (no. {step:,})", class_="aside"))


def table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[Child]], *, class_: str = "plain") -> Html:
    """A table, the first cell of whose rows names them; a heading that begins with # is of numbers."""
    numeric = [heading.startswith("#") for heading in headings]
    heads = [
        el("th", heading.lstrip("#"), scope="col", class_="number" if number else None)
        for heading, number in zip(headings, numeric, strict=True)
    ]
    body = [
        el(
            "tr",
            el("th", row[0], scope="row"),
            [
                el("td", cell, class_="number" if number else None)
                for cell, number in zip(row[1:], numeric[1:], strict=True)
            ],
        )
        for row in rows
    ]
    inside = el("table", el("caption", caption), el("thead", el("tr", heads)), el("tbody", body), class_=class_)
    return el("div", inside, class_="scroll", tabindex=0, role="region", aria_label=caption)
