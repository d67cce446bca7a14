"""`hubbub release`: a private stream of a column's numbers, or of those that come through a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli.options import AsJson, Plot
from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hubbub.cli.release_view import Way
    from hubbub.curator.ranges import Step

_PIPE = "-"
_SMOOTHER = "recent"
_PIECE = 1 << 16  # bytes of a pipe that are answered at once


def release(
    file: Annotated[
        str,
        typer.Argument(help="A CSV, TSV, JSON lines or Parquet file; - reads one number per line.", show_default=False),
    ],
    epsilon: Annotated[
        float, typer.Option("--epsilon", "-e", help="What may be spent on a value.", show_default=False)
    ],
    bound: Annotated[
        float, typer.Option("--bound", "-b", help="The largest possible value, known beforehand.", show_default=False)
    ],
    column: Annotated[
        str | None, typer.Option("--column", "-c", help="The column of a file.", show_default=False)
    ] = None,
    every: Annotated[
        int, typer.Option("--every", help="Values per step: their mean is shown.", show_default="about 1,024")
    ] = 0,
    holdout: Annotated[
        int, typer.Option("--holdout", help="How many of the first values find the threshold, and are not released.")
    ] = 1 << 14,
    max_range: Annotated[int, typer.Option("--range", help="How many values a later question spans at most.")] = 1
    << 20,
    smoother: Annotated[
        str, typer.Option("--smoother", metavar="recent|mean|median|moving|exponential", help="Predicts inside blocks.")
    ] = _SMOOTHER,
    watch: Annotated[
        float, typer.Option("--watch", help="The share of epsilon that looks for drift, and then searches anew.")
    ] = 0.0,
    local: Annotated[
        bool, typer.Option("--local", help="Every value is one device's, and is randomised there: nobody is trusted.")
    ] = False,
    clip: Annotated[bool, typer.Option("--clip", help="Move values outside 0 to the bound to the nearer end.")] = False,
    state: Annotated[
        Path | None,
        typer.Option("--state", help="Go on from this file, and keep it: as secret as the values, unless --local."),
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Show the truth too: for trying out, not for publishing.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", help="For a repeatable simulation.", show_default="drawn anew")
    ] = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Release a stream of numbers privately: by a curator who has them, or with --local by the devices that hold them.

    Every single value is protected by pure epsilon differential privacy; a person with several values in the stream is
    not. Without --state, every run spends its epsilon again on the same values.
    """
    from hubbub.cli import release_view as view
    from hubbub.cli.output import check_plot, emit, page, say

    check_plot(plot)
    if seed is not None and not simulate:
        raise InvalidValue("seed", seed, "a seed only with --simulate: whoever knows it can take the noise away")
    if simulate and state is not None:
        raise InvalidValue("state", str(state), "no state file with --simulate, which shows the truth")
    if (column is None) != (file == _PIPE):
        from hubbub.questions.keys import NOTHING

        given = NOTHING if column is None else column
        raise InvalidValue("column", given, "the name of a column if FILE is a file, none if it is -")
    settings = {"epsilon": epsilon, "bound": bound, "holdout": holdout, "max_range": max_range}
    source = _PIPE if column is None else f"column {column}"
    if local:
        way = _by_devices(settings, every, smoother, watch, seed, state, source)
    else:
        way = _by_curator({**settings, "smoother": smoother, "watch": watch}, every, seed, state, source)
    with way:
        answers = _Answers(way, bound, clip=clip, keep_truth=simulate)
        if column is None:
            shown = None if as_json or plot else view.live(epsilon, way.every)
            for steps in answers.from_pipe(resumed=state is not None):
                if shown is not None:
                    shown(steps)
        else:
            answers.from_file(Path(file), column)
        result = view.answer(way.theta, answers.steps, answers.truths() if simulate else None, way.paid, way.clipping)
        if plot is not None:
            title = f"{column or 'stream'}: means of {way.every:,} values, epsilon {epsilon:g} a value"
            view.save(result, plot, title, bound)
        if as_json:
            emit(result)
        elif column is not None:
            page().print(view.table(result, f"{column}: {way.position:,} values", way.every, bound))
        if not as_json and "above" in result:
            say(view.clipping_text(result))
        way.settle()
    if state is None and not simulate:
        say(f"paid {way.paid:g} for every value; another run pays again: --state goes on from this one")


def _by_curator(settings: dict[str, Any], every: int, seed: int | None, state: Path | None, source: str) -> Way:
    from hubbub.cli.release_view import ByCurator
    from hubbub.curator.tops import ToPS
    from hubbub.random.source import Random

    return ByCurator(ToPS(**settings), every, Random(seed=seed), state, source)


def _by_devices(
    settings: dict[str, Any],
    every: int,
    smoother: str,
    watch: float,
    seed: int | None,
    state: Path | None,
    source: str,
) -> Way:
    from hubbub.cli.release_view import ByDevices
    from hubbub.protocols.topl.server import ToPL
    from hubbub.random.source import Random

    if smoother != _SMOOTHER:
        raise InvalidValue("smoother", smoother, "none with --local: reports are unbiased one by one")
    if watch:
        raise InvalidValue("watch", watch, "0 with --local: a device reports once")
    chosen = {"every": every} if every else {}
    return ByDevices(ToPL(**settings, **chosen), Random(seed=seed), state, source)


class _Answers:
    """Values in, steps out, in one of the two ways."""

    def __init__(self, way: Way, bound: float, *, clip: bool, keep_truth: bool) -> None:
        self._way, self._bound, self._clip, self._keep_truth = way, bound, clip, keep_truth
        self._values: list[NDArray[np.float64]] = []
        self.steps: list[Step] = list(way.earlier)

    def from_file(self, path: Path, column: str) -> None:
        from hubbub.cli.output import progress
        from hubbub.rehearse.columns import read_numbers, row_name

        with progress(column) as follow:
            values = self._prepared(read_numbers(path, column), lambda row: f"{column}, {row_name(path, row)}")
            if values.size <= self._way.holdout:
                raise _too_short(values.size, self._way.holdout)
            self.steps += self._way.whole(values, follow)

    def from_pipe(self, *, resumed: bool) -> Iterator[list[Step]]:
        yield self.steps
        before, read = self._way.position, 0
        for lines in _batches_of_lines():
            name = partial(_value_name, before, read)
            steps = self._way.more(self._prepared(_numbers(lines, name), name))
            read += len(lines)
            self.steps += steps
            yield steps
        if not resumed and self._way.position <= self._way.holdout:
            raise _too_short(self._way.position, self._way.holdout)

    def _prepared(self, values: NDArray[np.float64], name: Callable[[int], str]) -> NDArray[np.float64]:
        """Clipped if asked for; else the first value that is out of range is refused by its name."""
        import numpy as np

        if self._clip:
            values = values.clip(0.0, self._bound)
        outside = np.flatnonzero(~((values >= 0) & (values <= self._bound)))
        if outside.size:
            place = int(outside[0])
            raise InvalidValue(name(place), float(values[place]), f"a number from 0 to {self._bound:g}")
        if self._keep_truth:
            self._values.append(values)
        return values

    def truths(self) -> list[float]:
        import numpy as np

        values = np.concatenate(self._values)
        return [float(values[step.first : step.first + self._way.every].mean()) for step in self.steps]


def _too_short(found: int, holdout: int) -> InvalidValue:
    allowed = f"fewer than the {found:,} values of the stream: the rest is what can be released"
    return InvalidValue("holdout", holdout, allowed)


def _batches_of_lines() -> Iterator[list[str]]:
    """Whole lines as they come: a batch is what was there, and at least one."""
    rest = b""
    while part := sys.stdin.buffer.read1(_PIECE):  # type: ignore[union-attr] # of a pipe, what is there
        *lines, rest = (rest + part).split(b"\n")
        if lines:
            yield [line.decode("utf-8", "replace") for line in lines]
    if rest:
        yield [rest.decode("utf-8", "replace")]


def _value_name(before: int, read: int, place: int) -> str:
    """How a value of a pipe is called in errors: its number in the stream and its line in the pipe, from 1 on."""
    return f"value {before + read + place + 1:,} (line {read + place + 1:,})"


def _numbers(lines: list[str], name: Callable[[int], str]) -> NDArray[np.float64]:
    import numpy as np

    numbers = np.empty(len(lines))
    for place, line in enumerate(lines):
        try:
            numbers[place] = float(line)
        except ValueError:
            raise InvalidValue(name(place), line.strip(), "one number per line, without gaps") from None
    return numbers
