"""Values with their intervals as tables of the terminal, as bars of a notebook, as charts, and as data frames."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from hubbub.core.errors import needs
from hubbub.core.tabular import Tabular

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table


class Bar(NamedTuple):
    """A value with its interval, and what it is called."""

    name: str
    value: float
    low: float
    high: float

    @property
    def interval(self) -> str:
        """The interval as text."""
        return f"{self.low:.4g} to {self.high:.4g}"


class Bars(Tabular):
    """A result that is a row of values with intervals."""

    @abstractmethod
    def bars(self, *, most: int = 20, level: float = 0.95) -> list[Bar]:
        """The values as people see them, with their intervals: the most important first."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def quantity(self) -> str:
        """What the values are."""

    @property
    @abstractmethod
    def basis(self) -> tuple[str, str]:
        """What they rest on, and their bias."""

    def table(self, *, most: int = 20, level: float = 0.95) -> Table:
        """A rich table of the first values with their intervals."""
        bars = self.bars(most=most, level=level)
        title, caption = self.basis
        return rich_bars(bars, self._headings(level), title=title, caption=caption, left_out=len(self) - len(bars))

    def __rich__(self) -> Table:
        return self.table()

    def plot(self, *, most: int = 20, level: float = 0.95, ax: Axes | None = None, **options: Any) -> Axes:
        """A bar chart of the first values with their intervals; returns matplotlib's axes.

        Example:
            >>> import matplotlib
            >>> from hubbub import Estimate
            >>> matplotlib.use("agg")
            >>> Estimate(value=[0.6, 0.4], variance=[1e-3, 1e-3], n=99, labels=("a", "b")).plot().get_xlabel()
            'share of 99 reports'
        """
        return chart(self.bars(most=most, level=level), f"{self.quantity} of {self.basis[0]}", ax=ax, **options)

    def _headings(self, level: float) -> tuple[str, str, str]:
        return "value", self.quantity, f"{level:.0%} interval"

    def _repr_html_(self) -> str:
        return html_bars(self.bars(), self._headings(0.95), caption=", ".join(self.basis))


def rich_bars(bars: Sequence[Bar], headings: Sequence[str], *, title: str, caption: str, left_out: int = 0) -> Table:
    """A rich table; values that cannot be told from 0 are dim."""
    with needs("analytics"):
        from rich.markup import escape as plain
        from rich.table import Table
    table = Table(title=title, caption=caption)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left")
    for bar in bars:
        table.add_row(plain(bar.name), f"{bar.value:.4g}", bar.interval, style=None if bar.low > 0 else "dim")
    if left_out:
        table.add_row(f"... {left_out} more", "", "", style="dim")
    return table


def chart(bars: Sequence[Bar], label: str, *, ax: Axes | None = None, **options: Any) -> Axes:
    """A bar chart, the first value on top; returns matplotlib's axes."""
    with needs("analytics"):
        from matplotlib.figure import Figure
    if ax is None:
        ax = Figure(figsize=(7, 0.9 + 0.28 * len(bars)), layout="constrained").subplots()
    upwards = bars[::-1]
    names = [bar.name.replace("$", r"\$") for bar in upwards]  # a dollar would begin a formula
    ax.barh(names, [bar.value for bar in upwards], **{"color": "#4c78a8", **options})
    for row, bar in enumerate(upwards):
        ax.plot([bar.low, bar.high], [row, row], color="#333333", linewidth=1.5)
    ax.axvline(0, color="#999999", linewidth=0.8)
    ax.set_xlabel(label)
    return ax


_TRACK = "position:relative;display:inline-block;width:180px;height:12px;background:rgba(127,127,127,.15)"
_FILL = "position:absolute;top:0;bottom:0;background:#4c78a8"
_REACH = "position:absolute;top:5px;height:2px;background:currentColor"


def html_bars(bars: Sequence[Bar], headings: Sequence[str], *, caption: str = "") -> str:
    """A table of a notebook, with a bar for each value and a line for its interval."""
    ends = [end for bar in bars for end in (bar.value, bar.low, bar.high) if abs(end) < float("inf")]
    least, most = min([0.0, *ends]), max([0.0, *ends])
    scale = 100 / ((most - least) or 1.0)

    def piece(style: str, start: float, end: float) -> str:
        start, end = (min(max(number, least), most) for number in sorted((start, end)))
        return f'<i style="{style};left:{(start - least) * scale:.2f}%;width:{(end - start) * scale:.2f}%"></i>'

    def row(bar: Bar) -> str:
        drawn = piece(_FILL, 0.0, bar.value) + piece(_REACH, bar.low, bar.high)
        cells = (escape(bar.name), f"{bar.value:.4g}", bar.interval)
        return f'<tr>{_cells("td", cells)}<td><span style="{_TRACK}">{drawn}</span></td></tr>'

    return html_table([f"<tr>{_cells('th', headings)}<th></th></tr>", *map(row, bars)], caption)


def html_rows(rows: Iterable[Sequence[object]], headings: Sequence[str], *, caption: str = "") -> str:
    """A table of a notebook, of text alone."""
    body = [f"<tr>{_cells('td', (escape(str(cell)) for cell in row))}</tr>" for row in rows]
    return html_table([f"<tr>{_cells('th', headings)}</tr>", *body], caption)


def html_table(rows: Iterable[str], caption: str = "") -> str:
    """Rows as a table, under its caption."""
    title = f'<caption style="text-align:left">{escape(caption)}</caption>' if caption else ""
    return f"<table>{title}{''.join(rows)}</table>"


def _cells(tag: str, cells: Iterable[str]) -> str:
    return "".join(f"<{tag}>{cell}</{tag}>" for cell in cells)
