"""From a central target back to the device: the largest local epsilon whose shuffled batch keeps to it."""

from __future__ import annotations

from collections.abc import Callable

from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.base import Mechanism
from hubbub.privacy.amplification.amplify import amplified_delta, check_batch
from hubbub.privacy.amplification.blanket_bound import COARSE, FINE

_CLOSE = 1e-3
_FURTHER = 1.05


def local_epsilon(
    make: Callable[[float], Mechanism],
    *,
    epsilon: float,
    n: int,
    delta: float,
    fakes: int = 0,
    most: float = 20.0,
    quick: bool = False,
) -> Mechanism:
    """The mechanism of the largest local epsilon, to 0.1%, whose n shuffled reports are (epsilon, delta)-private.

    `make` gives the mechanism of an epsilon, and `most` is the largest that is tried. What is returned was amplified,
    and keeps to the target. A quick look is coarse: what it returns keeps to the target too, and a little more might.

    Example:
        >>> from hubbub import OLH
        >>> def olh(local):
        ...     return OLH(epsilon=local, domain=1000, buckets=16)
        >>> round(local_epsilon(olh, epsilon=0.1, n=100_000, delta=1e-6).epsilon, 1)
        3.9
    """
    check_batch(n, delta, fakes)
    if not epsilon > 0:
        raise InvalidValue("epsilon", epsilon, "above 0")
    if epsilon >= most:
        return make(most)

    def keeps(local: float, cells: int) -> Mechanism | None:
        mechanism = make(local)
        spent = amplified_delta(mechanism, n=n, epsilon=epsilon, fakes=fakes, cells=cells)
        return mechanism if spent <= delta else None

    best, low, high = make(epsilon), epsilon, most  # what is not amplified at all keeps to it
    # What is kept to by coarse blocks is kept to: fine ones only go a little further.
    for cells in (COARSE,) if quick else (COARSE, FINE):
        while (largest := keeps(high, cells)) is not None:
            if high == most:
                return largest
            best, low, high = largest, high, min(most, high * _FURTHER)
        while high > low * (1 + _CLOSE):
            middle = (low * high) ** 0.5
            kept = keeps(middle, cells)
            if kept is None:
                high = middle
            else:
                best, low = kept, middle
        high = min(most, low * _FURTHER)
    return best
