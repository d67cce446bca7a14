"""An aggregate as a function of a few sums: its value, its interval, and its possible range."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from hubbub.core.noise import MARGIN, normal_reach
from hubbub.core.reports import Floats
from hubbub.query.intervals import AnswerInterval, Ends, fieller, inverse, spread_ends, times, variance_interval
from hubbub.query.measures import Measure, check_number
from hubbub.query.rules.conditions import number
from hubbub.query.sums import EVERYBODY, Dual, Form, JointEstimate, Monomial
from hubbub.query.trees import Tree, exp, refused

Profiles = Callable[[Tree], Measure]


MOST_SUMS = 32
"""The greatest number of sums that an aggregate is made of: each two have a covariance."""


class Output:
    """One aggregate: arithmetic of sums, counts and variances."""

    def __init__(self, tree: Tree, profiles: Profiles) -> None:
        while isinstance(tree, exp.Paren):
            tree = tree.this
        self.tree = tree
        self._profiles: dict[str, Measure] = {}
        self._texts: dict[int, str] = {}  # of parts of the tree, which lives as long
        self._find(tree, profiles)
        self.weights = tuple(dict.fromkeys(weight for form in self._forms(tree) for _, weight in form)) or (EVERYBODY,)

        if len(self.weights) > MOST_SUMS:
            problem = f"{len(self.weights)} different sums would be estimated together"
            raise refused(tree, problem, f"at most {MOST_SUMS}: ask with fewer branches of CASE and shorter products")

    @property
    def how(self) -> str:
        """How its interval is made."""
        if self._linear(self.tree):
            return "a sum"
        if self._ratio(self.tree):
            return "a ratio of sums: its interval is Fieller's"
        if isinstance(self.tree, exp.Sqrt | exp.Variance | exp.VariancePop):
            return "a spread: its interval has all variances that some mean makes compatible with the sums"
        return "a function of sums, ratios and spreads: its interval has all values that theirs allow together"

    @property
    def away(self) -> bool:
        """Whether numbers are summed that are known in cells only."""
        return any(measure.farthest for measure in self._profiles.values())

    @property
    def bounded(self) -> bool:
        """Whether its interval can be made from bounds of sums: of no public number that can be negative."""
        return not any(map(self._without_bounds, self._parts(self.tree, single=True)))

    def _without_bounds(self, part: Tree) -> bool:
        if isinstance(part, exp.Sqrt):
            return self._without_bounds(part.this)
        if isinstance(part, exp.Variance | exp.VariancePop):
            return any(weight.base for form in self._forms(part) for _, weight in form)
        return isinstance(part, exp.Sum) and not self._profiles[self._text(part)].lowest >= 0

    @property
    def forms(self) -> list[Form]:
        """The sums, each by itself, that the number is made of: of a difference of sums, the difference."""
        whole = []
        for part in self._parts(self.tree, single=False):
            sides = (part.left, part.right) if self._ratio(part) else (part,)
            whole += [form for side in sides for form in self._whole(side)]
        return whole

    def _whole(self, node: Tree) -> list[Form]:
        """The forms of a spread, or the one that arithmetic of sums and counts is."""
        if not self._linear(node):
            return self._forms(node)
        size = len(self.weights)
        unit = {weight: Dual(0.0, np.eye(size)[k]) for k, weight in enumerate(self.weights)}
        whole = []
        for dual in (self._dual(node, unit), self._away(node, unit)):
            terms = zip(dual.gradient, self.weights, strict=True)
            whole.append(tuple((float(factor), weight) for factor, weight in terms if factor))
        return [whole[0], *filter(None, whole[1:])]

    def interval(
        self, joint: JointEstimate, weights: Sequence[Monomial], totals: Mapping[Monomial, float], level: float
    ) -> AnswerInterval:
        """The aggregate from estimated sums of some weights.

        Parameters
        ----------
        totals
            The sums over all people who may be in the group: upper bounds of sums that are never negative.
        """
        sums = {weight: Dual(float(joint.value[k]), np.eye(len(weights))[k]) for k, weight in enumerate(weights)}
        parts = {self._text(part): part for part in self._parts(self.tree, joint.bounds is not None)}
        each = min(1 - (1 - level) / max(len(parts), 1), 1 - MARGIN)
        if joint.bounds is not None:
            ends = {text: self._bounded(part, joint, weights, each) for text, part in parts.items()}
            return self._around(self._dual(self.tree, sums).value, self._combined(self.tree, ends), totals, level)
        known = {text: self._part_interval(part, joint, weights, sums, each) for text, part in parts.items()}
        least, most = self.bounds(totals)
        if self._text(self.tree) in known:
            own = known[self._text(self.tree)]
            return replace(own, least=max(own.least, least), most=min(own.most, most))
        ends = {text: (interval.low, interval.high) for text, interval in known.items()}
        return self._around(self._dual(self.tree, sums).value, self._combined(self.tree, ends), totals, level)

    def value(self, values: Floats, weights: Sequence[Monomial]) -> float:
        """The aggregate of given sums of some weights."""
        return self._dual(
            self.tree, {w: Dual(float(v), np.zeros(1)) for w, v in zip(weights, values, strict=True)}
        ).value

    def _around(self, value: float, ends: Ends, totals: Mapping[Monomial, float], level: float) -> AnswerInterval:
        low, high = (ends[0], ends[1]) if math.isnan(value) else (min(ends[0], value), max(ends[1], value))
        return AnswerInterval(value, low, high, (high - low) / (2 * normal_reach(level)), *self.bounds(totals))

    def _bounded(self, part: Tree, joint: JointEstimate, weights: Sequence[Monomial], level: float) -> Ends:
        """The ends of a count, a sum or a spread from bounds; unknown, if public numbers can be negative."""
        if isinstance(part, exp.Sqrt):
            low, high = self._bounded(part.this, joint, weights, level)
            return math.sqrt(low), math.sqrt(high)
        if self._without_bounds(part):
            return (-math.inf if isinstance(part, exp.Sum) else 0.0), math.inf
        if isinstance(part, exp.Variance | exp.VariancePop):
            each = min(1 - (1 - level) / 3, 1 - MARGIN)
            sums = [_form_ends(form, form, joint, weights, normal_reach(each)) for form in self._forms(part)]
            measure = self._profiles[self._text(part)]
            return spread_ends(*sums, away=measure.farthest, sample=isinstance(part, exp.Variance))
        form = self._summed(part) if isinstance(part, exp.Sum) else self._present(part)
        measured = self._profiles.get(self._text(part)) if isinstance(part, exp.Sum) else None
        away = () if measured is None else measured.away
        below = (*form, *((-factor, weight) for factor, weight in away))
        return _form_ends(below, (*form, *away), joint, weights, normal_reach(level))

    def _part_interval(
        self, part: Tree, joint: JointEstimate, weights: Sequence[Monomial], sums: dict[Monomial, Dual], level: float
    ) -> AnswerInterval:
        """The interval of a sum, of a ratio of sums, or of a spread."""
        reach = normal_reach(level)
        if isinstance(part, exp.Sqrt):
            return self._part_interval(part.this, joint, weights, sums, level).root()
        if isinstance(part, exp.Variance | exp.VariancePop):
            rows = np.array([_direction(form, weights) for form in self._forms(part)])
            matrix = joint.widened(reach).matrix()
            known = np.isfinite(matrix).all()
            covariance = rows @ matrix @ rows.T if known else np.full((len(rows),) * 2, np.inf)
            measure = self._profiles[self._text(part)]
            sample = isinstance(part, exp.Variance)
            width = measure.most - measure.least
            return variance_interval(
                rows @ joint.value, covariance, level, width=width, sample=sample, away=measure.farthest
            )
        if self._ratio(part):
            tops, bottoms = (self._sides(side, sums) for side in (part.left, part.right))
            own = fieller(tops[0], bottoms[0], joint, reach)
            every = [fieller(top, bottom, joint, reach) for top in tops[1:] for bottom in bottoms[1:]]
        else:
            totals = self._sides(part, sums)
            own = _total_interval(totals[0], joint, reach)
            every = [_total_interval(total, joint, reach) for total in totals[1:]]
        if not self.away:
            return own
        low, high = min(end.low for end in every), max(end.high for end in every)
        return replace(own, low=low, high=high, stderr=(high - low) / (2 * reach))

    def _sides(self, part: Tree, sums: dict[Monomial, Dual]) -> tuple[Dual, Dual, Dual]:
        """A sum, and the least and the largest that it is if people are at the ends of their cells."""
        total, away = self._dual(part, sums), self._away(part, sums)
        return total, total - away, total + away

    def _away(self, node: Tree, sums: dict[Monomial, Dual]) -> Dual:
        """How far a sum may be from its value at the middles of cells."""
        size = next(iter(sums.values())).gradient.size
        if isinstance(node, exp.Paren | exp.Neg):
            return self._away(node.this, sums)
        if isinstance(node, exp.Add | exp.Sub):
            return self._away(node.left, sums) + self._away(node.right, sums)
        if isinstance(node, exp.Mul):
            constant, other = (node.left, node.right) if number(node.left) is not None else (node.right, node.left)
            return Dual(abs(float(number(constant) or 0)), np.zeros(size)) * self._away(other, sums)
        measure = self._profiles.get(self._text(node)) if isinstance(node, exp.Sum) else None
        return _dual_of(() if measure is None else measure.away, sums, size)

    def _parts(self, node: Tree, single: bool) -> list[Tree]:
        """The sums, ratios of sums, and spreads that an aggregate is made of; or its `single` sums and spreads."""
        whole = isinstance(node, exp.Sqrt | exp.Variance | exp.VariancePop | exp.Sum | exp.Count)
        if whole or (not single and (self._linear(node) or self._ratio(node))):
            return [node]
        return [part for child in node.iter_expressions() for part in self._parts(child, single)]

    def _combined(self, node: Tree, known: Mapping[str, Ends]) -> Ends:
        """The values that an expression can have if each of its parts is in its interval."""
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
        if isinstance(node, exp.Sum | exp.Variance | exp.VariancePop) or (
            isinstance(node, exp.Count) and not isinstance(node.this, exp.Star)
        ):
            if isinstance(node, exp.Count) and number(node.this) is not None:
                return
            measure = self._profiles[self._text(node)] = profiles(node)
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

    def _forms(self, node: Tree) -> list[Form]:
        if isinstance(node, exp.Count):
            return [self._present(node)]
        if isinstance(node, exp.Sum):
            measure = self._profiles.get(self._text(node))
            return [self._summed(node), *([measure.away] if measure is not None and measure.away else [])]
        if isinstance(node, exp.Variance | exp.VariancePop):
            measure = self._profiles[self._text(node)]
            return [measure.count, *measure.centred]
        return [form for part in node.iter_expressions() for form in self._forms(part)]

    def _text(self, node: Tree) -> str:
        if id(node) not in self._texts:
            self._texts[id(node)] = str(node.sql("duckdb"))
        return self._texts[id(node)]

    def _present(self, node: Tree) -> Form:
        """The people for whom an expression is not NULL."""
        measure = self._profiles.get(self._text(node))
        return ((1.0, EVERYBODY),) if measure is None else measure.count

    def _summed(self, node: Tree) -> Form:
        return ((1.0, EVERYBODY),) if number(node.this) == 1 else self._profiles[self._text(node)].total

    def _linear(self, node: Tree) -> bool:
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
        return isinstance(node, exp.Div) and self._linear(node.left) and self._linear(node.right)

    def _dual(self, node: Tree, sums: dict[Monomial, Dual]) -> Dual:
        constant = number(node)
        size = next(iter(sums.values())).gradient.size
        if constant is not None:
            return Dual(float(constant), np.zeros(size))
        if isinstance(node, exp.Count | exp.Sum):
            return _dual_of(self._forms(node)[0], sums, size)
        if isinstance(node, exp.Variance | exp.VariancePop):
            count, first, second = (_dual_of(form, sums, size) for form in self._forms(node))
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

    def bounds(self, totals: Mapping[Monomial, float]) -> tuple[float, float]:
        """The range of possible values of a count, a sum that is never negative, or an average."""
        tree = self.tree
        if isinstance(tree, exp.Count):
            return 0.0, _most(self._present(tree), totals)
        if isinstance(tree, exp.Sum) and self._profiles[self._text(tree)].least >= 0:
            return 0.0, _most(self._summed(tree), totals)
        if isinstance(tree, exp.Div) and isinstance(tree.left, exp.Sum) and isinstance(tree.right, exp.Count):
            measure = self._profiles.get(self._text(tree.left))
            if measure is not None and self._text(tree.right.this) == self._text(tree.left.this):
                return measure.least, measure.most
        return -math.inf, math.inf


def _total_interval(total: Dual, joint: JointEstimate, reach: float) -> AnswerInterval:
    wide = reach * math.sqrt(joint.widened(reach).variance(total.gradient))
    return AnswerInterval(
        total.value, total.value - wide, total.value + wide, math.sqrt(joint.variance(total.gradient))
    )


def _form_ends(
    least: Form, most: Form, joint: JointEstimate, weights: Sequence[Monomial], reach: float
) -> tuple[float, float]:
    """The lower end of a form and the upper end of another, from lower and upper bounds of their sums."""
    lower, upper = (replace(bound, one_report=joint.one_report).widened(reach) for bound in joint.bounds or ())
    ends = []
    for sign, form in ((-1, least), (1, most)):
        end = 0.0
        for factor, weight in form:
            direction = factor * np.eye(len(weights))[weights.index(weight)]
            bound = upper if factor * sign > 0 else lower
            end += float(bound.value @ direction) + sign * reach * math.sqrt(bound.variance(direction))
        ends.append(end)
    return ends[0], ends[1]


def _direction(form: Form, weights: Sequence[Monomial]) -> Floats:
    """A form as factors of the sums of some weights."""
    direction = np.zeros(len(weights))
    for factor, weight in form:
        direction[weights.index(weight)] += factor
    return direction


def _dual_of(form: Form, sums: Mapping[Monomial, Dual], size: int) -> Dual:
    total = Dual(0.0, np.zeros(size))
    for factor, weight in form:
        total = total + Dual(factor, np.zeros(size)) * sums[weight]
    return total


def _most(form: Form, totals: Mapping[Monomial, float]) -> float:
    """The largest value of a sum, if everybody had the largest scores."""
    most = 0.0
    for factor, weight in form:
        scores = [max(map(abs, score.ends)) for score in weight.private.scores]
        most += abs(factor) * math.prod(scores) * abs(totals.get(weight, 0.0))
    return most
