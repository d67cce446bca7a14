"""How many fakes, and which mechanism at what local epsilon, for three targets at once (section 9.5.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.frequency.solh import SOLH
from hubbub.privacy.amplification.adversaries import modulo_bias
from hubbub.privacy.amplification.choose import MOST_BUCKET_BITS, MOST_GRR_VALUES
from hubbub.privacy.amplification.fakes import mean_variance
from hubbub.privacy.amplification.inverse import local_epsilon

_LARGEST = 5  # fakes are tried up to 2^5 times the people
_SMALLEST = -8
_REFINED = 4
_WORTH = 0.03  # as many fakes as people are worth this much of the variance: they are work for everyone


class FakesChoice(NamedTuple):
    """A mechanism, the fakes beside its reports, and the variance of a share, averaged over all values.

    Example:
        >>> round(FakesChoice(GRR(epsilon=1.0, domain=3), fakes=100, variance=1e-4).cost(100), 6)
        0.000103
    """

    mechanism: FrequencyOracle
    fakes: int
    variance: float

    def cost(self, n: int) -> float:
        """What is minimised: the variance, with something added for the work that fakes make."""
        return self.variance * (1 + _WORTH * self.fakes / n)


def choose_with_fakes(
    *,
    domain: int,
    n: int,
    epsilon: float,
    delta: float,
    colluding: float | None = None,
    most_local: float = 20.0,
    fakes: int | None = None,
) -> list[FakesChoice]:
    """GRR and local hashing, each with the best local epsilon and number of fakes, the better one first.

    Both numbers are searched for: more fakes hide a report better and allow a larger local epsilon, and add noise of
    their own, and work: as many as there are people must reduce the variance by 3%. What is returned keeps to all three
    targets by the numerical bounds.

    Parameters
    ----------
    domain, n, delta
        As of `choose_shuffled`.
    epsilon
        What is to be left against the server alone.
    colluding
        Against the server and all other people together; None asks for nothing there.
    most_local
        Against the server and the shufflers: what one report may spend.
    fakes
        A number of fakes that is given.

    Example:
        >>> best = choose_with_fakes(domain=64, n=10_000, epsilon=0.5, delta=1e-6, most_local=6.0, fakes=2_000)[0]
        >>> type(best.mechanism).__name__, best.mechanism.epsilon <= 6.0
        ('GRR', True)

    References
    ----------
    Dissertation, sections 9.5.3 and 9.5.4; by numerical bounds instead of Corollaries 9.5.2 and 9.5.3.
    """
    check_integer("domain", domain, 2, 1 << 32)
    check_integer("n", n, 1)
    for name, target in (("epsilon", epsilon), ("colluding", colluding), ("most_local", most_local)):
        if target is not None and not 0 < target < 1000:
            raise InvalidValue(name, target, "above 0, below 1000")
    targets = [(n, epsilon), *([(1, colluding)] if colluding is not None else [])]

    def made(make: Callable[[float], FrequencyOracle], number: int, quick: bool) -> FakesChoice:
        allowed = [_largest(make, target, people, delta, number, most_local, quick=quick) for people, target in targets]
        mechanism = min(allowed, key=lambda each: each.epsilon)
        return FakesChoice(mechanism, number, mean_variance(mechanism, n, number))

    numbers = [fakes] if fakes is not None else [0, *(round(n * 2.0**step) for step in range(_SMALLEST, _LARGEST + 1))]
    choices = []
    if domain <= MOST_GRR_VALUES:
        best = _best_number(numbers, n, lambda number: made(_grr(domain), number, True))
        choices.append(made(_grr(domain), best.fakes, False))
    number, bits = _best_hashing(numbers, n, lambda bits, number: made(_solh(domain, bits), number, True))
    choices.append(made(_solh(domain, bits), number, False))
    return sorted(choices, key=lambda choice: choice.variance)


def _largest(
    make: Callable[[float], FrequencyOracle],
    target: float,
    people: int,
    delta: float,
    fakes: int,
    most: float,
    *,
    quick: bool,
) -> FrequencyOracle:
    mechanism = make(min(target, most))
    uneven = 2 * (1 + math.exp(target)) * modulo_bias(mechanism, fakes)  # twice what is spent of delta at the target
    if uneven > delta / 2:
        return mechanism
    found = local_epsilon(make, epsilon=target, n=people, delta=delta - uneven, fakes=fakes, most=most, quick=quick)
    assert isinstance(found, FrequencyOracle)
    return found


def _best_hashing(numbers: Sequence[int], n: int, made: Callable[[int, int], FakesChoice]) -> tuple[int, int]:
    """The best number of fakes, and of bucket bits beside them."""
    made = cache(made)

    def best_bits(number: int) -> int:
        bits = MOST_BUCKET_BITS // 2
        for step in (4, 2, 1):
            while True:
                near = [each for each in (bits - step, bits, bits + step) if 1 <= each <= MOST_BUCKET_BITS]
                better = min(near, key=lambda each: made(each, number).variance)
                if better == bits:
                    break
                bits = better
        return bits

    bits_of = cache(best_bits)
    best = _best_number(numbers, n, lambda number: made(bits_of(number), number))
    return best.fakes, bits_of(best.fakes)


def _best_number(numbers: Sequence[int], n: int, made: Callable[[int], FakesChoice]) -> FakesChoice:
    """The best number of fakes: of those given, then between the neighbours of the best."""
    made = cache(made)
    at = min(range(len(numbers)), key=lambda place: made(numbers[place]).cost(n))
    best, low, high = made(numbers[at]), numbers[max(at - 1, 0)], numbers[min(at + 1, len(numbers) - 1)]
    for _ in range(_REFINED):
        for middle in ((low + best.fakes) // 2, (best.fakes + high) // 2):
            if made(middle).cost(n) < best.cost(n):
                low, high = (low, best.fakes) if middle < best.fakes else (best.fakes, high)
                best = made(middle)
                break
        else:
            low, high = (low + best.fakes) // 2, (best.fakes + high) // 2
    return best


def _grr(domain: int) -> Callable[[float], FrequencyOracle]:
    return lambda local: GRR(epsilon=local, domain=domain)


def _solh(domain: int, bits: int) -> Callable[[float], FrequencyOracle]:
    return lambda local: SOLH(epsilon=local, domain=domain, buckets=1 << bits)
