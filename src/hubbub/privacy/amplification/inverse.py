"""The largest local epsilon whose shuffled reports keep to a central target."""

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

    `make` gives the mechanism of a local epsilon, and `most` is the largest local epsilon that is tried. The returned
    mechanism was evaluated, and keeps to the target. With `quick` the bounds are coarse: the mechanism keeps to the
    target too, but its epsilon may be a little smaller than possible.
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

    best, low, high = make(epsilon), epsilon, most  # a local epsilon of the target keeps to it without amplification
    # What the coarse bound allows is allowed: the fine bound only goes a little further.
    for cells in (COARSE,) if quick else (COARSE, FINE):
        while (largest := keeps(high, cells)) is not None:
            if high == most:
                return largest
            best, low, high = largest, high, min(most, high * _FURTHER)
        while high > low * (1 + _CLOSE):
            middle = (low * high) ** 0.5
            mechanism = keeps(middle, cells)
            if mechanism is None:
                high = middle
            else:
                best, low = mechanism, middle
        high = min(most, low * _FURTHER)
    return best
