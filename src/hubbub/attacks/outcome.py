"""What an attack is, what it is tried on, and what came out of it next to the bound that hubbub states."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.reports import Floats
from hubbub.core.spec import Json
from hubbub.privacy.binomial_tails import at_least
from hubbub.questions.collection import Collection
from hubbub.random.source import Random

LEVEL = 0.999
"""The level of the intervals of what was measured: of a thousand outcomes at their bound, one looks broken by chance
on that side."""


class AttackOutcome(NamedTuple):
    """What was measured in one case of an attack, with its interval, and the bound that is stated for it.

    `bound` is None where nothing is promised: `note` says why, or what the number is compared with.
    """

    case: str
    measured: float
    low: float
    high: float
    bound: float | None
    unit: str = "share"
    note: str = ""

    @property
    def within(self) -> bool | None:
        """Whether the measurement is compatible with the bound; None where there is none."""
        return None if self.bound is None else self.low <= self.bound + 1e-9 * abs(self.bound)

    def to_dict(self) -> dict[str, Json]:
        """The same as JSON."""
        return {**self._asdict(), "within": self.within}


@dataclass(frozen=True, kw_only=True)
class AttackSetting:
    """What an attack is tried on.

    Parameters
    ----------
    epsilon
        What one report may spend, where the attack makes its own collection.
    people
        How many honest devices there are.
    forged
        The part of all devices that is forged, or of the reports that is dropped.
    runs
        How often it is tried.
    seed
        The seed of all randomness.
    collection
        A collection whose questions are attacked instead of the attack's own.
    """

    epsilon: float = 1.0
    people: int = 10_000
    forged: float = 0.01
    runs: int = 20
    seed: int = 1
    collection: Collection | None = None

    def __post_init__(self) -> None:
        if not 0.05 <= self.epsilon <= 20:
            raise InvalidValue("epsilon", self.epsilon, "a number from 0.05 to 20")
        if not 0 < self.forged <= 0.5:
            raise InvalidValue("forged", self.forged, "a part of all devices, above 0, at most 0.5")
        check_integer("people", self.people, 100)
        check_integer("runs", self.runs, 2)

    def rng(self, *names: int | str) -> Random:
        """The randomness of one part of the attack."""
        return Random(seed=self.seed).child(*names)

    @property
    def forgers(self) -> int:
        """How many devices are forged, of all."""
        return max(1, round(self.people * self.forged / (1 - self.forged)))


Run = Callable[[AttackSetting], Iterator[AttackOutcome]]


@dataclass(frozen=True, kw_only=True)
class Attack:
    """An attack: what it does, who can do it, what is promised against it, and the program that tries it.

    Parameters
    ----------
    title
        What the adversary does, in one sentence.
    promise
        What is promised against it, and by what.
    quantity
        What is measured, on the axis of the plot.
    run
        Tries it, and yields its outcomes.
    collections
        Whether it can be tried on the questions of a given collection.
    """

    title: str
    promise: str
    quantity: str
    run: Run
    collections: bool = False


def of_guesses(
    case: str, right: int, tries: int, bound: float | None, note: str = "", *, unit: str = "of tries"
) -> AttackOutcome:
    """How often a guess was right, with an exact (Clopper-Pearson) interval."""
    tail = (1 - LEVEL) / 2
    grid = np.linspace(0.0, 1.0, 100_001)
    below = at_least(np.full(grid.size, right), np.full(grid.size, tries), grid)  # rises with the chance
    above = at_least(np.full(grid.size, right + 1), np.full(grid.size, tries), grid)
    low = float(grid[max(int(np.searchsorted(below, tail)) - 1, 0)]) if right else 0.0
    high = float(grid[min(int(np.searchsorted(above, 1 - tail)), grid.size - 1)]) if right < tries else 1.0
    return AttackOutcome(case, right / tries, low, high, bound, unit, note)


def of_mean(
    case: str, numbers: Sequence[float] | Floats, bound: float | None, *, unit: str = "share", note: str = ""
) -> AttackOutcome:
    """The mean of what was measured in independent runs, with a normal interval."""
    array = np.asarray(numbers, dtype=np.float64)
    mean = float(array.mean())
    reach = NormalDist().inv_cdf((1 + LEVEL) / 2) * float(array.std(ddof=1)) / math.sqrt(array.size)
    return AttackOutcome(case, mean, mean - reach, mean + reach, bound, unit, note)


def exactly(case: str, number: float, bound: float | None, *, unit: str = "share", note: str = "") -> AttackOutcome:
    """A number that chance has no part in."""
    return AttackOutcome(case, number, number, number, bound, unit, note)


def guess_bound(epsilon: float, size: int) -> float:
    """How often any guess of one of `size` equally likely values can be right, after epsilon was spent on it.

    The odds against each other value grow by e^epsilon at most.
    """
    return 1 / (1 + (size - 1) * math.exp(-epsilon))
