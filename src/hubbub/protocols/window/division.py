"""The two ways to divide what a window may spend, by budget or by population, in a finite set of parts.

Both hand out whole parts of a fixed total such that any w consecutive steps take at most the total. If the budget is
divided, everyone answers with a part of epsilon. If the population is divided, a part of the people answers with the
whole epsilon. The methods of this package run over either division.

Rounding of epsilons that depend on earlier answers to a finite set, which a signed question can list.

If any epsilon could be asked, a server could ask every device with a different epsilon and so recognise its report.
Rounding down to five binary digits costs at most a sixteenth of what an ask could have taken, and nothing where the
paper's own numbers have no more digits.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import deque
from collections.abc import Generator
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar, TypeAlias

from hubbub.core.errors import HubbubError, InvalidValue, check_integer
from hubbub.core.estimate import Estimate
from hubbub.core.event import units_of
from hubbub.core.reports import Floats
from hubbub.protocols.ask import CIRCLE, EVERYONE, Ask, Pointer
from hubbub.protocols.driver import MAIN, OWN, Message, Release, Reply, ask_once
from hubbub.protocols.statistic import Statistic

_DIGITS = 5
_HALVINGS = 8
"""A publication with less than 1/256 of the budget would be nearly all noise, and is not made."""


def round_count(count: int) -> int:
    """The largest whole number of at most `count` that has only zeros after its first five binary digits."""
    spare = max(count.bit_length() - _DIGITS, 0)
    return count >> spare << spare


def finite_counts(most: int) -> tuple[int, ...]:
    """All results of `round_count` for the numbers from 1 to `most`."""
    counts: list[int] = []
    count = 1
    while count <= most:
        counts.append(count)
        count += 1 << max(count.bit_length() - _DIGITS, 0)
    return tuple(counts)


@lru_cache(maxsize=256)
def finite_parts(total: int) -> tuple[int, ...]:
    """All results of `round_parts` except 0: m/32 of the total for m from 16 to 31, halved up to seven times; and
    all.
    """
    fractions = {(total * m) >> (_DIGITS + halving) for halving in range(_HALVINGS) for m in range(16, 32)}
    return tuple(sorted(fractions | {total}))


def round_parts(parts: int, total: int) -> int:
    """The largest of `finite_parts(total)` that is at most `parts`; 0 if there is none."""
    allowed = finite_parts(total)
    place = bisect_right(allowed, parts)
    return allowed[place - 1] if place else 0


Answer: TypeAlias = Generator[Message, Reply, Estimate | None]


class Division(ABC):
    """A statistic to ask for, an epsilon and a window of w steps, and the parts that the steps of the window took.

    Parameters
    ----------
    question
        The statistic; it may be changed between steps.
    epsilon, w
        The promise: epsilon in any w consecutive steps.
    aside
        The share of the window that is reserved for another statistic, evenly over the steps.
    groups
        How many equal groups devices are in, of which one is asked. The circle and all decisions are those of this
        group; releases are of all people.
    """

    total: int
    """The parts that a window has for the statistic."""
    remembered: ClassVar[tuple[str, ...]] = ("step", "population", "_taken", "_heard")
    """The attributes that later steps depend on."""

    def __init__(self, question: Statistic, *, epsilon: float, w: int, aside: float = 0.0, groups: int = 1) -> None:
        check_integer("w", w, 1)
        if not 0 <= aside < 1:
            raise InvalidValue("aside", aside, "a share from 0 to below 1")
        self.question = question
        self.units = units_of(question.mechanism(units_of(epsilon)).epsilon)
        self.w, self.groups = w, groups
        self.aside_parts = int(self._window() * aside) // w
        self.total = self._window() - self.aside_parts * w
        self.step = 1
        self.population = 0.0
        self._taken: deque[int] = deque([0], maxlen=w)
        self._heard: deque[tuple[int, float]] = deque(maxlen=w)

    @abstractmethod
    def error(self, parts: int, like: Floats) -> float:
        """The expected error of an ask that takes a number of parts (Eq 4): of the randomisation and of the sample."""

    def people(self, parts: int) -> float:
        """How many people would answer an ask that takes a number of parts."""
        return self.population

    @abstractmethod
    def _window(self) -> int:
        """The parts of a window, including those set aside."""

    @abstractmethod
    def _ask(self, question: Statistic, parts: int, standing: bool) -> Ask:
        """The ask that takes a number of parts."""

    @abstractmethod
    def _following(self, parts: int) -> Ask:
        """The first ask of the next step, if it takes a number of parts and this step takes no more."""

    @abstractmethod
    def _of_population(self, estimate: Estimate) -> Estimate:
        """An estimate of the whole population, with the variance of sampling, from one of those who were asked."""

    def round_parts(self, parts: int, total: int) -> int:
        """A number of parts that depends on earlier answers, rounded down to one that a device admits."""
        return parts

    def round_count(self, count: int) -> int:
        """A number of steps whose parts one ask takes, rounded down to one that a device admits."""
        return count

    def portion(self, share: float) -> int:
        """A share of the total, in whole parts, rounded down."""
        if not 0 <= share <= 1:
            raise InvalidValue("share", share, "a number from 0 to 1")
        return int(self.total * share)

    def taken(self, steps: int) -> int:
        """The parts taken in a number of steps up to now, this one included."""
        return sum(list(self._taken)[-steps:])

    def left(self) -> int:
        """The parts that this step may still take."""
        return self.total - sum(self._taken)

    def ask(self, parts: int, *, standing: bool = False, then: int = 0) -> Answer:
        """Make an ask that takes a number of parts, and return the estimate; None if nobody answered.

        `then` is for the last ask of a step: the number of parts that the first ask of the next step will take.
        """
        if not 0 <= parts <= self.left():
            raise HubbubError(f"step {self.step} would take {parts} parts, and the window has {self.left()} left")
        if parts == 0:
            return None
        self._taken[-1] += parts
        return (yield from self._estimate(self.question, parts, standing, then))

    def ask_aside(self, question: Statistic) -> Answer:
        """Ask for another statistic with the parts that are set aside for a step; once in each step."""
        return (yield from self._estimate(question, self.aside_parts, True)) if self.aside_parts else None

    def _estimate(self, question: Statistic, parts: int, standing: bool, then: int = 0) -> Answer:
        ask = self._ask(question, parts, standing)
        if then and not self.aside_parts:
            ask = replace(ask, following=self._following(then))
        sketch = yield from ask_once(ask)
        if sketch.n == 0:
            return None
        self._heard.append((sketch.n, ask.cohort.share))
        self.population = sum(n for n, _ in self._heard) / sum(share for _, share in self._heard)
        return self._of_population(ask.mechanism.estimate(sketch))

    def release(self, estimate: Estimate, *, own: Estimate | None, published: bool) -> Release:
        """End the step: its release has an estimate and, as "own", the estimate from the step's own reports."""
        estimates = {MAIN: estimate}
        if own is not None:
            estimates = {
                name: part.of_groups(self.groups, self.population) for name, part in ((MAIN, estimate), (OWN, own))
            }
        release = Release(
            step=self.step,
            estimates=estimates,
            published=published,
            spent=(self._taken[-1] + self.aside_parts) / self._window(),
            n=self.population * self.groups,
        )
        self.step += 1
        self._taken.append(0)
        return release


class BudgetDivision(Division):
    """Everyone answers; parts are units of 1e-12 epsilon."""

    FEWEST = 10**6
    """With fewer parts (1e-6 epsilon) a report is nearly independent of the value, and the error counts as infinite."""

    def _window(self) -> int:
        return self.units

    def round_parts(self, parts: int, total: int) -> int:
        return round_parts(parts, total)

    def round_count(self, count: int) -> int:
        return round_count(count)

    def error(self, parts: int, like: Floats) -> float:
        if parts < self.FEWEST or not self.population:
            return float("inf")
        return self.question.error(parts, self.population, like)

    def _ask(self, question: Statistic, parts: int, standing: bool) -> Ask:
        mechanism = question.mechanism(parts)
        return Ask(mechanism=mechanism, step=self.step, view=question.view, cohort=EVERYONE, standing=standing)

    def _following(self, parts: int) -> Ask:
        return replace(self._ask(self.question, parts, True), step=self.step + 1)

    def _of_population(self, estimate: Estimate) -> Estimate:
        return estimate


class PopulationDivision(Division):
    """A cohort answers with the whole epsilon; parts are places on the circle."""

    remembered = (*Division.remembered, "_pointer")

    def __init__(
        self, question: Statistic, *, epsilon: float, w: int, aside: float = 0.0, groups: int = 1, start: int = 0
    ) -> None:
        super().__init__(question, epsilon=epsilon, w=w, aside=aside, groups=groups)
        self._pointer = Pointer(start)

    def _window(self) -> int:
        return CIRCLE

    def people(self, parts: int) -> float:
        return parts / CIRCLE * self.population

    def error(self, parts: int, like: Floats) -> float:
        n = self.people(parts)
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

    def _of_population(self, estimate: Estimate) -> Estimate:
        return estimate.of_population(max(round(self.population), estimate.n))
