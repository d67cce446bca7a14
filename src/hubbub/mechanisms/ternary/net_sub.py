"""NetSub, the net rule: a report is m positions with a sign each, more often with more true than reversed signs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

from hubbub.mechanisms.ternary.net import best_net, net_share
from hubbub.mechanisms.ternary.rates import Quantity
from hubbub.mechanisms.ternary.set_forms import SetForm, shortest_form
from hubbub.mechanisms.ternary.signed_sets import SignedSets


@dataclass(frozen=True, kw_only=True)
class NetSub(SignedSets):
    """Means of sparse ternary vectors with the smallest error of all mechanisms; entries can be reported as they come.

    A set in which trues minus reverses reach t has the weight 1, any other e^-eps (`SignedSets` has the rest). ExSub
    asks for one true sign, however many are reversed: its sets must be small, or nearly all of them hold one. Here a
    set may say every position, and the preferred ones are still about a half of all.

    Where every position is said (m = d + s), a report tells nothing of frequencies: `answers` is ("mean",).

    Parameters
    ----------
    epsilon
        What one report may spend.
    dimension, sparsity
        The length d of the vectors, and how many entries s of one may differ from 0.
    m
        How many positions a report says, at most d + s.
    t
        How many more true signs than reversed ones a preferred set has at least. Where both m and t are 0, the pair
        with the smallest error of the mean is chosen; `NetSub.best_for("frequency", ...)` chooses for frequencies.
    bits, least
        A set that falls short has the weight `least` beside 2^bits, at least e^-eps of it; 0 chooses them.

    Example:
        >>> from hubbub import Random
        >>> net = NetSub(epsilon=1.0, dimension=128, sparsity=8)
        >>> net.m, net.t, round(net.mse())
        (136, 1, 6111)
        >>> reports = net.randomize([{3: 1, 5: -1}] * 20_000, Random(seed=1))
        >>> net.estimate(net.accumulate(reports)).value.round(1)[[3, 5]].tolist()
        [1.0, -1.0]

    References
    ----------
    Ours: docs/net-rule.md.
    """

    key_value: ClassVar[Literal["no", "named", "chosen"]] = "chosen"
    t: int = 0

    def _choose(self) -> None:
        if self.m == 0 and self.t == 0:
            choice = best_net(self.epsilon, self.dimension, self.sparsity)
            self._set("m", choice.m)
            self._set("t", choice.t)
        self._integer("m", 1, self.positions)
        self._integer("t", 1, min(self.m, self.sparsity))

    @classmethod
    def best_for(cls, of: Quantity, *, epsilon: float, dimension: int, sparsity: int) -> Self:
        if of == "mean":
            return cls(epsilon=epsilon, dimension=dimension, sparsity=sparsity)
        cls(epsilon=epsilon, dimension=dimension, sparsity=sparsity, m=1, t=1)  # refuses an invalid setting
        m, t, _ = best_net(epsilon, dimension, sparsity, of="frequency")
        return cls(epsilon=epsilon, dimension=dimension, sparsity=sparsity, m=m, t=t)

    def prefers(self, trues: Any, reverses: Any) -> Any:
        return trues - reverses >= self.t

    def share(self, positions: int, entries: int, size: int, *, trues: int = 0, reverses: int = 0) -> Fraction:
        return net_share(positions, entries, size, self.t - trues + reverses)

    @cached_property
    def form(self) -> SetForm:
        return shortest_form(self.positions, self.m)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=math.log(2), dimension=2, sparsity=1, m=2, t=1)
        yield cls(epsilon=1.0, dimension=4, sparsity=2, m=2, t=2)
        yield cls(epsilon=1.0, dimension=3, sparsity=3, m=6, t=1)
        yield cls(epsilon=1.0, dimension=4, sparsity=2, m=5, t=1)
        yield cls(epsilon=1.0, dimension=40, sparsity=4)
