"""Sweeps of LDP-IDS: the methods on every stream, their errors, and how they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.event import units_of
from hubbub.protocols.driver import Protocol
from hubbub.protocols.window import METHODS as WINDOW_METHODS
from hubbub.protocols.window import Statistic, window_stream
from hubbub.simulate.conversation import StreamRun, run_stream
from hubbub.simulate.devices import Stream
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores
from hubbub_papers.ldp_ids.sources import FLOOR, Source
from hubbub_papers.plots import canvas, draw_lines, finish, legend_below, mark_values
from hubbub_papers.result import FEWEST_RUNS, Claim, fewest_runs, judged

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METHODS = ("LBU", "LSP", "LBD", "LBA", "LPU", "LPD", "LPA")
PAIRS = (("LPU", "LBU"), ("LPD", "LBD"), ("LPA", "LBA"))
"""The same method by population and by budget."""
FILTERED = ", filtered"
"""The end of the name of a method that filters what it releases."""
MRE, MSE, BITS, SPREAD = range(4)
"""The columns of `scores`."""


@dataclass(frozen=True)
class MethodSetting:
    """The guarantee, epsilon in any w steps, and the method's own options."""

    epsilon: float = 1.0
    w: int = 20
    beta: float | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The method's own options."""
        return {} if self.beta is None else {"beta": self.beta}

    def __str__(self) -> str:
        return f"eps={self.epsilon:g} w={self.w}" + ("" if self.beta is None else f" beta={self.beta:g}")


Key = tuple[str, str, MethodSetting]  # source, method, setting
Place = tuple[Source, MethodSetting]
Runs = RunScores[Key]
Start = Callable[[Source, str, MethodSetting], Protocol]
Score = Callable[[Source, str, MethodSetting, StreamRun], ArrayLike]
Title = TypeVar("Title")


class KnownTruth(Stream):
    """A stream that computes the truth of each step once, for all methods that are run over it."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.n, self.steps = stream, stream.n, stream.steps
        self._known: dict[int, NDArray[np.float64]] = {}

    def values(self, step: int, start: int, stop: int) -> Any:
        return self.stream.values(step, start, stop)

    def truth(self, step: int) -> NDArray[np.float64]:
        if step not in self._known:
            self._known[step] = self.stream.truth(step)
        return self._known[step]


def scores(source: Source, method: str, setting: MethodSetting, run: StreamRun) -> list[float]:
    """The columns MRE, MSE, BITS (a device and step), and SPREAD: the mean of f(1-f) over the true shares f."""
    spread = float(np.mean(run.truth * (1 - run.truth)))
    return [run.mre(source.floor), run.mse, run.bits_per_device_and_step, spread]


def start(source: Source, method: str, setting: MethodSetting) -> Protocol:
    """The protocol of a method as the paper prints it, or filtered if its name says so."""
    options = options_of(method, setting)
    return window_stream(plain(method), source.question, epsilon=setting.epsilon, w=setting.w, **options)


def plain(method: str) -> str:
    """The method's registered name."""
    return method.removesuffix(FILTERED)


def options_of(method: str, setting: MethodSetting) -> dict[str, Any]:
    """The options of the setting, and whether the method filters what it releases: the paper's do not."""
    can_filter = "filtered" in signature(WINDOW_METHODS[plain(method)].decide).parameters
    return {**setting.options, **({"filtered": method.endswith(FILTERED)} if can_filter else {})}


def sweep(
    context: Context,
    places: Sequence[Place],
    *,
    methods: Sequence[str] = METHODS,
    score: Score = scores,
    begin: Start = start,
) -> dict[Key, NDArray[np.float64]]:
    """Run every method at every place, which is a source and a setting; return the scores, one row per run.

    The stream of a run is made once, for all methods and settings.
    """
    settings: dict[Source, list[MethodSetting]] = {}
    for source, setting in places:
        settings.setdefault(source, []).append(setting)
    streams: dict[tuple[Source, int], Stream] = {}  # that of the present source and run

    def run_step(step: tuple[Source, int, MethodSetting, str]) -> dict[Key, ArrayLike]:
        source, run, setting, method = step
        if (source, run) not in streams:
            streams.clear()  # before the next stream is made: two do not fit in memory
            streams[source, run] = KnownTruth(source.make(run))
        rng = context.rng.child("LDP-IDS", source.name, run, str(setting), method)
        result = run_stream(begin(source, method, setting), streams[source, run], rng)
        return {(source.name, method, setting): score(source, method, setting, result)}

    runs = range(context.repeats)
    steps = [(source, run, at, m) for source in settings for run in runs for at in settings[source] for m in methods]
    return context.gather(steps, run_step, lambda step: f"{step[0].name}, {step[2]}, {step[3]}, run {step[1] + 1}")


def verdicts(claims_of: Callable[[Runs], Sequence[Claim]], runs: Runs) -> list[Cell]:
    """The verdicts of `judged`; if there are too few runs for a standard error, the notes say so."""
    cells, number = judged(claims_of, runs), fewest_runs(runs)
    if number >= FEWEST_RUNS:
        return cells
    return [replace(cell, note=f"{cell.note}; without a standard error: runs: {number}") for cell in cells]


def mean(runs: Runs, source: str, method: str, setting: MethodSetting, column: int) -> float:
    """The mean over the runs of one column of the scores."""
    return float(runs[source, method, setting][:, column].mean())


def error_cells(
    runs: Runs,
    source: Source,
    setting: MethodSetting,
    methods: Sequence[str],
    *,
    row: str,
    remark: str,
    floor: str = "",
) -> list[Cell]:
    """The MRE and the MSE of each method; the note of an MRE also states the `floor` of relative errors."""
    floored = f"{remark}; {floor or f'shares below {FLOOR:g} count as {FLOOR:g}'}"
    return [
        Cell(f"{row}: {name}", method, None, mean(runs, source.name, method, setting, column), note)
        for method in methods
        for name, column, note in (("MRE", MRE, floored), ("MSE", MSE, remark))
    ]


def theory(method: str, question: Statistic, setting: MethodSetting, n: int, spread: float) -> float:
    """The MSE on paper: V(eps/w, n) of LBU; V(eps, n/w) of LPU, and the sampling variance of its cohort."""
    units, shares = units_of(setting.epsilon), np.zeros(question.size)
    if method == "LBU":
        return question.error(units // setting.w, n, shares)
    cohort = n / setting.w
    return question.error(units, cohort, shares) + spread / cohort * (1 - 1 / setting.w)


# Okabe and Ito's colours.
_COLOURS = {
    "U": ("#000000", "o"),
    "SP": ("#e69f00", "s"),
    "D": ("#0072b2", "^"),
    "A": ("#d55e00", "D"),
    "DSAT": ("#56b4e9", "v"),
    "RescueDP": ("#009e73", "P"),
    "FAST": ("#cc79a7", "X"),
    "PeGaSus": ("#7f4f24", "*"),
}


def look(method: str) -> dict[str, Any]:
    """The plotting options of a method's line."""
    budget = method.startswith("LB")
    colour, marker = _COLOURS["SP" if method == "LSP" else method[2:].removeprefix("-")]
    filled = "none" if budget else colour
    style = {"color": colour, "marker": marker, "markerfacecolor": filled, "linestyle": "--" if budget else "-"}
    return {**style, "markersize": 5, "linewidth": 1.3, "label": method}


def panels_of(titles: Sequence[Title], *, columns: int = 4) -> tuple[Figure, dict[Title, Axes]]:
    """A figure with a panel for each title, at most `columns` side by side."""
    rows = -(-len(titles) // columns)
    figure, panels = canvas(rows, min(columns, len(titles)), width=3.7, height=3.1)
    for panel in panels[len(titles) :]:
        panel.remove()
    return figure, dict(zip(titles, panels, strict=False))


class StreamPanel(NamedTuple):
    """A panel: its title, the name of its horizontal axis, and by the value there the place that is shown."""

    title: str
    axis: str
    places: Mapping[float, Place]


@dataclass(frozen=True)
class StreamStudy:
    """A figure: panels with a line for each of the methods `shown`, cells of every place, and claims.

    `column` of the scores is drawn. `others` are methods that are run and in the cells, but not drawn.
    """

    panels: Sequence[StreamPanel]
    claims: Callable[[Runs], Sequence[Claim]]
    cells: Callable[[Runs, Source, MethodSetting, Sequence[str]], Sequence[Cell]]
    shown: Sequence[str] = METHODS
    others: Sequence[str] = ()
    column: int = MRE
    score: Score = scores
    begin: Start = start

    def run(self, context: Context, *, columns: int = 4, y: str = "MRE", log: str = "xy") -> Reproduced:
        """Run all methods at all places; return the cells and the figure."""
        places = list(dict.fromkeys(place for panel in self.panels for place in panel.places.values()))
        methods = (*self.shown, *self.others)
        runs = sweep(context, places, methods=methods, score=self.score, begin=self.begin)
        figure, axes = panels_of(range(len(self.panels)), columns=columns)
        for number, panel in enumerate(self.panels):
            xs = list(panel.places)
            lines = {m: [mean(runs, s.name, m, at, self.column) for s, at in panel.places.values()] for m in self.shown}
            draw_lines(axes[number], xs, lines, look)
            finish(axes[number], panel.axis, y, panel.title, log=log)
            mark_values(axes[number], xs, fontsize=8)
        cells = [cell for place in places for cell in self.cells(runs, *place, methods)]
        return cells + verdicts(self.claims, runs), with_legend(figure)


def cells_of_runs(context: Context, steps: int) -> Callable[[Runs, Source, MethodSetting, Sequence[str]], list[Cell]]:
    """The usual cells of a place: MRE and MSE, with the numbers of runs and steps in the notes."""

    def cells(runs: Runs, source: Source, setting: MethodSetting, methods: Sequence[str]) -> list[Cell]:
        remark = source.remark(f"runs: {context.repeats}", steps=steps)
        return error_cells(runs, source, setting, methods, row=f"{source.name}, {setting}", remark=remark)

    return cells


def with_legend(figure: Figure) -> Figure:
    """The figure with one legend below all panels."""
    legend_below(figure, figure.axes, columns=10)
    return figure
