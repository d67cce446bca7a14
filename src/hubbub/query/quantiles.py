"""Quantiles of a public measure over people who are selected by private columns."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from hubbub.core.noise import normal_reach
from hubbub.core.reports import Floats
from hubbub.query.formula import CodeScore, PrivateFactor, holds_for
from hubbub.query.groups import MOST_PARTS, PeopleGroup
from hubbub.query.intervals import AnswerInterval
from hubbub.query.measures import Measure, MeasureProfile, check_number, evaluate
from hubbub.query.pieces import PieceProfile
from hubbub.query.plan import QueryPlan
from hubbub.query.rules.conditions import number
from hubbub.query.sandbox import check_time
from hubbub.query.schema import PrivateTable
from hubbub.query.strata import GroupPart, Strata, Sums, SumsMethod
from hubbub.query.sums import EVERYBODY, Form, JointEstimate
from hubbub.query.trees import Tree, refused

EDGES, FINER = 48, 12
"""The number of values that are tried first, and inside each gap that is searched next."""
ROUNDS = 8
MOST_SCORED, OF_A_SUM = 8_000_000, 200
"""Sums over a private column, of all groups together, may have this number of values, and each sum counts as having
some more. That is about a minute."""
Tried = dict[float, tuple[float, float, float]]
"""For each value t that was tried, D(t) (see `QuantileOutput`) and the ends of its interval."""


class QuantileOutput:
    """The smallest value that at least a share of the people are at or below, as QUANTILE_DISC has it.

    For a value t, D(t) is the sum of 1 - p over the people at or below t and of -p over those above, and is estimated
    like any other sum. The quantile is the first t with D(t) >= 0. Its interval has all values t for which D is not
    significantly negative at t and not significantly positive at the value before t, and those between them.

    Parameters
    ----------
    tree
        QUANTILE_DISC of a public expression and a share.
    """

    how = "a quantile: its interval is that of the values whose share below is not told from the one asked for"

    def __init__(self, tree: Tree, profiles: Callable[[Tree], Measure]) -> None:
        self.tree = tree
        measure = profiles(tree)
        check_number(tree.this, measure)
        self._least, self._most = measure.least, measure.most
        share = number(tree.expression)
        assert share is not None
        self._share = float(share)
        self.form = measure.count
        """The people who have the measure."""
        self._own = PrivateFactor()
        self._score: CodeScore | None = None
        if isinstance(measure, PieceProfile):
            self._own, self._score, self._sql = measure.single(tree)
        else:
            assert isinstance(measure, MeasureProfile)
            self._sql = measure.sql

    @property
    def forms(self) -> list[Form]:
        """The people whom the quantile is of."""
        return [self.form]

    @property
    def typical(self) -> PrivateFactor:
        """What D(t) adds up over a group, t being the quantile if people are spread evenly; of public values, 1."""
        if self._score is None:
            return self._own
        values = np.sort(self._score.values[holds_for(self._own.formula, self._score)])
        place = max(math.ceil(self._share * values.size) - 1, 0)
        return self._sign(self._score, float(values[place])) if values.size else self._own

    def _sign(self, score: CodeScore, edge: float) -> PrivateFactor:
        """1 - p for the people at or below a value of a private column, -p for those above."""
        values = np.where(score.values <= edge, 1 - self._share, -self._share)
        name = f"{self._share!r} at {score.name} <= {edge!r}"
        return self._own * PrivateFactor(scores=(CodeScore(score.column, name, values),))

    def intervals(
        self,
        table: PrivateTable,
        method: SumsMethod[Sums],
        plan: QueryPlan,
        public: Sequence[str],
        groups: Sequence[PeopleGroup],
        level: float,
    ) -> list[AnswerInterval]:
        reach = normal_reach(level)
        known = [*public] if self._score is not None else [*public, f"({self._sql}) IS NOT NULL"]
        tried: list[Tried] = [{} for _ in groups]
        edges = [self._values(table, known, -math.inf, math.inf, self._first_edges(groups))] * len(groups)
        for _ in range(ROUNDS):
            if not any(edges):
                break
            if self._score is None:
                self._try(table, method, plan, known, groups, sorted({*chain(*edges)}), tried, reach)
            else:
                self._try_scores(self._score, strata_of(table, plan, public), method, groups, edges, tried, reach)
            gaps = [_gap(values) for values in tried]
            apart = sorted({gap for gap in gaps if gap is not None})
            closer = apart[:EDGES] if self._score is None else apart
            finer = {gap: self._values(table, known, *gap, FINER) for gap in closer}
            edges = [
                [edge for edge in finer.get(gap, ()) if edge not in values] if gap is not None else []
                for gap, values in zip(gaps, tried, strict=True)
            ]
        intervals = [_interval(values, reach, self._least, self._most) for values in tried]
        return (
            intervals
            if self._score is None or self._score.edges is None
            else [_of_cells(interval, self._score.edges, reach) for interval in intervals]
        )

    def _first_edges(self, groups: Sequence[PeopleGroup]) -> int:
        """How many values are tried first, of every group; an error if a private column would be too much work."""
        if self._score is None:
            return EDGES
        parts = max(sum(len(group.parts) for group in groups), 1)
        values = max(np.unique(self._score.values[holds_for(self._own.formula, self._score)]).size, 1)
        sums, fewest = MOST_SCORED // (OF_A_SUM + self._score.values.size), min(FINER, values)
        first = min(max(sums // 3 // parts, fewest), EDGES, values)
        if parts * self._work(values, first) > sums:
            most = sums // self._work(values, fewest)
            groups_of = "one group" if parts == 1 else f"{parts:,} groups"
            problem = f"a quantile of a column of {self._score.values.size:,} values, of {groups_of}, is too much work"
            allowed = f"at most {most:,} can be answered" if most else "ask COUNT(*) of those below a value"
            raise refused(self.tree, problem, allowed)
        return first

    @staticmethod
    def _work(values: int, first: int) -> int:
        """How many values are tried at most of each group, if some are tried first."""
        return first + FINER * math.ceil(math.log(values / first, FINER))

    def _values(self, table: PrivateTable, known: Sequence[str], low: float, high: float, count: int) -> list[float]:
        """Some values of the measure above one number and at or below another, spread over the people who have them."""
        if self._score is not None:
            present = holds_for(self._own.formula, self._score)
            values = np.unique(self._score.values[present])
            between = values[(values > low) & (values <= high)]
            places = np.ceil(np.arange(1, count + 1) * between.size / count).astype(int) - 1
            return sorted(set(between[places].tolist())) if between.size else []
        number = f"CAST(({self._sql}) AS DOUBLE)"
        ends = [f"x > {low!r}"] if math.isfinite(low) else []
        ends += [f"x <= {high!r}"] if math.isfinite(high) else []
        where = " AND ".join(f"({part})" for part in known)
        shares = ", ".join(f"{(k + 1) / count:.6f}" for k in range(count))
        inner = f"SELECT DISTINCT {number} AS x FROM {table.relation} WHERE {where}"  # noqa: S608
        text = f"SELECT quantile_disc(x, [{shares}]) FROM ({inner}) WHERE {' AND '.join(ends) or 'TRUE'}"  # noqa: S608
        values = evaluate(table, text, self.tree)[0][0]
        return sorted(set(values)) if isinstance(values, list) else []

    def _try_scores(
        self,
        score: CodeScore,
        strata: Strata,
        method: SumsMethod[Sums],
        groups: Sequence[PeopleGroup],
        edges: Sequence[Sequence[float]],
        tried: Sequence[Tried],
        reach: float,
    ) -> None:
        """Add D at some values of a private column, those of each group: a sum of scores."""
        signs = {edge: self._sign(score, edge) for edge in {*chain(*edges)}}
        parts = [
            (place, factor * signs[edge])
            for group, mine in zip(groups, edges, strict=True)
            for edge in mine
            for place, factor in group.parts
        ]
        measured = iter(method.measure(strata, parts))
        for values, group, mine in zip(tried, groups, edges, strict=True):
            for edge in mine:
                check_time()
                own = [(next(measured), np.eye(1)) for _ in group.parts]
                if own:
                    people = np.array([strata.strata[place].n for place, _ in group.parts])
                    steps = np.array([part.step[0, 0] for part, _ in own])
                    values[edge] = _ends(method.joint(own), np.full((1, 1), steps @ people / people.sum()), reach)[0]

    def _try(
        self,
        table: PrivateTable,
        method: SumsMethod[Sums],
        plan: QueryPlan,
        known: Sequence[str],
        groups: Sequence[PeopleGroup],
        edges: Sequence[float],
        tried: Sequence[Tried],
        reach: float,
    ) -> None:
        """Add D at each of some values, of each group."""
        number = f"CAST(({self._sql}) AS DOUBLE)"
        bins = " ".join(f"WHEN {number} <= {edge!r} THEN {place}" for place, edge in enumerate(edges))
        keys = [key.sql for key in plan.public_keys]
        atoms = [atom.sql("duckdb") for atom in plan.condition.atoms]
        binned = f"CASE {bins} ELSE {len(edges)} END"
        private = math.prod(len(key.values) for key in plan.private_keys)
        division = {"public": known, "keys": [*keys, binned], "atoms": atoms}
        strata = Strata(table, **division, weights=[EVERYBODY], private_groups=private)
        places: dict[object, list[tuple[int, int]]] = {}
        for place, stratum in enumerate(strata.strata):
            *keys_of, spot = stratum.keys
            assert isinstance(spot, int)
            places.setdefault((tuple(keys_of), stratum.truths), []).append((place, spot))
        own = _own_strata(table, plan, known[:-1])
        fine_parts: list[GroupPart] = []
        spots: list[list[int]] = []  # the bin of each part, group by group
        sources: list[list[int]] = []  # the stratum of each part
        for group in groups:
            check_time()
            spots.append([])
            sources.append([])
            for coarse, factor in group.parts:
                for place, spot in places.get(own[coarse], []):
                    fine_parts.append((place, factor * self._own))
                    spots[-1].append(spot)
                    sources[-1].append(place)
            if len(fine_parts) > MOST_PARTS:
                raise refused(self.tree, "there are too many groups for quantiles", "group by fewer columns")
        measured = iter(method.measure(strata, fine_parts))
        thresholds = np.arange(len(edges))
        for values, bins_of, places_of in zip(tried, spots, sources, strict=True):
            check_time()
            parts = [
                (next(measured), np.where(spot <= thresholds, 1 - self._share, -self._share)[:, None])
                for spot in bins_of
            ]
            if not parts:
                continue
            steps = np.array([math.sqrt(part.step[0, 0]) * matrix[:, 0] for part, matrix in parts])
            people = np.array([strata.strata[place].n for place in places_of])
            one_report = (steps.T * people) @ steps / people.sum()
            values |= zip(edges, _ends(method.joint(parts), one_report, reach), strict=True)


def _ends(joint: JointEstimate, one_report: Floats, reach: float) -> list[tuple[float, float, float]]:
    """Sums and the ends of their intervals, from their bounds where they have some."""
    lower, upper = (replace(bound, one_report=one_report).widened(reach) for bound in joint.bounds or (joint, joint))
    ends = []
    for value, below, above, own in zip(joint.value, lower.value, upper.value, np.eye(joint.value.size), strict=True):
        low, high = (reach * math.sqrt(bound.variance(own)) for bound in (lower, upper))
        ends.append((float(value), min(float(below) - low, float(value)), max(float(above) + high, float(value))))
    return ends


def strata_of(table: PrivateTable, plan: QueryPlan, public: Sequence[str]) -> Strata:
    """The strata that groups are made of, counting people."""
    keys = [key.sql for key in plan.public_keys]
    atoms = [atom.sql("duckdb") for atom in plan.condition.atoms]
    return Strata(table, public=public, keys=keys, atoms=atoms, weights=[EVERYBODY])


def _own_strata(table: PrivateTable, plan: QueryPlan, public: Sequence[str]) -> list[object]:
    """The keys and truths of the strata that groups are made of."""
    return [(stratum.keys, stratum.truths) for stratum in strata_of(table, plan, public).strata]


def _of_cells(interval: AnswerInterval, edges: Floats, reach: float) -> AnswerInterval:
    """From the number of a cell to the numbers in it: the middle of the cell, and the ends of the outermost cells."""
    if math.isnan(interval.value):
        return replace(interval, least=float(edges[0]), most=float(edges[-1]))
    cells = edges.size - 1
    value = float(edges[int(interval.value)] + edges[int(interval.value) + 1]) / 2
    low, high = (min(max(end, 0), cells - 1) for end in (interval.low, interval.high))
    ends = float(edges[int(low)]), float(edges[int(high) + 1])
    spread = (ends[1] - ends[0]) / (2 * reach)
    return AnswerInterval(value, *ends, spread, float(edges[0]), float(edges[-1]))


def _gap(tried: Tried) -> tuple[float, float] | None:
    """Between which values to look closer: where D changes its sign, unless noise leaves many values open anyway."""
    values = sorted(tried)
    if not values:
        return None
    first = next((k for k, t in enumerate(values) if tried[t][0] >= _slack(tried)), None)
    if first is None:
        return None
    open_values = sum(tried[t][1] <= 0 <= tried[t][2] for t in values)
    _, low, high = tried[values[first]]
    if open_values > 6 and high - low > 2e-6:
        return None
    return (values[first - 1] if first else -math.inf), values[first]


def _slack(tried: Tried) -> float:
    """D of 0 is told from less only as far as sums of floats are exact."""
    return -1e-9 * max((abs(d) for d, _, _ in tried.values()), default=0.0)


def _interval(tried: Tried, reach: float, least: float, most: float) -> AnswerInterval:
    values = sorted(tried)
    if not values or all(abs(d) < 1e-9 and high - low < 1e-9 for d, low, high in tried.values()):  # nobody, for certain
        return AnswerInterval(math.nan, -math.inf, math.inf, math.inf, least, most)
    slack = _slack(tried)
    value = next((t for t in values if tried[t][0] >= slack), values[-1])
    # The quantile may be above one value that was tried and at or below the next, if D is not significantly negative at
    # the second and not significantly positive at the first: at the true one, each is so with its own probability.
    ends = list(zip([None, *values], [*values, None], strict=True))
    open_ends = [
        (least if first is None else first, most if last is None else last)
        for first, last in ends
        if (last is None or not tried[last][2] < slack) and (first is None or not tried[first][1] > 0)
    ]
    low, high = (min(low for low, _ in open_ends), max(high for _, high in open_ends)) if open_ends else (value, value)
    low, high = min(low, value), max(high, value)
    if any(math.isinf(high) for _, _, high in tried.values()):
        return AnswerInterval(value, -math.inf, math.inf, math.inf, least, most)
    return AnswerInterval(value, low, high, (high - low) / (2 * reach), least, most)
