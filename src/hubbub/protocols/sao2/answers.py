"""The server's half: what was told of every level so far, and the answers that it gives at any time."""

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
    """The counts of every part, and what they say: of any step, or sum of steps, up to now.

    The variance is that of the randomisation and of each level being told by a part of the population, together;
    residues of different nodes count as uncorrelated. Devices that fell silent draw answers toward what they held
    before, and where a node of all their past is missed, toward zero: `silent` says how many they are. So do devices
    whose values change more often than they may tell, and nobody sees how many those are: where there can be any
    (`Sao2.clips`), the bias is "heuristic", and intervals hold for what was told.

    Parameters
    ----------
    plan
        What was asked.

    Example:
        >>> from hubbub import Random
        >>> from hubbub.protocols.sao2 import Sao2
        >>> plan = Sao2(epsilon=4.0, dimension=1, steps=2, changes=1, mechanism="Collision")
        >>> answers, rng = Answers(plan), Random(seed=1)
        >>> for level, mechanism in enumerate(plan.mechanisms):  # half of the people turn on in step 2
        ...     people = plan.views[level](np.array([[0, 1], [0, 0]] * 5_000))
        ...     answers.hear(level, mechanism.accumulate(mechanism.randomize(people, rng)))
        >>> answers.step = 2
        >>> np.abs(answers.mean(1).value).round(1).tolist(), answers.range(1, 2).value.round(1).tolist()
        ([0.0], [0.5])
    """

    remembered = ("step", "n", "counts")

    def __init__(self, plan: Sao2) -> None:
        self.plan = plan
        self.step = 0
        """The last step that has ended."""
        self.n: Integers = np.zeros(len(plan.mechanisms), dtype=np.int64)
        """How many devices have enrolled for each part."""
        self._starts = np.cumsum([0, *(mechanism.dimension for mechanism in plan.mechanisms)])
        self.counts: Integers = np.zeros((2, int(self._starts[-1])), dtype=np.int64)

    def hear(self, part: int, sketch: Sketch) -> None:
        """Add what was told of a part: devices that enrolled, and signs that were said."""
        merged = self.sketch(part) + sketch  # of another spec: refused
        self.n[part] = merged.n
        self.counts[:, self._of(part)] = merged.counts

    def sketch(self, part: int) -> Sketch:
        """All that was told of a part.

        Example:
            >>> from hubbub.protocols.sao2 import Sao2
            >>> Answers(Sao2(epsilon=1.0, dimension=3, steps=4, changes=2)).sketch(1).counts.shape
            (2, 6)
        """
        return Sketch(self.plan.mechanisms[part].spec_id, int(self.n[part]), self.counts[:, self._of(part)].copy())

    @property
    def population(self) -> float:
        """How many devices there are, those of parts that are still to come included.

        Example:
            >>> from hubbub.protocols.sao2 import Sao2
            >>> Answers(Sao2(epsilon=1.0, dimension=3, steps=4, changes=2)).population
            0.0
        """
        return self.plan.population(self.n)

    @property
    def now(self) -> int:
        """The last step of the stream that is known.

        Example:
            >>> from hubbub.protocols.sao2 import Sao2
            >>> Answers(Sao2(epsilon=1.0, dimension=3, steps=4, changes=2)).now
            0
        """
        return min(self.step, self.plan.steps)

    def mean(self, step: int) -> Estimate:
        """The share of the people whose entry is 1 at a step, for every entry."""
        return self._weighted(self._between(step, step), self.now, "share")

    def latest(self, step: int) -> Estimate:
        """The same at the step that is about to end: what is released of it."""
        return self._weighted(np.arange(1, self.plan.steps + 1) == step, step, "share")

    def range(self, first: int, last: int) -> Estimate:
        """The sum of `mean` over the steps first to last."""
        return self.weighted(self._between(first, last))

    def prefix(self, last: int) -> Estimate:
        """The sum of `mean` over the steps up to one."""
        return self.range(1, last)

    def weighted(self, weights: ArrayLike) -> Estimate:
        """A weighted sum of `mean` over the steps up to now, one weight a step of the whole stream.

        Example:
            >>> from hubbub.protocols.sao2 import Sao2
            >>> answers = Answers(Sao2(epsilon=1.0, dimension=3, steps=4, changes=2))
            >>> answers.step = 1
            >>> answers.weighted([1, 0, 0, 0]).variance.tolist()
            [inf, inf, inf]
        """
        return self._weighted(weights, self.now, "quantity")

    def _weighted(self, weights: ArrayLike, now: int, kind: Literal["share", "quantity"]) -> Estimate:
        d = self.plan.dimension
        value, variance = np.zeros(d), np.zeros(d)
        for part, coefficients in enumerate(self.plan.reading(self.n).coefficients(weights, now)):
            used = np.flatnonzero(coefficients)
            if not used.size:
                continue
            if not self.n[part]:
                variance += np.inf
                continue
            told, noise = self._told(part)
            value += coefficients[used] @ told[used]
            variance += coefficients[used] ** 2 @ noise[used]
        bias = "heuristic" if self.plan.clips(now) else self.plan.mechanisms[0].bias
        return Estimate(value, variance, int(self.n.sum()), bias=bias, kind=kind)

    def silent(self, step: int) -> Estimate:
        """The share of the devices that said nothing where they should have, at the nodes that end with a step.

        From fewer signs than come even where nothing changes. With ExSub, changes add signs: it is the least that it
        can be. With NetSub they may add or take a few.

        Example:
            >>> from hubbub.protocols.sao2 import Sao2
            >>> Answers(Sao2(epsilon=1.0, dimension=3, steps=4, changes=2)).silent(4).variance.tolist()
            [inf]
        """
        d = self.plan.dimension
        heard = expected = spread = 0.0
        for part, node in self.plan.ending(step):
            first = int(self._starts[part]) + (node - 1) * d
            rate = 2 * float(self.plan.mechanisms[part].p_false)
            heard += float(self.counts[:, first : first + d].sum())
            expected += float(self.n[part]) * d * rate
            spread += float(self.n[part]) * d * rate * (1 - rate)
        if not expected:
            return Estimate(np.zeros(1), np.full(1, np.inf), 0, bias="heuristic")
        lost, noise = np.array([1 - heard / expected]), np.array([spread / expected**2])
        return Estimate(lost, noise, int(self.n.sum()), bias="heuristic")

    def _told(self, part: int) -> tuple[Floats, Floats]:
        """What was told of a part and its variances, a row a node."""
        mechanism, n = self.plan.mechanisms[part], int(self.n[part])
        if not self.plan.online:  # the sketch is whole
            told = mechanism.estimate(self.sketch(part), signs=True)
            spread = told.spread if told.spread is not None else np.abs(told.value) * (1 - np.minimum(1, told.value**2))
            value, variance = told.value, told.variance + spread / n
        else:
            plus, minus = self.counts[:, self._of(part)]
            gap = float(mechanism.p_true - mechanism.p_reverse)
            value = (plus - minus) / n / gap
            # Of one report as of people drawn at random: no need to know who holds something and who does not.
            each = (plus + minus) / n / gap**2 - value**2
            variance = np.maximum(each, min(mechanism.variances("mean")) / 2) / n
        return value.reshape(-1, self.plan.dimension), variance.reshape(-1, self.plan.dimension)

    def _between(self, first: int, last: int) -> Floats:
        for name, step in (("first", first), ("last", last)):
            if isinstance(step, bool) or not isinstance(step, int | np.integer) or not 1 <= step <= self.now:
                raise InvalidValue(name, step, f"a step from 1 to {self.now}, which are known")
        if first > last:
            raise InvalidValue("last", last, f"at least first = {first}")
        weights = np.zeros(self.plan.steps)
        weights[first - 1 : last] = 1.0
        return weights

    def _of(self, part: int) -> slice:
        return slice(int(self._starts[part]), int(self._starts[part + 1]))
