"""`hubbub release`: a private stream of a column's numbers, or of those that come through a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.options import AsJson, Plot
from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hubbub.curator.release_file import ReleaseFile
    from hubbub.curator.steps import Step
    from hubbub.curator.stream import ToPSStream
    from hubbub.curator.tops import ToPS

__all__ = ["release"]

_PIPE = "-"
_PART = 1 << 18  # values between two moves of the progress bar
_PIECE = 1 << 16  # bytes of a pipe that are answered at once


def release(
    file: Annotated[
        str, typer.Argument(help="A CSV, TSV, JSON lines or Parquet file; - reads a number a line.", show_default=False)
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
        int, typer.Option("--every", help="Values a step: their mean is shown.", show_default="about 1,024")
    ] = 0,
    holdout: Annotated[
        int, typer.Option("--holdout", help="How many of the first values find the threshold, and are not released.")
    ] = 1 << 14,
    max_range: Annotated[int, typer.Option("--range", help="How many values a later question spans at most.")] = 1
    << 20,
    smoother: Annotated[
        str, typer.Option("--smoother", metavar="recent|mean|median|moving|exponential", help="Predicts inside blocks.")
    ] = "recent",
    watch: Annotated[
        float, typer.Option("--watch", help="The share of epsilon that looks for drift, and then searches anew.")
    ] = 0.0,
    clip: Annotated[bool, typer.Option("--clip", help="Move values outside 0 to the bound to the nearer end.")] = False,
    state: Annotated[
        Path | None, typer.Option("--state", help="Go on from this file, and keep it. As secret as the values.")
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Show the truth beside: for trying out, not for publishing.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", help="For a repeatable simulation.", show_default="drawn anew")
    ] = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Release a stream of numbers privately, by whoever has them.

    Every value is protected by pure epsilon differential privacy, once and for all (not a person who is in the stream
    several times). Without --state every run spends its epsilon anew on the same values.
    """
    from hubbub.cli import release_view as view
    from hubbub.cli.output import check_plot, emit, page, say
    from hubbub.core.random import Random
    from hubbub.curator.tops import ToPS

    check_plot(plot)
    if seed is not None and not simulate:
        raise InvalidValue("seed", seed, "a seed only with --simulate: whoever knows it can take the noise away")
    if simulate and state is not None:
        raise InvalidValue("state", str(state), "no state file with --simulate, which shows the truth")
    if (column is None) != (file == _PIPE):
        raise InvalidValue("column", column, "a column of a file, and none of a pipe")
    tops = ToPS(epsilon=epsilon, bound=bound, holdout=holdout, max_range=max_range, smoother=smoother, watch=watch)
    saved = nullcontext() if state is None else _opened(state, tops, _PIPE if column is None else f"column {column}")
    with saved as resumed:
        stream = tops.start(Random(seed=seed)) if resumed is None else resumed.stream
        answers = _Answers(stream, resumed, every, clip, simulate)
        if column is None:
            shown = None if as_json or plot else view.live(tops, answers.every)
            for steps in answers.from_pipe():
                if shown is not None:
                    shown(steps)
        else:
            answers.from_file(Path(file), column)
        result = view.answer(stream, answers.steps, answers.truths() if simulate else None)
        if plot is not None:
            title = f"{column or 'stream'}: means of {answers.every:,} values, epsilon {epsilon:g} a value"
            view.save(result, plot, title, bound)
        if as_json:
            emit(result)
        elif column is not None:
            page().print(view.table(result, f"{column}: {stream.position:,} values", answers.every, tops))
        answers.settle()
    if state is None and not simulate:
        say(f"paid {tops.effective_epsilon:g} for every value; another run pays again: --state goes on from this one")


def _opened(path: Path, tops: ToPS, source: str) -> ReleaseFile:
    from hubbub.curator.release_file import ReleaseFile

    return ReleaseFile(path, tops, source=source)


class _Answers:
    """Values in, steps out, through a stream or through its state file."""

    def __init__(
        self, stream: ToPSStream, resumed: ReleaseFile | None, every: int, clip: bool, keep_truth: bool
    ) -> None:
        from hubbub.curator.steps import StepMaker

        self._stream, self._resumed, self._clip, self._keep_truth = stream, resumed, clip, keep_truth
        self._maker = StepMaker(stream, every, first=resumed.pending.first if resumed else 0)
        self._values: list[NDArray[np.float64]] = []
        self.steps: list[Step] = [] if resumed is None else self._maker.take(resumed.pending.published)
        self.every = self._maker.every

    def from_file(self, path: Path, column: str) -> None:
        from hubbub.cli.output import progress
        from hubbub.simulate.columns import read_numbers

        with progress(column) as follow:
            values = self._prepared(read_numbers(path, column))
            if values.size <= self._stream.tops.holdout:
                raise _too_short(values.size, self._stream.tops)
            if self._resumed is not None:
                self.steps += self._maker.take(self._resumed.replay(values))
                return
            self._stream.checked(values)
            for start in range(0, values.size, _PART):
                follow(start, values.size)
                self.steps += self._maker.take(self._stream.push_many(values[start : start + _PART]))

    def from_pipe(self) -> Iterator[list[Step]]:
        yield self.steps
        for lines in _batches_of_lines():
            values = self._prepared(_numbers(lines, self._stream.position))
            if self._resumed is None:
                published = self._stream.push_many(values)
            else:
                published = self._resumed.push_many(values, carry=self._maker.open)
            steps = self._maker.take(published)
            self.steps += steps
            yield steps
        if self._stream.theta is None and not self._stream.segments and self._resumed is None:
            raise _too_short(self._stream.position, self._stream.tops)

    def _prepared(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._clip:
            values = values.clip(0.0, self._stream.tops.bound)
        if self._keep_truth:
            self._values.append(values)
        return values

    def truths(self) -> list[float]:
        import numpy as np

        values = np.concatenate(self._values)
        return [float(values[step.first : step.first + self.every].mean()) for step in self.steps]

    def settle(self) -> None:
        """All is written: the state file may go on."""
        if self._resumed is not None:
            self._resumed.settle(carry=self._maker.open)


def _too_short(found: int, tops: ToPS) -> InvalidValue:
    allowed = f"fewer than the {found:,} values of the stream: the rest is what can be released"
    return InvalidValue("holdout", tops.holdout, allowed)


def _batches_of_lines() -> Iterator[list[str]]:
    """Whole lines as they come: a batch is what was there, and at least one."""
    rest = b""
    while part := sys.stdin.buffer.read1(_PIECE):  # type: ignore[union-attr] # of a pipe, what is there
        *lines, rest = (rest + part).split(b"\n")
        if lines:
            yield [line.decode("utf-8", "replace") for line in lines]
    if rest:
        yield [rest.decode("utf-8", "replace")]


def _numbers(lines: list[str], position: int) -> NDArray[np.float64]:
    import numpy as np

    numbers = np.empty(len(lines))
    for place, line in enumerate(lines):
        try:
            numbers[place] = float(line)
        except ValueError:
            raise InvalidValue(f"value {position + place}", line.strip(), "a number a line, without gaps") from None
    return numbers
