"""Every method over every stream in every setting, and what is measured of each run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.event import units_of
from hubbub.protocols.driver import Protocol
from hubbub.protocols.window import METHODS as WINDOW_METHODS
from hubbub.protocols.window import Statistic, window_stream
from hubbub.reproduce.claims import Claim, judged
from hubbub.reproduce.harness import Cell, Context
from hubbub.reproduce.ldp_ids.sources import Source
from hubbub.simulate.conversation import StreamRun, run_stream
from hubbub.simulate.devices import Stream

__all__ = [
    "BITS",
    "FILTERED",
    "METHODS",
    "MRE",
    "MSE",
    "PAIRS",
    "SPREAD",
    "Key",
    "MethodSetting",
    "Place",
    "Runs",
    "mean",
    "options_of",
    "plain",
    "scores",
    "sweep",
    "theory",
    "verdicts",
]

METHODS = ("LBU", "LSP", "LBD", "LBA", "LPU", "LPD", "LPA")
PAIRS = (("LPU", "LBU"), ("LPD", "LBD"), ("LPA", "LBA"))
"""The same method by population and by budget."""
FILTERED = ", filtered"
"""What the name of a method ends with that filters what it releases."""
ENOUGH = 3  # runs from which there is a standard error
MRE, MSE, BITS, SPREAD = range(4)
"""The columns of `scores`."""


@dataclass(frozen=True)
class MethodSetting:
    """What is promised, and the method's own options.

    Example:
        >>> str(MethodSetting(epsilon=2.0))
        'eps=2 w=20'
    """

    epsilon: float = 1.0
    w: int = 20
    beta: float | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The method's own."""
        return {} if self.beta is None else {"beta": self.beta}

    def __str__(self) -> str:
        return f"eps={self.epsilon:g} w={self.w}" + ("" if self.beta is None else f" beta={self.beta:g}")


Key = tuple[str, str, MethodSetting]  # source, method, setting
Place = tuple[Source, MethodSetting]
Runs = Mapping[Key, NDArray[np.float64]]
Start = Callable[[Source, str, MethodSetting], Protocol]


class KnownTruth(Stream):
    """A stream whose truths are counted once, for all who run over it."""

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
    """The mean relative error, the mean squared error, the bits a device and step, and the spread f(1-f) of shares."""
    spread = float(np.mean(run.truth * (1 - run.truth)))
    return [run.mre(source.floor), run.mse, run.bits_per_device_and_step, spread]


def start(source: Source, method: str, setting: MethodSetting) -> Protocol:
    """The method as the paper prints it, or filtered where its name says so."""
    options = options_of(method, setting)
    return window_stream(plain(method), source.question, epsilon=setting.epsilon, w=setting.w, **options)


def plain(method: str) -> str:
    """The method's registered name.

    Example:
        >>> plain("LPA, filtered")
        'LPA'
    """
    return method.removesuffix(FILTERED)


def options_of(method: str, setting: MethodSetting) -> dict[str, Any]:
    """The setting's, and whether the method filters what it releases: the paper's do not.

    Example:
        >>> [options_of(method, MethodSetting()) for method in ("LPA", "LPA, filtered", "LSP")]
        [{'filtered': False}, {'filtered': True}, {}]
    """
    may = "filtered" in signature(WINDOW_METHODS[plain(method)].decide).parameters
    return {**setting.options, **({"filtered": method.endswith(FILTERED)} if may else {})}


def sweep(
    context: Context,
    places: Sequence[Place],
    *,
    methods: Sequence[str] = METHODS,
    score: Callable[[Source, str, MethodSetting, StreamRun], ArrayLike] = scores,
    begin: Start = start,
) -> dict[Key, NDArray[np.float64]]:
    """Run every method at every place, a source and a setting; for each, an array with one row a run.

    A run's stream is made once, and serves every method and setting.
    """
    settings: dict[Source, list[MethodSetting]] = {}
    for source, setting in places:
        settings.setdefault(source, []).append(setting)
    runs = range(context.repeats)
    plan = [(source, run, at, m) for source in settings for run in runs for at in settings[source] for m in methods]
    measured: dict[Key, list[ArrayLike]] = {}
    made: tuple[Source, int] | None = None
    stream: Stream | None = None
    for source, run, setting, method in context.track(plan, lambda p: f"{p[0].name}, {p[2]}, {p[3]}, run {p[1] + 1}"):
        if made != (source, run) or stream is None:
            stream = None  # the one before makes room first
            made, stream = (source, run), KnownTruth(source.make(run))
        rng = context.rng.child("LDP-IDS", source.name, run, str(setting), method)
        result = run_stream(begin(source, method, setting), stream, rng)
        measured.setdefault((source.name, method, setting), []).append(score(source, method, setting, result))
    return {key: np.array(rows, dtype=np.float64) for key, rows in measured.items()}


def verdicts(claims_of: Callable[[Runs], Sequence[Claim]], runs: Runs) -> list[Cell]:
    """The verdicts on claims, as `judged` has them; from too few runs for a standard error they say so.

    Example:
        >>> runs = {("LNS", "LPA", MethodSetting()): np.array([[1.0]])}
        >>> verdicts(lambda runs: [Claim("small", 1.0, below=2)], runs)[0].note
        'holds (below 2); without a standard error: runs: 1'
    """
    cells, number = judged(claims_of, runs), min(len(rows) for rows in runs.values())
    if number >= ENOUGH:
        return cells
    return [replace(cell, note=f"{cell.note}; without a standard error: runs: {number}") for cell in cells]


def mean(runs: Runs, source: str, method: str, setting: MethodSetting, column: int) -> float:
    """The mean over the runs of one measurement."""
    return float(runs[source, method, setting][:, column].mean())


def theory(method: str, question: Statistic, setting: MethodSetting, n: int, spread: float) -> float:
    """The MSE of LBU and LPU on paper: V(eps/w, n), and V(eps, n/w) with what the cohort, a sample, adds.

    Example:
        >>> from hubbub.protocols.window import Frequencies
        >>> f"{theory('LBU', Frequencies(2), MethodSetting(), 200_000, 0.0):.5g}"
        '0.0019996'
        >>> f"{theory('LPU', Frequencies(2), MethodSetting(), 200_000, 0.0):.5g}"
        '9.2067e-05'
    """
    units, anything = units_of(setting.epsilon), np.zeros(question.size)
    if method == "LBU":
        return question.error(units // setting.w, n, anything)
    each = n / setting.w
    return question.error(units, each, anything) + spread / each * (1 - 1 / setting.w)
