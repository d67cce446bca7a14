"""SaO2: the plan of a stream, a tree over time with a share of devices per level, and estimates from its counts."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import UNITS_PER_EPSILON, epsilon_of, units_of
from hubbub.core.reports import Floats, Ints, Sketch
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.ternary.ternary import TernaryMechanism
from hubbub.mechanisms.ternary.vectors import MOST_DIMENSION
from hubbub.protocols.sao2.tree import Choice, Digits, Pooled, Queries, Reading, Tree, level_portions
from hubbub.protocols.views.changes import Changes


@dataclass(frozen=True, kw_only=True)
class Sao2:
    """Means and sums over time of people's 0/1 vectors, in real time, for one epsilon over the whole stream.

    Every device reports on one level of a tree over time, which its secret place on the circle decides. Its reports of
    all steps together are one report of a ternary mechanism on the changes from node to node of that level, and spend
    epsilon once. The mean squared error grows with the number of changes, not with the number of steps.

    Parameters
    ----------
    epsilon
        What a device may spend, over all steps together.
    dimension
        How many entries the vectors have: 1 for on and off, the number of items of sets, the number of categories.
    changes
        How many changes of entries a device may report; after that it treats its value as constant.
    one
        Whether the value is one of `dimension` categories.
    fanout
        How many nodes of a level make up one node of the level above.
    mechanism
        The name of the ternary mechanism: NetSub, which has the smallest error, the paper's ExSub, or another. Devices
        report at the end of the stream if the mechanism must see whole vectors (`whole_only`), otherwise as it goes.
    queries
        The estimates whose error is minimised by the choice of the levels' shares: the values of steps ("mean"), sums
        from the first step on ("prefix"), or sums over any steps ("range"). All three can be estimated in any case.
    choice
        "optimum", "uniform" or "paper": see `level_portions`.
    pooled
        Whether estimates use all reports (`Pooled`), or only those that the paper's Algorithm 2 uses (`Digits`).

    References
    ----------
    S. Wang, Li, Xin et al., 2023, section 4. Where answers are `pooled`, `choice` is "optimum" and the mechanism is
    NetSub, ours.
    """

    epsilon: float
    dimension: int
    steps: int
    changes: int
    one: bool = False
    fanout: int = 2
    mechanism: str = "NetSub"
    queries: Queries = "mean"
    choice: Choice = "optimum"
    pooled: bool = True

    def __post_init__(self) -> None:
        kind = MECHANISMS.get(self.mechanism)
        if kind is None or not issubclass(kind, TernaryMechanism):
            known = sorted(
                name for name, mechanism in MECHANISMS.usable().items() if issubclass(mechanism, TernaryMechanism)
            )
            raise InvalidValue("mechanism", self.mechanism, f"one of {', '.join(known)}")
        _ = self.tree
        if isinstance(self.dimension, int) and self.dimension * self.steps > MOST_DIMENSION:
            raise InvalidValue("steps", self.steps, f"at most {MOST_DIMENSION // self.dimension} at this dimension")
        _ = self.portions

    @cached_property
    def tree(self) -> Tree:
        """The tree over time."""
        return Tree(self.steps, self.fanout)

    @cached_property
    def views(self) -> tuple[Changes, ...]:
        """The view of each level."""
        return tuple(
            Changes(self.tree.span(level), self.steps, self.dimension, self.changes, self.one)
            for level in range(self.tree.levels)
        )

    @cached_property
    def mechanisms(self) -> tuple[TernaryMechanism, ...]:
        """The mechanism of each level."""
        kind, epsilon = MECHANISMS[self.mechanism], self._report_epsilon
        mechanisms = [kind(epsilon=epsilon, dimension=v.entries, sparsity=v.sparsity) for v in self.views]  # type: ignore[call-arg]
        return tuple(mechanism for mechanism in mechanisms if isinstance(mechanism, TernaryMechanism))

    @property
    def _report_epsilon(self) -> float:
        """The epsilon rounded down to whole units: the float 0.1 is more than a tenth, and would cost a unit more."""
        valid = isinstance(self.epsilon, float) and 1 / UNITS_PER_EPSILON <= self.epsilon < math.inf
        return epsilon_of(units_of(self.epsilon)) if valid else self.epsilon  # mechanisms refuse an invalid one

    @cached_property
    def variances(self) -> tuple[float, ...]:
        """For each level, the variance of a residue's entry from one report of a device that has all its changes."""
        return tuple(mechanism.mse() / mechanism.dimension for mechanism in self.mechanisms)

    @cached_property
    def portions(self) -> Floats:
        """The share of the population that reports on each level."""
        return level_portions(self.tree, self.variances, queries=self.queries, choice=self.choice, pooled=self.pooled)

    @property
    def online(self) -> bool:
        """Whether devices report as the stream goes, or only when it has ended."""
        return not self.mechanisms[0].whole_only

    def clips(self, step: int) -> bool:
        """Whether a value can have changed more often by this step than a device may report, at any level."""
        return any(_most_changes(view, step // view.span) > view.sparsity for view in self.views)

    def times(self, level: int) -> range:
        """The steps at which the nodes of a level end."""
        return range(self.tree.span(level), self.steps + 1, self.tree.span(level))

    def ending(self, step: int) -> list[tuple[int, int]]:
        """The nodes that devices report at a step, as (level, node); all nodes at the last step if not `online`."""
        if self.online:
            return self.tree.ending(step)
        nodes = self.tree.nodes if step == self.steps else ()
        return [(level, node) for level, count in enumerate(nodes) for node in range(1, count + 1)]

    def reading(self, n: Ints) -> Reading:
        """The way to combine residues into estimates, if n devices report on each level."""
        if not self.pooled:
            return Digits(self.tree)
        with np.errstate(divide="ignore"):
            return Pooled(self.tree, tuple((np.asarray(self.variances) / n).tolist()))

    def population(self, n: Ints) -> float:
        """The estimated number of devices, if n have reported on each level; n = 0 is still to come."""
        share = float(self.portions[n > 0].sum())
        return float(n.sum()) / share if share else 0.0


def _most_changes(view: Changes, nodes: int) -> int:
    """The most changes of entries within a number of nodes; each change of a category changes two entries."""
    entries = view.dimension * nodes
    return min(2 * nodes - 1, entries) if view.one else entries


class Answers:
    """The counts of every level, and estimates from them: of the value at any step so far, or of sums over steps.

    Variances include the randomisation and that each level is reported by a part of the population; residues of
    different nodes count as uncorrelated. Devices that fell silent bias estimates toward their earlier values, or
    toward zero where a node that spans their whole past is missing: `silent` estimates how many they are. Devices whose
    values change more often than they may report bias estimates too, and cannot be counted. Where there can be such
    devices (`Sao2.clips`) the bias is "heuristic", and intervals hold for the clipped values.

    `plan`: the levels, and the mechanism of each.
    """

    remembered = ("step", "n", "counts")

    def __init__(self, plan: Sao2) -> None:
        self.plan = plan
        self.step = 0
        """The last step that has ended."""
        self.n: Ints = np.zeros(len(plan.mechanisms), dtype=np.int64)
        """How many devices have enrolled at each level."""
        self._starts = np.cumsum([0, *(mechanism.dimension for mechanism in plan.mechanisms)])
        self.counts: Ints = np.zeros((2, int(self._starts[-1])), dtype=np.int64)

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
