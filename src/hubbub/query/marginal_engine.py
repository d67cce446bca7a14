"""SQL over released marginals: counts of the people for whom conditions on their fields hold."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.domain import Domain
from hubbub.core.noise import check_level
from hubbub.core.reports import Floats
from hubbub.protocols.marginals.field_marginals import FieldMarginals
from hubbub.query.answer import AnswerColumn, QueryAnswer
from hubbub.query.errors import QueryError
from hubbub.query.formula import PrivateFactor, columns_of, factor_values
from hubbub.query.groups import PeopleGroup, choose_groups, comparable, groups_of
from hubbub.query.intervals import AnswerInterval
from hubbub.query.measures import Measure, MeasureProfile
from hubbub.query.outputs import Output
from hubbub.query.pieces import PieceProfile
from hubbub.query.plan import QueryPlan, parse, plan_query
from hubbub.query.public_tables import PublicTables, listing
from hubbub.query.quantiles import QuantileOutput
from hubbub.query.route import output_of
from hubbub.query.rules import normalise
from hubbub.query.sandbox import check_time, lock, open_database
from hubbub.query.schema import PrivateColumn, TableSchema
from hubbub.query.strata import PeopleStrata, Stratum
from hubbub.query.sums import EVERYBODY, JointEstimate, Monomial
from hubbub.query.trees import Tree, refused

if TYPE_CHECKING:
    from hubbub.consistency.marginals import Attributes

MOST_GROUPS = 10_000
MOST_NUMBERS = 50_000_000
_RECONSTRUCTED = (
    "heuristic: nobody reported on {} together; counts of these are reconstructed, and their errors are not known"
)


class _Everybody(PeopleStrata):
    """All people, in one stratum: there are no public columns."""

    def __init__(self, n: int) -> None:
        self.strata = [Stratum("everybody", (), (), n, {EVERYBODY: float(n)})]


class MarginalEngine:
    """Answers SQL queries about released marginals: each count is a sum over cells of one marginal."""

    def __init__(self, released: FieldMarginals, domains: Mapping[str, Domain], name: str) -> None:
        self.released = released
        columns = tuple(PrivateColumn(field, domains[field], missing=True) for field in released.fields)
        self.schema = TableSchema(name, columns)
        self._connection = lock(open_database())
        self._everybody = _Everybody(released.n)
        self._lock = threading.Lock()

    def sql(
        self, text: str, *, level: float = 0.95, explain: bool = False, tables: PublicTables | None = None
    ) -> QueryAnswer:
        """The answer of a SELECT, or the plan of an EXPLAIN SELECT; parameters as of `QueryEngine.sql`."""
        check_level(level)
        try:
            statement = parse(text)
            if statement.described is not None:
                return listing(self.schema, statement.described, self.released.n, level, tables)
            plan = plan_query(normalise(statement.select, self.schema), self.schema)
            with self._lock:
                return self._answer(plan, level, only_plan=statement.explain, explain=explain)
        except QueryError as error:
            raise error.located(text) from None

    def _answer(self, plan: QueryPlan, level: float, *, only_plan: bool, explain: bool) -> QueryAnswer:
        outputs = [output_of(tree, lambda call: _profile(call, plan)) for tree in plan.outputs]
        sums = [output for output in outputs if isinstance(output, Output)]
        for output in outputs:
            if isinstance(output, QuantileOutput):
                raise refused(output.tree, "marginals answer no quantiles", "ask COUNT(*) ... GROUP BY")
        weights = tuple(dict.fromkeys(weight for output in sums for weight in output.weights))
        private = [PrivateFactor(plan.condition.formula), *(weight.private for weight in weights)]
        asked = {c for factor in private for c in (*columns_of(factor.formula), *(s.column for s in factor.scores))}
        places = tuple(sorted(asked | {key.private for key in plan.private_keys if key.private is not None}))
        covered = not places or self.released.covers([self.released.fields[place] for place in places])
        words = self._words(places, covered) if only_plan or explain else ""
        if only_plan:
            return QueryAnswer((), (), level, self.released.n, plan=words)
        groups = groups_of(plan, self.schema, self._everybody)
        if len(groups) > MOST_GROUPS:
            raise QueryError(f"there are {len(groups):,} groups", f"at most {MOST_GROUPS:,}: group by fewer columns")
        joints = self._joints(places, groups, weights, covered)
        cells = [[self._interval(output, joint, weights, level) for output in sums] for joint in joints]
        compared = [comparable(plan, self.schema, group.keys) for group in groups]
        shown = choose_groups(self._connection, plan, compared, [[cell.value for cell in row] for row in cells])
        columns = tuple(
            AnswerColumn(c.name, c.output is not None, "" if c.output is None else sums[c.output].how)
            for c in plan.columns
        )
        rows = tuple(
            tuple(groups[g].keys[c.key] if c.key is not None else cells[g][c.output or 0] for c in plan.columns)
            for g in shown
        )
        notes = list(plan.condition.notes)
        if plan.chooses and len(groups) > 1:
            notes.append("groups were chosen by their estimates: an interval is of a group that is named beforehand")
        if not covered:
            notes.append(_RECONSTRUCTED.format(", ".join(self.released.fields[place] for place in places)))
        notes += dict.fromkeys(output.how for output in sums if output.how != "a sum")
        bias = "consistent" if covered and not any(output.away for output in sums) else "heuristic"
        return QueryAnswer(columns, rows, level, self.released.n, bias, tuple(notes), words)

    def _joints(
        self, places: Attributes, groups: Sequence[PeopleGroup], weights: Sequence[Monomial], covered: bool
    ) -> Sequence[tuple[Floats, JointEstimate | None]]:
        """For each group the consistent sums, and unbiased ones with their covariance (None where they are unknown)."""
        n, size = float(self.released.n), len(weights)
        shape = tuple(self.schema.private[place].size for place in places)
        count = int(np.prod(shape))
        codes = dict(zip(places, np.indices(shape).reshape(len(shape), count), strict=True))
        if places:
            self.released.places([self.released.fields[place] for place in places])
        if len(groups) * size * (size + 1) * count > MOST_NUMBERS:
            raise QueryError("the groups and sums have too many cells", "group by fewer columns")
        first, second = np.triu_indices(size)
        sets = np.zeros((len(groups), size, count))
        for group, rows in zip(groups, sets, strict=True):
            check_time()
            for part in group.parts:
                for row, factor in zip(rows, self._everybody.factors(part, weights), strict=True):
                    row += factor_values(factor, codes, count)
        known = (sets == 1).all(axis=2)
        table = self.released.synopsis.table(places).ravel() if places else np.ones(1)
        consistent = n * (sets @ table)
        if not covered:
            return [(value, None) for value in consistent]
        if not places:
            return [(value, JointEstimate(value, (np.zeros((size, size)),))) for value in consistent]
        joined = np.concatenate([sets, sets[:, first] + sets[:, second]], axis=1).reshape(-1, count)
        direct = self.released.synopsis.direct(places, joined)
        values, variances = (part.reshape(len(groups), -1) for part in (direct.value, direct.variance))
        joints = []
        for own, exact, value, variance in zip(consistent, known, values, variances, strict=True):
            covariance = np.zeros((size, size))
            alone = variance[:size]
            covariance[first, second] = (variance[size:] - alone[first] - alone[second]) / 2
            covariance = covariance + np.triu(covariance, 1).T
            covariance[exact], covariance[:, exact] = 0.0, 0.0
            centre = np.where(exact, 1.0, value[:size])
            joints.append((own, JointEstimate(n * centre, (n**2 * covariance,))))
        return joints

    def _interval(
        self, output: Output, joint: tuple[Floats, JointEstimate | None], weights: Sequence[Monomial], level: float
    ) -> AnswerInterval:
        consistent, unbiased = joint
        n = float(self.released.n)
        value = output.value(consistent, weights)
        least, most = output.bounds(dict.fromkeys(weights, n))
        if unbiased is None:
            return AnswerInterval(value, -np.inf, np.inf, np.inf, least, most)
        own = output.interval(unbiased, weights, dict.fromkeys(weights, n), level)
        if np.isnan(value):
            return own
        return replace(own, value=value, low=min(own.low, value), high=max(own.high, value))

    def _words(self, places: Attributes, covered: bool) -> str:
        released = self.released
        reported = [", ".join(released.fields[place] for place in view) for view in released.reported]
        lines = [f"marginals: {released.n:,} people, of whom groups reported on {'; '.join(reported)}"]
        names = ", ".join(released.fields[place] for place in places)
        if not places:
            lines.append("known exactly: no private column decides")
        elif covered:
            lines.append(f"{names}: reported on together, the mean over the marginals that have all of them")
        else:
            lines.append(f"{names}: not reported on together; the table of largest entropy with the reported marginals")
        return "\n".join(lines)


def _profile(call: Tree, plan: QueryPlan) -> Measure:
    pieces = plan.pieces.get(call.sql("duckdb"))
    if pieces is None:
        raise refused(call, f"{call.sql('duckdb')} is of no field", "marginals answer COUNT(*), and sums of fields")
    return PieceProfile(pieces, lambda tree: _constant(tree))


def _constant(tree: Tree) -> MeasureProfile:
    raise refused(tree, f"{tree.sql('duckdb')} is no number", "marginals have no public columns")
