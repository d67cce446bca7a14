"""The two ways of a release, by a curator and by devices, and how it is shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import typer

from hubbub.cli.output import bar, painted, plain_table, save_plot
from hubbub.core.errors import InvalidValue, needs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.table import Table

    from hubbub.core.estimate import Estimate
    from hubbub.core.reports import Ints
    from hubbub.curator.files import CuratorRelease, ReleaseFile
    from hubbub.curator.ranges import Step
    from hubbub.curator.stream import ToPSStream
    from hubbub.curator.tops import ToPS
    from hubbub.protocols.topl.server import ToPL, ToPLServer
    from hubbub.random.source import Random
    from hubbub.rehearse.release import LocalReleaseFile

_ROWS = 24
_BAR = 24
_BLUE, _PALE, _ORANGE = "#4c78a8", "#c3d5e8", "#f58518"


def answer(
    theta: float | None,
    steps: Sequence[Step],
    truths: Sequence[float] | None,
    paid: float,
    clipping: Mapping[str, Estimate],
) -> dict[str, Any]:
    """The answer as JSON has it; truths are in it only where they were asked for, "above" and "lost" with --local."""
    rows: list[dict[str, Any]] = [
        {"step": step.step, "value": step.value, "low": step.low, "high": step.high} for step in steps
    ]
    result: dict[str, Any] = {"theta": theta, "steps": rows}
    if truths is not None:
        for row, truth in zip(rows, truths, strict=True):
            row["truth"] = truth
        squares = [(row["value"] - row["truth"]) ** 2 for row in rows]
        result["mse"] = sum(squares) / len(squares) if squares else None
    for name, estimate in zip(("above", "lost"), clipping.values(), strict=False):
        (low,), (high,) = estimate.interval()
        numbers = {"value": float(estimate.value[0]), "low": float(low), "high": float(high)}
        result[name] = {key: max(number, 0.0) for key, number in numbers.items()}
    return {**result, "paid": paid}


def per_person(paid: float, most: int, left_out: int) -> dict[str, Any]:
    """What is stated of people who are in the stream several times: how many values of one enter, what they cost."""
    return {"values": most, "paid": most * paid, "left_out": left_out}


def person_text(person: dict[str, Any], column: str) -> str:
    """The guarantee for people, in words."""
    most, out = person["values"], person["left_out"]
    entered = f"of each {column} the first {most:,} value{'s' * (most > 1)} entered; {out:,} later ones did not"
    return f"{entered}. Changing all values of one {column} is protected by epsilon {person['paid']:g} together"


def asked(released: CuratorRelease, ranges: Sequence[str], level: float) -> dict[str, Any]:
    """The answers to ranges such as 1000:5000, as JSON has them."""
    answers: list[dict[str, Any]] = []
    for text in ranges:
        first, last = _range_of(text, released)
        row: dict[str, Any] = {"first": first, "last": last}
        for name, estimate in (("sum", released.sum(first, last)), ("mean", released.mean(first, last))):
            (low,), (high,) = estimate.interval(level)
            row[name] = {"value": float(estimate.value[0]), "low": float(low), "high": float(high)}
            row["bias"] = estimate.bias
        answers.append(row)
    paid = {"paid": released.effective_epsilon, "per_person": released.per_person}
    return {"theta": released.segments[-1].theta, "ranges": answers, **paid}


def _range_of(text: str, released: CuratorRelease) -> tuple[int, int]:
    import numpy as np

    first, colon, last = text.partition(":")
    if not colon or not all(end.isdecimal() or not end for end in (first, last)):
        raise InvalidValue("range", text, "two positions with a colon, such as 1000:5000")
    known = np.flatnonzero(~np.isnan(released.published))
    if not known.size:
        raise InvalidValue("range", text, "none: nothing was released yet")
    return int(first or known[0]), int(last or released.published.size)


def asked_table(result: dict[str, Any], source: str, level: float) -> Table:
    """A row for each range."""
    from rich.markup import escape

    interval = f"{100 * level:g}% interval"
    title = f"{escape(source)}: sums and means of ranges, theta {_number(result['theta'])}\n"
    shown = plain_table("positions", "sum", interval, "mean", interval, title=title)
    guessed = []
    for row in result["ranges"]:
        positions = f"{row['first']}:{row['last']}"
        cells = []
        for name, digits in (("sum", 6), ("mean", 4)):
            value, low, high = (f"{row[name][key]:.{digits}g}" for key in ("value", "low", "high"))
            cells += [value, f"{low} to {high}"]
        shown.add_row(positions, *cells)
        guessed += [positions] if row["bias"] != "none" else []
    if guessed:
        shown.caption = f"inside of a block, where a part of the error is a guess, is an end of {', '.join(guessed)}"
    return shown


def asked_text(result: dict[str, Any]) -> str:
    """What the release cost, and that asking costs nothing."""
    most = result["per_person"]
    whom = f"a person, of whom at most {most:,} values are in it" if most else "a value"
    return f"the release cost epsilon {result['paid']:g} for {whom}; asking costs nothing"


def clipping_text(result: dict[str, Any]) -> str:
    """What share is estimated to lie above the threshold, and what that could hide."""
    above, lost = result["above"], result["lost"]
    share = f"{100 * above['value']:.2g}% of the values ({100 * above['low']:.2g}% to {100 * above['high']:.2g}%)"
    hidden = f"without clipping, means could be higher by up to {lost['high']:.3g}"
    return f"an estimated {share} are above theta, {result['theta']:.4g}: {hidden}, which their intervals do not cover"


def live(epsilon: float, every: int) -> Callable[[Sequence[Step]], None]:
    """Prints steps as they come, a line each."""
    typer.echo(f"step\tvalue\tlow\thigh\t(means of {every:,} values, epsilon {epsilon:g} a value)")

    def show(steps: Sequence[Step]) -> None:
        for step in steps:
            typer.echo(f"{step.step}\t{step.value:.6g}\t{step.low:.6g}\t{step.high:.6g}")

    return show


def table(result: dict[str, Any], title: str, every: int, bound: float) -> Table:
    """At most 24 steps, evenly chosen, with their intervals as far as they are possible."""
    from rich.markup import escape

    steps = result["steps"]
    known = "mse" in result
    paid = f"epsilon {result['paid']:g} a value, theta {_number(result['theta'])}"
    headings = ("step", *(("truth",) if known else ()), "value", "95% interval", "")
    shown_table = plain_table(*headings, left=[""], title=f"{escape(title)}, means of {every:,}, {paid}\n")
    most = max((_possible(step["value"], bound) for step in steps), default=1.0)
    most = max(most, max((step.get("truth", 0.0) for step in steps), default=0.0))
    shown = steps if len(steps) <= _ROWS else [steps[k * (len(steps) - 1) // (_ROWS - 1)] for k in range(_ROWS)]
    for step in shown:
        value, low, high = (_possible(step[name], bound) for name in ("value", "low", "high"))
        cells = [str(step["step"]), *([f"{step['truth']:.4g}"] if known else []), f"{value:.4g}"]
        line = painted(value, most, _BAR, mark=step["truth"]) if known else f"[blue]{bar(value, most, _BAR)}[/]"
        shown_table.add_row(*cells, f"{low:.4g} to {high:.4g}", line)
    if not steps:
        shown_table.caption = f"no step yet: one needs {every:,} values that are not released, after the holdout"
    elif len(shown) < len(steps):
        shown_table.caption = f"{len(shown)} of {len(steps):,} steps; --json has all"
    return shown_table


def save(result: dict[str, Any], path: Path, title: str, bound: float) -> None:
    """A plot of all steps; the truth is on it only if it is in the answer."""
    with needs("analytics"):
        from matplotlib.figure import Figure

    steps = result["steps"]
    figure = Figure(figsize=(9, 4), layout="constrained")
    ax = figure.subplots()
    x = [step["step"] for step in steps]
    low, high = ([min(max(step[name], 0.0), bound) for step in steps] for name in ("low", "high"))
    ax.fill_between(x, low, high, color=_PALE, linewidth=0, label="95% interval of the noise")
    if "mse" in result:
        ax.plot(x, [step["truth"] for step in steps], color=_ORANGE, linewidth=1.2, label="truth")
    ax.plot(x, [min(max(step["value"], 0.0), bound) for step in steps], color=_BLUE, linewidth=1.6, label="released")
    ax.set_xlabel("step")
    ax.set_ylabel("mean of the step")
    ax.set_title(title.replace("$", r"\$"), fontsize=10)
    ax.legend(frameon=False)
    save_plot(figure, path)


def _possible(value: float, bound: float) -> float:
    return min(max(value, 0.0), bound)


def _number(value: float | None) -> str:
    return "not found yet" if value is None else f"{value:.4g}"


Follow = Callable[[int, int], None]
PART = 1 << 18  # values between two moves of the progress bar


class Way(ABC):
    """Values in, steps out. `earlier` are the steps that a state file has still to show."""

    earlier: list[Step]
    holdout: int
    every: int
    paid: float
    _file: ReleaseFile | LocalReleaseFile | None

    @property
    @abstractmethod
    def _stream(self) -> ToPSStream | ToPLServer:
        """What takes the values."""

    @property
    def theta(self) -> float | None:
        return self._stream.theta

    @property
    def position(self) -> int:
        return self._stream.position

    @property
    def clipping(self) -> dict[str, Estimate]:
        """What clipping to theta hides, by name, where it is estimated."""
        return {}

    def whole(self, values: NDArray[np.float64], follow: Follow, people: Ints | None = None) -> list[Step]:
        """The steps of a file that the way has not shown; `people`, if known, has a number for each value's person."""
        steps: list[Step] = []
        done = self.position
        for start in range(done, values.size, PART):
            follow(start - done, values.size - done)
            steps += self.more(values[start : start + PART])
        return steps

    @abstractmethod
    def more(self, values: NDArray[np.float64]) -> list[Step]:
        """The steps that values of a pipe complete; they are on disk if there is a state file."""

    def settle(self) -> None:  # noqa: B027 # nothing, where what is on disk was there before it was shown
        """All is written: the state file may go on."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()


class ByCurator(Way):
    """ToPS, through a stream or through its state file."""

    _file: ReleaseFile | None

    def __init__(
        self, tops: ToPS, every: int, rng: Random, state: Path | None, source: str, per_person: int = 0
    ) -> None:
        from hubbub.curator.files import ReleaseFile
        from hubbub.curator.ranges import StepMaker, step_length

        self.holdout, self.every, self.paid = tops.holdout, step_length(tops, every), tops.effective_epsilon
        self._file = None
        if state is not None:
            self._file = ReleaseFile(state, tops, source=source, per_person=per_person, every=self.every)
        self._own = tops.start(rng) if self._file is None else None
        self._maker = StepMaker(tops, self.every, first=self._file.pending.first if self._file else 0)
        self.earlier = [] if self._file is None else self._steps(self._file.pending.published)

    @property
    def _stream(self) -> ToPSStream:
        return self._own or self._file.stream  # type: ignore[union-attr] # there is either

    def _steps(self, published: NDArray[np.float64]) -> list[Step]:
        return self._maker.take(published, self._stream.segments)

    def whole(self, values: NDArray[np.float64], follow: Follow, people: Ints | None = None) -> list[Step]:
        if self._file is None:
            return super().whole(values, follow, people)
        return self._steps(self._file.replay(values, people=people, follow=follow))

    def more(self, values: NDArray[np.float64]) -> list[Step]:
        if self._file is None:
            return self._steps(self._stream.push_many(values))
        return self._steps(self._file.push_many(values, carry=self._maker.open))

    def settle(self) -> None:
        if self._file is not None:
            self._file.settle(carry=self._maker.open)


class ByDevices(Way):
    """ToPL: every value is one device's. A state file has what the server heard, and no value."""

    _file: LocalReleaseFile | None

    def __init__(self, settings: ToPL, rng: Random, state: Path | None, source: str) -> None:
        from hubbub.protocols.topl.server import ToPLServer
        from hubbub.rehearse.release import LocalReleaseFile

        self.holdout, self.every, self.paid = settings.holdout, settings.every, settings.effective_epsilon
        self._rng = rng
        self._file = None if state is None else LocalReleaseFile(state, settings, source=source)
        self._own = ToPLServer(settings) if self._file is None else None
        self.earlier = [] if self._file is None else list(self._file.steps)

    @property
    def _stream(self) -> ToPLServer:
        return self._own or self._file.server  # type: ignore[union-attr] # there is either

    @property
    def clipping(self) -> dict[str, Estimate]:
        return self._stream.clipping

    def whole(self, values: NDArray[np.float64], follow: Follow, people: Ints | None = None) -> list[Step]:
        if values.size < self.position:
            allowed = f"the {self.position:,} that have reported, and more"
            raise InvalidValue("values", f"{values.size:,} values", allowed)
        return super().whole(values, follow, people)

    def more(self, values: NDArray[np.float64]) -> list[Step]:
        from hubbub.rehearse.release import report_values

        if self._file is not None:
            return self._file.report(values, self._rng)
        return report_values(self._stream, values, self._rng)
