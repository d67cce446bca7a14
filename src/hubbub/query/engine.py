"""Answers queries over a table, wherever its reports are kept."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from math import prod

from hubbub.core.noise import check_level
from hubbub.protocols.ranges.grids import HDG
from hubbub.protocols.ranges.split import SC
from hubbub.query.answer import AnswerColumn, QueryAnswer
from hubbub.query.errors import QueryError, Tree, refused
from hubbub.query.evaluation import AnyOutput, bundles_of, interval_of, output_of
from hubbub.query.explain import explain_plan
from hubbub.query.formula import ALWAYS
from hubbub.query.grid_method import GridMethod
from hubbub.query.groups import PeopleGroup, choose_groups, comparable, groups_of
from hubbub.query.interval_method import IntervalMethod
from hubbub.query.measures import MeasureProfile, evaluate, expression_type, profile
from hubbub.query.minimum_people import fewest_people, magnitudes
from hubbub.query.outputs import AnswerInterval
from hubbub.query.plan import QueryPlan, parse, plan_query
from hubbub.query.quantiles import QuantileOutput
from hubbub.query.rules import normalise
from hubbub.query.sandbox import interrupting
from hubbub.query.schema import PrivateTable
from hubbub.query.split_method import SplitMethod
from hubbub.query.strata import Strata, SumsMethod
from hubbub.query.sums import Monomial


class QueryEngine:
    """Answers SQL queries over one table. Counts of reports are cached: a later query that needs them reads no report.

    Parameters
    ----------
    table
        The public columns and the reports.
    consistent
        For HIO and HI: whether all levels are combined by least squares. None: where they have few enough cells.
    minimum_people
        A group is answered only if its numbers depend on at least this many people.
    """

    def __init__(self, table: PrivateTable, *, consistent: bool | None = None, minimum_people: int = 0) -> None:
        self.table = table
        self._minimum_people = minimum_people
        self._method = _method(table, consistent)
        self._lock = threading.Lock()

    @property
    def passes(self) -> int:
        """How many times the reports were read. A query whose counts are all cached reads none."""
        return self._method.passes

    def sql(self, text: str, *, level: float = 0.95, explain: bool = False) -> QueryAnswer:
        """The answer of a SELECT, or the plan of an EXPLAIN SELECT, which reads no reports.

        Inside `time_limit(seconds)` a query that takes longer is stopped: `QueryTimeout`.

        Parameters
        ----------
        text
            The query.
        level
            How surely each interval holds the truth.
        explain
            Whether the answer also holds the plan that EXPLAIN gives.
        """
        check_level(level)
        try:
            statement = parse(text)
            select = normalise(statement.select, self.table.schema)
            plan = plan_query(select, self.table.schema)
            with self._lock, interrupting(self.table.connection()):
                try:
                    return self._answer(plan, level, only_plan=statement.explain, explain=explain)
                except QueryError as error:
                    if error.start < 0:
                        self._try_each(plan)  # raises an error that names the condition or key at fault
                    raise
        except QueryError as error:
            raise error.located(text) from None

    def _answer(self, plan: QueryPlan, level: float, *, only_plan: bool, explain: bool) -> QueryAnswer:
        public = [part.sql("duckdb") for part in plan.condition.public]
        self._check_types(plan)

        @cache
        def profiled(text: str, tree: Tree) -> MeasureProfile:
            return profile(self.table, tree, public)

        outputs = [output_of(tree, lambda inner: profiled(inner.sql("duckdb"), inner)) for tree in plan.outputs]
        bundles = bundles_of(outputs)
        strata = [self._strata(plan, public, weights) for weights in bundles]
        every_group = groups_of(plan, self.table.schema, strata[0])
        groups = self._large_enough(plan, public, outputs, every_group)
        words = ""
        if only_plan or explain:
            words = explain_plan(plan, self.table, self._method, groups, outputs, strata, level)
        columns = tuple(
            AnswerColumn(c.name, c.output is not None, "" if c.output is None else outputs[c.output].how)
            for c in plan.columns
        )
        if only_plan:
            return QueryAnswer((), (), level, self.table.n, plan=words)
        cells = self._estimated(plan, public, outputs, strata, groups, level)
        values = [[row[k].value for k in range(len(outputs))] for row in cells]
        shown = choose_groups(
            self.table.connection(), plan, [comparable(plan, self.table.schema, group.keys) for group in groups], values
        )
        rows = tuple(
            tuple(groups[g].keys[c.key] if c.key is not None else cells[g][c.output or 0] for c in plan.columns)
            for g in shown
        )
        guessed = self.table.schema.method == "HDG" and (plan.condition.formula != ALWAYS or plan.private_keys)
        bias = "heuristic" if guessed else "none"
        notes = _notes(plan, outputs, bias, groups, level)
        if withheld := len(every_group) - len(groups):
            notes = (f"{withheld:,} groups of fewer than {self._minimum_people:,} people are left out", *notes)
        return QueryAnswer(columns, rows, level, self.table.n, bias, notes, words)

    def _large_enough(
        self, plan: QueryPlan, public: Sequence[str], outputs: Sequence[AnyOutput], groups: list[PeopleGroup]
    ) -> list[PeopleGroup]:
        """The groups whose numbers depend on at least the minimum of people; an error if there is none."""
        if not self._minimum_people:
            return groups
        bundles = [*bundles_of(outputs), *(output.weights for output in outputs if isinstance(output, QuantileOutput))]
        strata = [self._strata(plan, public, magnitudes(weights)) for weights in bundles]
        people = fewest_people(groups, strata, [column.size for column in self.table.schema.private])
        least = self._minimum_people * (1 - 1e-9)  # sums of floats are rounded
        enough = [group for group, fewest in zip(groups, people, strict=True) if fewest >= least]
        if groups and not enough:
            allowed = f"at least {self._minimum_people:,} are needed"
            raise QueryError(f"the answer would depend on fewer than {self._minimum_people:,} people", allowed)
        return enough

    def _strata(self, plan: QueryPlan, public: Sequence[str], weights: Sequence[Monomial]) -> Strata:
        keys = [key.sql for key in plan.public_keys]
        atoms = [atom.sql("duckdb") for atom in plan.condition.atoms]
        return Strata(
            self.table,
            public=public,
            keys=keys,
            atoms=atoms,
            weights=weights,
            private_groups=self._private_groups(plan),
        )

    def _private_groups(self, plan: QueryPlan) -> int:
        return prod(self.table.schema.private[place].size for place in plan.private_keys)

    def _estimated(
        self,
        plan: QueryPlan,
        public: Sequence[str],
        outputs: Sequence[AnyOutput],
        strata: Sequence[Strata],
        groups: Sequence[PeopleGroup],
        level: float,
    ) -> list[list[AnswerInterval]]:
        """An interval for each group (row) and each aggregate."""
        cells: list[list[AnswerInterval]] = [[] for _ in groups]
        parts = [part for group in groups for part in group.parts]
        measured: dict[int, list[object]] = {}
        for output in outputs:
            if isinstance(output, QuantileOutput):
                intervals = output.intervals(self.table, self._method, plan, public, groups, level)
                for row, interval in zip(cells, intervals, strict=True):
                    row.append(interval)
                continue
            place = next(k for k, bundle in enumerate(strata) if set(output.weights) <= set(bundle.weights))
            own = strata[place]
            if place not in measured:
                measured[place] = self._method.measure(own, parts)
            spot = 0
            for row, group in zip(cells, groups, strict=True):
                sums = measured[place][spot : spot + len(group.parts)]
                spot += len(group.parts)
                row.append(interval_of(self._method, output, own, group, sums, level))
        return cells

    def _check_types(self, plan: QueryPlan) -> None:
        """Refuse conditions that are not boolean, and expressions whose types do not fit, before any report is read."""
        for condition in (*plan.condition.public, *plan.condition.atoms):
            kind = expression_type(self.table, condition)
            if kind not in ("BOOLEAN", '"NULL"'):
                raise refused(
                    condition, f"{condition.sql('duckdb')} is {kind}, no condition", "compare it with a value"
                )
        for key in plan.public_keys:
            expression_type(self.table, key.tree)

    def _try_each(self, plan: QueryPlan) -> None:
        for tree in (*plan.condition.public, *plan.condition.atoms, *(key.tree for key in plan.public_keys)):
            text = f"SELECT COUNT({tree.sql('duckdb')}) FROM {self.table.relation}"  # noqa: S608 # a whitelisted tree
            evaluate(self.table, text, tree)


def _method(table: PrivateTable, consistent: bool | None) -> SumsMethod:
    mechanism = table.schema.mechanism
    if isinstance(mechanism, SC):
        return SplitMethod(table, mechanism)
    if isinstance(mechanism, HDG):
        return GridMethod(table, mechanism)
    return IntervalMethod(table, mechanism, consistent=consistent)


def _notes(
    plan: QueryPlan, outputs: Sequence[AnyOutput], bias: str, groups: Sequence[PeopleGroup], level: float
) -> tuple[str, ...]:
    notes = list(plan.condition.notes)
    if plan.chooses and len(groups) > 1:
        every = 1 - (1 - level) / len(groups)
        notes.append(
            f"groups were chosen by their estimates: an interval is of a group that is named beforehand; "
            f"with level {every:.5g} all {len(groups):,} hold together"
        )
    if bias == "heuristic":
        notes.append(
            "heuristic: values take people to be spread evenly inside cells; intervals hold however they are spread"
        )
    if plan.private_keys:
        notes.append("every value of a private key is listed, whether or not anybody has it")
    ways = dict.fromkeys(output.how for output in outputs if output.how != "a sum")
    return (*notes, *ways)
