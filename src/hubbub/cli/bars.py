"""Bars drawn with characters, an eighth of a cell fine."""

from __future__ import annotations

_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(value: float, most: float, width: int, *, mark: float | None = None) -> str:
    """A bar as long as value is of most, in at most `width` cells; a value below 0 has none.

    A diamond stands in the cell that `mark` reaches.
    """
    if most <= 0:
        return ""
    eighths = round(8 * width * min(max(value / most, 0.0), 1.0))
    cells = ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()
    if mark is None:
        return cells
    place = min(max(int(width * mark / most), 0), width - 1)
    padded = cells.ljust(place + 1)
    return padded[:place] + "◆" + padded[place + 1 :]


def painted(value: float, most: float, width: int, *, mark: float) -> str:
    """The bar in rich's markup, the diamond in another colour."""
    return f"[blue]{bar(value, most, width, mark=mark).replace('◆', '[yellow]◆[/]')}[/]"
