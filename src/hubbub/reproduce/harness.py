"""The harness: every table and figure that is reproduced, by name, and how to run one."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.random import Random
from hubbub.reproduce.result import Cell, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["REPRODUCTIONS", "Cell", "Context", "Reproduced", "Reproduction", "Result", "reproduce", "reproduction"]

Progress = Callable[[int, int, str], None]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Context:
    """What a reproduction is run with.

    Parameters
    ----------
    repeats
        How many times each setting is run.
    rng
        Its randomness: each setting and run takes a child of its own, so that none depends on the others.
    scale
        By how much to shrink the populations: 1 for the paper's sizes.
    progress
        Called with (done, total, label) as the steps go by.
    """

    repeats: int
    rng: Random
    scale: float = 1.0
    progress: Progress | None = None

    def size(self, n: int, *, least: int = 1) -> int:
        """A population of n, scaled.

        Example:
            >>> Context(repeats=1, rng=Random(seed=1), scale=0.01).size(10_000)
            100
        """
        return max(min(n, least), round(n * self.scale))

    def track(self, steps: Sequence[Item], label: Callable[[Item], str]) -> Iterator[Item]:
        """Go through the steps, saying before each which it is, and at the end that all are done.

        Example:
            >>> context = Context(repeats=1, rng=Random(seed=1), progress=print)
            >>> for step in context.track([5, 6], "step {}".format):
            ...     pass
            0 2 step 5
            1 2 step 6
            2 2 done
        """
        for done, step in enumerate(steps):
            if self.progress is not None:
                self.progress(done, len(steps), label(step))
            yield step
        if self.progress is not None:
            self.progress(len(steps), len(steps), "done")


Reproduced: TypeAlias = "tuple[list[Cell], Figure | None]"
"""What the function of a reproduction makes: its cells, and its figure where it has one."""
Run = Callable[..., Reproduced]
"""Of a context, and of a number of steps where there are streams."""


@dataclass(frozen=True)
class Reproduction:
    """A table or figure that can be reproduced.

    Parameters
    ----------
    name
        What it is called by, as in "dissertation-table-3.2".
    title
        What it shows.
    repeats
        How many runs of each setting it makes unless told otherwise; 1 where nothing is drawn.
    needs
        The data sets it reads, by their names in `hubbub.data.CATALOG`.
    function
        Makes its cells and figure.
    """

    name: str
    title: str
    repeats: int
    needs: tuple[str, ...]
    function: Run = field(repr=False)


REPRODUCTIONS: dict[str, Reproduction] = {}
"""Every reproduction by name, in the order of the papers."""


def reproduction(name: str, *, title: str, repeats: int = 1, needs: Sequence[str] = ()) -> Callable[[Run], Run]:
    """Register a function as the reproduction of this name.

    Example:
        >>> @reproduction("doctest-1", title="One", repeats=3)
        ... def one(context):
        ...     return [Cell("a", "b", 1.0, float(context.repeats))], None
        >>> reproduce("doctest-1").cells[0].ours
        3.0
        >>> del REPRODUCTIONS["doctest-1"]
    """

    def register(function: Run) -> Run:
        if name in REPRODUCTIONS:
            raise InvalidValue("name", name, "a name that is not taken")
        REPRODUCTIONS[name] = Reproduction(name, title, repeats, tuple(needs), function)
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
) -> Result:
    """Run a reproduction.

    Parameters
    ----------
    name
        A name in `REPRODUCTIONS`.
    repeats
        Runs of each setting; the reproduction's own number unless given.
    seed
        The same seed gives the same numbers; None draws new ones.
    progress
        Called with (done, total, label).
    scale
        Shrinks the populations, for a quick look: 0.01 is a hundredth of everyone.
    steps
        How long its streams are, where it has streams; its own number unless given.

    Example:
        >>> cell = reproduce("dissertation-table-3.2").cells[-1]
        >>> cell.row, cell.column, cell.paper, round(cell.ours, 2)
        ('eps = 4', 'OLH', 0.08, 0.08)
    """
    chosen = REPRODUCTIONS.get(name)
    if chosen is None:
        close = difflib.get_close_matches(str(name), REPRODUCTIONS, n=1, cutoff=0.0)
        raise InvalidValue("name", name, f"a reproduction; the closest is {close[0]}" if close else "a reproduction")
    if repeats is None:
        repeats = chosen.repeats
    check_integer("repeats", repeats, 1)
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale <= 1:
        raise InvalidValue("scale", scale, "a number above 0, at most 1")
    more: dict[str, Any] = {}
    if steps is not None:
        if "steps" not in signature(chosen.function).parameters:
            raise InvalidValue("steps", steps, f"none: {name} has no streams")
        check_integer("steps", steps, 1)
        more["steps"] = steps
    cells, figure = chosen.function(Context(repeats, Random(seed=seed), float(scale), progress), **more)
    return Result(chosen.name, chosen.title, tuple(cells), figure)
