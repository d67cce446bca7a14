"""Shares of the items of sets: by which mechanism they are asked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Ordinal, Sets
from hubbub.core.event import epsilon_of
from hubbub.core.hashing import BEST_HASH
from hubbub.mechanisms.first_hash import with_hash
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.sets.compare import set_options
from hubbub.mechanisms.sets.psfo import PSFO
from hubbub.mechanisms.sets.set_mechanism import SetMechanism
from hubbub.protocols.statistic import Statistic
from hubbub.protocols.view import View, Whole
from hubbub.questions.shares import MOST_BYTES, named_mechanism


@dataclass(frozen=True)
class ItemShares(Statistic):
    """The share of people that hold each item, by the mechanism of the smallest exact error, or a named one.

    What is compared is padding and sampling over GRR and OLH, PrivSet, and a unary encoding with a split budget, if
    people hold half of what they may. (Ternary mechanisms, which have signs to tell beside, erred more wherever it was
    measured.)
    """

    domain: Sets
    named: str | None = None
    view: View = Whole()  # noqa: RUF009 - frozen
    hash: str = BEST_HASH

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
        return _mechanism(self.named, units, self.size, self.domain.most, self.hash)

    def error(self, units: int, n: float, like: NDArray[np.float64]) -> float:
        noise = self.mechanism(units).noise(1)
        return (noise.floor + noise.slope * float(np.mean(np.clip(like, 0.0, 1.0)))) / n

    def spread(self, like: NDArray[np.float64]) -> float:
        share = np.clip(like, 0.0, 1.0)
        return float(np.mean(share * (1 - share)))


@lru_cache(maxsize=256)
def _mechanism(name: str | None, units: int, items: int, most: int, hash: str) -> SetMechanism:
    epsilon, sets = epsilon_of(units), Sets(Ordinal(items), most)  # devices keep codes, not names
    if name is not None and name != "PSFO":
        made: SetMechanism = named_mechanism(name, SetMechanism)(epsilon=epsilon, domain=sets)
        return made
    hashed = PSFO(epsilon=epsilon, domain=sets, oracle=with_hash(OLH(epsilon=epsilon, domain=items + most), hash))
    options: list[SetMechanism] = [hashed]
    for option in set_options(epsilon=epsilon, domain=sets, held=most / 2):
        mechanism = option.mechanism
        if isinstance(mechanism, SetMechanism) and mechanism.report_bytes <= MOST_BYTES and option.name != "PSFO-OLH":
            options.append(mechanism)
    if name == "PSFO":
        options = [mechanism for mechanism in options if isinstance(mechanism, PSFO)]
    return min(options, key=lambda mechanism: float(f"{mechanism.variance(1, most / 2 / items):.9g}"))
