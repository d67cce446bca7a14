"""One look for every table: no lines, quiet headings, 80 columns, numbers to the right."""

from __future__ import annotations

from collections.abc import Collection

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text


class PlainTable(Table):
    """A table without lines, whose heading may be wider than the table: rich would wrap it at the table's width.

    Parameters
    ----------
    heading
        What is printed above the table, in rich's markup; nothing if empty.
    """

    def __init__(self, heading: str, *, show_header: bool) -> None:
        super().__init__(box=None, padding=(0, 2, 0, 0), header_style="dim", show_header=show_header)
        self.heading = heading

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.heading:
            yield Text.from_markup(self.heading, style="bold")
        yield from super().__rich_console__(console, options)


def plain_table(*headings: str, left: Collection[str] = (), title: str = "") -> PlainTable:
    """A table whose first column and those in `left` are words; the others are numbers."""
    table = PlainTable(title, show_header=any(headings))
    for place, heading in enumerate(headings):
        words = place == 0 or heading in left
        table.add_column(heading, justify="left" if words else "right", no_wrap=True)
    return table
