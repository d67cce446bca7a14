"""Answers queries over a table, wherever its reports are kept."""

import threading
from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

from hubbub.core.noise import check_level
from hubbub.query.answer import AnswerColumn, QueryAnswer
from hubbub.query.errors import QueryError
from hubbub.query.explain import explain_plan
from hubbub.query.formula import ALWAYS
from hubbub.query.grid_method import GridMethod
from hubbub.query.groups import PeopleGroup, choose_groups, comparable, fewest_people, groups_of
from hubbub.query.intervals import AnswerInterval
from hubbub.query.measures import Measure, MeasureProfile, evaluate, expression_type, profile
from hubbub.query.outputs import Output
from hubbub.query.pieces import PieceProfile
from hubbub.query.plan import QueryPlan, parse, plan_query
from hubbub.query.public_tables import PublicTables, joined, listing
from hubbub.query.quantiles import QuantileOutput
from hubbub.query.route import AnyOutput, MethodRoute, best_route, bundles_of, interval_of, method_of, output_of
from hubbub.query.rules import merge_subqueries, normalise
from hubbub.query.sandbox import interrupting
from hubbub.query.schema import PrivateTable
from hubbub.query.strata import PartSums, Strata, SumsMethod
from hubbub.query.sums import EVERYBODY, Monomial
from hubbub.query.trees import Tree, refused


class QueryEngine:
    """Answers SQL queries over one table. Counts of reports are cached: a later query that needs them reads no report.

    Parameters
    ----------
    consistent
        For HIO and HI: whether all levels are combined by least squares. None: where they have few enough cells.
    minimum_people
        A group is answered only if its numbers depend on at least this many people.
    """

    def __init__(self, table: PrivateTable, *, consistent: bool | None = None, minimum_people: int = 0) -> None:
        self.table = table
        self._minimum_people = minimum_people
        self._methods = [method_of(table, place, consistent) for place in range(len(table.schema.methods))]
        self._lock = threading.Lock()

    @property
    def passes(self) -> int:
        """How many times the reports were read. A query whose counts are all cached reads none."""
        return sum(method.passes for method in self._methods)

    def sql(
        self, text: str, *, level: float = 0.95, explain: bool = False, tables: PublicTables | None = None
    ) -> QueryAnswer:
        """The answer of a SELECT, or the plan of an EXPLAIN SELECT, which reads no reports; DESCRIBE and SHOW TABLES.

        Inside `time_limit(seconds)` a query that takes longer is stopped: `QueryTimeout`.

        Parameters
        ----------
        explain
            Whether the answer also holds the plan that EXPLAIN gives.
        tables
            Public tables that the query may join, by name: for each column its values.
        """
        check_level(level)
        try:
            statement = parse(text)
            if statement.described is not None:
                return listing(self.table.schema, statement.described, self.table.n, level, tables)
            select = merge_subqueries(statement.select, self.table.schema)
            with self._lock, joined(select, self.table, tables) as table:
                plan = plan_query(normalise(select, table.schema), table.schema)
                with interrupting(table.connection()):
                    try:
                        return self._answer(table, plan, level, only_plan=statement.explain, explain=explain)
                    except QueryError as error:
                        if error.start < 0:
                            _try_each(table, plan)  # raises an error that names the condition or key at fault
                        raise
        except QueryError as error:
            raise error.located(text) from None

    def _answer(
        self, table: PrivateTable, plan: QueryPlan, level: float, *, only_plan: bool, explain: bool
    ) -> QueryAnswer:
        public = [part.sql("duckdb") for part in plan.condition.public]
        _check_types(table, plan)

        @cache
        def profiled(text: str, tree: Tree) -> MeasureProfile:
            return profile(table, tree, public)

        def known(tree: Tree) -> MeasureProfile:
            return profiled(tree.sql("duckdb"), tree)

        def measured(call: Tree) -> Measure:
            pieces = plan.pieces.get(call.sql("duckdb"))
            return known(call.this) if pieces is None else PieceProfile(pieces, known)

        outputs = [output_of(tree, measured) for tree in plan.outputs]
        bundles = bundles_of(outputs)
        strata = [self._strata(table, plan, public, weights) for weights in bundles]
        every_group = groups_of(plan, table.schema, strata[0])
        groups = self._large_enough(table, plan, public, outputs, every_group)
        route = self._route(table, plan, public, outputs, strata, groups)
        words = ""
        if only_plan or explain:
            words = explain_plan(plan, table, route, groups, outputs, strata, level)
        columns = tuple(
            AnswerColumn(c.name, c.output is not None, "" if c.output is None else outputs[c.output].how)
            for c in plan.columns
        )
        if only_plan:
            return QueryAnswer((), (), level, table.n, plan=words)
        cells = self._estimated(route.method, table, plan, public, outputs, strata, groups, level)
        values = [[row[k].value for k in range(len(outputs))] for row in cells]
        shown = choose_groups(
            table.connection(), plan, [comparable(plan, table.schema, group.keys) for group in groups], values
        )
        rows = tuple(
            tuple(groups[g].keys[c.key] if c.key is not None else cells[g][c.output or 0] for c in plan.columns)
            for g in shown
        )
        asked = plan.condition.formula != ALWAYS or plan.private_keys or plan.pieces
        guessed = isinstance(route.method, GridMethod) and asked
        away = any(isinstance(output, Output) and output.away for output in outputs)
        bias = "heuristic" if guessed or away else "none"
        notes = tuple(filter(None, (route.words(), *_notes(plan, outputs, bias, groups, level))))
        if withheld := len(every_group) - len(groups):
            notes = (f"{withheld:,} groups of fewer than {self._minimum_people:,} people are left out", *notes)
        return QueryAnswer(columns, rows, level, table.n, bias, notes, words)

    def _large_enough(
        self,
        table: PrivateTable,
        plan: QueryPlan,
        public: Sequence[str],
        outputs: Sequence[AnyOutput],
        groups: list[PeopleGroup],
    ) -> list[PeopleGroup]:
        """The groups whose numbers depend on at least the minimum of people; an error if there is none."""
        if not self._minimum_people:
            return groups
        forms = list(dict.fromkeys(form for output in outputs for form in output.forms if form))
        sizes = [column.size for column in table.schema.private]
        strata = self._strata(table, plan, public, [EVERYBODY])
        people = fewest_people(groups, strata, forms, sizes, lambda weights: self._strata(table, plan, public, weights))
        least = self._minimum_people * (1 - 1e-9)  # sums of floats are rounded
        enough = [group for group, fewest in zip(groups, people, strict=True) if fewest >= least]
        if groups and not enough:
            allowed = f"at least {self._minimum_people:,} are needed"
            raise QueryError(f"the answer would depend on fewer than {self._minimum_people:,} people", allowed)
        return enough

    def _strata(
        self, table: PrivateTable, plan: QueryPlan, public: Sequence[str], weights: Sequence[Monomial]
    ) -> Strata:
        keys = [key.sql for key in plan.public_keys]
        atoms = [atom.sql("duckdb") for atom in plan.condition.atoms]
        return Strata(
            table,
            public=public,
            keys=keys,
            atoms=atoms,
            weights=weights,
            private_groups=prod(len(key.values) for key in plan.private_keys),
        )

    def _route(
        self,
        table: PrivateTable,
        plan: QueryPlan,
        public: Sequence[str],
        outputs: Sequence[AnyOutput],
        strata: Sequence[Strata],
        groups: Sequence[PeopleGroup],
    ) -> MethodRoute:
        asked = []
        for output in outputs if len(self._methods) > 1 else ():
            weights = output.weights if isinstance(output, Output) else (EVERYBODY,)  # quantiles rest on counts
            own = next((bundle for bundle in strata if set(weights) == set(bundle.weights)), None)
            if isinstance(output, Output):
                own = own or next(bundle for bundle in strata if set(weights) <= set(bundle.weights))
            asked.append((own or self._strata(table, plan, public, weights), output))
        return best_route(table.schema.methods, self._methods, asked, groups)

    def _estimated(
        self,
        method: SumsMethod[Any],
        table: PrivateTable,
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
        measured: dict[int, Sequence[PartSums]] = {}
        for output in outputs:
            if isinstance(output, QuantileOutput):
                intervals = output.intervals(table, method, plan, public, groups, level)
                for row, interval in zip(cells, intervals, strict=True):
                    row.append(interval)
                continue
            place = next(k for k, bundle in enumerate(strata) if set(output.weights) <= set(bundle.weights))
            own = strata[place]
            if place not in measured:
                measured[place] = method.measure(own, parts)
            spot = 0
            for row, group in zip(cells, groups, strict=True):
                sums = measured[place][spot : spot + len(group.parts)]
                spot += len(group.parts)
                row.append(interval_of(method, output, own, group, sums, level))
        return cells


def _check_types(table: PrivateTable, plan: QueryPlan) -> None:
    """Refuse conditions that are not boolean, and expressions whose types do not fit, before any report is read."""
    for condition in (*plan.condition.public, *plan.condition.atoms):
        kind = expression_type(table, condition)
        if kind not in ("BOOLEAN", '"NULL"'):
            raise refused(condition, f"{condition.sql('duckdb')} is {kind}, no condition", "compare it with a value")
    for key in plan.public_keys:
        expression_type(table, key.tree)


def _try_each(table: PrivateTable, plan: QueryPlan) -> None:
    for tree in (*plan.condition.public, *plan.condition.atoms, *(key.tree for key in plan.public_keys)):
        text = f"SELECT COUNT({tree.sql('duckdb')}) FROM {table.relation}"  # noqa: S608 # a whitelisted tree
        evaluate(table, text, tree)


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
