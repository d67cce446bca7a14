"""Association rules: of the people who have some items, the part that has some other items too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

from hubbub.core.confidence import check_level, normal_reach
from hubbub.protocols.itemsets.guess import Itemset


class KnownShare(NamedTuple):
    """An estimated share and its variance; the errors of estimates from different groups of people are independent.

    Parameters
    ----------
    share, variance, group
        The estimate, its variance, and the group of people.
    factor
        By which the share is multiplied to correct it on average, where it is too small.
    most
        Estimates that are at least the true share on average, with their variances; none where `share` is unbiased.
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

    Parameters
    ----------
    shares
        The known shares, of the itemsets and of their parts.
    sets
        The itemsets to divide; a set of one item gives no rule.
    level
        The confidence level of each interval.

    References
    ----------
    Fieller, Some problems in interval estimation, 1954.
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
