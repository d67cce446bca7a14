"""Section 3.5.2 on real data: every item of every basket is an event, collected by OLH, BLH and RAPPOR."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.data.baskets import retail
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.frequency.local_hashing import BLH, OLH
from hubbub.mechanisms.frequency.rappor import Rappor
from hubbub.random.source import Random
from hubbub.simulate.conversation import collect
from hubbub_papers.harness import Context

EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
METHODS = ("RAP(8)", "RAP(16)", "BLH", "OLH")
ALPHA = 0.05
OTHER_DATA = "other data: 908,576 items of Belgian retail baskets, 16,470 different, for Kosarak's 8 million clicks"


Key = tuple[str, float]  # method, epsilon


class ItemCounts(NamedTuple):
    """One method's estimate of every item, in events."""

    truth: NDArray[np.int64]
    counts: NDArray[np.float64]
    threshold: NDArray[np.float64]
    """The significance threshold of each item (Eq 3.13). It is the same for all items with OLH and BLH. RAPPOR has no
    variance on paper, so that its threshold comes from the standard error that its regression states for the item."""


@cache
def _items() -> NDArray[np.int64]:
    return retail().items


def events(context: Context) -> NDArray[np.int64]:
    """The items of all baskets, one event each; scaled down, a random part of them."""
    items = _items()
    n = context.size(items.size)
    return items if n == items.size else items[context.rng.child("part of the events").permutation(items.size)[:n]]


def estimated_items(method: str, epsilon: float, values: NDArray[np.int64], rng: Random) -> ItemCounts:
    """Collect the events by one method and estimate the count of every item; RAPPOR has all items as candidates."""
    domain = int(_items().max()) + 1
    mechanism = _mechanism(method, epsilon, domain)
    estimate = mechanism.estimate(collect(mechanism, values, rng))
    if isinstance(mechanism, OLH | BLH):
        threshold = np.full(domain, mechanism.threshold(values.size, ALPHA))
    else:
        threshold = NormalDist().inv_cdf(1 - ALPHA / domain) * estimate.stderr
    return ItemCounts(np.bincount(values, minlength=domain), estimate.counts(), threshold * values.size)


def measure(
    context: Context, epsilons: tuple[float, ...], score: Callable[[ItemCounts], ArrayLike]
) -> dict[Key, NDArray[np.float64]]:
    """The score of each method's estimates at each epsilon, one row a run."""
    values = events(context)

    def run_once(setting: Key, run: int) -> dict[Key, ArrayLike]:
        method, epsilon = setting
        rng = context.rng.child("section 3.5.2", method, str(epsilon), run)
        return {setting: score(estimated_items(method, epsilon, values, rng))}

    settings = [(method, epsilon) for epsilon in epsilons for method in METHODS]
    return context.measure(settings, run_once, "{0[0]}, eps = {0[1]:g}".format)


def _mechanism(method: str, epsilon: float, domain: int) -> Mechanism:
    if method == "OLH":
        return OLH(epsilon=epsilon, domain=domain)
    if method == "BLH":
        return BLH(epsilon=epsilon, domain=domain)
    cohorts = 8 if method == "RAP(8)" else 16
    return Rappor(epsilon=epsilon, domain=domain, bits=128, hashes=2, cohorts=cohorts)
