"""The harness: the register of reproductions, what each is run with, and `reproduce`, which runs one."""

from __future__ import annotations

import difflib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.random.source import Random
from hubbub_papers.result import Cell, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "PAPERS",
    "REPRODUCTIONS",
    "Cell",
    "Context",
    "Paper",
    "Reproduced",
    "Reproduction",
    "Result",
    "RunScores",
    "reproduce",
    "reproduction",
]

Progress = Callable[[int, int, str], None]
Step = TypeVar("Step")
Setting = TypeVar("Setting")
Key = TypeVar("Key")
RunScores: TypeAlias = Mapping[Key, NDArray[np.float64]]
"""Scores by setting (or by whatever else tells them apart): an array with one row per run."""


@dataclass(frozen=True)
class Context:
    """What a reproduction is run with, and the loop over its settings and runs.

    Parameters
    ----------
    repeats
        How many times each setting is run.
    rng
        The source of randomness. Each setting and run takes a child of its own, so that no run depends on another.
    scale
        The factor by which populations shrink: 1 for the paper's sizes.
    progress
        Called with (done, total, label) before each step and at the end.
    data
        Files of the paper's own data, by name, which are read in the place of what replaces that data here.
    """

    repeats: int
    rng: Random
    scale: float = 1.0
    progress: Progress | None = None
    data: Mapping[str, Path] = field(default_factory=dict)

    def size(self, n: int, *, least: int = 1) -> int:
        """The scaled size of a population of n: at least `least`, or n where n is smaller than that."""
        return max(min(n, least), round(n * self.scale))

    def track(self, steps: Sequence[Step], label: Callable[[Step], str]) -> Iterator[Step]:
        """Yield the steps; report progress before each one with its label, and at the end."""
        for done, step in enumerate(steps):
            if self.progress is not None:
                self.progress(done, len(steps), label(step))
            yield step
        if self.progress is not None:
            self.progress(len(steps), len(steps), "done")

    def measure(
        self,
        settings: Iterable[Setting],
        run_once: Callable[[Setting, int], Mapping[Key, ArrayLike]],
        label: Callable[[Setting], str] = str,
        *,
        threads: int = 1,
    ) -> dict[Key, NDArray[np.float64]]:
        """Run every setting `repeats` times and gather the scores: by key, an array with one row per run.

        `run_once` is called with a setting and the number of the run, which begins at 0, and returns a score, or a row
        of scores, for each key: for the setting itself, or for every method that it compares. `label` names a setting
        in progress messages.
        """
        steps = [(setting, run) for setting in settings for run in range(self.repeats)]
        return self.gather(
            steps, lambda step: run_once(*step), lambda step: f"{label(step[0])}, run {step[1] + 1}", threads=threads
        )

    def rounds(
        self,
        settings: Sequence[Setting],
        run_once: Callable[[Setting, int], ArrayLike],
        label: Callable[[Setting], str] = str,
        *,
        budget: float,
    ) -> dict[Setting, NDArray[np.float64]]:
        """Run all settings once, then again, while the next round is likely to end within `budget` seconds of
        computing: on a busy machine there are as many runs as on a quiet one.
        """
        rows: dict[Setting, list[ArrayLike]] = {setting: [] for setting in settings}
        steps = [(setting, run) for run in range(self.repeats) for setting in settings]
        begun, late = time.process_time(), False
        for setting, run in self.track(steps, lambda step: f"{label(step[0])}, run {step[1] + 1}"):
            if run and setting == settings[0]:
                late = late or (time.process_time() - begun) * (run + 1) / run > budget
            if not late:
                rows[setting].append(run_once(setting, run))
        return {setting: np.array(scores, dtype=np.float64) for setting, scores in rows.items()}

    def gather(
        self,
        steps: Sequence[Step],
        run_step: Callable[[Step], Mapping[Key, ArrayLike]],
        label: Callable[[Step], str],
        *,
        threads: int = 1,
    ) -> dict[Key, NDArray[np.float64]]:
        """Like `measure`, for steps that name their runs themselves, in an order of their own."""
        rows: dict[Key, list[ArrayLike]] = {}
        pool = ThreadPoolExecutor(threads) if threads > 1 else None
        try:
            results = iter(pool.map(run_step, steps) if pool else map(run_step, steps))
            for _ in self.track(steps, label):
                for key, score in next(results).items():
                    rows.setdefault(key, []).append(score)
        finally:
            if pool:
                pool.shutdown(cancel_futures=True)  # after an interrupt, do not wait for the remaining steps
        return {key: np.array(scores, dtype=np.float64) for key, scores in rows.items()}


Reproduced: TypeAlias = "tuple[list[Cell], Figure | None]"
"""What the function of a reproduction returns: cells, and a figure or None."""
Run = Callable[..., Reproduced]
"""The function of a reproduction. It takes a context, and a number of steps if it has streams."""


@dataclass(frozen=True)
class Paper:
    """A paper whose tables and figures can be reproduced.

    `name` begins the names of its reproductions: an author, the year and a word of the title. `alias` is a short form
    of it. The entry of `references.bib` is `key`.
    """

    name: str
    alias: str

    @property
    def key(self) -> str:
        """The key of its entry in `references.bib`."""
        return self.name.replace("-", "")


PAPERS = (
    Paper("wang-2021-analyzing", "dissertation"),
    Paper("wang-2023-vectors", "coco"),
    Paper("ren-2022-ldpids", "ldp-ids"),
    Paper("wang-2023-sao2", "sao2"),
    Paper("wang-2021-streams", "tops"),
)
"""The papers, in the order in which their reproductions are listed."""


def full_name(name: str) -> str:
    """The name, or the pattern, of reproductions with the paper's full name for its alias."""
    for paper in PAPERS:
        if name.startswith(f"{paper.alias}-"):
            return paper.name + name.removeprefix(paper.alias)
    return name


@dataclass(frozen=True)
class Reproduction:
    """A table or figure that can be reproduced.

    `name` is its name in `REPRODUCTIONS`, such as "wang-2021-analyzing-table-3.2". `repeats` is the default number of
    runs of each setting; 1 where nothing is drawn at random. `needs` names the data sets that it reads
    (`hubbub.data.CATALOG`), `data` those of the paper that it reads where a file is given.
    """

    name: str
    title: str
    repeats: int
    needs: tuple[str, ...]
    function: Run = field(repr=False)
    data: tuple[str, ...] = ()

    @property
    def paper(self) -> Paper | None:
        """The paper that the table or figure is of."""
        return next((paper for paper in PAPERS if self.name.startswith(f"{paper.name}-")), None)


REPRODUCTIONS: dict[str, Reproduction] = {}
"""Every reproduction by name, in the order of the papers."""


def reproduction(
    name: str, *, title: str, repeats: int = 1, needs: Sequence[str] = (), data: Sequence[str] = ()
) -> Callable[[Run], Run]:
    """Register a function as the reproduction of this name; a paper's alias stands for its full name."""

    def register(function: Run) -> Run:
        full = full_name(name)
        if full in REPRODUCTIONS:
            raise InvalidValue("name", name, "a name that is not taken")
        REPRODUCTIONS[full] = Reproduction(full, title, repeats, tuple(needs), function, tuple(data))
        return function

    return register


def reproduce(
    name: str,
    *,
    repeats: int | None = None,
    seed: int | None = 1,
    progress: Progress | None = None,
    scale: float = 1.0,
    steps: int | None = None,
    data: Mapping[str, str | os.PathLike[str]] | None = None,
) -> Result:
    """Run a reproduction.

    Parameters
    ----------
    name
        A name in `REPRODUCTIONS`, or its short form with a paper's alias.
    repeats
        Runs of each setting; by default the reproduction's own number.
    seed
        The same seed gives the same numbers; None draws a new seed.
    progress
        Called with (done, total, label).
    scale
        The factor by which populations shrink, for a quick look: 0.01 for a hundredth of the people.
    steps
        The length of its streams, if it has streams; by default the reproduction's own number.
    data
        Files of the paper's own data, by name: `{"pos": "pos.txt"}`.
    """
    chosen = REPRODUCTIONS.get(full_name(str(name)))
    if chosen is None:
        close = difflib.get_close_matches(str(name), REPRODUCTIONS, n=1, cutoff=0.0)
        raise InvalidValue("name", name, f"a reproduction; the closest is {close[0]}" if close else "a reproduction")
    if repeats is None:
        repeats = chosen.repeats
    check_integer("repeats", repeats, 1)
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale <= 1:
        raise InvalidValue("scale", scale, "a number above 0, at most 1")
    options: dict[str, Any] = {}
    if steps is not None:
        if "steps" not in signature(chosen.function).parameters:
            raise InvalidValue("steps", steps, f"none: {name} has no streams")
        check_integer("steps", steps, 1)
        options["steps"] = steps
    files = {given.lower(): Path(file) for given, file in (data or {}).items()}
    for given in files:
        if given not in chosen.data:
            raise InvalidValue("data", given, f"for {name}: {', '.join(chosen.data) or 'none'}")
    cells, figure = chosen.function(Context(repeats, Random(seed=seed), float(scale), progress, files), **options)
    return Result(chosen.name, chosen.title, tuple(cells), figure)
