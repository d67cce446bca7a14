"""Mechanisms whose values are sets: they estimate the share of people that hold each item."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from math import comb
from typing import Self

from hubbub.core.domain import Domain, Sets, Values, as_domain
from hubbub.core.domain.sets import ItemSets, as_item_sets
from hubbub.core.reports import Floats
from hubbub.mechanisms.frequency.oracle import SupportMechanism


@dataclass(frozen=True, kw_only=True)
class SetMechanism(SupportMechanism):
    """The share of people that hold each item. The domain is a `Sets`; any other stands for all sets of its values.

    A batch is a list of sets, rows of codes filled up with -1, or `ItemSets`, the fastest for large populations. The
    covariance of two items depends on how many people hold both, which no count tells: `Estimate.linear` states the
    largest variance possible.
    """

    @classmethod
    def best_for(cls, *, epsilon: float, domain: Sets, held: float) -> Self:
        """The mechanism with the smallest error where people hold `held` items on average, if it has a choice."""
        return cls(epsilon=epsilon, domain=domain)

    def _resolve_sets(self) -> None:
        domain = as_domain("domain", self.domain)
        self._set("domain", domain if isinstance(domain, Sets) else Sets(domain, domain.size or 0))

    @cached_property
    def sets(self) -> Sets:
        """The domain."""
        assert isinstance(self.domain, Sets)
        return self.domain

    @cached_property
    def _domain(self) -> Domain:
        return self.sets.items

    def encode(self, values: Values) -> ItemSets:  # type: ignore[override]
        return as_item_sets(values, self.sets)

    def pair_covariance(self) -> tuple[float, float] | None:
        return None

    def truth(self, values: Values) -> Floats:
        """The shares that estimates should come to."""
        people = self.encode(values)
        return people.support() / max(len(people), 1)

    def example_values(self, most: int) -> list[object]:
        """Sets of every size in turn: the first few include the empty one and full ones."""
        from hubbub.mechanisms.base import round_robin  # a device needs no examples

        longest, every, size = self.sets.most, 0, 0
        while size <= longest and every <= most:
            every, size = every + comb(self.size, size), size + 1
        all_of_them = every <= most
        names = self._domain.examples(self.size if all_of_them else min(self.size, most))
        sizes = set(range(longest + 1)) if all_of_them else {0, 1, longest, (longest + 1) // 2}
        counts = sorted({min(count, len(names)) for count in sizes}, reverse=True)
        return round_robin(
            [combinations(names, count) if all_of_them else _runs(names, count) for count in counts], most
        )


def _runs(names: list[object], size: int) -> Iterator[tuple[object, ...]]:
    """Runs of a given number of neighbours, which wrap round."""
    for start in range(len(names) if 0 < size < len(names) else 1):
        yield tuple(islice((names * 2)[start:], size))
