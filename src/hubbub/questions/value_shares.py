"""Statistics that several kinds ask for: the shares of the values of a field, of texts, or of the items of sets."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from hubbub.core.domain import Domain, Ordinal, Sets, Strings, as_domain
from hubbub.core.event import epsilon_of
from hubbub.core.reports import Floats
from hubbub.mechanisms import browsers_lack
from hubbub.mechanisms.frequency.adaptive import adaptive
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.frequency.rappor import Rappor
from hubbub.mechanisms.sets.psfo import PSFO
from hubbub.mechanisms.sets.set_mechanism import SetMechanism
from hubbub.planning.item_shares import set_options
from hubbub.protocols.statistic import Frequencies, Statistic
from hubbub.protocols.views.basic import View, Whole
from hubbub.questions.statistic import MOST_BYTES, named_mechanism, named_with_buckets


@dataclass(frozen=True)
class TextShares(Statistic):
    """The share of each candidate among any text, by RAPPOR's Bloom filters; its error has no formula.

    `filter` has the parameters of the Bloom filters by name: bits, hashes, cohorts.
    """

    domain: Strings
    candidates: tuple[str, ...]
    filter: tuple[tuple[str, int], ...] = ()
    view: View = Whole()  # noqa: RUF009 - frozen

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many candidates there are."""
        return len(self.candidates)

    def mechanism(self, units: int) -> Rappor:
        filters: dict[str, Any] = dict(self.filter)
        return Rappor(epsilon=epsilon_of(units), domain=self.domain, **filters)

    def error(self, units: int, n: float, like: Floats) -> float:
        return float("nan")

    def spread(self, like: Floats) -> float:
        return float("nan")


@dataclass(frozen=True)
class Shares(Frequencies):
    """The share of each value, by the best of GRR, OUE and OLH unless an oracle is named.

    `buckets` is for an oracle that hashes; None takes its own choice.
    """

    oracle: str | None = None
    buckets: int | None = None

    def mechanism(self, units: int) -> FrequencyOracle:
        return _oracle(self.oracle, units, as_domain("domain", self.domain), self.buckets)


@lru_cache(maxsize=4096)
def _oracle(name: str | None, units: int, domain: Domain, buckets: int | None) -> FrequencyOracle:
    epsilon = epsilon_of(units)
    if name is None and buckets is None:
        return adaptive(epsilon=epsilon, domain=domain, most_bytes=MOST_BYTES)
    oracle: FrequencyOracle = named_with_buckets(name, FrequencyOracle, buckets, epsilon=epsilon, domain=domain)
    return oracle


@dataclass(frozen=True)
class ItemShares(Statistic):
    """The share of people that hold each item, by the mechanism of the smallest exact error, or a named one.

    What is compared is padding and sampling over GRR and OLH, PrivSet, and a unary encoding with a split budget, if
    people hold half of what they may. (Ternary mechanisms, which report signs too, erred more wherever it was
    measured.)
    """

    domain: Sets
    named: str | None = None
    view: View = Whole()  # noqa: RUF009 - frozen

    @property
    def size(self) -> int:  # type: ignore[override]
        size = self.domain.items.size
        assert size is not None
        return size

    @property
    def held(self) -> float:
        """How many items people are taken to hold, on average."""
        return self.domain.most / 2

    def mechanism(self, units: int) -> SetMechanism:
        return _mechanism(self.named, units, self.size, self.domain.most)

    def error(self, units: int, n: float, like: Floats) -> float:
        noise = self.mechanism(units).noise(1)
        return (noise.floor + noise.slope * float(np.mean(np.clip(like, 0.0, 1.0)))) / n

    def spread(self, like: Floats) -> float:
        share = np.clip(like, 0.0, 1.0)
        return float(np.mean(share * (1 - share)))


@lru_cache(maxsize=256)
def _mechanism(name: str | None, units: int, items: int, most: int) -> SetMechanism:
    epsilon, sets = epsilon_of(units), Sets(Ordinal(items), most)  # devices keep codes, not names
    if name is not None and name != "PSFO":
        made: SetMechanism = named_mechanism(name, SetMechanism)(epsilon=epsilon, domain=sets)
        return made
    hashed = PSFO(epsilon=epsilon, domain=sets, oracle=OLH(epsilon=epsilon, domain=items + most))
    options: list[SetMechanism] = [hashed]
    for option in set_options(epsilon=epsilon, domain=sets, held=most / 2):
        mechanism = option.mechanism
        if not isinstance(mechanism, SetMechanism) or option.name == "PSFO-OLH" or any(browsers_lack(mechanism)):
            continue
        if mechanism.report_bytes <= MOST_BYTES:
            options.append(mechanism)
    if name == "PSFO":
        options = [mechanism for mechanism in options if isinstance(mechanism, PSFO)]
    return min(options, key=lambda mechanism: float(f"{mechanism.variance(1, most / 2 / items):.9g}"))
