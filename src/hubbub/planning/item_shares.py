"""All mechanisms for shares of items, sorted by their exact error where people hold a given number of items.

Shares of the items of sets by a ternary mechanism: a set is a vector of which no entry is -1.

Supports of +1 and of -1 both tell whether an item is held. With the weights 1 and -w, whatever w is, a report's
supports have the mean t - w r for an item that is held and (1-w) q for any other (t, q, r are the mechanism's p_true,
p_false and p_reverse). The best w depends on the share, and little: it is 0 where r = q (Collision), for then supports
of -1 are noise alone. Of a mechanism that tells means only, the mean is the share.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from hubbub.core.domain import Sets
from hubbub.core.domain.sets import ItemSets
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise
from hubbub.core.reports import Sketch
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.sets.priv_set import PrivSet
from hubbub.mechanisms.sets.psfo import PSFO
from hubbub.mechanisms.sets.set_mechanism import SetMechanism
from hubbub.mechanisms.sets.split_unary import SplitUnary
from hubbub.mechanisms.sets.wheel import Wheel
from hubbub.mechanisms.ternary.every_sign import MeanOnly
from hubbub.mechanisms.ternary.ternary import Quantity, TernaryMechanism
from hubbub.mechanisms.ternary.vectors import Ternary
from hubbub.statistics.influence import Influence

_UNIT = 1 << 10  # weights are multiples of 1/1024: floats may differ in their last digits from machine to machine


@dataclass(frozen=True)
class TernaryShares:
    """The estimator of shares from a ternary mechanism's sketch, where nobody holds -1.

    Unbiased where nobody holds more than `sparsity` items. The variance is exact, from the same rates.

    `share`: the share at which the error is to be smallest.
    """

    mechanism: TernaryMechanism
    share: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InvalidValue("share", self.share, "a number from 0 to 1")

    @cached_property
    def weight(self) -> Fraction:
        """The w of the smallest variance: where its derivative is 0."""
        t, q, r, both_held, both_missing = (float(rate) for rate in self.mechanism.rates)
        f, rest = self.share, 1 - self.share
        # The variance is (a + 2 b w + c w^2) / (alpha - beta w)^2.
        a, c = (f * rate * (1 - rate) + rest * q * (1 - q) for rate in (t, r))
        b = f * (t * r - both_held) + rest * (q * q - both_missing)
        alpha, beta = t - q, r - q
        lower = c * alpha + b * beta
        best = -(b * alpha + a * beta) / lower if abs(lower) > 1e-12 * (c * alpha + abs(b * beta)) else 0.0
        return Fraction(round(min(max(best, -1.0), 1.0) * _UNIT), _UNIT)

    @cached_property
    def _means(self) -> tuple[Fraction, Fraction]:
        t, q, r = self.mechanism.rates[:3]
        return t - self.weight * r, (1 - self.weight) * q

    @property
    def _tells_means_only(self) -> bool:
        return isinstance(self.mechanism, MeanOnly)

    def noise(self, n: int) -> Noise:
        """The variance of shares from n reports, as a function of them."""
        if self._tells_means_only:
            at_held, at_missing = self.mechanism.variances("mean")
            return Noise(floor=at_missing / n, slope=(at_held - at_missing) / n, pairs=False)
        t, q, r, both_held, both_missing = self.mechanism.rates
        w, (held, missing) = self.weight, self._means
        scale = n * float((held - missing) ** 2)
        at_held = float(t + w**2 * r - 2 * w * both_held - held**2) / scale
        at_missing = float(q + w**2 * q - 2 * w * both_missing - missing**2) / scale
        return Noise(floor=at_missing, slope=at_held - at_missing, pairs=False)

    def influence(self) -> Influence:
        """The numbers that one forged report can stand for in a share."""
        if self._tells_means_only:
            of_mean = self.mechanism.influence()
            assert of_mean is not None
            return Influence(of_mean.least, of_mean.most)
        held, missing = self._means
        numbers = [
            (plus - self.weight * minus - missing) / (held - missing) for plus, minus in self.mechanism.rates.supports()
        ]
        return Influence(min(numbers), max(numbers))

    def estimate(self, sketch: Sketch) -> Estimate:
        """The share of people that hold each item."""
        mean = self.mechanism.estimate(sketch, signs=True)  # also refuses foreign sketches
        if self._tells_means_only:
            return Estimate(mean.value, mean.variance, sketch.n, bias=mean.bias, noise=self.noise(sketch.n))
        held, missing = (float(mean) for mean in self._means)
        counts = sketch.counts[0] - float(self.weight) * sketch.counts[1]
        value = (counts / sketch.n - missing) / (held - missing)
        noise = self.noise(sketch.n)
        variance = noise.variance(np.clip(value, 0.0, 1.0))
        return Estimate(value, variance, sketch.n, bias=self.mechanism.bias, noise=noise)


_PADDED = ("GRR", "OLH", "OUE")
_TERNARY = ("Collision", "CoCo", "ExSub", "NetSub", "NetSeed")
_TUNED: tuple[Quantity, Quantity] = ("mean", "frequency")


@dataclass(frozen=True)
class SetOption:
    """A mechanism for shares of items, and its error.

    `name`: the mechanism's name; for padding and sampling, with that of the oracle. `noise`: the variance of a share
    from one report, as a function of it. `shares`: the estimator, where it is not the mechanism's own.
    """

    name: str
    mechanism: Mechanism
    noise: Noise
    shares: TernaryShares | None = None

    def error(self, held: float, items: int) -> float:
        """The exact mean variance of one report's estimates where people hold `held` of the items on average.

        Variances are linear in the shares, which sum to `held`: how the shares differ does not matter.
        """
        return self.noise.floor + self.noise.slope * held / items

    def values(self, people: ItemSets) -> Any:
        """Sets as the mechanism reads them."""
        if self.shares is None:
            return people
        signs = np.ones(people.items.size)
        return Ternary.columns(people.items, signs, person=people.owners, n=people.n, dimension=people.domain)

    def estimate(self, sketch: Sketch) -> Estimate:
        """The share of people that hold each item."""
        return self.mechanism.estimate(sketch) if self.shares is None else self.shares.estimate(sketch)

    def influence(self) -> Influence:
        """The numbers that one forged report can stand for in a share."""
        influence = self.mechanism.influence() if self.shares is None else self.shares.influence()
        assert influence is not None
        return influence


def set_options(*, epsilon: float, domain: Sets, held: float) -> list[SetOption]:
    """Padding and sampling, PrivSet, Wheel and the unary encoding with a split budget, the smallest error first.

    `domain`: the sets; none of the mechanisms is biased by one that holds as many items as it may. `held`: how many
    items people hold on average.
    """
    makers: list[tuple[str, Callable[[], SetMechanism]]] = [
        *((f"PSFO-{name}", _padded(epsilon, domain, name)) for name in _PADDED),
        ("PrivSet", lambda: PrivSet.best_for(epsilon=epsilon, domain=domain, held=held)),
        ("Wheel", lambda: Wheel.best_for(epsilon=epsilon, domain=domain, held=held)),
        ("SplitUnary", lambda: SplitUnary.best_for(epsilon=epsilon, domain=domain, held=held)),
    ]
    options = []
    for name, make in makers:
        try:
            mechanism = make()
        except InvalidValue:  # too many items, or an epsilon too small for its integers
            continue
        options.append(SetOption(name, mechanism, mechanism.noise(1)))
    if not options:
        raise InvalidValue("epsilon", epsilon, "an epsilon that a mechanism for sets accepts")
    return _sorted(options, domain, held)


def ternary_options(*, epsilon: float, domain: Sets, held: float) -> list[SetOption]:
    """The ternary mechanisms, which read a set as a vector without -1, each with its best parameters and estimator."""
    return _sorted([option for name in _TERNARY for option in _tuned(name, epsilon, domain, held)], domain, held)


def _tuned(name: str, epsilon: float, domain: Sets, held: float) -> Iterator[SetOption]:
    kind: Any = MECHANISMS[name]
    items = _items(domain)
    options: dict[TernaryMechanism, SetOption] = {}
    for of in _TUNED:
        try:
            mechanism = kind.best_for(of, epsilon=epsilon, dimension=items, sparsity=domain.most)
        except InvalidValue:
            continue
        shares = TernaryShares(mechanism, share=held / items)
        options[mechanism] = SetOption(name, mechanism, shares.noise(1), shares)
    if options:
        yield min(options.values(), key=lambda option: option.error(held, items))


def _padded(epsilon: float, domain: Sets, oracle: str) -> Callable[[], PSFO]:
    return lambda: PSFO(epsilon=epsilon, domain=domain, oracle=oracle)


def _sorted(options: list[SetOption], domain: Sets, held: float) -> list[SetOption]:
    """Sorted by error to nine digits; ties stay in the given order."""
    items = _items(domain)
    if not 0 <= held <= domain.most:
        raise InvalidValue("held", held, f"a number from 0 to {domain.most}, the most that a set may hold")
    return sorted(options, key=lambda option: float(f"{option.error(held, items):.9g}"))


def _items(domain: Sets) -> int:
    assert domain.items.size is not None
    return domain.items.size
