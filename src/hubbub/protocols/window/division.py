"""What a window may spend, and the two ways to divide it: by budget, or by population.

Both hand out whole parts of a fixed total such that any w consecutive steps take at most all of it. Dividing the
budget, everyone answers with a part of epsilon; dividing the population, a part of the people answers with all of it.
Every method of this folder is written once, and runs either way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator
from dataclasses import replace
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import HubbubError, InvalidValue, check_integer
from hubbub.core.estimate import Estimate
from hubbub.core.event import units_of
from hubbub.protocols.ask import Ask
from hubbub.protocols.cohort import CIRCLE, EVERYONE, Pointer
from hubbub.protocols.driver import Message, Reply, ask_once
from hubbub.protocols.release import MAIN, OWN, Release
from hubbub.protocols.statistic import Statistic
from hubbub.protocols.window.finite import round_count, round_parts

Answer: TypeAlias = Generator[Message, Reply, Estimate | None]


class Division(ABC):
    """A question, an epsilon and a window of w steps, with the account of what the window's steps took.

    Parameters
    ----------
    question
        What is asked; it may be changed between steps.
    epsilon, w
        The promise: epsilon in any w consecutive steps.
    aside
        The share of the window that is kept for another question, evenly over its steps.
    """

    total: int
    """The parts that a window holds for the question."""
    remembered: ClassVar[tuple[str, ...]] = ("step", "population", "_taken", "_heard")
    """What later steps depend on."""

    def __init__(self, question: Statistic, *, epsilon: float, w: int, aside: float = 0.0) -> None:
        check_integer("w", w, 1)
        if not 0 <= aside < 1:
            raise InvalidValue("aside", aside, "a share from 0 to below 1")
        self.question = question
        self.units = units_of(question.mechanism(units_of(epsilon)).epsilon)
        self.w = w
        self.each_aside = int(self._window() * aside) // w
        self.total = self._window() - self.each_aside * w
        self.step = 1
        self.population = 0.0
        self._taken: deque[int] = deque([0], maxlen=w)
        self._heard: deque[tuple[int, float]] = deque(maxlen=w)

    @abstractmethod
    def error(self, parts: int, like: NDArray[np.float64]) -> float:
        """The expected error of asking with so many parts (Eq 4): the randomisation's, and the sample's."""

    @abstractmethod
    def _window(self) -> int:
        """The parts that a window holds in all."""

    @abstractmethod
    def _ask(self, question: Statistic, parts: int, standing: bool) -> Ask:
        """The ask that takes so many parts."""

    @abstractmethod
    def _following(self, parts: int) -> Ask:
        """The first ask of the next step, if it takes so many parts and this step takes no more."""

    @abstractmethod
    def _whole(self, estimate: Estimate) -> Estimate:
        """The estimate as one of the whole population."""

    def round_parts(self, parts: int, total: int) -> int:
        """What an ask may take of a total where earlier answers decide how much: everyone's epsilon is from a list."""
        return parts

    def round_count(self, count: int) -> int:
        """How many steps' parts an ask may take, where earlier answers decide how many."""
        return count

    def portion(self, share: float) -> int:
        """A share of the total, in whole parts, rounded down."""
        if not 0 <= share <= 1:
            raise InvalidValue("share", share, "a number from 0 to 1")
        return int(self.total * share)

    def taken(self, steps: int) -> int:
        """The parts taken in the last so many steps, this one included."""
        return sum(list(self._taken)[-steps:])

    def left(self) -> int:
        """The parts that this step may still take."""
        return self.total - sum(self._taken)

    def ask(self, parts: int, *, standing: bool = False, then: int = 0) -> Answer:
        """Ask with so many parts, and estimate; None if nobody answered.

        `then`: this is the last ask of the step, and the next step begins with an ask of so many parts.
        """
        if not 0 <= parts <= self.left():
            raise HubbubError(f"step {self.step} would take {parts} parts, and the window has {self.left()} left")
        if parts == 0:
            return None
        self._taken[-1] += parts
        return (yield from self._hear(self.question, parts, standing, then))

    def ask_aside(self, question: Statistic) -> Answer:
        """Ask another question with a step's part of what is kept for it: once a step."""
        return (yield from self._hear(question, self.each_aside, True)) if self.each_aside else None

    def _hear(self, question: Statistic, parts: int, standing: bool, then: int = 0) -> Answer:
        ask = self._ask(question, parts, standing)
        if then and not self.each_aside:
            ask = replace(ask, following=self._following(then))
        sketch = yield from ask_once(ask)
        if sketch.n == 0:
            return None
        self._heard.append((sketch.n, ask.cohort.share))
        self.population = sum(n for n, _ in self._heard) / sum(share for _, share in self._heard)
        return self._whole(ask.mechanism.estimate(sketch))

    def release(self, estimate: Estimate, *, own: Estimate | None, published: bool) -> Release:
        """End the step: with what is released, and what the step itself heard."""
        release = Release(
            step=self.step,
            estimates={MAIN: estimate} if own is None else {MAIN: estimate, OWN: own},
            published=published,
            spent=(self._taken[-1] + self.each_aside) / self._window(),
            n=self.population,
        )
        self.step += 1
        self._taken.append(0)
        return release


class BudgetDivision(Division):
    """Everyone answers; parts are units of 1e-12 epsilon.

    Example:
        >>> from hubbub.protocols.statistic import Frequencies
        >>> division = BudgetDivision(Frequencies(2), epsilon=1.0, w=20)
        >>> division.portion(1 / 20)
        50000000000
    """

    FEWEST = 10**6
    """Parts below which no mechanism can be told from silence: 1e-6 epsilon."""

    def _window(self) -> int:
        return self.units

    def round_parts(self, parts: int, total: int) -> int:
        return round_parts(parts, total)

    def round_count(self, count: int) -> int:
        return round_count(count)

    def error(self, parts: int, like: NDArray[np.float64]) -> float:
        if parts < self.FEWEST or not self.population:
            return float("inf")
        return self.question.error(parts, self.population, like)

    def _ask(self, question: Statistic, parts: int, standing: bool) -> Ask:
        mechanism = question.mechanism(parts)
        return Ask(mechanism=mechanism, step=self.step, view=question.view, cohort=EVERYONE, standing=standing)

    def _following(self, parts: int) -> Ask:
        return replace(self._ask(self.question, parts, True), step=self.step + 1)

    def _whole(self, estimate: Estimate) -> Estimate:
        return estimate


class PopulationDivision(Division):
    """A part of the people answers with the whole epsilon; parts are places on the circle.

    Example:
        >>> from hubbub.protocols.statistic import Frequencies
        >>> PopulationDivision(Frequencies(2), epsilon=1.0, w=20).portion(1 / 2) == 2**31
        True
    """

    remembered = (*Division.remembered, "_pointer")

    def __init__(self, question: Statistic, *, epsilon: float, w: int, aside: float = 0.0, start: int = 0) -> None:
        super().__init__(question, epsilon=epsilon, w=w, aside=aside)
        self._pointer = Pointer(start)

    def _window(self) -> int:
        return CIRCLE

    def error(self, parts: int, like: NDArray[np.float64]) -> float:
        n = parts / CIRCLE * self.population
        if n < 1:
            return float("inf")
        return self.question.error(self.units, n, like) + self.question.spread(like) / n * (1 - parts / CIRCLE)

    def _ask(self, question: Statistic, parts: int, standing: bool) -> Ask:
        mechanism = question.mechanism(self.units)
        return Ask(mechanism=mechanism, step=self.step, view=question.view, cohort=self._pointer.take(parts))

    def _following(self, parts: int) -> Ask:
        arc = Pointer(self._pointer.at).take(parts)
        mechanism = self.question.mechanism(self.units)
        return Ask(mechanism=mechanism, step=self.step + 1, view=self.question.view, cohort=arc)

    def _whole(self, estimate: Estimate) -> Estimate:
        return estimate.of_population(max(round(self.population), estimate.n))
