"""Association rules: who holds these items, how likely do they hold those too?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

from hubbub.core.errors import InvalidValue
from hubbub.protocols.itemsets.guess import Itemset
from hubbub.protocols.itemsets.selection import normal_reach


class Known(NamedTuple):
    """An estimated share and its variance; errors of shares of different groups of people are independent."""

    share: float
    variance: float
    group: str


class RuleNumber(NamedTuple):
    """A number, and the ends of its interval."""

    value: float
    low: float
    high: float


class Rule(NamedTuple):
    """Of people who hold the items `given`, a part `confidence` holds the items `then` too: `lift` times that of all.

    `support` is the share of all people who hold both.
    """

    given: Itemset
    then: Itemset
    support: RuleNumber
    confidence: RuleNumber
    lift: RuleNumber


def association_rules(shares: Mapping[Itemset, Known], sets: Iterable[Itemset], *, level: float = 0.95) -> list[Rule]:
    """The rules that some itemsets make, those that are surest to have a large confidence first.

    Each itemset is divided in two wherever the shares of both parts are known, and that of the first can be told from
    zero. Confidence is the ratio of two estimates: its interval is Fieller's, which stays true where the divisor is
    small. Lift is that ratio divided by a third estimate: its interval combines theirs, at half the error each.

    Parameters
    ----------
    shares
        What is known, of the itemsets and of their parts.
    sets
        The itemsets to make rules of; a set of one item makes none.
    level
        How often each interval holds the truth.

    Example:
        >>> shares = {(1,): Known(0.4, 1e-5, "items"), (2,): Known(0.2, 1e-5, "items")}
        >>> shares[(1, 2)] = Known(0.16, 1e-5, "itemsets")
        >>> rule = association_rules(shares, [(1, 2)])[0]
        >>> rule.given, rule.then, [round(end, 2) for end in rule.confidence], [round(end, 1) for end in rule.lift]
        ((2,), (1,), [0.8, 0.76, 0.84], [2.0, 1.9, 2.2])

    References
    ----------
    Fieller, Some problems in interval estimation, 1954.
    """
    if not 0 < level < 1:
        raise InvalidValue("level", level, "a probability between 0 and 1")
    rules = [rule for items in sets for rule in _rules_of(items, shares, level)]
    return sorted(rules, key=lambda rule: (-rule.confidence.low, rule.given, rule.then))


def _rules_of(items: Itemset, shares: Mapping[Itemset, Known], level: float) -> Iterator[Rule]:
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
            half = (1 + level) / 2
            part, other = _ratio(both, first, half), _share(second, half)
            lift = RuleNumber(
                confidence.value / other.value if other.value > 0 else math.inf,
                part.low / other.high if other.high > 0 else 0.0,
                part.high / other.low if other.low > 0 else math.inf,
            )
            yield Rule(given, then, _share(both, level), confidence, lift)


def _share(known: Known, level: float) -> RuleNumber:
    reach = normal_reach(level) * math.sqrt(known.variance)
    value, low, high = (min(max(end, 0.0), 1.0) for end in (known.share, known.share - reach, known.share + reach))
    return RuleNumber(value, low, high)


def _ratio(over: Known, under: Known, level: float) -> RuleNumber:
    """The part `over` of `under`: all r for which over - r under is within reach of 0, cut to [0, 1].

    Where both are of one group their covariance is not known, and the least favourable stands for it.
    """
    square = normal_reach(level) ** 2
    together = -math.sqrt(over.variance * under.variance) if over.group == under.group else 0.0
    a = under.share**2 - square * under.variance
    b = over.share * under.share - square * together
    c = over.share**2 - square * over.variance
    value = min(max(over.share / under.share, 0.0), 1.0)
    if a <= 0:
        return RuleNumber(value, 0.0, 1.0)
    root = math.sqrt(max(b**2 - a * c, 0.0))
    low, high = (min(max((b + sign * root) / a, 0.0), 1.0) for sign in (-1, 1))
    return RuleNumber(value, low, high)
