"""Choosing the mechanism of smallest error whose shuffled reports keep to a central epsilon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.frequency.solh import SOLH
from hubbub.mechanisms.frequency.unary import OUE, SUE
from hubbub.privacy.amplification.fakes import mean_variance
from hubbub.privacy.amplification.inverse import local_epsilon

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

    Parameters
    ----------
    domain, n
        How many values there are, and how many people report.
    epsilon, delta
        What the shuffled batch is to guarantee.
    fakes
        How many fake reports are shuffled with them.
    most_local
        The largest local epsilon: the guarantee against someone who sees a report before it is shuffled.

    References
    ----------
    Dissertation, sections 9.3.3 and 9.5.4; by numerical bounds instead of Theorem 9.3.2.
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
