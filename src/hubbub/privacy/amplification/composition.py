"""The guarantee of several shuffled batches together."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hubbub.core.errors import InvalidValue
from hubbub.privacy.amplification.amplify import Amplified


def compose(batches: Sequence[Amplified], *, slack: float = 0.0) -> Amplified:
    """The guarantee of all batches that one person's reports are in.

    Epsilons and deltas add up. With a slack, which is added to delta, the advanced composition of Kairouz, Oh and
    Viswanath (2015, Theorem 3.5, in its form for unequal epsilons) is taken where it is smaller. Several batches of
    memoised reports are refused: the reports of one device can be linked.
    """
    if not batches:
        raise InvalidValue("batches", [], "at least one")
    if len(batches) > 1 and any(batch.one_batch for batch in batches):
        allowed = "one: a device that remembers can be recognised in a second batch, where only local epsilons hold"
        raise InvalidValue("batches", len(batches), allowed)
    if not 0 <= slack < 1:
        raise InvalidValue("slack", slack, "at least 0, below 1")
    delta, valid = math.fsum(batch.delta for batch in batches), all(batch.valid for batch in batches)
    plain = math.fsum(batch.epsilon for batch in batches)
    if slack:
        drift = math.fsum(
            math.expm1(batch.epsilon) * batch.epsilon / (math.exp(batch.epsilon) + 1) for batch in batches
        )
        squares = math.fsum(batch.epsilon**2 for batch in batches)
        advanced = drift + math.sqrt(2 * math.log(1 / slack) * squares)
        if advanced < plain:
            return Amplified(advanced, delta + slack, f"advanced composition of {len(batches)}", valid)
    return Amplified(plain, delta, f"composition of {len(batches)}", valid, batches[0].one_batch)
