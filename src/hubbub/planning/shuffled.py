"""Choosing a mechanism, a local epsilon and a number of fakes for shuffled reports, against each adversary."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.spec import Json
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import SOLH
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.frequency.unary import OUE, SUE
from hubbub.privacy.amplify import Amplified, amplify, local_epsilon
from hubbub.privacy.fakes import mean_variance

MOST_BUCKET_BITS = 16
_UNARY_SIZE = 1 << 16
MOST_GRR_VALUES = 1 << 16


class ShuffledChoice(NamedTuple):
    """A mechanism whose shuffled reports keep to the target, and the variance of a share, averaged over all values."""

    mechanism: FrequencyOracle
    variance: float


def choose_shuffled(
    *, domain: int, n: int, epsilon: float, delta: float, fakes: int = 0, most_local: float = 20.0
) -> list[ShuffledChoice]:
    """Mechanisms for shares of a domain whose n shuffled reports are (epsilon, delta)-private, the best first.

    Each mechanism has the largest local epsilon that the valid bounds allow. With fakes, only GRR and local hashing are
    considered, whose fakes anybody can draw. Fakes add to the privacy, and to the variance.

    `domain`, `n`: how many values there are, and how many people report. `most_local`: the largest local epsilon: the
    guarantee against someone who sees a report before it is shuffled.

    References
    ----------
    T. Wang, 2021, sections 9.3.3 and 9.5.4; by numerical bounds instead of Theorem 9.3.2.
    """
    check_integer("domain", domain, 2, 1 << 32)
    if not epsilon > 0:
        raise InvalidValue("epsilon", epsilon, "above 0")
    choices = []
    for make_mechanism in _makers(domain, fakes):
        mechanism = local_epsilon(make_mechanism, epsilon=epsilon, n=n, delta=delta, fakes=fakes, most=most_local)
        assert isinstance(mechanism, FrequencyOracle)
        choices.append(ShuffledChoice(mechanism, mean_variance(mechanism, n, fakes)))
    return sorted(choices, key=lambda choice: choice.variance)


def _makers(domain: int, fakes: int) -> Iterator[Callable[[float], FrequencyOracle]]:
    if domain <= MOST_GRR_VALUES:
        yield lambda local: GRR(epsilon=local, domain=domain)
    if domain <= _UNARY_SIZE and not fakes:
        yield lambda local: SUE(epsilon=local, domain=domain)
        yield lambda local: OUE(epsilon=local, domain=domain)
    for bits in range(1, MOST_BUCKET_BITS + 1):
        yield lambda local, bits=bits: SOLH(epsilon=local, domain=domain, buckets=1 << bits)  # type: ignore[misc]


_SPACE = 1 << 64


class Adversaries(NamedTuple):
    """The guarantee of one report against each of the three adversaries of section 9.4.

    Parameters
    ----------
    server
        The server by itself, which sees the shuffled batch.
    server_and_people
        The server and everybody else who reports: the report is hidden among the fakes only.
    server_and_shufflers
        The server and enough shufflers to know the order: only the local epsilon remains.
    """

    server: Amplified
    server_and_people: Amplified
    server_and_shufflers: Amplified

    def to_dict(self) -> dict[str, Json]:
        """The three guarantees as JSON."""
        return {name: guarantee.to_dict() for name, guarantee in self._asdict().items()}

    def sentences(self) -> list[str]:
        """The same in words, each with who must work together."""
        return [
            f"Against the server alone: {_words(self.server)}.",
            f"Against the server together with all other people who report: {_words(self.server_and_people)}.",
            "Against the server together with half of the shufflers or more (with onions: with all of them): "
            f"{_words(self.server_and_shufflers)}, which is what the device itself spends.",
        ]


def adversaries(mechanism: Mechanism, *, n: int, delta: float, fakes: int = 0) -> Adversaries:
    """The guarantees of one report among n and the fakes that shufflers draw together as shares.

    Corollaries 9.5.2 and 9.5.3, by the numerical bounds instead of their formulas. Fakes of GRR are numbers below 2^64
    taken modulo the domain, which is not quite uniform: that is added to delta.
    """
    return Adversaries(
        amplify_with_shared_fakes(mechanism, n, delta, fakes),
        amplify_with_shared_fakes(mechanism, 1, delta, fakes),
        Amplified(mechanism.effective_epsilon, 0.0, "local"),
    )


def modulo_bias(mechanism: Mechanism, fakes: int) -> float:
    """How far a number of fakes, drawn as numbers below 2^64, are from uniform ones, in total variation."""
    return fakes * (_SPACE % mechanism.size) / _SPACE if isinstance(mechanism, GRR) else 0.0


def amplify_with_shared_fakes(mechanism: Mechanism, n: int, delta: float, fakes: int) -> Amplified:
    """The guarantee of one report among n and fakes that shufflers draw together as shares."""
    off = modulo_bias(mechanism, fakes)
    if not off:
        return amplify(mechanism, n=n, delta=delta, fakes=fakes)
    # (epsilon, delta) with uniform fakes is (epsilon, delta + (1 + e^epsilon) off) with these.
    half = amplify(mechanism, n=n, delta=delta / 2, fakes=fakes)
    spent = (1 + math.exp(half.epsilon)) * off
    if spent > delta / 2:
        return Amplified(mechanism.effective_epsilon, 0.0, "local")
    exact = amplify(mechanism, n=n, delta=delta - spent, fakes=fakes)
    return exact if exact.delta == 0 else Amplified(exact.epsilon, delta, exact.method, exact.valid)


def _words(guarantee: Amplified) -> str:
    but = f", but for a delta of {guarantee.delta:g}" if guarantee.delta else ""
    return f"epsilon {guarantee.epsilon:.4g}{but}"


_LARGEST = 5  # fakes are tried up to 2^5 times the people
_SMALLEST = -8
_REFINED = 4
_WORTH = 0.03  # as many fakes as people are worth this much of the variance: they are work for everyone


class FakesChoice(NamedTuple):
    """A mechanism, the fakes among its reports, and the variance of a share, averaged over all values."""

    mechanism: FrequencyOracle
    fakes: int
    variance: float

    def cost(self, n: int) -> float:
        """What is minimised: the variance, increased by 3% for as many fakes as people, for their work."""
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

    Both numbers are searched for. More fakes hide a report better and allow a larger local epsilon, but add noise and
    work: as many fakes as people must reduce the variance by 3% to be worth it. The choices keep to all three targets
    by the numerical bounds.

    Parameters
    ----------
    domain, n, delta
        As of `choose_shuffled`.
    colluding
        The epsilon against the server and all other people together; None for no such target.
    most_local
        The epsilon against the server and the shufflers together: what one report may spend.
    fakes
        The number of fakes; None to search for the best.

    References
    ----------
    T. Wang, 2021, sections 9.5.3 and 9.5.4; by numerical bounds instead of Corollaries 9.5.2 and 9.5.3.
    """
    check_integer("domain", domain, 2, 1 << 32)
    check_integer("n", n, 1)
    for name, target in (("epsilon", epsilon), ("colluding", colluding), ("most_local", most_local)):
        if target is not None and not 0 < target < 1000:
            raise InvalidValue(name, target, "above 0, below 1000")
    targets = [(n, epsilon), *([(1, colluding)] if colluding is not None else [])]

    def choice(make: Callable[[float], FrequencyOracle], number: int, quick: bool) -> FakesChoice:
        allowed = [_largest(make, target, people, delta, number, most_local, quick=quick) for people, target in targets]
        mechanism = min(allowed, key=lambda oracle: oracle.epsilon)
        return FakesChoice(mechanism, number, mean_variance(mechanism, n, number))

    numbers = [fakes] if fakes is not None else [0, *(round(n * 2.0**step) for step in range(_SMALLEST, _LARGEST + 1))]
    choices = []
    if domain <= MOST_GRR_VALUES:
        best = _best_number(numbers, n, lambda number: choice(_grr(domain), number, True))
        choices.append(choice(_grr(domain), best.fakes, False))
    number, bits = _best_hashing(numbers, n, lambda bits, number: choice(_solh(domain, bits), number, True))
    choices.append(choice(_solh(domain, bits), number, False))
    return sorted(choices, key=lambda option: option.variance)


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
    largest = local_epsilon(make, epsilon=target, n=people, delta=delta - uneven, fakes=fakes, most=most, quick=quick)
    assert isinstance(largest, FrequencyOracle)
    return largest


def _best_hashing(numbers: Sequence[int], n: int, choose: Callable[[int, int], FakesChoice]) -> tuple[int, int]:
    """The best number of fakes, and the best number of bucket bits with that many fakes."""
    choose = cache(choose)

    def best_bits(number: int) -> int:
        bits = MOST_BUCKET_BITS // 2
        for step in (4, 2, 1):
            while True:
                neighbours = [near for near in (bits - step, bits, bits + step) if 1 <= near <= MOST_BUCKET_BITS]
                better = min(neighbours, key=lambda near: choose(near, number).variance)
                if better == bits:
                    break
                bits = better
        return bits

    bits_of = cache(best_bits)
    best = _best_number(numbers, n, lambda number: choose(bits_of(number), number))
    return best.fakes, bits_of(best.fakes)


def _best_number(numbers: Sequence[int], n: int, choose: Callable[[int], FakesChoice]) -> FakesChoice:
    """The best of the numbers of fakes, refined between its neighbours."""
    choose = cache(choose)
    place = min(range(len(numbers)), key=lambda place: choose(numbers[place]).cost(n))
    best, low, high = choose(numbers[place]), numbers[max(place - 1, 0)], numbers[min(place + 1, len(numbers) - 1)]
    for _ in range(_REFINED):
        for middle in ((low + best.fakes) // 2, (best.fakes + high) // 2):
            if choose(middle).cost(n) < best.cost(n):
                low, high = (low, best.fakes) if middle < best.fakes else (best.fakes, high)
                best = choose(middle)
                break
        else:
            low, high = (low + best.fakes) // 2, (best.fakes + high) // 2
    return best


def _grr(domain: int) -> Callable[[float], FrequencyOracle]:
    return lambda local: GRR(epsilon=local, domain=domain)


def _solh(domain: int, bits: int) -> Callable[[float], FrequencyOracle]:
    return lambda local: SOLH(epsilon=local, domain=domain, buckets=1 << bits)


_AFTER, _BEFORE = 100e-6, 330e-6
"""CPU seconds of a shuffler for each report, after the close and before (`benchmarks/run.py --only oblivious`)."""


def share_costs(reports: int) -> str:
    """What three shufflers of shares have to compute for a batch (`trust = "oblivious"`), as a sentence."""
    after, before = (float(f"{seconds * reports:.2g}") for seconds in (_AFTER, _BEFORE))
    return (
        f"Divided into shares for three shufflers, a batch costs each of them about {before:g} CPU seconds while it "
        f"gathers and {after:g} from its close until it is handed on, where that was measured."
    )
