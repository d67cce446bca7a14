"""`hubbub release`: a private stream of a column's numbers, or of those that come through a pipe; and what it tells."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option, Typer
from typer.core import TyperGroup

from hubbub.cli.options import AsJson, FreshSeed, Plot
from hubbub.cli.output import check_plot, emit, page, progress, say
from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hubbub.cli.release_view import Way
    from hubbub.core.reports import Bools, Ints
    from hubbub.curator.ranges import Step

__all__ = ["app"]

_PIPE = "-"
PIECE = 1 << 16  # bytes of a pipe that are answered at once


class FileOrAsk(TyperGroup):
    """A group in which `release fares.csv` is short for `release file fares.csv`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args if args and args[0] in self.commands else ["file", *args])


app = Typer(cls=FileOrAsk, subcommand_metavar="FILE | ask STATE RANGES [OPTIONS]")

_File = Annotated[
    str, Argument(help="A CSV, TSV, JSON lines or Parquet file; - reads one number per line.", show_default=False)
]
_Epsilon = Annotated[float, Option("--epsilon", "-e", help="What may be spent on a value.", show_default=False)]
_Bound = Annotated[
    float, Option("--bound", "-b", help="The largest possible value, known beforehand.", show_default=False)
]
_Column = Annotated[str | None, Option("--column", "-c", help="The column of a file.", show_default=False)]
_Every = Annotated[int, Option("--every", help="Values per step: their mean is shown.", show_default="about 1,024")]
_Holdout = Annotated[
    int, Option("--holdout", help="How many of the first values find the threshold, and are not released.")
]
_MaxRange = Annotated[int, Option("--range", help="How many values a later question spans at most.")]
_Smoother = Annotated[
    str, Option("--smoother", metavar="recent|mean|median|moving|exponential", help="Predicts inside blocks.")
]
_Window = Annotated[int, Option("--window", help="Of the median and moving smoothers: how many blocks.")]
_Weight = Annotated[float, Option("--weight", help="Of the exponential smoother: what the newest block weighs.")]
_FanOut = Annotated[int, Option("--fan-out", help="Children of a node of the hierarchy.")]
_Pruned = Annotated[
    int | None, Option("--pruned", help="The lowest layers that are left out.", show_default="the best (Eq 7)")
]
_Constant = Annotated[
    float, Option("--constant", help="c of Eq 6, in the unit of the values.", show_default="3% of the bound")
]
_Candidates = Annotated[
    int, Option("--candidates", help="How many thresholds are tried.", show_default="one a unit, 1,024 to 65,536")
]
_Noise = Annotated[str, Option("--noise", metavar="exponential|laplace", help="Of the search for the threshold.")]
_Watch = Annotated[float, Option("--watch", help="The share of epsilon that looks for drift, and then searches anew.")]
_Period = Annotated[
    int, Option("--period", help="With --watch: values that one look takes.", show_default="holdout/watch")
]
_Follow = Annotated[
    str,
    Option(
        "--follow",
        metavar="drift|update",
        help="With --watch: search anew if the threshold is off by more than a factor of 2, or take each new one.",
    ),
]
_Person = Annotated[
    str | None, Option("--person", help="The column that names the person of a row.", show_default=False)
]
_PerPerson = Annotated[
    int,
    Option("--per-person", help="With --person: how many values of one enter; --epsilon is then for all of them."),
]
_Local = Annotated[
    bool, Option("--local", help="Every value is one device's, and is randomised there: nobody is trusted.")
]
_Clip = Annotated[bool, Option("--clip", help="Move values outside 0 to the bound to the nearer end.")]
_State = Annotated[
    Path | None,
    Option("--state", help="Go on from this file, and keep it: as secret as the values, unless --local."),
]
_Simulate = Annotated[bool, Option("--simulate", help="Show the truth too: for trying out, not for publishing.")]


@app.command("file")
def release(
    file: _File,
    epsilon: _Epsilon,
    bound: _Bound,
    column: _Column = None,
    every: _Every = 0,
    holdout: _Holdout = 1 << 14,
    max_range: _MaxRange = 1 << 20,
    smoother: _Smoother = "recent",
    window: _Window = 16,
    weight: _Weight = 0.5,
    fan_out: _FanOut = 16,
    pruned: _Pruned = None,
    constant: _Constant = 0.0,
    candidates: _Candidates = 0,
    noise: _Noise = "exponential",
    watch: _Watch = 0.0,
    period: _Period = 0,
    follow: _Follow = "drift",
    person: _Person = None,
    per_person: _PerPerson = 1,
    local: _Local = False,
    clip: _Clip = False,
    state: _State = None,
    simulate: _Simulate = False,
    seed: FreshSeed = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Release a stream of numbers privately: by a curator who has them, or with --local by the devices that hold them.

    Every single value is protected by pure epsilon differential privacy; with --person, all values of a person
    together. Without --state, every run spends its epsilon again on the same values. `hubbub release ask STATE
    1000:5000` tells the sum and the mean of a range of what a state file has released.
    """
    from hubbub.cli import release_view as view

    check_plot(plot)
    if seed is not None and not simulate:
        raise InvalidValue("seed", seed, "a seed only with --simulate: whoever knows it can take the noise away")
    if simulate and state is not None:
        raise InvalidValue("state", str(state), "no state file with --simulate, which shows the truth")
    if (column is None) != (file == _PIPE):
        from hubbub.questions.keys import NOTHING

        given = NOTHING if column is None else column
        raise InvalidValue("column", given, "the name of a column if FILE is a file, none if it is -")
    if column is None and person is not None:
        raise InvalidValue("person", person, "none if FILE is -: a pipe has no columns")
    if person is None and per_person != 1:
        raise InvalidValue("per_person", per_person, "1, unless --person names a column")
    source, most = _PIPE if column is None else f"column {column}", 0
    if person is not None:
        from hubbub.curator.people import epsilon_of_value

        most, epsilon = per_person, epsilon_of_value(epsilon, per_person)
        source += f", at most {most} values of each {person}"
    settings = {"epsilon": epsilon, "bound": bound, "holdout": holdout, "max_range": max_range}
    chosen = {"smoother": smoother, "window": window, "weight": weight, "fan_out": fan_out, "pruned": pruned}
    chosen |= {"constant": constant, "candidates": candidates, "noise": noise}
    chosen |= {"watch": watch, "period": period, "follow": follow}
    if local:
        way = _by_devices(settings, every, chosen, seed, state, source)
    else:
        way = _by_curator({**settings, **chosen}, every, seed, state, source, most)
    with way:
        answers = _Answers(way, bound, clip=clip, keep_truth=simulate)
        if column is None:
            shown = None if as_json or plot else view.live(epsilon, way.every)
            for steps in answers.from_pipe(resumed=state is not None):
                if shown is not None:
                    shown(steps)
        else:
            answers.from_file(Path(file), column, person, most)
        result = view.answer(way.theta, answers.steps, answers.truths() if simulate else None, way.paid, way.clipping)
        if person is not None:
            result["person"] = view.per_person(way.paid, most, answers.left_out)
        if plot is not None:
            title = f"{column or 'stream'}: means of {way.every:,} values, epsilon {epsilon:g} a value"
            view.save(result, plot, title, bound)
        if as_json:
            emit(result)
        elif column is not None:
            page().print(view.table(result, f"{column}: {way.position:,} values", way.every, bound))
        if not as_json and "above" in result:
            say(view.clipping_text(result))
        if not as_json and person is not None:
            say(view.person_text(result["person"], str(person)))
        way.settle()
    if state is None and not simulate:
        paid = f"{result['person']['paid']:g} for every {person}" if person else f"{way.paid:g} for every value"
        say(f"paid {paid}; another run pays again: --state goes on from this one")


@app.command()
def ask(
    state: Annotated[Path, Argument(help="The state file of a curator's release.", show_default=False)],
    ranges: Annotated[
        list[str],
        Argument(
            help="Positions from 0 on, such as 1000:5000: 1000 to 4999. An end may be left out.", metavar="RANGES..."
        ),
    ],
    level: Annotated[float, Option("--level", help="Of the intervals.")] = 0.95,
    as_json: AsJson = False,
) -> None:
    """Tell the sums and the means of ranges of what was released, with their intervals. It spends nothing.

    Intervals are of the noise, around the values as clipped. Values that found a threshold are in no range.
    """
    from hubbub.cli import release_view as view
    from hubbub.curator.files import open_release

    if not state.is_file():
        raise InvalidValue("state", str(state), "a file that exists")
    released = open_release(state)
    result = view.asked(released, ranges, level)
    if as_json:
        return emit(result)
    page().print(view.asked_table(result, released.source, level))
    return say(view.asked_text(result))


def _by_curator(
    settings: dict[str, Any], every: int, seed: int | None, state: Path | None, source: str, per_person: int
) -> Way:
    from hubbub.cli.release_view import ByCurator
    from hubbub.curator.tops import ToPS
    from hubbub.random.source import Random

    return ByCurator(ToPS(**settings), every, Random(seed=seed), state, source, per_person)


def _by_devices(
    settings: dict[str, Any], every: int, chosen: Mapping[str, Any], seed: int | None, state: Path | None, source: str
) -> Way:
    from dataclasses import fields

    from hubbub.cli.release_view import ByDevices
    from hubbub.curator.tops import ToPS
    from hubbub.protocols.topl.server import ToPL
    from hubbub.random.source import Random

    defaults = {field.name: field.default for field in fields(ToPS)}
    for name, value in chosen.items():
        if value != defaults[name]:
            raise InvalidValue(name, value, "none with --local: a device reports once, by a report that is unbiased")
    given = {"every": every} if every else {}
    return ByDevices(ToPL(**settings, **given), Random(seed=seed), state, source)


class _Answers:
    """Values in, steps out, in one of the two ways."""

    def __init__(self, way: Way, bound: float, *, clip: bool, keep_truth: bool) -> None:
        self._way, self._bound, self._clip, self._keep_truth = way, bound, clip, keep_truth
        self._values: list[NDArray[np.float64]] = []
        self.left_out = 0
        self.steps: list[Step] = list(way.earlier)

    def from_file(self, path: Path, column: str, person: str | None, per_person: int) -> None:
        from hubbub.rehearse.columns import read_numbers, row_name

        with progress(column) as follow:
            numbers, people, entered = read_numbers(path, column), None, None
            if person is not None:
                people, entered = _people(path, person, per_person)
                self.left_out = int((~entered).sum())
            values = self._prepared(numbers, lambda row: f"{column}, {row_name(path, row)}", entered)
            if values.size <= self._way.holdout:
                raise _too_short(values.size, self._way.holdout)
            self.steps += self._way.whole(values, follow, people)

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

    def _prepared(
        self, values: NDArray[np.float64], name: Callable[[int], str], entered: Bools | None = None
    ) -> NDArray[np.float64]:
        """Clipped if asked for; else the first value that is out of range is refused by its name. Then those that
        entered.
        """
        import numpy as np

        if self._clip:
            values = values.clip(0.0, self._bound)
        outside = np.flatnonzero(~((values >= 0) & (values <= self._bound)))
        if outside.size:
            place = int(outside[0])
            raise InvalidValue(name(place), float(values[place]), f"a number from 0 to {self._bound:g}")
        if entered is not None:
            values = values[entered]
        if self._keep_truth:
            self._values.append(values)
        return values

    def truths(self) -> list[float]:
        import numpy as np

        values = np.concatenate(self._values)
        return [float(values[step.first : step.first + self._way.every].mean()) for step in self.steps]


def _people(path: Path, person: str, per_person: int) -> tuple[Ints, Bools]:
    """A number for the person of each value that enters, and which values of the file do."""
    from hubbub.curator.people import first_of_each
    from hubbub.rehearse.columns import read_people

    people = read_people(path, person)
    entered = first_of_each(people, per_person)
    return people[entered], entered


def _too_short(length: int, holdout: int) -> InvalidValue:
    allowed = f"fewer than the {length:,} values of the stream: the rest is what can be released"
    return InvalidValue("holdout", holdout, allowed)


def _batches_of_lines() -> Iterator[list[str]]:
    """Whole lines as they come: a batch is what was there, and at least one."""
    rest = b""
    while part := sys.stdin.buffer.read1(PIECE):  # type: ignore[union-attr] # of a pipe, what is there
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
