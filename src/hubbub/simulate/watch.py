"""Watching a stream: simulated devices, a protocol, an alarm, and a ledger for every device."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.core.random import Random
from hubbub.data.processes import sine_process
from hubbub.protocols.ask import Release
from hubbub.protocols.driver import converse
from hubbub.protocols.monitor import Monitor
from hubbub.protocols.window import Frequencies, Means, Question, window_stream
from hubbub.simulate.columns import MISSING, Column, read_column
from hubbub.simulate.conversation import Population
from hubbub.simulate.devices import ArrayStream, Stream
from hubbub.simulate.ledgers import Ledgers
from hubbub.simulate.streams import binary_stream

__all__ = ["NONE", "Moment", "Scene", "Stepwise", "Watch", "demo_scene", "file_scene"]

NONE = "none"
"""What a device without a row in a step holds."""

SURE = 0.975
"""The alarm's level: it goes on when the whole 95% interval is above the threshold."""

_SHOWN = 30  # values named in an error


class Stepwise(Stream):
    """A stream whose steps are made as they are asked for: it takes the memory of one.

    Parameters
    ----------
    row
        Makes the values that the devices hold at a step.
    n, steps
        How many devices and steps there are.
    domain
        How many codes there are; None for numbers.

    Example:
        >>> stream = Stepwise(lambda step: np.array([0, 1, step % 2]), n=3, steps=9, domain=2)
        >>> stream.values(2, 1, 3).tolist(), stream.truth(2).round(2).tolist()
        ([1, 0], [0.67, 0.33])
    """

    def __init__(self, row: Callable[[int], NDArray[Any]], *, n: int, steps: int, domain: int | None) -> None:
        self.n, self.steps, self.domain = n, steps, domain
        self._row, self._at = row, 0
        self._held: ArrayStream | None = None

    def values(self, step: int, start: int, stop: int) -> NDArray[Any]:
        return self._now(step).values(1, start, stop)

    def truth(self, step: int) -> NDArray[np.float64]:
        return self._now(step).truth(1)

    def _now(self, step: int) -> ArrayStream:
        if self._held is None or step != self._at:
            self._at, self._held = step, ArrayStream(self._row(step)[np.newaxis], self.domain)
        return self._held


@dataclass(frozen=True, eq=False)
class Scene:
    """Devices, what they are asked, and which number of the answer is watched.

    Parameters
    ----------
    name, source
        What the number is, and where the devices come from.
    stream, question, weights
        What they hold, what is asked, and the weight of each released value in the number.
    span
        The least and the largest that the number can be.
    above, below
        Where the alarm goes on and off unless said otherwise.
    notes
        How the source was read.
    """

    name: str
    source: str
    stream: Stream
    question: Question
    weights: NDArray[np.float64]
    span: tuple[float, float]
    above: float
    below: float
    notes: tuple[str, ...] = ()

    @property
    def share(self) -> bool:
        """Whether the number is a share; otherwise it is a mean."""
        return isinstance(self.question, Frequencies)

    def truth(self, step: int) -> float:
        """The number at a step, which only a simulation knows."""
        return float(self.weights @ self.stream.truth(step))


@dataclass(frozen=True)
class Moment:
    """A release as it was seen: the number with its 95% interval, and the alarm.

    The number is NaN before anything was published. `spent` is what the window's steps took, of epsilon, on average
    over the devices; `n` the estimated population; `bits` what a device sent and received so far, on average.
    """

    step: int
    value: float
    low: float
    high: float
    published: bool
    spent: float
    n: float
    alarm: bool
    changed: bool
    truth: float
    bits: float

    def to_dict(self) -> dict[str, Any]:
        """What the server knows of it: the truth and the devices' own counts stay here."""
        keys = ("step", "value", "low", "high", "published", "spent", "n", "alarm")
        return {key: getattr(self, key) for key in keys}


class Watch:
    """Runs a protocol over a scene; iterate for a Moment a step.

    Every device has a ledger, and a window that would be exceeded stops the run with `BudgetExceeded`.

    Parameters
    ----------
    scene
        What is watched.
    method, epsilon, w
        As in `window_stream`: epsilon in any w consecutive steps.
    steps
        How many steps to watch; all that the scene has unless given.
    above, below
        Where the alarm goes on and off; the scene's unless given. `below` is `above` if only that is given.
    rng
        The devices' randomness.

    Example:
        >>> scene = demo_scene(Random(seed=1), steps=40, n=5000)
        >>> watch = Watch(scene, method="LSP", epsilon=4.0, w=4, rng=Random(seed=2))
        >>> moments = list(watch)
        >>> len(moments), watch.published, watch.most_spent
        (40, 10, 4.0)
    """

    def __init__(
        self,
        scene: Scene,
        *,
        method: str,
        epsilon: float,
        w: int,
        rng: Random,
        steps: int | None = None,
        above: float | None = None,
        below: float | None = None,
    ) -> None:
        self.scene, self.method, self.epsilon, self.w = scene, method, epsilon, w
        self._protocol = window_stream(method, scene.question, epsilon=epsilon, w=w)
        there = scene.stream.steps
        wanted = there if steps is None else steps
        if wanted is None or wanted < 1 or (there is not None and wanted > there):
            raise InvalidValue("steps", wanted, f"a number of steps from 1 to {there or 'as many as you like'}")
        if w > wanted:
            raise InvalidValue("w", w, f"at most the {wanted} steps there are")
        self.steps = wanted
        if scene.stream.n < w:
            raise InvalidValue("devices", scene.stream.n, f"at least w = {w} devices, so that each step can ask one")
        usual = (scene.above, scene.below) if above is None else (above, above)
        for field, bound in (("above", above), ("below", below)):
            if bound is not None and not scene.span[0] <= bound <= scene.span[1]:
                raise InvalidValue(field, bound, f"a number from {scene.span[0]:g} to {scene.span[1]:g}")
        self.monitor = Monitor(scene.weights, above=usual[0], below=usual[1] if below is None else below, level=SURE)
        self.ledgers = Ledgers(scene.stream.n, epsilon=epsilon, w=w)
        self.people = Population(scene.stream, rng, ledgers=self.ledgers)
        self.moments: list[Moment] = []
        self._window: deque[float] = deque(maxlen=w)
        self._most = 0

    def __iter__(self) -> Iterator[Moment]:
        for release in converse(self._protocol, self.people.answer, steps=self.steps):
            moment = self._see(release)
            self.moments.append(moment)
            yield moment

    @property
    def most_spent(self) -> float:
        """The most that any device has spent in any window, by its ledger."""
        return self._most / UNITS_PER_EPSILON

    @property
    def published(self) -> int:
        """How many releases were published, not approximated."""
        return sum(moment.published for moment in self.moments)

    @property
    def covered(self) -> int:
        """How many 95% intervals held the truth."""
        return sum(moment.low <= moment.truth <= moment.high for moment in self.moments)

    @property
    def changes(self) -> list[Moment]:
        """When the alarm went on or off."""
        return [moment for moment in self.moments if moment.changed]

    def _see(self, release: Release) -> Moment:
        self._window.append(release.spent)
        # A ledger only falls as steps leave the window, so the largest is seen right after a step's asks.
        self._most = max(self._most, int(self.ledgers.spent.max()))
        value = low = high = math.nan
        before = self.monitor.on
        if np.isfinite(release.estimate.variance).all():
            seen = self.monitor.watch(release)
            value, low, high = seen.value, seen.low, seen.high
        return Moment(
            step=release.step,
            value=value,
            low=low,
            high=high,
            published=release.published,
            spent=sum(self._window) * self.epsilon,
            n=release.n,
            alarm=self.monitor.on,
            changed=self.monitor.on != before,
            truth=self.scene.truth(release.step),
            bits=self.people.traffic.per_device_and_step(self.scene.stream.n, 1),
        )


def demo_scene(rng: Random, *, steps: int = 200, n: int = 200_000) -> Scene:
    """Devices of which a share, drawn anew at each step, holds a 1: a sine of 4% to 8%, which a surge lifts by 12%.

    The surge begins after 40% of the steps, is full from 45% to 65%, and is gone by 70%.

    Example:
        >>> round(demo_scene(Random(seed=1), steps=40, n=1000).truth(20), 2)
        0.2
    """
    part = np.arange(steps) / steps
    ramp = np.clip(np.minimum(part - 0.40, 0.70 - part) / 0.05, 0.0, 1.0)
    process = sine_process(steps, amplitude=0.02, b=0.06, height=0.06) + 0.12 * (1 - np.cos(np.pi * ramp)) / 2

    def row(step: int) -> NDArray[Any]:
        return np.asarray(binary_stream(process[step - 1 : step], n, rng.child("step", step)).table[0])

    stream = Stepwise(row, n=n, steps=steps, domain=2)
    name, source = "share of devices that hold a 1", "demo: a sine with a surge"
    return Scene(name, source, stream, Frequencies(2), np.array([0.0, 1.0]), (0.0, 1.0), above=0.11, below=0.10)


def file_scene(
    path: Path,
    rng: Random,
    *,
    step: str = "step",
    device: str = "device",
    value: str = "value",
    watch: str | None = None,
    mean: tuple[float, float] | None = None,
) -> Scene:
    """The devices of a file, each row of which is a device's value at a step.

    The alarm's threshold lies at 3/4 of the way from the least to the largest truth (LDP-IDS, section 7.2.2).

    Parameters
    ----------
    path
        A .csv, .tsv, .jsonl, .ndjson or .parquet file.
    rng
        Puts the devices in a random order, as their places on the circle are.
    step, device, value
        The columns' names. Steps that are not consecutive integers are ranked.
    watch
        The value whose share is watched; the most frequent besides "none" unless given.
    mean
        The range of a number whose mean is watched instead; a device without a number counts as the lower end.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "doors.csv"
        ...     _ = path.write_text("step,device,value\\n1,a,open\\n1,b,shut\\n2,a,open\\n")
        ...     scene = file_scene(path, Random(seed=1))
        >>> scene.name, scene.truth(1), scene.truth(2), scene.notes[0]
        ("share of devices that hold 'open'", 0.5, 0.5, 'steps: the consecutive integers 1 to 2')
    """
    if mean is not None and watch is not None:
        raise InvalidValue("watch", watch, "nothing: a mean is one number")
    question = None if mean is None else Means(*mean)
    if question is not None:
        _ = question.view  # refuses a range that is none before the file is read
    when, who, what = (_read(path, role, name) for role, name in (("step", step), ("device", device), ("value", value)))
    steps, n = len(when.labels), len(who.labels)
    numbering = _numbering(when.labels)
    _refuse_twice(when, who)
    read = _shares(what, watch) if question is None else _means(what, value, question, steps * n)
    order = np.argsort(when.codes, kind="stable")
    cuts = np.searchsorted(when.codes[order], np.arange(steps + 1))
    # Devices in the order of their names would make neighbours on the circle, and so a cohort, of those alike.
    devices, held = rng.permutation(n)[who.codes[order]], read.held[order]

    def row(at: int) -> NDArray[Any]:
        here = slice(cuts[at - 1], cuts[at])
        values = np.full(n, read.empty)
        values[devices[here]] = held[here]
        return values

    stream = Stepwise(row, n=n, steps=steps, domain=read.domain)
    truth = [float(read.weights @ stream.truth(at)) for at in range(1, steps + 1)]
    above = min(truth) + 0.75 * (max(truth) - min(truth))
    notes = (numbering, *read.notes)
    return Scene(read.name, path.name, stream, read.question, read.weights, read.span, above, above, notes)


class _Reading(NamedTuple):
    """A value column as devices hold it: what each row holds, and a device without a row."""

    name: str
    held: NDArray[Any]
    empty: int | float
    domain: int | None
    question: Question
    weights: NDArray[np.float64]
    span: tuple[float, float]
    notes: tuple[str, ...]


def _shares(what: Column, watch: str | None) -> _Reading:
    labels = [label for label in what.labels if label not in (MISSING, NONE)]
    if not labels:
        raise InvalidValue("value column", NONE, "at least one other value")
    counts = dict(zip(what.labels, np.bincount(what.codes).tolist(), strict=True))
    labels.sort(key=lambda label: -counts[label])
    if watch not in (None, NONE, *labels):
        more = ", ..." if len(labels) > _SHOWN else ""
        raise InvalidValue("watch", watch, f"one of {', '.join([NONE, *labels[:_SHOWN]])}{more}")
    chosen = labels[0] if watch is None else watch
    code_of = {label: code for code, label in enumerate([NONE, *labels])}
    held = np.array([code_of.get(label, 0) for label in what.labels])[what.codes]
    weights = np.zeros(len(code_of))
    weights[code_of[chosen]] = 1.0
    name = f"share of devices that hold {chosen!r}"
    return _Reading(name, held, 0, len(code_of), Frequencies(len(code_of)), weights, (0.0, 1.0), ())


def _means(what: Column, column: str, question: Means, cells: int) -> _Reading:
    numbers = np.array([math.nan if label in (MISSING, NONE) else _number(label) for label in what.labels])[what.codes]
    held = question.view(numbers)
    low, high = question.low, question.high
    there = ~np.isnan(numbers)
    outside, without = int((numbers != held)[there].sum()), cells - int(there.sum())
    note = (
        f"numbers: {outside:,} outside {low:g} to {high:g} were clipped; "
        f"{without:,} times a device had none, and counts as {low:g}"
    )
    return _Reading(f"mean of {column}", held, low, None, question, np.ones(1), (low, high), (note,))


def _read(path: Path, role: str, name: str) -> Column:
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
    try:
        numbers = sorted(float(label) for label in labels)
    except ValueError:
        numbers = []
    if len(set(numbers)) < len(numbers):
        raise InvalidValue("step column", "numbers such as 1 and 1.0", "one spelling for each step")
    if numbers and numbers == [math.floor(numbers[0]) + place for place in range(len(numbers))]:
        return f"steps: the consecutive integers {labels[0]} to {labels[-1]}"
    return f"steps: ranked, as they are not consecutive integers; {labels[0]!r} is step 1, {labels[-1]!r} {len(labels)}"


def _refuse_twice(when: Column, who: Column) -> None:
    pairs, counts = np.unique(when.codes * len(who.labels) + who.codes, return_counts=True)
    if (counts > 1).any():
        at, which = divmod(int(pairs[np.argmax(counts > 1)]), len(who.labels))
        said = f"device {who.labels[which]} more than once in step {when.labels[at]}"
        raise InvalidValue("rows", said, "at most one row for each step and device")


def _number(label: str) -> float:
    try:
        number = float(label)
    except ValueError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidValue("value column", label, "finite numbers only, for a mean")
    return number
