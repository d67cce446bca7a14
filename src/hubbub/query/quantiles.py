"""Quantiles of a public measure over people who are selected by private columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hubbub.core.noise import normal_reach
from hubbub.query.errors import Tree, refused
from hubbub.query.formula import Formula
from hubbub.query.groups import MOST_PARTS, PeopleGroup
from hubbub.query.measures import MeasureProfile, check_number, evaluate
from hubbub.query.outputs import AnswerInterval
from hubbub.query.plan import QueryPlan
from hubbub.query.rules.conditions import number
from hubbub.query.sandbox import check_time
from hubbub.query.schema import PrivateTable
from hubbub.query.strata import Strata, SumsMethod
from hubbub.query.sums import EVERYBODY, Monomial

EDGES, FINER = 48, 12
"""The number of values that are tried first, and inside each gap that is searched next."""
ROUNDS = 8
Tried = dict[float, tuple[float, float, float]]
"""For each value t that was tried, D(t) (see `QuantileOutput`) and the ends of its interval."""


class QuantileOutput:
    """The smallest value that at least a share of the people are at or below, as QUANTILE_DISC has it.

    For a value t, D(t) is the sum of 1 - p over the people at or below t and of -p over those above, and is estimated
    like any other sum. The quantile is the first t with D(t) >= 0. Its interval goes from the last t at which D is
    significantly negative to the first at which D is significantly positive.

    Parameters
    ----------
    tree
        QUANTILE_DISC of a public expression and a share.
    profiles
        Gives the profile of a measure.
    """

    how = "a quantile: its interval is that of the values whose share below is not told from the one asked for"

    def __init__(self, tree: Tree, profiles: Callable[[Tree], MeasureProfile]) -> None:
        self.tree = tree
        self._profile = profiles(tree.this)
        check_number(tree.this, self._profile)
        share = number(tree.expression)
        assert share is not None
        self._share = float(share)
        self.weights = (Monomial(self._profile.sql, 0),)
        """1 for the people who have the measure."""

    def intervals(
        self,
        table: PrivateTable,
        method: SumsMethod,
        plan: QueryPlan,
        public: Sequence[str],
        groups: Sequence[PeopleGroup],
        level: float,
    ) -> list[AnswerInterval]:
        """The quantile of each group."""
        reach = normal_reach(level)
        known = [*public, f"({self._profile.sql}) IS NOT NULL"]
        tried: list[Tried] = [{} for _ in groups]
        edges = self._values(table, known, -math.inf, math.inf, EDGES)
        for _ in range(ROUNDS):
            if not edges:
                break
            self._try(table, method, plan, known, groups, edges, tried, reach)
            gaps = {gap for values in tried if (gap := _gap(values)) is not None}
            finer: set[float] = set()
            for low, high in sorted(gaps)[:EDGES]:
                finer.update(self._values(table, known, low, high, FINER))
            edges = sorted(finer - {edge for values in tried for edge in values})
        least, most = self._profile.least, self._profile.most
        return [_interval(values, reach, least, most) for values in tried]

    def _values(self, table: PrivateTable, known: Sequence[str], low: float, high: float, count: int) -> list[float]:
        """Some values of the measure above one number and at or below another, spread over the people who have them."""
        number = f"CAST(({self._profile.sql}) AS DOUBLE)"
        ends = [f"x > {low!r}"] if math.isfinite(low) else []
        ends += [f"x <= {high!r}"] if math.isfinite(high) else []
        where = " AND ".join(f"({part})" for part in known)
        shares = ", ".join(f"{(k + 1) / count:.6f}" for k in range(count))
        inner = f"SELECT DISTINCT {number} AS x FROM {table.relation} WHERE {where}"  # noqa: S608
        text = f"SELECT quantile_disc(x, [{shares}]) FROM ({inner}) WHERE {' AND '.join(ends) or 'TRUE'}"  # noqa: S608
        values = evaluate(table, text, self.tree)[0][0]
        return sorted(set(values)) if isinstance(values, list) else []

    def _try(
        self,
        table: PrivateTable,
        method: SumsMethod,
        plan: QueryPlan,
        known: Sequence[str],
        groups: Sequence[PeopleGroup],
        edges: Sequence[float],
        tried: Sequence[Tried],
        reach: float,
    ) -> None:
        """Add D at each of some values, of each group."""
        number = f"CAST(({self._profile.sql}) AS DOUBLE)"
        bins = " ".join(f"WHEN {number} <= {edge!r} THEN {place}" for place, edge in enumerate(edges))
        keys = [key.sql for key in plan.public_keys]
        atoms = [atom.sql("duckdb") for atom in plan.condition.atoms]
        binned = f"CASE {bins} ELSE {len(edges)} END"
        private = math.prod(table.schema.private[place].size for place in plan.private_keys)
        division = {"public": known, "keys": [*keys, binned], "atoms": atoms}
        strata = Strata(table, **division, weights=[EVERYBODY], private_groups=private)
        places: dict[object, list[tuple[int, int]]] = {}
        for place, stratum in enumerate(strata.strata):
            places.setdefault((stratum.keys[:-1], stratum.truths), []).append((place, int(stratum.keys[-1])))
        own = _own_strata(table, plan, known[:-1])
        fine_parts: list[tuple[int, Formula]] = []
        spots: list[list[int]] = []  # the bin of each part, group by group
        sources: list[list[int]] = []  # the stratum of each part
        for group in groups:
            check_time()
            spots.append([])
            sources.append([])
            for coarse, formula in group.parts:
                for place, spot in places.get(own[coarse], []):
                    fine_parts.append((place, formula))
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
            steps = np.array([method.step(part) * matrix[:, 0] for part, matrix in parts])
            people = np.array([strata.strata[place].n for place in places_of])
            joint = method.joint(parts)
            one_report = (steps.T * people) @ steps / people.sum()
            lower, upper = (
                replace(bound, one_report=one_report).widened(reach) for bound in joint.bounds or (joint, joint)
            )
            for place, edge in enumerate(edges):
                low, high = (reach * math.sqrt(bound.variance(np.eye(len(edges))[place])) for bound in (lower, upper))
                d = float(joint.value[place])
                values[edge] = d, min(float(lower.value[place]) - low, d), max(float(upper.value[place]) + high, d)


def _own_strata(table: PrivateTable, plan: QueryPlan, public: Sequence[str]) -> list[object]:
    """The keys and truths of the strata that groups are made of."""
    keys = [key.sql for key in plan.public_keys]
    atoms = [atom.sql("duckdb") for atom in plan.condition.atoms]
    strata = Strata(table, public=public, keys=keys, atoms=atoms, weights=[EVERYBODY])
    return [(stratum.keys, stratum.truths) for stratum in strata.strata]


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
    below = [t for t in values if tried[t][2] < slack]
    above = [t for t in values if tried[t][1] > 0]
    low = max((t for t in below if t <= value), default=least)
    high = min((t for t in above if t >= value), default=most)
    if any(math.isinf(high) for _, _, high in tried.values()):
        return AnswerInterval(value, -math.inf, math.inf, math.inf, least, most)
    return AnswerInterval(value, low, high, (high - low) / (2 * reach), least, most)
