"""Shares of a field's values, or of the items of sets: what is read, and by which mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Domain, Numeric, Ordinal, Sets, as_domain
from hubbub.core.errors import InvalidValue
from hubbub.core.event import epsilon_of
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.frequency.adaptive import adaptive
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.memoised import Memoised
from hubbub.mechanisms.sets.psfo import PSFO
from hubbub.mechanisms.sets.set_mechanism import SetMechanism
from hubbub.planning.item_shares import set_options
from hubbub.protocols.statistic import Frequencies, Statistic
from hubbub.protocols.views.basic import Clipped, View, Whole

MOST_BYTES = 512
"""The largest unary report: beyond, local hashing is as accurate in a few bytes."""

_OF: dict[type[Domain], tuple[str | None, ...]] = {Numeric: (None, "cells"), Sets: ("size",)}
"""What can be asked of a field instead of its value."""


@dataclass(frozen=True)
class Shares(Frequencies):
    """The share of each value, by the best of GRR, OUE and OLH unless an oracle is named."""

    oracle: str | None = None

    def mechanism(self, units: int) -> FrequencyOracle:
        return _oracle(self.oracle, units, as_domain("domain", self.domain))


def shares_read(domain: Domain, kind: str, of: str | None) -> tuple[Domain, View]:
    """The codes whose shares are asked for, and the view that reads them; refused where the field has none."""
    name, allowed = domain.kind, _OF.get(type(domain), (None,))
    if domain.size is None and not isinstance(domain, Sets):
        raise InvalidValue("kind", kind, f"another kind: this one does not read fields of kind {name}")
    if of not in allowed:
        listed = " or ".join("nothing" if option is None else f'"{option}"' for option in allowed)
        raise InvalidValue("of", of, f"{listed}, for a field of kind {name}")
    if isinstance(domain, Numeric):
        return domain, Clipped(domain.low, domain.high)
    if isinstance(domain, Sets):
        from hubbub.protocols.views.sets import Size

        return Ordinal(domain.most + 1), Size(domain.most)
    return domain.symbols(), Whole()


def shares_labels(domain: Domain) -> tuple[str, ...] | None:
    """A name for each of those codes."""
    return tuple(map(str, range(domain.most + 1))) if isinstance(domain, Sets) else domain.symbol_labels()


def shares_title(field: str, domain: Domain) -> str:
    """The question in words."""
    what = {Numeric: "how is it spread", Sets: "how many items has it"}
    return f"Of {field}: {what.get(type(domain), 'how common is each value')}?"


def named_mechanism(name: str, wanted: type[Any]) -> type[Any]:
    """The mechanism of a name; those with a memory answer only where one is wanted."""
    known = {other: kind for other, kind in MECHANISMS.usable().items() if issubclass(kind, wanted)}
    fitting = {other: kind for other, kind in known.items() if wanted is Memoised or not issubclass(kind, Memoised)}
    if name not in fitting:
        raise InvalidValue("mechanism", name, f"one of {', '.join(fitting)}")
    return fitting[name]


@lru_cache(maxsize=4096)
def _oracle(name: str | None, units: int, domain: Domain) -> FrequencyOracle:
    if name is None:
        return adaptive(epsilon=epsilon_of(units), domain=domain, most_bytes=MOST_BYTES)
    oracle: FrequencyOracle = named_mechanism(name, FrequencyOracle)(epsilon=epsilon_of(units), domain=domain)
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
        """How many items there are."""
        size = self.domain.items.size
        assert size is not None
        return size

    @property
    def held(self) -> float:
        """How many items people are taken to hold, on average."""
        return self.domain.most / 2

    def mechanism(self, units: int) -> SetMechanism:
        return _mechanism(self.named, units, self.size, self.domain.most)

    def error(self, units: int, n: float, like: NDArray[np.float64]) -> float:
        noise = self.mechanism(units).noise(1)
        return (noise.floor + noise.slope * float(np.mean(np.clip(like, 0.0, 1.0)))) / n

    def spread(self, like: NDArray[np.float64]) -> float:
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
        if isinstance(mechanism, SetMechanism) and mechanism.report_bytes <= MOST_BYTES and option.name != "PSFO-OLH":
            options.append(mechanism)
    if name == "PSFO":
        options = [mechanism for mechanism in options if isinstance(mechanism, PSFO)]
    return min(options, key=lambda mechanism: float(f"{mechanism.variance(1, most / 2 / items):.9g}"))
