"""What each coalition can learn of a shuffled report: the collector alone, with shufflers, with everyone else."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import NamedTuple

from hubbub.collection.document import Collection
from hubbub.collection.shuffle_route import ShuffleRoute
from hubbub.core.errors import InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.core.spec import Json
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import LocalHashing
from hubbub.protocols.ask import Ask
from hubbub.questions.words import rounded_up

ALL_OTHERS = "the collector and everyone else who takes part"


class Coalition(NamedTuple):
    """Parties that work together, and a bound (epsilon, delta) on what they can learn of one person's report."""

    who: str
    epsilon: float
    delta: float
    left: str
    """What protects a person from them."""

    def text(self) -> str:
        """The coalition and its bound, in words."""
        delta = f", delta {self.delta:g}" if self.delta else ""
        return f"{self.who}: epsilon {rounded_up(self.epsilon)}{delta}"

    def to_dict(self) -> dict[str, Json]:
        """The coalition as JSON."""
        return dict(self._asdict())


def coalitions(mechanism: Mechanism | float, route: ShuffleRoute, n: int) -> list[Coalition]:
    """What each coalition can learn from a batch of n people's reports: from the collector alone to everyone.

    Only fakes of shufflers outside the coalition protect a person. Forged reports do not: someone who can forge all
    other reports knows as much as a coalition with everyone else who takes part.

    Parameters
    ----------
    mechanism
        What reports are made by; or an epsilon, where all that is known is that they spend no more. A mechanism whose
        reports can be linked, to each other or to what is publicly known, is refused.
    route
        Who shuffles.
    n
        How many people's reports the batch has.
    """
    all_fakes, fakes_of_one, shufflers = route.all_fakes, route.fakes, len(route.shufflers)
    groups = [("the collector", n, all_fakes, f"{n:,} reports in an order that nobody knows")]
    if shufflers > 1:
        groups.append(
            (
                "the collector and all shufflers but one",
                n,
                fakes_of_one,
                "the order of the one that is left, if they hand on every report",
            )
        )
    left = f"{all_fakes:,} fakes" if all_fakes else "nothing but the report's own randomness"
    groups.append((ALL_OTHERS, 1, all_fakes, left))
    if shufflers > 1 and fakes_of_one:
        who = "the collector, everyone else and all shufflers but one"
        groups.append((who, 1, fakes_of_one, f"{fakes_of_one:,} fakes"))
    bounded = [
        Coalition(who, *_bound(mechanism, people, route.delta, fakes), left) for who, people, fakes, left in groups
    ]
    local = mechanism if isinstance(mechanism, float) else mechanism.effective_epsilon
    together = "the collector and the shuffler" if shufflers == 1 else "the collector and all shufflers"
    return [*bounded, Coalition(together, local, 0.0, "the report's own randomness: the local epsilon")]


def coalitions_of(collection: Collection, question: str, n: int | None = None) -> list[Coalition]:
    """The coalitions of a question, for the smallest batch that is handed on, or for one of n people's reports.

    There are none where reports can be linked to a device: `check` refuses such a question in a shuffled collection.
    """
    route = collection.shuffle
    if route is None or collection.questions[question].linked(collection.setting(question)):
        return []
    return coalitions(reported_by(collection, question), route, route.least if n is None else n)


def reported_by(collection: Collection, question: str) -> Mechanism | float:
    """The one mechanism that a question is asked by; where there are several, the most that one report can spend."""
    terms = collection.terms[question]
    if len(terms.mechanisms) == 1 and not terms.families:
        message = next(collection.protocol(question))
        asks = (message,) if isinstance(message, Ask) else message
        first = asks[0] if isinstance(asks, tuple | list) else None
        if isinstance(first, Ask) and isinstance(first.mechanism, Mechanism):
            return first.mechanism
    return terms.limit / UNITS_PER_EPSILON


def _bound(mechanism: Mechanism | float, n: int, delta: float, fakes: int) -> tuple[float, float]:
    epsilon = _epsilon(mechanism, n, delta, fakes)
    local = mechanism if isinstance(mechanism, float) else mechanism.effective_epsilon
    return (epsilon, delta) if epsilon < local else (local, 0.0)


@lru_cache(maxsize=1024)
def _epsilon(mechanism: Mechanism | float, n: int, delta: float, fakes: int) -> float:
    from hubbub.privacy.amplification.amplify import amplify

    if isinstance(mechanism, Mechanism) and mechanism.linkable != "never":
        allowed = "one whose reports cannot be linked: a shuffled collection has a batch in every step"
        raise InvalidValue("mechanism", type(mechanism).__name__, allowed)
    # Fakes that hide nothing for sure take nothing away either.
    if isinstance(mechanism, GRR | LocalHashing):
        return amplify(mechanism, n=n, delta=delta, fakes=fakes).epsilon
    if isinstance(mechanism, Mechanism):
        return amplify(mechanism, n=n, delta=delta).epsilon
    return _clones(mechanism, n, delta)


def _clones(local: float, n: int, delta: float) -> float:
    """The bound that holds for anything with a local epsilon: clones (Feldman et al., 2021 and 2023)."""
    from hubbub.privacy.amplification.clone_bound import clone_chance, clone_delta, stronger_clone_chance
    from hubbub.privacy.amplification.smallest import smallest_epsilon

    epsilons = [local]
    for chance in (clone_chance(math.exp(local)), stronger_clone_chance(math.exp(local))):
        bound = partial(clone_delta, math.exp(local), n, chance=chance, tail=delta * 1e-7)
        epsilons.append(smallest_epsilon(bound, bound, delta, local) or local)
    return min(epsilons)
