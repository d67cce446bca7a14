"""One look for every table: no lines, quiet headings, 80 columns, numbers to the right."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


def plain_table(*headings: str, left: Collection[str] = (), title: str | None = None) -> Table:
    """A table whose first column and those in `left` are words; the others are numbers.

    Example:
        >>> [column.justify for column in plain_table("mechanism", "bytes", "why", left=["why"]).columns]
        ['left', 'right', 'left']
    """
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", show_header=any(headings))
    table.title, table.title_justify, table.title_style = title, "left", "bold"
    for place, heading in enumerate(headings):
        words = place == 0 or heading in left
        table.add_column(heading, justify="left" if words else "right", no_wrap=True)
    return table
