"""How far sampling one element of a set amplifies local hashing: not at all in epsilon, a little in (eps, delta)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.mechanisms.frequency.local_hashing import LocalHashing
from hubbub.mechanisms.weights import choice_rates
from hubbub.random.integers import exp_floor


class LimitedAmplification(NamedTuple):
    """OLH's epsilon and buckets, how many elements may fall in one bucket, and the chance that more do."""

    epsilon: float
    buckets: int
    together: int
    delta: float


def limited_amplification(epsilon: float, length: int, delta: float) -> LimitedAmplification:
    """The epsilon' that OLH may use so that padding and sampling over it is (epsilon, delta)-LDP, by Theorem 5.5.1.

    e^eps' = (l/l') (e^eps - 1) + 1, with the smallest l' for which C(l, l'+1) g^-l' <= delta over g = ceil(e^eps' + 1)
    buckets: more than l' of l elements then fall in one bucket with no larger probability. It holds for sets of at most
    l items: cut longer ones first. A device accounts for pure epsilon only, so that no mechanism is built from this;
    `hashing_delta` has the exact delta, which is smaller.

    References
    ----------
    Dissertation, Theorem 5.5.1. About a dozen cells of Table 5.2 do not follow from it.
    """
    check_integer("length", length, 1, 1 << 20)
    if not epsilon > 0:
        raise InvalidValue("epsilon", epsilon, "a number above 0")
    if not 0 < delta < 1:
        raise InvalidValue("delta", delta, "a probability between 0 and 1")
    gain = Fraction(math.expm1(epsilon))
    for together in range(1, length + 1):
        power = Fraction(length, together) * gain + 1
        buckets = math.ceil(power + 1)
        chance = Fraction(math.comb(length, together + 1), buckets**together)
        if chance <= delta:
            break
    return LimitedAmplification(math.log(power), buckets, together, float(chance))


def hashing_delta(oracle: LocalHashing, length: int, epsilon: float) -> float:
    """The exact delta at which padding and sampling over a local hashing oracle is (epsilon, delta)-LDP.

    Of two sets of l elements that have none in common, A and B are in a bucket, each Binomial(l, 1/g) over a random
    hash, and delta = g E[(q + A (p-q)/l - e^eps (q + B (p-q)/l))_+]. Sets that have elements in common, and longer
    ones, give no more (larger samples are less variable). Rounded up.
    """
    check_integer("length", length, 1, 1 << 10)
    truth, other = choice_rates(oracle.other, oracle.buckets)
    power, g = exp_floor(epsilon), oracle.buckets
    step = (truth - other) / length
    ways = [math.comb(length, held) * (g - 1) ** (length - held) for held in range(length + 1)]  # of g^length
    above = Fraction(0)
    for first, count in enumerate(ways):
        gain = other + first * step
        if gain <= power * other:
            continue
        rest = sum(
            (many * (gain - power * (other + second * step)))
            for second, many in enumerate(ways)
            if gain > power * (other + second * step)
        )
        above += count * rest
    exact = g * above / Fraction(g) ** (2 * length)
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)
