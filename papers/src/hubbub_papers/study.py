"""A study: the runs of a figure, and what the figure makes of them: cells, panels with a line per method, claims."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hubbub_papers.harness import Cell, Reproduced
from hubbub_papers.plots import canvas, draw_lines, draw_methods, finish, legend_below, look, mark_values
from hubbub_papers.result import Claim, judged

Key = TypeVar("Key")


@dataclass(frozen=True)
class Panel:
    """A panel with a line per method over the `xs`.

    `at` is called with what is `given` in this panel, a method and an x. It returns runs, of which the mean and the
    deviation are drawn, or the height of the line; or None where the method has none. `marked` puts ticks at the xs.
    """

    title: str
    xs: Sequence[Any]
    at: Callable[..., Any]
    x: str = "$\\epsilon$"
    y: str = ""
    log: str = "y"
    given: tuple[Any, ...] = ()
    marked: bool = False


@dataclass(frozen=True)
class Study(Generic[Key]):
    """What a figure shows of its `runs`: `cells`, `panels` in `rows`, with a line per method, and `claims`.

    There is one legend below all panels, with `legend` names side by side; or, if that is 0, one in each panel.
    """

    runs: Mapping[Key, NDArray[np.float64]]
    cells: Sequence[Cell]
    methods: Sequence[str]
    panels: Sequence[Panel]
    claims: Callable[[Mapping[Key, NDArray[np.float64]]], Sequence[Claim]]
    rows: int = 1
    legend: int = 7
    size: tuple[float, float] = (4.6, 3.6)
    look_of: Callable[[str], Mapping[str, Any]] = look

    def reproduced(self) -> Reproduced:
        """The cells with those of the claims, and the figure."""
        columns = -(-len(self.panels) // self.rows)
        figure, places = canvas(self.rows, columns, width=self.size[0], height=self.size[1])
        for place, panel in zip(places, self.panels, strict=False):
            lines = {method: [panel.at(*panel.given, method, x) for x in panel.xs] for method in self.methods}
            if any(isinstance(value, np.ndarray) for line in lines.values() for value in line):
                draw_methods(place, panel.xs, lines)
            else:
                draw_lines(place, panel.xs, lines, self.look_of)
            finish(place, panel.x, panel.y, panel.title, log=panel.log)
            if panel.marked:
                mark_values(place, panel.xs)
            if not self.legend:
                place.legend(frameon=False)
        if self.legend:
            legend_below(figure, places, columns=self.legend)
        return [*self.cells, *judged(self.claims, self.runs)], figure


def plain_look(name: str) -> dict[str, Any]:
    """The plotting options of a line that is no method: matplotlib chooses the colour."""
    return {"marker": "o", "label": name}
