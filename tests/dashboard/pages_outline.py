"""A page as a strict reader sees it: every element closed where it must be, and all of them listed."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"br", "hr", "img", "input", "link", "meta"}


@dataclass
class Element:
    """An element with its attributes, the text below it, and its parents' names."""

    tag: str
    given: dict[str, str]
    above: tuple[str, ...]
    text: str = ""
    below: list[Element] = field(default_factory=list)

    def all(self, tag: str) -> list[Element]:
        """The elements of this name below it."""
        found = [element for child in self.below for element in ([child] if child.tag == tag else [])]
        return [*found, *(element for child in self.below for element in child.all(tag))]


class Outline(HTMLParser):
    """Reads a page; anything that does not nest is an error."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []
        assert page.startswith("<!doctype html>\n")
        self.feed(page)
        self.close()
        assert not self._open, f"left open: {[element.tag for element in self._open]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"{tag} has an attribute twice: {names}"
        made = Element(tag, {name: value or "" for name, value in attrs}, tuple(element.tag for element in self._open))
        self.elements.append(made)
        if self._open:
            self._open[-1].below.append(made)
        if tag not in VOID:
            self._open.append(made)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert [element.tag for element in self._open[-1:]] == [tag], (
            f"</{tag}> inside {[element.tag for element in self._open]}"
        )
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, tag: str) -> list[Element]:
        """The elements of this name, in order."""
        return [element for element in self.elements if element.tag == tag]

    def having(self, tag: str, name: str, value: str) -> list[Element]:
        """The elements of this name with an attribute, in order."""
        return [element for element in self.all(tag) if element.given.get(name) == value]

    def bars(self) -> dict[str, Element]:
        """The rows of all tables of bars, by label."""
        return {
            row.below[0].text: row for table in self.having("table", "class", "bars") for row in table.all("tr")[1:]
        }
