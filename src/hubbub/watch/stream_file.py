"""A scene from a file of a stream, each row of which is a device's value at a step."""

import math
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hubbub.collection.time import duration_text
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Floats, Ints
from hubbub.protocols.window import Frequencies, Means, Statistic
from hubbub.random.source import Random
from hubbub.rehearse.columns import MISSING, CodedColumn, number_of, one_of, read_column
from hubbub.simulate.devices import NONE
from hubbub.watch.moment import StepTimes, read_times, time_column
from hubbub.watch.watch import Stepwise, WatchScene


def file_scene(
    path: Path,
    rng: Random,
    *,
    step: str | None = None,
    device: str = "device",
    value: str = "value",
    watch: str | None = None,
    mean: tuple[float, float] | None = None,
    every: int | None = None,
) -> WatchScene:
    """The devices of a file, each row of which is a device's value at a step, or from a time on.

    The alarm's threshold lies at 3/4 of the way from the least to the largest truth (Ren et al., 2022, section 7.2.2).

    Parameters
    ----------
    path
        A .csv, .tsv, .jsonl, .ndjson or .parquet file.
    rng
        Puts the devices in a random order, as their places on the circle are.
    step, device, value
        The columns' names. Steps that are not consecutive integers are ranked. With `every`, the column of the step is
        one of times; unless named, it is the one that is.
    watch
        The value whose share is watched; the most frequent except "none" unless given.
    mean
        The range of a number whose mean is watched instead; a device without a number counts as the lower end.
    every
        How many seconds a step lasts, if rows have times: a device's last row in a step counts.
    """
    if mean is not None and watch is not None:
        raise InvalidValue("watch", watch, "nothing: a mean is one number")
    question = None if mean is None else Means(*mean)
    if question is not None:
        _ = question.view  # refuses a range that is none before the file is read
    if step is None:
        step = "step" if every is None else time_column(path)
    roles = {"step": step, "device": device, "value": value}
    when, who, values = (_read(path, role, name) for role, name in roles.items())
    placed = _numbered(when, who) if every is None else _timed(when, who, step, every)
    steps, n = placed.steps, len(who.labels)
    read = _shares(values, watch) if question is None else _means(values, value, question, steps * n)
    _refuse_lonely(placed)
    order = placed.order
    cuts = np.searchsorted(placed.step[order], np.arange(1, steps + 2))
    # Devices in the order of their names would make neighbours on the circle, and so a cohort, of those alike.
    devices, ordered = rng.permutation(n)[who.codes[order]], read.rows[order]

    def row(at: int) -> Array:
        here = slice(cuts[at - 1], cuts[at])
        row_values = np.full(n, read.empty)
        row_values[devices[here]] = ordered[here]  # the last, where a device has several
        return row_values

    stream = Stepwise(row, n=n, steps=steps, domain=read.domain)
    truth = [float(read.weights @ stream.truth(at)) for at in range(1, steps + 1)]
    above = min(truth) + 0.75 * (max(truth) - min(truth))
    notes = (placed.note, *read.notes)
    scene = WatchScene(read.name, path.name, stream, read.question, read.weights, read.span, above, above, notes)
    return replace(scene, times=placed.times)


class _Placed(NamedTuple):
    """Which step each row is in, from 1 on, and the order in which rows are read."""

    step: Ints
    order: Ints
    steps: int
    note: str
    times: StepTimes | None = None


def _numbered(when: CodedColumn, who: CodedColumn) -> _Placed:
    note = _numbering(when.labels)
    _refuse_twice(when, who)
    return _Placed(when.codes + 1, np.argsort(when.codes, kind="stable"), len(when.labels), note)


def _timed(when: CodedColumn, who: CodedColumn, column: str, every: int) -> _Placed:
    step, at, times = read_times(when, column, every)
    steps = int(step.max())
    replaced = len(step) - len(np.unique(step * len(who.labels) + who.codes))
    note = (
        f"steps: {steps:,} of {duration_text(every)} by {column}, UTC, from {times.label(1)} to {times.label(steps)}; "
        f"{replaced:,} rows were replaced by a later one of their device in the same step"
    )
    return _Placed(step, np.lexsort((at, step)), steps, note, times)


def _refuse_lonely(placed: _Placed) -> None:
    """Refuse a file in which most steps have one row: its times were probably taken for steps."""
    rows = np.bincount(placed.step)[1:]
    lonely, filled = int((rows == 1).sum()), int((rows > 0).sum())
    if filled > 1 and 2 * lonely > filled:
        described = f"{lonely:,} of {filled:,} steps with one row each"
        way = "take a longer --every" if placed.times is not None else "--every 1h makes a step of every hour"
        raise InvalidValue("steps", described, f"steps in which several devices have a row: {way}")


class _Reading(NamedTuple):
    """A value column as it is asked about: the value of each row, and the value of a device without a row."""

    name: str
    rows: Array
    empty: int | float
    domain: int | None
    question: Statistic
    weights: Floats
    span: tuple[float, float]
    notes: tuple[str, ...]


def _shares(column: CodedColumn, watch: str | None) -> _Reading:
    labels = [label for label in column.labels if label not in (MISSING, NONE)]
    if not labels:
        raise InvalidValue("value column", NONE, "at least one other value")
    counts = dict(zip(column.labels, np.bincount(column.codes).tolist(), strict=True))
    labels.sort(key=lambda label: -counts[label])
    if watch not in (None, NONE, *labels):
        raise InvalidValue("watch", watch, one_of([NONE, *labels]))
    chosen = labels[0] if watch is None else watch
    code_of = {label: code for code, label in enumerate([NONE, *labels])}
    rows = np.array([code_of.get(label, 0) for label in column.labels])[column.codes]
    weights = np.zeros(len(code_of))
    weights[code_of[chosen]] = 1.0
    name = f"share of devices that hold {chosen!r}"
    return _Reading(name, rows, 0, len(code_of), Frequencies(len(code_of)), weights, (0.0, 1.0), ())


def _means(column: CodedColumn, name: str, question: Means, cells: int) -> _Reading:
    labelled = np.array([math.nan if label in (MISSING, NONE) else _number(label) for label in column.labels])
    numbers = labelled[column.codes]
    rows = question.view(numbers)
    low, high = question.low, question.high
    there = ~np.isnan(numbers)
    outside, without = int((numbers != rows)[there].sum()), cells - int(there.sum())
    note = (
        f"numbers: {outside:,} outside {low:g} to {high:g} were clipped; "
        f"{without:,} times a device had none, and counts as {low:g}"
    )
    return _Reading(f"mean of {name}", rows, low, None, question, np.ones(1), (low, high), (note,))


def _read(path: Path, role: str, name: str) -> CodedColumn:
    try:
        column = read_column(path, name)
    except InvalidValue as error:
        field = f"{role} column" if error.field == "column" else error.field
        raise InvalidValue(field, error.value, error.allowed) from None
    if role != "value" and column.missing:
        raise InvalidValue(f"{role} column", name, f"a {role} in every row; {column.missing} rows have none")
    return column


def _numbering(labels: tuple[str, ...]) -> str:
    """How the steps are numbered; two spellings of one number are refused."""
    numbers = sorted(number_of(label) for label in labels)
    if any(map(math.isnan, numbers)):
        numbers = []
    if len(set(numbers)) < len(numbers):
        raise InvalidValue("step column", "numbers such as 1 and 1.0", "one spelling for each step")
    whole = bool(numbers) and numbers[0].is_integer()
    if whole and numbers == [int(numbers[0]) + place for place in range(len(numbers))]:
        return f"steps: the consecutive integers {labels[0]} to {labels[-1]}"
    return f"steps: ranked, as they are not consecutive integers; {labels[0]!r} is step 1, {labels[-1]!r} {len(labels)}"


def _refuse_twice(when: CodedColumn, who: CodedColumn) -> None:
    pairs, counts = np.unique(when.codes * len(who.labels) + who.codes, return_counts=True)
    if (counts > 1).any():
        at, row = divmod(int(pairs[np.argmax(counts > 1)]), len(who.labels))
        repeated = f"device {who.labels[row]} more than once in step {when.labels[at]}"
        raise InvalidValue("rows", repeated, "at most one row for each step and device")


def _number(label: str) -> float:
    number = number_of(label)
    if not math.isfinite(number):
        raise InvalidValue("value column", label, "finite numbers only, for a mean")
    return number
