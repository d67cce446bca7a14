"""The prefix extending method (PEM): the most common values of a domain too large to list; each device answers once.

The shares of the values that were found, estimated from the reports of all groups.

A group that reports a prefix of a value also tells the value's share, if hardly anyone else has the same prefix. From
which group on that is so is inferred from the estimated shares. Model j (j = 1, 2, ...) assumes that in the last j
groups only people with the value have the prefix, and that in each earlier group others have it too, with a share
uniform from 0 to `REST` standard errors. The estimate of a model is the mean of its j groups, weighted by 1/variance.
The final estimate is the mean over the models, weighted by their likelihoods. Where two values that were found share a
prefix in a group, this group and the earlier ones are used for neither.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from hubbub.core.domain.texts import prefix_codes
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Floats, Ints
from hubbub.protocols.ask import CIRCLE, EVERYONE, Arc, Ask
from hubbub.protocols.driver import Count, Protocol, Release, ask_all, ask_count
from hubbub.protocols.heavy_hitters.prefixes import PrefixPlan
from hubbub.protocols.heavy_hitters.search import PrefixSearch, string_words
from hubbub.protocols.views.basic import Prefix
from hubbub.statistics.selection import Selected

REST = 50.0
"""The most that other people may add to a prefix's share, in standard errors; measured, 20 to 200 do equally well."""
_LEAST = 1e-12


class Level(NamedTuple):
    """The estimates of one group: the share of each chosen prefix, and the place of its parent in the level before."""

    shares: Floats
    variance: float
    parents: Ints


def pooled_shares(levels: Sequence[Level]) -> Floats:
    """The shares of the prefixes of the last level, from the estimates of all levels; none is negative."""
    return np.array([max(_model_average(estimates), 0.0) for estimates in _unshared(levels)])


def _unshared(levels: Sequence[Level]) -> Iterator[list[tuple[float, float]]]:
    """For each prefix of the last level, the (share, variance) of its unshared ancestors, the last level first."""
    ancestors = np.arange(len(levels[-1].shares))
    chains: list[list[tuple[float, float]]] = [[] for _ in ancestors]
    unshared = np.ones(len(ancestors), dtype=bool)
    for level in reversed(levels):
        unshared &= np.bincount(ancestors, minlength=len(level.shares))[ancestors] == 1
        for place in np.flatnonzero(unshared):
            chains[place].append((float(level.shares[ancestors[place]]), level.variance))
        ancestors = level.parents[ancestors]
    yield from chains


def _model_average(estimates: Sequence[tuple[float, float]]) -> float:
    """The mean of the models' estimates, weighted by their likelihoods."""
    shares, variances = (np.array(column) for column in zip(*estimates, strict=True))
    precisions = 1 / variances
    means, fits = [], []
    for used in range(1, len(shares) + 1):
        weight = precisions[:used]
        mean = float(weight @ shares[:used] / weight.sum())
        apart = float(weight @ (shares[:used] - mean) ** 2)
        fit = (np.log(weight).sum() - math.log(weight.sum()) - apart - (used - 1) * math.log(2 * math.pi)) / 2
        for more, precision in zip(shares[used:], precisions[used:], strict=True):
            above = (float(more) - mean) * math.sqrt(precision)
            fit += (
                math.log(precision) / 2 - math.log(REST) + math.log(max(math.erfc(-above / math.sqrt(2)) / 2, _LEAST))
            )
        means.append(mean)
        fits.append(float(fit))
    chances = np.exp(np.array(fits) - max(fits))
    return float(chances @ np.array(means) / chances.sum())


_ROUNDING = 1e-6
_NEGLIGIBLE = 1e-12


def sensitivity_threshold(sigma: float, candidates: float, n: int, false_positives: float = 1.0) -> float:
    """The share Psi above which chance is expected to put `false_positives` candidates (Definition 4.3.1).

    `sigma`: the standard deviation of the estimate from one report; that from n reports is sigma / sqrt(n).
    `false_positives`: how many candidates that nobody has are expected above the share.

    References
    ----------
    T. Wang, 2021, section 4.3.2; Table 4.1.
    """
    if not n >= 1:
        raise InvalidValue("n", n, "at least 1")
    if not false_positives > 0:
        raise InvalidValue("false_positives", false_positives, "a number above 0")
    if false_positives >= candidates / 2:
        return 0.0
    return -NormalDist().inv_cdf(false_positives / candidates) * sigma / math.sqrt(n)


def expected_false_positives(sigma: float, candidates: float, n: int, share: float) -> float:
    """The expected number of candidates above a share, of those that nobody has."""
    return candidates * 0.5 * math.erfc(share * math.sqrt(n) / sigma / math.sqrt(2))


def supported_by_chance(rates: tuple[float, float], candidates: float, n: int, share: float) -> float:
    """The expected number of candidates at or above a share, of those that nobody has, by the exact law of supports.

    A support is Binomial(n, q), whose upper tail is heavier than a normal one: at epsilon 3 and 4,000 reports 2.2 times
    as heavy 4 standard errors out.

    `rates`: the probabilities p and q that a report supports the device's own value, and another value. `candidates`,
    `n`: as of `sensitivity_threshold`. `share`: the smallest estimated share that counts.
    """
    p, q = rates
    support = math.ceil(n * (q + share * (p - q)) - _ROUNDING)
    if support <= n * q:  # the lower tail is the smaller one
        return candidates * (1 - _tail(n, 1 - q, n - support + 1))
    return candidates * _tail(n, q, support)


def _tail(n: int, q: float, least: int) -> float:
    """The probability that Binomial(n, q) is at least `least`, which is above the mean."""
    if least > n:
        return 0.0
    ways = math.lgamma(n + 1) - math.lgamma(least + 1) - math.lgamma(n - least + 1)
    term, total = math.exp(ways + least * math.log(q) + (n - least) * math.log1p(-q)), 0.0
    for count in range(least, n + 1):
        total += term
        term *= (n - count) / (count + 1) * q / (1 - q)
        if term <= _NEGLIGIBLE * total:
            break
    return total


ARITHMETIC = 1
"""The version of the protocol: it rises with every change of what is asked or released."""
TOP, ABSENT, REACH, SEARCH = "top", "Without a value", "What could be found", "The search"
"""The names of a release's estimates: shares of the values found, devices without a value, and two about the search."""
PSI, WANTED = "smallest share found reliably", "values looked for"
FALSE_POSITIVES, TESTED = "expected false positives", "candidates tested"
"""The labels of the numbers in `REACH` (the first) and in `SEARCH` (the others)."""


def prefix_extending(plan: PrefixPlan, cohort: Arc = EVERYONE, groups: int = 1) -> Protocol:
    """Find the k most common values by a study of one round, whose parts are the groups of a plan.

    Each device reports once, a prefix of its group's length, and the reports are kept. The server counts the support of
    every prefix of the first length among the reports of the first group, extends the best k to the next length, counts
    these extensions among the reports of the next group, and so on. The study stops at a group without reports.

    `plan`: the groups and the lengths of their prefixes. `cohort`: who is asked; the groups are equal parts of this
    arc. `groups`: if devices are in equal groups, of which one is asked: how many. The circle is that of this group.

    References
    ----------
    T. Wang, Li and Jha, 2019; T. Wang, 2021, section 4.2, Algorithm 1.
    """
    asks = group_asks(plan, cohort)
    sketches = yield from ask_all(asks)
    n = sum(sketch.n for sketch in sketches)
    n = max(n, round(n * groups / cohort.share))
    strings: tuple[int, ...] = (0,)
    levels: list[Level] = []
    known = tested = 0
    for ask, length in zip(asks, plan.lengths, strict=True):
        search = PrefixSearch(ask, strings, known, plan.k + 1, plan.encoding)
        group = sketches[len(levels)].n
        if not group:
            yield _stopped(n, f"nobody answered in the group that reports prefixes of {length} bits")
            return
        result = yield from ask_count(search)
        shares = _estimate(plan, result.support, group, n)
        chosen = _number_chosen(plan, shares.value)
        if not chosen:
            least = "" if plan.threshold is None else f" that a share of {plan.threshold:g} begins with"
            yield _stopped(n, f"no prefix of {length} bits was found{least}")
            return
        parents = np.array(result.places[:chosen], dtype=np.int64) >> search.extra
        levels.append(Level(shares.value[:chosen], plan.oracle.variance(group), parents))
        known, strings, tested = length, search.strings(result)[:chosen], tested + result.tested
    absent = plan.encoding.absent()
    estimates: dict[str, Estimate] = {TOP: _top_values(plan, strings, shares, levels)}
    estimates |= _search_numbers(plan, shares, result.tested, group, tested)
    if absent:
        codes = prefix_codes(string_words(absent.values(), known, known), known).tolist()
        result = yield from ask_count(Count(asks[-1], tuple(codes)))
        estimates[ABSENT] = replace(_estimate(plan, result.support, group, n), labels=tuple(absent))
    yield Release(step=0, estimates=estimates, published=True, spent=1.0, n=float(n))


def group_asks(plan: PrefixPlan, cohort: Arc = EVERYONE) -> list[Ask]:
    """The asks of a plan: each group is an equal part of the arc and is asked for prefixes of its length."""
    length = cohort.length // len(plan.lengths)
    arcs = (Arc((cohort.start + part * length) % CIRCLE, length) for part in range(len(plan.lengths)))
    return [
        Ask(mechanism=plan.oracle, step=0, view=Prefix(bits, plan.encoding.bits), cohort=arc, kept=True)
        for bits, arc in zip(plan.lengths, arcs, strict=True)
    ]


def _estimate(plan: PrefixPlan, support: Ints, group: int, n: int) -> Estimate:
    """The shares of candidates among all n people, from their supports in a group."""
    places = list(range(len(support)))  # the estimate does not depend on which values the candidates are
    return plan.oracle.estimate(plan.oracle.support_sketch(places, group, support), places).of_population(n)


def _number_chosen(plan: PrefixPlan, shares: Floats) -> int:
    """How many of the best candidates are extended: at most k, and only those that reach the threshold."""
    best = shares[: plan.k]
    return len(best) if plan.threshold is None else int((best >= plan.threshold).sum())


def _top_values(plan: PrefixPlan, strings: tuple[int, ...], shares: Estimate, levels: list[Level]) -> Selected:
    """The shares of the values that were found; strings that encode no value are left out."""
    chosen = len(strings)
    runner_up = shares.value[plan.k] if len(shares) > plan.k else -math.inf
    values = [plan.encoding.value(string) for string in strings]
    valid = [place for place, value in enumerate(values) if value is not None]
    fitted = pooled_shares(levels)[valid]
    order = np.argsort(-fitted, kind="stable")
    rows = np.array(valid, dtype=np.int64)[order]
    return Selected(
        value=fitted[order],
        variance=shares.variance[:chosen][rows],
        n=shares.n,
        bias="consistent",
        labels=tuple(str(values[row]) for row in rows),
        centre=shares.value[:chosen][rows],
        cut=max(float(runner_up), -math.inf if plan.threshold is None else plan.threshold),
    )


def _search_numbers(
    plan: PrefixPlan, shares: Estimate, tested: int, group: int, tested_in_all: int
) -> dict[str, Estimate]:
    """The smallest share that the last level finds reliably, and false positives to expect (section 4.3.2).

    `tested` is how many candidates the last level tested, `tested_in_all` how many all levels tested.
    """
    sigma = math.sqrt(plan.oracle.variance(1))
    least = float(shares.value[: plan.k].min()) if plan.threshold is None else plan.threshold
    p, q = (float(rate) for rate in plan.oracle.rates)
    false_positives = min(supported_by_chance((p, q), tested, group, least), float(min(plan.k, tested)))
    psi = sensitivity_threshold(sigma, tested, group)
    return {
        REACH: Estimate(np.array([psi]), np.zeros(1), group, labels=(PSI,)),
        SEARCH: Estimate(
            np.array([plan.k, false_positives, tested_in_all], dtype=np.float64),
            np.zeros(3),
            group,
            kind="quantity",
            labels=(WANTED, FALSE_POSITIVES, TESTED),
        ),
    }


def _stopped(n: int, why: str) -> Release:
    return Release(step=0, estimates={}, published=False, spent=1.0, n=float(n), stopped=why)
