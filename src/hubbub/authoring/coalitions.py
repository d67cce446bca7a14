"""What each coalition of parties can learn of a shuffled report."""

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple, TypeAlias

import msgspec

from hubbub.collection.safety import links
from hubbub.collection.shuffle_route import ObliviousRoute, Route
from hubbub.core.errors import InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON, units_of
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import LocalHashing
from hubbub.protocols.ask import Ask
from hubbub.questions.collection import Collection
from hubbub.questions.spending import cost_of
from hubbub.questions.words import rounded_up

_YEAR = 365 * 86400
ALL_OTHERS = "the collector and everyone else who takes part"


class Coalition(msgspec.Struct, frozen=True):
    """Parties that work together, and a bound (epsilon, delta) on what they can learn of one person's report."""

    who: str
    epsilon: float
    delta: float
    left: str
    """What protects a person from them."""
    year: tuple[float, float] | None = None
    """The same of all reports of a year, where there is more than one batch."""

    def text(self) -> str:
        """The coalition and its bound, in words."""
        text = f"{self.who}: {_bound_text(self.epsilon, self.delta)}"
        return text if self.year is None else f"{text} (in a year {_bound_text(*self.year)})"


def _bound_text(epsilon: float, delta: float) -> str:
    return f"epsilon {rounded_up(epsilon)}{f', delta {delta:g}' if delta else ''}"


class Batches(NamedTuple):
    """In how many batches of a year a person has a report, and what a device spends at most in all its life."""

    times: int
    most: float = math.inf


ONE_BATCH = Batches(1)


def coalitions(mechanism: ReportFormat | float, route: Route, n: int, batches: Batches = ONE_BATCH) -> list[Coalition]:
    """What each coalition can learn from a batch of n people's reports: from the collector alone to everyone.

    Only fakes of shufflers outside the coalition protect a person. Forged reports do not: someone who can forge all
    other reports knows as much as a coalition with everyone else who takes part.

    `mechanism`: what reports are made by; or an epsilon, where all that is known is that they spend no more. A
    mechanism whose reports can be linked, to each other or to what is publicly known, is refused.
    """
    groups, nothing_left = (_with_shares if isinstance(route, ObliviousRoute) else _with_layers)(route, n)
    local = mechanism if isinstance(mechanism, float) else mechanism.effective_epsilon
    several = batches.times > 1
    bounded = [
        Coalition(
            who,
            *_bound(mechanism, people, route, fakes),
            left,
            _year(mechanism, people, route, fakes, batches) if several else None,
        )
        for who, people, fakes, left in groups
    ]
    most = min(local * batches.times, batches.most)
    rest = (
        msgspec.structs.replace(group, year=(most if group.epsilon else 0.0, 0.0)) if several else group
        for group in nothing_left(local)
    )
    return [*bounded, *rest]


class _Group(NamedTuple):
    """A coalition that still faces the reports of other people, or fakes that it does not know."""

    who: str
    people: int
    fakes: int
    left: str


_LastGroups: TypeAlias = Callable[[float], list[Coalition]]
"""The coalitions that face neither, from the local epsilon."""


def _with_layers(route: Route, n: int) -> tuple[list[_Group], _LastGroups]:
    fakes_of_one, shufflers = route.fakes, len(route.shufflers)
    groups = [_Group("the collector", n, route.all_fakes, f"{n:,} reports in an order that nobody knows")]
    if shufflers > 1:
        left = "the order of the one that is left, if they hand on every report"
        groups.append(_Group("the collector and all shufflers but one", n, fakes_of_one, left))
    groups.append(_Group(ALL_OTHERS, 1, route.all_fakes, _fakes_left(route.all_fakes)))
    if shufflers > 1 and fakes_of_one:
        who = "the collector, everyone else and all shufflers but one"
        groups.append(_Group(who, 1, fakes_of_one, _fakes_left(fakes_of_one)))
    everyone = "the collector and the shuffler" if shufflers == 1 else "the collector and all shufflers"
    left = "the report's own randomness: the local epsilon"
    return groups, lambda local: [Coalition(everyone, local, 0.0, left)]


def _with_shares(route: Route, n: int) -> tuple[list[_Group], _LastGroups]:
    minority, fakes = (len(route.shufflers) - 1) // 2, route.fakes
    few = "one of the shufflers" if minority == 1 else f"{minority} of the shufflers"
    order = f"the order of {n:,} reports, which less than half of the shufflers do not know if they do as they should"
    groups = [
        _Group("the collector", n, fakes, f"{n:,} reports in an order that nobody knows"),
        _Group(f"the collector and {few}", n, fakes, order),
        _Group(ALL_OTHERS, 1, fakes, _fakes_left(fakes)),
        _Group(f"the collector, everyone else and {few}", 1, fakes, _fakes_left(fakes)),
    ]
    own = "the report's own randomness: the local epsilon"
    share = "one share of every report is encrypted to the collector"
    return groups, lambda local: [
        Coalition("the collector and half of the shufflers or more", local, 0.0, own),
        Coalition("the collector and one shuffler that marks a report which it wants to trace", local, 0.0, own),
        Coalition("all shufflers, without the collector", 0.0, 0.0, share),
    ]


def _fakes_left(fakes: int) -> str:
    return f"{fakes:,} fakes" if fakes else "nothing but the report's own randomness"


def coalitions_of(collection: Collection, question: str, n: int | None = None) -> list[Coalition]:
    """The coalitions of a question, for the smallest batch that is handed on and a year of them, or for a batch of n.

    Of a stream of changes, the bounds are of all reports of a horizon, in batches that all have the same n devices of a
    level. There are none where reports can be linked to a device: `check` refuses such a question where reports are
    shuffled.
    """
    route = collection.shuffle
    if route is None or links(collection.terms[question]):
        return []
    mechanism = reported_by(collection, question)
    most = math.inf if collection.budget.user is None else collection.budget.user / UNITS_PER_EPSILON
    if n is not None:
        return coalitions(mechanism, route, n)  # a year has batches of other sizes
    return coalitions(mechanism, route, route.least, Batches(_batches_a_year(collection, question, mechanism), most))


def _batches_a_year(collection: Collection, question: str, mechanism: ReportFormat | float) -> int:
    """In how many batches of a year a device has a report: of a stream of changes, in how many horizons."""
    terms, spec = collection.terms[question], collection.questions[question]
    if terms.study is not None:
        (promise,) = terms.promises
        rounds = 1 if isinstance(mechanism, float) else min(terms.rounds, terms.limit // units_of(mechanism.epsilon))
        return rounds * (math.ceil(_YEAR / (promise.steps * promise.interval)) if terms.study.every else 1)
    if isinstance(mechanism, ReportFormat) and mechanism.whole_reports:
        return math.ceil(_YEAR / (spec.horizon * collection.step_seconds))
    per = max(cost_of(collection, question).per, 1)
    return math.ceil(_YEAR / (per * collection.step_seconds))


def reported_by(collection: Collection, question: str) -> ReportFormat | float:
    """The one mechanism that a question is asked by; where there are several, the most that one report can spend."""
    terms = collection.terms[question]
    if not terms.families and (len(terms.mechanisms) == 1 or terms.state):
        message = next(collection.protocol(question))
        asks = (message,) if isinstance(message, Ask) else message
        first = asks[0] if isinstance(asks, tuple | list) else None
        if isinstance(first, Ask):
            return first.mechanism
    return terms.limit / UNITS_PER_EPSILON


def _bound(mechanism: ReportFormat | float, n: int, route: Route, fakes: int) -> tuple[float, float]:
    epsilon = _epsilon(mechanism, n, route.delta, fakes, shared=isinstance(route, ObliviousRoute))
    local = mechanism if isinstance(mechanism, float) else mechanism.effective_epsilon
    return (epsilon, route.delta) if epsilon < local else (local, 0.0)


@lru_cache(maxsize=1024)
def _year(mechanism: ReportFormat | float, n: int, route: Route, fakes: int, batches: Batches) -> tuple[float, float]:
    """The bound of all batches of a year together."""
    from hubbub.privacy.accountant import accounted

    local = mechanism if isinstance(mechanism, float) else mechanism.effective_epsilon
    least = min(local * batches.times, batches.most)
    # Fakes in shares, and fakes of other mechanisms, are left out: the bound holds without them.
    uniform = isinstance(mechanism, GRR | LocalHashing) and not isinstance(route, ObliviousRoute)
    if n == 1 and not (fakes and uniform):
        return least, 0.0
    year = accounted(mechanism, n=n, delta=route.delta, times=batches.times, fakes=fakes if uniform else 0)
    return (year.epsilon, year.delta) if year.epsilon < least else (least, 0.0)


@lru_cache(maxsize=1024)
def _epsilon(mechanism: ReportFormat | float, n: int, delta: float, fakes: int, *, shared: bool) -> float:
    from hubbub.planning.shuffled import amplify_with_shared_fakes
    from hubbub.privacy.amplify import amplify

    if isinstance(mechanism, ReportFormat) and mechanism.linkable != "never":
        allowed = "one whose reports cannot be linked: a shuffled collection has a batch in every step"
        raise InvalidValue("mechanism", type(mechanism).__name__, allowed)
    # Fakes that hide nothing for sure take nothing away either.
    if isinstance(mechanism, GRR | LocalHashing):
        bound = amplify_with_shared_fakes if shared else amplify
        return bound(mechanism, n=n, delta=delta, fakes=fakes).epsilon
    if isinstance(mechanism, ReportFormat):
        levels: list[ReportFormat] = [whole for _, whole in mechanism.whole_reports]
        return max(amplify(level, n=n, delta=delta).epsilon for level in levels or [mechanism])
    return _clones(mechanism, n, delta)


def _clones(local: float, n: int, delta: float) -> float:
    """The bound that holds for anything with a local epsilon: clones (Feldman et al., 2021 and 2023)."""
    from hubbub.privacy.binomial_tails import smallest_epsilon
    from hubbub.privacy.shuffle_bounds import clone_chance, clone_delta, stronger_clone_chance

    epsilons = [local]
    for chance in (clone_chance(math.exp(local)), stronger_clone_chance(math.exp(local))):
        bound = partial(clone_delta, math.exp(local), n, chance=chance, tail=delta * 1e-7)
        epsilons.append(smallest_epsilon(bound, bound, delta, local) or local)
    return min(epsilons)
