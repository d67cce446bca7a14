"""What mining found: the most frequent items and itemsets, the rules they make, and what could not be found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hubbub.core.estimate import Estimate
from hubbub.protocols.heavy_hitters.sensitivity import expected_false_positives
from hubbub.protocols.itemsets.guess import Itemset
from hubbub.protocols.itemsets.mining import Mined
from hubbub.protocols.itemsets.rules import Known, Rule, RuleNumber, association_rules
from hubbub.protocols.itemsets.selection import after_selection
from hubbub.protocols.release import Release

ITEMS, SETS = "items", "itemsets"
"""The names of the estimates of a release: the items alone, and all that is frequent, items among it."""
RULES = ("Confidence", "Lift")
SEARCH = "search"
"""The name of what is told of the search: what could not be found, and what was found by chance."""
LEAST, FALSE = "smallest share found reliably, of what people name", "expected false positives"
_REACH = 1.959963984540054


@dataclass(frozen=True, eq=False, kw_only=True)
class Findings:
    """The outcome of a study of items and itemsets.

    Parameters
    ----------
    k
        How many are shown.
    items, itemsets
        The candidates with their shares; None where nothing is known.
    named
        The share of what people name, if each names one of their own items, below which an item is lost among the noise
        of the first group; 0 where all items were candidates.
    heard, people
        How many answered, and how many there are by that.
    stopped
        Why it ended early.
    """

    k: int
    items: Mined | None = None
    itemsets: Mined | None = None
    named: float = 0.0
    heard: int = 0
    people: float = 0.0
    stopped: str | None = None

    @property
    def _mined(self) -> list[Mined]:
        return [mined for mined in (self.items, self.itemsets) if mined is not None]

    @cached_property
    def sets(self) -> tuple[Itemset, ...]:
        """What is shown: the k most frequent of all candidates, most frequent first."""
        every = [items for mined in self._mined for items in mined.sets]
        return tuple(every[place] for place in self._order)

    @cached_property
    def estimate(self) -> Estimate:
        """Their shares; 95% intervals hold the truth after the selection too."""
        if not self._mined:
            return Estimate(np.zeros(0), np.zeros(0), 0)
        return after_selection(self._joined, self._order)

    @cached_property
    def _joined(self) -> Estimate:
        each = [mined.estimate for mined in self._mined]
        value, variance = (np.concatenate([getattr(one, name) for one in each]) for name in ("value", "variance"))
        biased = any(one.bias != "none" for one in each)
        return Estimate(value, variance, min(one.n for one in each), bias="heuristic" if biased else "none")

    @cached_property
    def _order(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return self._joined.top(self.k) if self._mined else np.zeros(0, dtype=np.int64)

    @property
    def false_positives(self) -> float:
        """How many of those that are shown nobody need hold: as many candidates as chance raises above the last."""
        if not len(self.estimate):
            return 0.0
        least = float(self.estimate.value[-1])
        chance = (expected_false_positives(mined.deviation, len(mined.sets), 1, least) for mined in self._mined)
        return min(sum(chance), float(self.k))

    @cached_property
    def rules(self) -> list[Rule]:
        """The rules that the itemsets make which are shown, by the variances that are shown."""
        if not self.sets:
            return []
        known = self._joined.variance[self._order] > 0
        wider = (self.estimate.variance[known] / self._joined.variance[self._order][known]).max(initial=1.0)
        shares = {
            items: Known(float(value), float(variance * wider), str(group))
            for group, mined in enumerate(self._mined)
            for items, value, variance in zip(mined.sets, mined.estimate.value, mined.estimate.variance, strict=True)
        }
        return association_rules(shares, self.sets)

    def release(self, names: Sequence[str] | None = None) -> Release:
        """All of it as a study tells it.

        Parameters
        ----------
        names
            What items are called; their codes unless given.
        """

        def name(items: Itemset) -> str:
            return " + ".join(str(item) if names is None else names[item] for item in items)

        estimates: dict[str, Estimate] = {}
        if self.sets:
            shown = self.estimate
            labels = tuple(map(name, self.sets))
            main = SETS if self.itemsets is not None else ITEMS
            estimates[main] = Estimate(shown.value, shown.variance, shown.n, bias=shown.bias, labels=labels)
        if rules := self.rules[: self.k]:
            arrows = tuple(f"{name(rule.given)} -> {name(rule.then)}" for rule in rules)
            for label, numbers in zip(RULES, ([r.confidence for r in rules], [r.lift for r in rules]), strict=True):
                estimates[label] = _ranged(numbers, arrows, self.estimate.n)
        if self.sets:
            told = np.array([self.named, self.false_positives])
            estimates[SEARCH] = Estimate(
                told, np.zeros(2), self.estimate.n, kind="quantity", labels=(LEAST, FALSE), bias="heuristic"
            )
        return Release(
            step=0,
            estimates=estimates,
            published=bool(estimates),
            spent=1.0,
            n=self.people,
            stopped=self.stopped,
        )


def _ranged(numbers: list[RuleNumber], labels: tuple[str, ...], n: int) -> Estimate:
    """Numbers with intervals of their own: around its middle each, half as wide as 1.96 standard errors."""
    value, low, high = (np.array(ends, dtype=np.float64) for ends in zip(*numbers, strict=True))
    known = np.isfinite(high)
    reach = np.where(known, (np.where(known, high, 0.0) - low) / 2, np.inf)
    middle = np.where(known, low + reach, value)
    return Estimate(value, (reach / _REACH) ** 2, n, bias="heuristic", kind="quantity", labels=labels, centre=middle)
