"""Who must work together to learn what of a shuffled report: local, central and everything between."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import NamedTuple

from hubbub.collection.document import Collection
from hubbub.collection.shuffle_route import ShuffleRoute
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.core.spec import Json
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import LocalHashing
from hubbub.protocols.ask import Ask
from hubbub.questions.words import rounded_up

ALL_OTHERS = "the collector and everyone else who takes part"


class Coalition(NamedTuple):
    """Those who work together, and what they can learn of one report at most: (epsilon, delta).

    Example:
        >>> print(Coalition("the collector", 0.0123456, 1e-6, "the batch").text())
        the collector: epsilon 0.0124, delta 1e-06
    """

    who: str
    epsilon: float
    delta: float
    left: str
    """What protects a person from them."""

    def text(self) -> str:
        """It in words."""
        delta = f", delta {self.delta:g}" if self.delta else ""
        return f"{self.who}: epsilon {rounded_up(self.epsilon)}{delta}"

    def to_dict(self) -> dict[str, Json]:
        """It as JSON."""
        return dict(self._asdict())


def coalitions(mechanism: Mechanism | float, route: ShuffleRoute, n: int) -> list[Coalition]:
    """What is left of a person's protection, from the collector alone to everyone: of a batch of n people's reports.

    Fakes count only as far as shufflers that are not among those who work together add them. Forged reports are no
    people's: whoever can forge all others is in the place of everyone else who takes part.

    Parameters
    ----------
    mechanism
        What reports are made by; or an epsilon, where all that is known is that they spend no more.
    route
        Who shuffles.
    n
        How many people's reports the batch has.

    Example:
        >>> from hubbub import GRR
        >>> from hubbub.collection.shuffle_route import RouteShuffler
        >>> shufflers = tuple(RouteShuffler(f"https://{k}.example", f"{k}" * 64, f"{k + 2}" * 64) for k in (1, 2))
        >>> route = ShuffleRoute(shufflers=shufflers, collector_key="0c" * 32, delta=1e-6, least=1000, fakes=500)
        >>> for coalition in coalitions(GRR(epsilon=2.0, domain=3), route, n=1000):
        ...     print(coalition.text())
        the collector: epsilon 0.174, delta 1e-06
        the collector and all shufflers but one: epsilon 0.224, delta 1e-06
        the collector and everyone else who takes part: epsilon 0.201, delta 1e-06
        the collector, everyone else and all shufflers but one: epsilon 0.292, delta 1e-06
        the collector and all shufflers: epsilon 2
    """
    some, one, shufflers = route.all_fakes, route.fakes, len(route.shufflers)
    several = [("the collector", n, some, f"{n:,} reports in an order that nobody knows")]
    if shufflers > 1:
        several.append(
            (
                "the collector and all shufflers but one",
                n,
                one,
                "the order of the one that is left, if they hand on every report",
            )
        )
    several.append((ALL_OTHERS, 1, some, f"{some:,} fakes" if some else "nothing but the report's own dice"))
    if shufflers > 1 and one:
        several.append(("the collector, everyone else and all shufflers but one", 1, one, f"{one:,} fakes"))
    made = [
        Coalition(who, *_bound(mechanism, people, route.delta, fakes), left) for who, people, fakes, left in several
    ]
    local = mechanism if isinstance(mechanism, float) else mechanism.effective_epsilon
    together = "the collector and the shuffler" if shufflers == 1 else "the collector and all shufflers"
    return [*made, Coalition(together, local, 0.0, "the report's own dice: the local epsilon")]


def coalitions_of(collection: Collection, question: str, n: int | None = None) -> list[Coalition]:
    """Those of a question, in the smallest batch that is handed on, or in one of n people's reports.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> coalitions_of(load_collection(EXAMPLE), "popular")
        []
    """
    route = collection.shuffle
    return (
        [] if route is None else coalitions(reported_by(collection, question), route, route.least if n is None else n)
    )


def reported_by(collection: Collection, question: str) -> Mechanism | float:
    """The one mechanism that a question is asked by; where there are several, the most that one report can spend."""
    terms = collection.terms[question]
    if len(terms.mechanisms) == 1 and not terms.families:
        said = next(collection.protocol(question))
        asks = (said,) if isinstance(said, Ask) else said
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

    found = [local]
    for chance in (clone_chance(math.exp(local)), stronger_clone_chance(math.exp(local))):
        bound = partial(clone_delta, math.exp(local), n, chance=chance, tail=delta * 1e-7)
        found.append(smallest_epsilon(bound, bound, delta, local) or local)
    return min(found)
