"""The prefix extending method (PEM): the most common values of a domain too large to list; each device answers once."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hubbub.core.bit_strings import prefix_codes
from hubbub.core.estimate import Estimate
from hubbub.core.selected import Selected
from hubbub.protocols.ask import Ask
from hubbub.protocols.cohort import CIRCLE, EVERYONE, Arc
from hubbub.protocols.count import Count
from hubbub.protocols.driver import Protocol, ask_all, ask_count
from hubbub.protocols.heavy_hitters.plan import PrefixPlan
from hubbub.protocols.heavy_hitters.pooled import Level, pooled_shares
from hubbub.protocols.heavy_hitters.search import PrefixSearch, string_words
from hubbub.protocols.heavy_hitters.sensitivity import sensitivity_threshold, supported_by_chance
from hubbub.protocols.prefix import Prefix
from hubbub.protocols.release import Release

ARITHMETIC = 1
"""The version of the protocol: it rises with every change of what is asked or released."""
TOP, ABSENT, REACH, SEARCH = "top", "Without a value", "What could be found", "The search"
"""The names of a release's estimates: shares of the values found, devices without a value, and two about the search."""
PSI, WANTED = "smallest share found reliably", "values looked for"
FALSE_POSITIVES, TESTED = "expected false positives", "candidates tested"
"""The labels of the numbers in `REACH` (the first) and in `SEARCH` (the others)."""


def prefix_extending(plan: PrefixPlan, cohort: Arc = EVERYONE) -> Protocol:
    """Find the k most common values by a study of one round, whose parts are the groups of a plan.

    Each device reports once, a prefix of its group's length, and the reports are kept. The server counts the support of
    every prefix of the first length among the reports of the first group, extends the best k to the next length, counts
    these extensions among the reports of the next group, and so on. The study stops at a group without reports.

    Parameters
    ----------
    plan
        The groups and the lengths of their prefixes.
    cohort
        Who is asked; the groups are equal parts of this arc.

    References
    ----------
    Dissertation, section 4.2, Algorithm 1.
    """
    asks = group_asks(plan, cohort)
    sketches = yield from ask_all(asks)
    n = sum(sketch.n for sketch in sketches)
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


def _estimate(plan: PrefixPlan, support: NDArray[np.int64], group: int, n: int) -> Estimate:
    """The shares of candidates among all n people, from their supports in a group."""
    places = list(range(len(support)))  # the estimate does not depend on which values the candidates are
    return plan.oracle.estimate(plan.oracle.support_sketch(places, group, support), places).of_population(n)


def _number_chosen(plan: PrefixPlan, shares: NDArray[np.float64]) -> int:
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
