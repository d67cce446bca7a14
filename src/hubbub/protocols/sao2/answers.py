"""The server's half of SaO2: the counts of every level so far, and estimates from them at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.sketch import Sketch

if TYPE_CHECKING:
    from hubbub.protocols.sao2.plan import Sao2

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Answers:
    """The counts of every level, and estimates from them: of the value at any step so far, or of sums over steps.

    Variances include the randomisation and that each level is reported by a part of the population; residues of
    different nodes count as uncorrelated. Devices that fell silent bias estimates toward their earlier values, or
    toward zero where a node that spans their whole past is missing: `silent` estimates how many they are. Devices whose
    values change more often than they may report bias estimates too, and cannot be counted. Where there can be such
    devices (`Sao2.clips`) the bias is "heuristic", and intervals hold for the clipped values.

    Parameters
    ----------
    plan
        The levels, and the mechanism of each.
    """

    remembered = ("step", "n", "counts")

    def __init__(self, plan: Sao2) -> None:
        self.plan = plan
        self.step = 0
        """The last step that has ended."""
        self.n: Integers = np.zeros(len(plan.mechanisms), dtype=np.int64)
        """How many devices have enrolled at each level."""
        self._starts = np.cumsum([0, *(mechanism.dimension for mechanism in plan.mechanisms)])
        self.counts: Integers = np.zeros((2, int(self._starts[-1])), dtype=np.int64)

    def add(self, level: int, sketch: Sketch) -> None:
        """Add a sketch to the counts of a level: how many devices enrolled, and their signs."""
        merged = self.sketch(level) + sketch  # refuses a sketch of another mechanism
        self.n[level] = merged.n
        self.counts[:, self._entries(level)] = merged.counts

    def sketch(self, level: int) -> Sketch:
        """The sketch of all reports of a level so far."""
        counts = self.counts[:, self._entries(level)].copy()
        return Sketch(self.plan.mechanisms[level].spec_id, int(self.n[level]), counts)

    @property
    def population(self) -> float:
        """The estimated number of devices, including those of levels that have not reported yet."""
        return self.plan.population(self.n)

    @property
    def now(self) -> int:
        """The last step that can be estimated."""
        return min(self.step, self.plan.steps)

    def mean(self, step: int) -> Estimate:
        """The share of the people whose entry is 1 at a step, for every entry."""
        return self._weighted(self._between(step, step), self.now, "share")

    def latest(self, step: int) -> Estimate:
        """The same at the step that is about to end."""
        return self._weighted(np.arange(1, self.plan.steps + 1) == step, step, "share")

    def range(self, first: int, last: int) -> Estimate:
        """The sum of `mean` over the steps first to last."""
        return self.weighted(self._between(first, last))

    def prefix(self, last: int) -> Estimate:
        """The sum of `mean` over the steps 1 to `last`."""
        return self.range(1, last)

    def weighted(self, weights: ArrayLike) -> Estimate:
        """A weighted sum of `mean` over the steps so far; there is a weight for every step of the stream."""
        return self._weighted(weights, self.now, "quantity")

    def _weighted(self, weights: ArrayLike, now: int, kind: Literal["share", "quantity"]) -> Estimate:
        d = self.plan.dimension
        value, variance = np.zeros(d), np.zeros(d)
        for level, coefficients in enumerate(self.plan.reading(self.n).coefficients(weights, now)):
            used = np.flatnonzero(coefficients)
            if not used.size:
                continue
            if not self.n[level]:
                variance += np.inf
                continue
            residues, noise = self._residues(level)
            value += coefficients[used] @ residues[used]
            variance += coefficients[used] ** 2 @ noise[used]
        bias = "heuristic" if self.plan.clips(now) else self.plan.mechanisms[0].bias
        return Estimate(value, variance, int(self.n.sum()), bias=bias, kind=kind)

    def silent(self, step: int) -> Estimate:
        """The share of the devices that did not report, among those with a node that ends at this step.

        It is estimated from the number of signs, compared with the number that comes when nothing changes. With ExSub,
        changes add signs, so that this is a lower bound. With NetSub changes may add or remove a few.

        Example:
            >>> from hubbub.protocols.sao2 import Sao2
            >>> Answers(Sao2(epsilon=1.0, dimension=3, steps=4, changes=2)).silent(4).variance.tolist()
            [inf]
        """
        d = self.plan.dimension
        signs = expected = variance = 0.0
        for level, node in self.plan.ending(step):
            first = int(self._starts[level]) + (node - 1) * d
            rate = 2 * float(self.plan.mechanisms[level].p_false)
            signs += float(self.counts[:, first : first + d].sum())
            expected += float(self.n[level]) * d * rate
            variance += float(self.n[level]) * d * rate * (1 - rate)
        if not expected:
            return Estimate(np.zeros(1), np.full(1, np.inf), 0, bias="heuristic")
        share, noise = np.array([1 - signs / expected]), np.array([variance / expected**2])
        return Estimate(share, noise, int(self.n.sum()), bias="heuristic")

    def _residues(self, level: int) -> tuple[Floats, Floats]:
        """The mean residues of a level and their variances, a row for each node."""
        mechanism, n = self.plan.mechanisms[level], int(self.n[level])
        if not self.plan.online:  # reports are of whole vectors
            means = mechanism.estimate(self.sketch(level), signs=True)
            spread = means.spread
            if spread is None:
                spread = np.abs(means.value) * (1 - np.minimum(1, means.value**2))
            value, variance = means.value, means.variance + spread / n
        else:
            plus, minus = self.counts[:, self._entries(level)]
            gap = float(mechanism.p_true - mechanism.p_reverse)
            value = (plus - minus) / n / gap
            # The variance of one report of a person drawn at random: it includes the sampling.
            one_report = (plus + minus) / n / gap**2 - value**2
            variance = np.maximum(one_report, min(mechanism.variances("mean")) / 2) / n
        return value.reshape(-1, self.plan.dimension), variance.reshape(-1, self.plan.dimension)

    def _between(self, first: int, last: int) -> Floats:
        for name, step in (("first", first), ("last", last)):
            if isinstance(step, bool) or not isinstance(step, int | np.integer) or not 1 <= step <= self.now:
                raise InvalidValue(name, step, f"a step from 1 to {self.now}, the last that has ended")
        if first > last:
            raise InvalidValue("last", last, f"at least first = {first}")
        weights = np.zeros(self.plan.steps)
        weights[first - 1 : last] = 1.0
        return weights

    def _entries(self, level: int) -> slice:
        """The columns of `counts` that are of a level."""
        return slice(int(self._starts[level]), int(self._starts[level + 1]))
