"""The results of mining: the most frequent items and itemsets, association rules, and the limits of the search."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np

from hubbub.core.estimate import Estimate
from hubbub.core.noise import check_level, normal_reach
from hubbub.core.reports import Floats, Ints
from hubbub.protocols.driver import Release
from hubbub.protocols.heavy_hitters.pem import expected_false_positives
from hubbub.protocols.itemsets.lengths import Itemset
from hubbub.protocols.itemsets.mining import CandidateShares
from hubbub.statistics.selection import chance_to_miss


class KnownShare(NamedTuple):
    """An estimated share and its variance; the errors of estimates from different groups of people are independent.

    `factor`: by which the share is multiplied to correct it on average, where it is too small. `most`: estimates that
    are at least the true share on average, with their variances; none where `share` is unbiased.
    """

    share: float
    variance: float
    group: str
    factor: float = 1.0
    most: tuple[tuple[float, float], ...] = ()

    def upper(self, level: float) -> KnownShare:
        """The estimate of the lowest upper limit at this level; its variance makes up for taking the lowest."""
        if not self.most:
            return self
        reach = normal_reach(1 - (1 - level) / len(self.most))
        wider = (reach / normal_reach(level)) ** 2
        share, variance = min(self.most, key=lambda limit: limit[0] + reach * math.sqrt(limit[1]))
        return KnownShare(share, variance * wider, self.group)


class RuleNumber(NamedTuple):
    """A number, and the ends of its interval."""

    value: float
    low: float
    high: float


class Rule(NamedTuple):
    """Of the people who have the items `given`, the part `confidence` has the items `then` too.

    `lift` is that part divided by the share of all people who have the items `then`; `support` is the share of all
    people who have both.
    """

    given: Itemset
    then: Itemset
    support: RuleNumber
    confidence: RuleNumber
    lift: RuleNumber


def association_rules(
    shares: Mapping[Itemset, KnownShare], sets: Iterable[Itemset], *, level: float = 0.95
) -> list[Rule]:
    """The association rules from some itemsets, sorted by the lower end of the interval of their confidence.

    Each itemset is divided into two parts in all ways for which the shares of both parts are known and that of the
    first part is significantly above 0. Confidence is the ratio of two estimates: its interval is Fieller's, which is
    valid even if the divisor is small. Lift is the confidence divided by a third estimate: its interval combines the
    intervals of both, each with half the error probability.

    `shares`: the known shares, of the itemsets and of their parts. `sets`: the itemsets to divide; a set of one item
    gives no rule.

    References
    ----------
    Fieller, 1954.
    """
    check_level(level)
    rules = [rule for items in sets for rule in _rules_of(items, shares, level)]
    return sorted(rules, key=lambda rule: (-rule.confidence.low, rule.given, rule.then))


def _rules_of(items: Itemset, shares: Mapping[Itemset, KnownShare], level: float) -> Iterator[Rule]:
    both = shares.get(items)
    if both is None:
        return
    for size in range(1, len(items)):
        for given in combinations(items, size):
            then = tuple(item for item in items if item not in given)
            first, second = shares.get(given), shares.get(then)
            if first is None or second is None or not _share(first, level).low > 0:
                continue
            confidence = _ratio(both, first, level)
            half_error = (1 + level) / 2
            ratio, divisor = _ratio(both, first, half_error), _share(second, half_error)
            lift = RuleNumber(
                confidence.value / divisor.value if divisor.value > 0 else math.inf,
                ratio.low / divisor.high if divisor.high > 0 else 0.0,
                ratio.high / divisor.low if divisor.low > 0 else math.inf,
            )
            yield Rule(given, then, _share(both, level), confidence, lift)


def _share(known: KnownShare, level: float) -> RuleNumber:
    reach, most = normal_reach(level), known.upper(level)
    low, high = known.share - reach * math.sqrt(known.variance), most.share + reach * math.sqrt(most.variance)
    return RuleNumber(*(min(max(end, 0.0), 1.0) for end in (known.share * known.factor, low, high)))


def _ratio(over: KnownShare, under: KnownShare, level: float) -> RuleNumber:
    """The ratio over/under, and its interval: the smallest ratio at the upper limit of `under`, and the other way."""
    value = min(max(over.share * over.factor / (under.share * under.factor), 0.0), 1.0)
    low, _ = _fieller(over, under.upper(level), level)
    _, high = _fieller(over.upper(level), under, level)
    return RuleNumber(value, low, high)


def _fieller(over: KnownShare, under: KnownShare, level: float) -> tuple[float, float]:
    """The ends of all r in [0, 1] for which over - r under may be 0 at this level.

    If both shares are from one group, their covariance is not known, and the least favourable is assumed.
    """
    square = normal_reach(level) ** 2
    covariance = -math.sqrt(over.variance * under.variance) if over.group == under.group else 0.0
    a = under.share**2 - square * under.variance
    b = over.share * under.share - square * covariance
    c = over.share**2 - square * over.variance
    if a <= 0:
        return 0.0, 1.0
    root = math.sqrt(max(b**2 - a * c, 0.0))
    low, high = (min(max((b + sign * root) / a, 0.0), 1.0) for sign in (-1, 1))
    return low, high


ITEMS, SETS = "items", "itemsets"
"""The names of a release's main estimate: of items alone, or of itemsets, items included."""
RULES = ("Confidence", "Lift")
SEARCH = "search"
"""The name of the estimate about the search: the smallest share found reliably, and expected false positives."""
LEAST, FALSE = "smallest share found reliably, of what people name", "expected false positives"
_REACH = 1.959963984540054


@dataclass(frozen=True, eq=False, kw_only=True)
class Findings:
    """The results of a study of items and itemsets.

    Parameters
    ----------
    items, itemsets
        The candidates with their shares; None if there are no estimates.
    smallest_named_share
        If each person of the first group names one of their items at random: the share of the named items below which
        an item cannot be told from noise. 0 if all items were candidates.
    reports, people
        How many people answered, and the estimated size of the population.
    """

    k: int
    items: CandidateShares | None = None
    itemsets: CandidateShares | None = None
    smallest_named_share: float = 0.0
    reports: int = 0
    people: float = 0.0
    stopped: str | None = None

    @property
    def _stages(self) -> list[CandidateShares]:
        return [stage for stage in (self.items, self.itemsets) if stage is not None]

    @cached_property
    def sets(self) -> tuple[Itemset, ...]:
        """The k most frequent of all candidates, most frequent first."""
        candidates = [items for stage in self._stages for items in stage.sets]
        return tuple(candidates[place] for place in self._order)

    @cached_property
    def estimate(self) -> Estimate:
        """The shares of `sets`, with 95% intervals that hold the truth in spite of the selection.

        They hold whatever large sets contain: see `upper_limits`. A share above its interval is moved to its end.
        """
        if not self._stages:
            return Estimate(np.zeros(0), np.zeros(0), 0)
        ends = [np.concatenate(end)[self._order] for end in zip(*self._limits, strict=True)]
        shares = self._all_candidates([stage.estimate for stage in self._stages])
        low, high = ends
        biased = any(stage.estimate.bias != "none" for stage in self._stages)
        return Estimate(
            np.minimum(shares.value[self._order], high),
            ((high - low) / 2 / _REACH) ** 2,
            shares.n,
            bias="heuristic" if biased else "none",
            centre=(low + high) / 2,
        )

    @property
    def _limits(self) -> list[tuple[Floats, Floats]]:
        return [stage.limits(self._chance) for stage in self._stages]

    @cached_property
    def _chance(self) -> float:
        return chance_to_miss(self._all_candidates([stage.least for stage in self._stages]), self._order)

    @staticmethod
    def _all_candidates(estimates: Sequence[Estimate]) -> Estimate:
        value = np.concatenate([estimate.value for estimate in estimates])
        variance = np.concatenate([estimate.variance for estimate in estimates])
        return Estimate(value, variance, min(estimate.n for estimate in estimates))

    @cached_property
    def _order(self) -> Ints:
        if not self._stages:
            return np.zeros(0, dtype=np.int64)
        return self._all_candidates([stage.estimate for stage in self._stages]).top(self.k)

    @property
    def false_positives(self) -> float:
        """The expected number of `sets` that nobody has: candidates that chance raises above the last share shown."""
        if not len(self.estimate):
            return 0.0
        least = float(self.estimate.value[-1])
        expected = (expected_false_positives(stage.deviation, len(stage.sets), 1, least) for stage in self._stages)
        return min(sum(expected), float(self.k))

    @cached_property
    def rules(self) -> list[Rule]:
        """The association rules of `sets`, at the level that the intervals of `estimate` have."""
        if not self.sets:
            return []
        shares = {
            items: KnownShare(
                float(stage.least.value[place]),
                float(stage.least.variance[place]),
                str(group),
                stage.factor,
                tuple((float(limit.value[place]), float(limit.variance[place])) for limit in stage.most),
            )
            for group, stage in enumerate(self._stages)
            for place, items in enumerate(stage.sets)
        }
        return association_rules(shares, self.sets, level=1 - self._chance)

    def release(self, names: Sequence[str] | None = None) -> Release:
        """The release of the study.

        `names`: the names of the items, by code; their codes unless given.
        """

        def name(items: Itemset) -> str:
            return " + ".join(str(item) if names is None else names[item] for item in items)

        estimates: dict[str, Estimate] = {}
        if self.sets:
            shown = self.estimate
            labels = tuple(map(name, self.sets))
            main = SETS if self.itemsets is not None else ITEMS
            estimates[main] = replace(shown, labels=labels)
        if rules := self.rules[: self.k]:
            arrows = tuple(f"{name(rule.given)} -> {name(rule.then)}" for rule in rules)
            confidences, lifts = [rule.confidence for rule in rules], [rule.lift for rule in rules]
            for label, rule_numbers in zip(RULES, (confidences, lifts), strict=True):
                estimates[label] = _with_intervals(rule_numbers, arrows, self.estimate.n)
        if self.sets:
            numbers = np.array([self.smallest_named_share, self.false_positives])
            estimates[SEARCH] = Estimate(
                numbers, np.zeros(2), self.estimate.n, kind="quantity", labels=(LEAST, FALSE), bias="heuristic"
            )
        return Release(
            step=0, estimates=estimates, published=bool(estimates), spent=1.0, n=self.people, stopped=self.stopped
        )


def _with_intervals(numbers: list[RuleNumber], labels: tuple[str, ...], n: int) -> Estimate:
    """An estimate whose 95% intervals are those of the numbers: 1.96 standard errors are half of an interval."""
    value, low, high = (np.array(ends, dtype=np.float64) for ends in zip(*numbers, strict=True))
    bounded = np.isfinite(high)
    reach = np.where(bounded, (np.where(bounded, high, 0.0) - low) / 2, np.inf)
    middle = np.where(bounded, low + reach, value)
    return Estimate(value, (reach / _REACH) ** 2, n, bias="heuristic", kind="quantity", labels=labels, centre=middle)
