"""An aggregate as a function of a few sums: its value, its interval, and its possible range."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hubbub.core.noise import MARGIN, normal_reach
from hubbub.query.errors import Tree, refused
from hubbub.query.measures import MeasureProfile, check_number
from hubbub.query.rules.conditions import number
from hubbub.query.sums import EVERYBODY, Dual, Floats, JointEstimate, Monomial

ANGLES = 1025
"""At how many points an ellipse is looked at: the ends of an interval are exact to 0.001% of its width."""


@dataclass(frozen=True)
class AnswerInterval:
    """An estimate, its interval and standard error, and the possible range. What is unknown is NaN or infinite."""

    value: float
    low: float
    high: float
    stderr: float
    least: float = -math.inf
    most: float = math.inf

    def root(self) -> AnswerInterval:
        """The interval of the square root; what is below 0 counts as 0."""
        value, low, high, most = (math.sqrt(max(end, 0.0)) for end in (self.value, self.low, self.high, self.most))
        value = math.nan if math.isnan(self.value) else value
        stderr = (
            self.stderr * (high - low) / (self.high - self.low) if math.isfinite(high) and high > low else self.stderr
        )
        return AnswerInterval(value, low, high, stderr, 0.0, most)


Ends = tuple[float, float]


def times(left: Ends, right: Ends) -> Ends:
    """The least and the largest product of two numbers that are within given ends."""
    products = [0.0 if 0.0 in (a, b) else a * b for a in left for b in right]
    return min(products), max(products)


def inverse(ends: Ends) -> Ends:
    """The ends of 1 / x; without a bound if x can be 0."""
    return (1 / ends[1], 1 / ends[0]) if ends[0] > 0 or ends[1] < 0 else (-math.inf, math.inf)


def fieller(top: Dual, bottom: Dual, joint: JointEstimate, reach: float) -> AnswerInterval:
    """Fieller's interval of a ratio of two sums: all r for which top - r bottom does not differ significantly from 0.

    Parameters
    ----------
    top, bottom
        The two sums, with their gradients with respect to the estimates.
    joint
        The estimates with their covariances.
    reach
        The half width of an interval in standard errors.

    Example:
        >>> joint = JointEstimate(np.array([8.0, 2.0]), (np.diag([1.0, 0.25]),))
        >>> top, bottom = Dual(8.0, np.array([1.0, 0.0])), Dual(2.0, np.array([0.0, 1.0]))
        >>> interval = fieller(top, bottom, joint, 1.0)
        >>> round(interval.low, 2), interval.value, round(interval.high, 2)
        (3.08, 4.0, 5.45)
        >>> fieller(top, bottom, joint, 4.0).high  # the denominator may be 0
        inf
    """
    ratio = top / bottom
    if math.isnan(ratio.value):
        return AnswerInterval(math.nan, -math.inf, math.inf, math.inf)
    stderr = math.sqrt(joint.variance(ratio.gradient))
    joint = joint.widened(reach)
    own = joint.variance(bottom.gradient)
    a = bottom.value**2 - reach**2 * own
    if not a > 0 or not math.isfinite(own):  # the denominator may be 0: any ratio is possible
        return AnswerInterval(ratio.value, -math.inf, math.inf, stderr)
    b = top.value * bottom.value - reach**2 * joint.covariance(top.gradient, bottom.gradient)
    c = top.value**2 - reach**2 * joint.variance(top.gradient)
    spread = math.sqrt(max(b * b - a * c, 0.0))
    return AnswerInterval(ratio.value, (b - spread) / a, (b + spread) / a, stderr)


def variance_interval(sums: Floats, covariance: Floats, level: float, *, width: float, sample: bool) -> AnswerInterval:
    """The interval of a variance: all v for which some mean is compatible with the sums.

    With N the count, S1 the sum and S2 the sum of squares, v is kept if there is a mean m for which S1 - m N and
    S2 - (v + m^2) N together do not differ significantly from 0. The pairs (m, v + m^2) that are kept are an ellipse,
    whose extent in any direction is Fieller's interval; it has no bound where N does not differ significantly from 0.

    Parameters
    ----------
    sums, covariance
        N, S1 and S2 with their covariance.
    level
        How surely the interval holds the truth.
    width
        The range of the measure.
    sample
        Whether sums of squares are divided by N - 1 rather than by N.
    """
    count = float(sums[0])
    fewer = count - sample
    value = math.nan if abs(count) < 1e-9 or abs(fewer) < 1e-9 else float(sums[2] - sums[1] ** 2 / count) / fewer
    # Popoviciu's inequality; a sample variance is of at least two people
    most = width**2 / 4 * (2 if sample else 1) if math.isfinite(width) else math.inf
    statistic = -2 * math.log1p(-level)  # of chi squared with two degrees of freedom
    if not np.isfinite(covariance).all() or count**2 <= statistic * covariance[0, 0] or count <= 0:
        return AnswerInterval(value, 0.0, math.inf, math.inf, 0.0, most)
    products = (np.outer(sums, sums) - statistic * covariance) / (count**2 - statistic * covariance[0, 0])
    middle = products[0, 1:]
    values, vectors = np.linalg.eigh(np.outer(middle, middle) - products[1:, 1:])
    angles = np.linspace(0, 2 * math.pi, ANGLES)
    edge = vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * [np.cos(angles), np.sin(angles)])
    variances = middle[1] + edge[1] - (middle[0] + edge[0]) ** 2
    low, high = max(float(variances.min()), 0.0), max(float(variances.max()), 0.0)
    if sample:
        reach = math.sqrt(statistic * covariance[0, 0])
        fewest, largest = (max(count + end, 2.0) for end in (-reach, reach))
        low, high = low * largest / (largest - 1), high * fewest / (fewest - 1)
    return AnswerInterval(value, low, high, (high - low) / (2 * normal_reach(level)), 0.0, most)


Profiles = Callable[[Tree], MeasureProfile]


class Output:
    """One aggregate: arithmetic of sums, counts and variances.

    Parameters
    ----------
    tree
        The normalised expression.
    profiles
        Gives the profile of a measure.
    """

    def __init__(self, tree: Tree, profiles: Profiles) -> None:
        from sqlglot import exp

        while isinstance(tree, exp.Paren):
            tree = tree.this
        self.tree = tree
        self._profiles: dict[str, MeasureProfile] = {}
        self._texts: dict[int, str] = {}  # of parts of the tree, which lives as long
        self._find(tree, profiles)
        self.weights = tuple(dict.fromkeys(self._weights(tree)))

    @property
    def how(self) -> str:
        """How its interval is made."""
        from sqlglot import exp

        if self._linear(self.tree):
            return "a sum"
        if self._ratio(self.tree):
            return "a ratio of sums: its interval is Fieller's"
        if isinstance(self.tree, exp.Sqrt | exp.Variance | exp.VariancePop):
            return "a spread: its interval has all variances that some mean makes compatible with the sums"
        return "a function of sums, ratios and spreads: its interval has all values that theirs allow together"

    def interval(
        self, joint: JointEstimate, weights: Sequence[Monomial], totals: Mapping[Monomial, float], level: float
    ) -> AnswerInterval:
        """The aggregate from estimated sums of some weights.

        Parameters
        ----------
        joint
            The sums and their covariances.
        weights
            The weight of each sum.
        totals
            The sums over all people who may be in the group: upper bounds of sums that are never negative.
        level
            How surely the interval holds the truth.
        """
        sums = {weight: Dual(float(joint.value[k]), np.eye(len(weights))[k]) for k, weight in enumerate(weights)}
        parts = {self._text(part): part for part in self._parts(self.tree, joint.bounds is not None)}
        each = min(1 - (1 - level) / max(len(parts), 1), 1 - MARGIN)
        if joint.bounds is not None:
            ends = {text: self._bounded(part, joint, weights, each) for text, part in parts.items()}
            return self._around(self._dual(self.tree, sums).value, self._combined(self.tree, ends), totals, level)
        known = {text: self._part_interval(part, joint, weights, sums, each) for text, part in parts.items()}
        least, most = self._bounds(totals)
        if self._text(self.tree) in known:
            own = known[self._text(self.tree)]
            return replace(own, least=max(own.least, least), most=min(own.most, most))
        ends = {text: (interval.low, interval.high) for text, interval in known.items()}
        return self._around(self._dual(self.tree, sums).value, self._combined(self.tree, ends), totals, level)

    def _around(self, value: float, ends: Ends, totals: Mapping[Monomial, float], level: float) -> AnswerInterval:
        low, high = (ends[0], ends[1]) if math.isnan(value) else (min(ends[0], value), max(ends[1], value))
        return AnswerInterval(value, low, high, (high - low) / (2 * normal_reach(level)), *self._bounds(totals))

    def _bounded(self, part: Tree, joint: JointEstimate, weights: Sequence[Monomial], level: float) -> Ends:
        """The ends of a count or a sum from its bounds; spreads, and sums of what can be negative, are unknown."""
        from sqlglot import exp

        if isinstance(part, exp.Sqrt | exp.Variance | exp.VariancePop):
            return 0.0, math.inf
        if isinstance(part, exp.Sum) and not self._profiles[self._text(part.this)].least >= 0:
            return -math.inf, math.inf
        weight = self._summed(part) if isinstance(part, exp.Sum) else self._present(part)
        direction = np.eye(len(weights))[weights.index(weight)]
        reach = normal_reach(level)
        lower, upper = (replace(bound, one_report=joint.one_report).widened(reach) for bound in joint.bounds or ())
        ends = [lower.value @ direction, upper.value @ direction]
        wide = [reach * math.sqrt(bound.variance(direction)) for bound in (lower, upper)]
        return float(ends[0] - wide[0]), float(ends[1] + wide[1])

    def _part_interval(
        self, part: Tree, joint: JointEstimate, weights: Sequence[Monomial], sums: dict[Monomial, Dual], level: float
    ) -> AnswerInterval:
        """The interval of a sum, of a ratio of sums, or of a spread."""
        from sqlglot import exp

        reach = normal_reach(level)
        if isinstance(part, exp.Sqrt):
            return self._part_interval(part.this, joint, weights, sums, level).root()
        if isinstance(part, exp.Variance | exp.VariancePop):
            places = [weights.index(weight) for weight in self._centred(part)]
            covariance = joint.widened(reach).matrix()[np.ix_(places, places)]
            measure = self._profiles[self._text(part.this)]
            sample = isinstance(part, exp.Variance)
            return variance_interval(
                joint.value[places], covariance, level, width=measure.most - measure.least, sample=sample
            )
        if self._ratio(part):
            return fieller(self._dual(part.left, sums), self._dual(part.right, sums), joint, reach)
        total = self._dual(part, sums)
        wide = reach * math.sqrt(joint.widened(reach).variance(total.gradient))
        stderr = math.sqrt(joint.variance(total.gradient))
        return AnswerInterval(total.value, total.value - wide, total.value + wide, stderr)

    def _parts(self, node: Tree, single: bool) -> list[Tree]:
        """The sums, ratios of sums, and spreads that an aggregate is made of; or its `single` sums and spreads."""
        from sqlglot import exp

        whole = isinstance(node, exp.Sqrt | exp.Variance | exp.VariancePop | exp.Sum | exp.Count)
        if whole or (not single and (self._linear(node) or self._ratio(node))):
            return [node]
        return [part for child in node.iter_expressions() for part in self._parts(child, single)]

    def _combined(self, node: Tree, known: Mapping[str, Ends]) -> Ends:
        """The values that an expression can have if each of its parts is in its interval."""
        from sqlglot import exp

        constant = number(node)
        if constant is not None:
            return float(constant), float(constant)
        if self._text(node) in known:
            return known[self._text(node)]
        if isinstance(node, exp.Paren | exp.Neg):
            low, high = self._combined(node.this, known)
            return (low, high) if isinstance(node, exp.Paren) else (-high, -low)
        left, right = self._combined(node.left, known), self._combined(node.right, known)
        if isinstance(node, exp.Mul | exp.Div):
            return times(left, right if isinstance(node, exp.Mul) else inverse(right))
        low, high = right if isinstance(node, exp.Add) else (-right[1], -right[0])
        return left[0] + low, left[1] + high

    def _find(self, node: Tree, profiles: Profiles) -> None:
        from sqlglot import exp

        if isinstance(node, exp.Sum | exp.Variance | exp.VariancePop) or (
            isinstance(node, exp.Count) and not isinstance(node.this, exp.Star)
        ):
            if isinstance(node, exp.Count) and number(node.this) is not None:
                return
            measure = self._profiles[self._text(node.this)] = profiles(node.this)
            if not isinstance(node, exp.Count):
                check_number(node.this, measure)
        elif isinstance(node, exp.Sqrt):
            if not isinstance(node.this, exp.Variance | exp.VariancePop):
                raise refused(node, "roots of aggregates are not answered", "ask STDDEV, or work with the answer")
            self._find(node.this, profiles)
        elif isinstance(node, exp.Paren | exp.Neg):
            self._find(node.this, profiles)
        elif isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
            self._find(node.left, profiles)
            self._find(node.right, profiles)
        elif isinstance(node, exp.PercentileDisc):
            raise refused(node, "a quantile stands alone", "ask it as a result of its own")
        elif not isinstance(node, exp.Count) and number(node) is None:
            raise refused(node, f"{node.sql('duckdb')} cannot be next to aggregates", "known are + - * / and numbers")
        elif not math.isfinite(number(node) or 0):
            raise refused(node, "the number is too large", "ask for the aggregate alone")

    def _weights(self, node: Tree) -> list[Monomial]:
        from sqlglot import exp

        if isinstance(node, exp.Count):
            return [self._present(node)]
        if isinstance(node, exp.Sum):
            return [self._summed(node)]
        if isinstance(node, exp.Variance | exp.VariancePop):
            count, first, second = self._centred(node)
            return [count, first, second]
        return [weight for part in node.iter_expressions() for weight in self._weights(part)]

    def _text(self, node: Tree) -> str:
        if id(node) not in self._texts:
            self._texts[id(node)] = str(node.sql("duckdb"))
        return self._texts[id(node)]

    def _present(self, node: Tree) -> Monomial:
        """The weight that counts the people for whom an expression is not NULL."""
        measure = self._profiles.get(self._text(node.this))
        return EVERYBODY if measure is None or not measure.missing else Monomial(measure.sql, 0)

    def _summed(self, node: Tree) -> Monomial:
        constant = number(node.this)
        return EVERYBODY if constant == 1 else Monomial(self._text(node.this))

    def _centred(self, node: Tree) -> tuple[Monomial, Monomial, Monomial]:
        measure = self._profiles[self._text(node.this)]
        base = f"CAST(({measure.sql}) AS DOUBLE) - ({measure.centre!r})"
        return (Monomial(base, 0) if measure.missing else EVERYBODY), Monomial(base), Monomial(base, 2)

    def _linear(self, node: Tree) -> bool:
        from sqlglot import exp

        if isinstance(node, exp.Sum | exp.Count):
            return True
        if isinstance(node, exp.Paren | exp.Neg):
            return self._linear(node.this)
        if isinstance(node, exp.Add | exp.Sub):
            return self._linear(node.left) and self._linear(node.right)
        if isinstance(node, exp.Mul):
            return any(
                number(factor) is not None and self._linear(other)
                for factor, other in ((node.left, node.right), (node.right, node.left))
            )
        return False

    def _ratio(self, node: Tree) -> bool:
        from sqlglot import exp

        return isinstance(node, exp.Div) and self._linear(node.left) and self._linear(node.right)

    def _dual(self, node: Tree, sums: dict[Monomial, Dual]) -> Dual:
        from sqlglot import exp

        constant = number(node)
        size = next(iter(sums.values())).gradient.size
        if constant is not None:
            return Dual(float(constant), np.zeros(size))
        if isinstance(node, exp.Count):
            return sums[self._present(node)]
        if isinstance(node, exp.Sum):
            return sums[self._summed(node)]
        if isinstance(node, exp.Variance | exp.VariancePop):
            count, first, second = (sums[weight] for weight in self._centred(node))
            fewer = count - Dual(float(isinstance(node, exp.Variance)), np.zeros(size))
            if abs(fewer.value) < 1e-9:  # one person has no variance
                return Dual(math.nan, np.full(size, np.nan))
            return (second - first * first / count) / fewer
        if isinstance(node, exp.Sqrt):
            return self._dual(node.this, sums).root()
        if isinstance(node, exp.Neg):
            return -self._dual(node.this, sums)
        if isinstance(node, exp.Paren):
            return self._dual(node.this, sums)
        left, right = self._dual(node.left, sums), self._dual(node.right, sums)
        if isinstance(node, exp.Add):
            return left + right
        if isinstance(node, exp.Sub):
            return left - right
        return left * right if isinstance(node, exp.Mul) else left / right

    def _bounds(self, totals: Mapping[Monomial, float]) -> tuple[float, float]:
        """The range of possible values of a count, a sum that is never negative, or an average."""
        from sqlglot import exp

        tree = self.tree
        if isinstance(tree, exp.Count):
            return 0.0, totals.get(self._present(tree), 0.0)
        if isinstance(tree, exp.Sum) and self._profiles[self._text(tree.this)].least >= 0:
            return 0.0, totals.get(self._summed(tree), 0.0)
        if isinstance(tree, exp.Div) and isinstance(tree.left, exp.Sum) and isinstance(tree.right, exp.Count):
            measure = self._profiles.get(self._text(tree.right.this))
            if measure is not None and measure.sql == self._text(tree.left.this):
                return measure.least, measure.most
        return -math.inf, math.inf
