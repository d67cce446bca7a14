"""SQL over the kept reports of table questions: one query at a time, in a thread of its own, with limits."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import TYPE_CHECKING

from hubbub.core.errors import MissingDependency
from hubbub.protocols.steady import STEP
from hubbub.service.collector.collector import Collector
from hubbub.service.collector.kept_table import asks_of_steps, kept_table, step_of
from hubbub.service.http.problems import Problem
from hubbub.service.kept.archive import ReportsMissing
from hubbub.service.rounds.releases import released_marginals, told_release
from hubbub.service.store.base import ClosedAsk, StoreChanges

if TYPE_CHECKING:
    from hubbub.query.answer import QueryAnswer
    from hubbub.query.connect import AskableTable
    from hubbub.query.engine import QueryEngine
    from hubbub.query.public_tables import PublicTables

LONGEST_QUERY = 10_000
"""The most characters of a query."""
SECONDS = 30.0
"""Seconds after which a query is stopped."""
GRACE = 5.0
"""Seconds that a query has to stop after its time limit; then it is answered "too slow" in any case."""
_MOST_TABLES = 2
_LAST_STEP = 1 << 62


class TableQueries:
    """Answers SQL queries over the tables of a collector. A query reuses counts of earlier ones over the same steps.

    Example:
        >>> from hubbub.service.collector.collector import example_collector
        >>> TableQueries(example_collector()).answer("themes", "popular", "SELECT COUNT(*) FROM popular")
        Traceback (most recent call last):
            ...
        hubbub.service.http.problems.Problem: 404 not_found: popular is no table
    """

    def __init__(self, collector: Collector, *, seconds: float = SECONDS) -> None:
        self._collector, self.seconds = collector, seconds
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sql")
        self._free = threading.Semaphore(1)
        self._engines: OrderedDict[tuple[str, str, tuple[ClosedAsk, ...]], QueryEngine] = OrderedDict()
        self._engines_lock = threading.Lock()  # queries add engines, the collector's commits drop expired ones
        collector.listeners.append(self._forget_expired)

    def answer(
        self,
        collection: str,
        question: str,
        text: str,
        *,
        first: int | str | None = None,
        last: int | str | None = None,
        level: float = 0.95,
        explain: bool = False,
        tables: PublicTables | None = None,
    ) -> QueryAnswer:
        """Answer a query over the reports of closed steps from `first` to `last`, which are steps, dates or times.

        If neither is given, the steps are those that WHERE names, or else the latest to which there are reports.

        `Problem` if the query cannot be answered, takes too long, or rests on too few reports.
        """
        served = self._collector.collections[collection]
        steps = (step_of(served, question, first), step_of(served, question, last, last=True))
        if not served.questions[question].shape().columns:
            raise Problem(404, "not_found", f"{question} is no table")
        if len(text) > LONGEST_QUERY:
            raise Problem(413, "too_large", f"a query has at most {LONGEST_QUERY:,} characters")
        if not self._free.acquire(blocking=False):
            raise Problem(503, "query_busy", "another query is being answered", headers=[("Retry-After", "1")])
        future: Future[QueryAnswer] = self._thread.submit(
            self._run, collection, question, text, steps, level, explain, tables
        )
        try:
            return future.result(self.seconds + GRACE)
        except FutureTimeout:
            raise self._too_slow() from None

    def _too_slow(self) -> Problem:
        detail = f"it was not answered in {self.seconds:g} seconds: ask for less, or for fewer steps"
        return Problem(503, "query_too_slow", detail)

    def close(self) -> None:
        """Take no more queries."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _run(
        self,
        name: str,
        question: str,
        text: str,
        steps: tuple[int | None, int | None],
        level: float,
        explain: bool,
        tables: PublicTables | None,
    ) -> QueryAnswer:
        try:
            from hubbub.query.errors import QueryError
            from hubbub.query.sandbox import QueryTimeout, time_limit

            try:
                with time_limit(self.seconds):
                    text = self._steps_numbered(name, question, text)
                    if steps == (None, None):
                        steps = self._steps_asked(name, question, text)
                    askable = self._askable(name, question, *steps)
                    return askable.sql(text, level=level, explain=explain, tables=tables)
            except QueryTimeout:
                raise self._too_slow() from None
            except QueryError as error:
                more = {name: getattr(error, name) for name in ("problem", "instead", "line", "column")}
                raise Problem(422, "query_refused", str(error), more=more) from error
        except MissingDependency as error:
            raise Problem(501, "no_sql", str(error)) from error
        except ReportsMissing as error:
            raise Problem(409, "reports_missing", str(error)) from error
        finally:
            self._free.release()  # before the answer is given: the next query may follow at once

    def _steps_numbered(self, name: str, question: str, text: str) -> str:
        """A query whose comparisons of the step with dates and times have the numbers of steps instead."""
        from hubbub.query.plan import with_numbers

        if self._collector.collections[name].questions[question].table() is None:
            return text  # marginals have no column of steps, but perhaps a field of that name

        def number(when: str, *, last: bool) -> int:
            step = step_of(self._collector.collections[name], question, when, last=last, field="step")
            assert step is not None
            return step

        return with_numbers(text, STEP, partial(number, last=False), partial(number, last=True))

    def _steps_asked(self, name: str, question: str, text: str) -> tuple[int | None, int | None]:
        """The first and the last step that a query names behind WHERE."""
        from hubbub.query.plan import column_range, parse
        from hubbub.query.rules import merge_subqueries

        schema = self._collector.collections[name].questions[question].table()
        if schema is None:
            return None, None
        statement = parse(text)
        return (
            column_range(merge_subqueries(statement.select, schema), STEP)
            if statement.described is None
            else (None, None)
        )

    def _askable(self, name: str, question: str, first: int | None, last: int | None) -> AskableTable:
        """What the steps from `first` to `last` can be asked; of marginals, their latest release."""
        served = self._collector.collections[name]
        question_object = served.questions[question]
        if question_object.shape().form != "marginals":
            return self._engine(name, question, first, last)
        from hubbub.query.marginal_engine import MarginalEngine

        steps = {"first": first or 0, "last": _LAST_STEP if last is None else last}
        rows = self._collector.releases(name, question, **steps, most=1)
        if not rows:
            raise Problem(404, "not_found", f"{question} has no such release yet")
        body = told_release(rows[0])
        released = released_marginals(question_object, body)
        if released is None:
            raise Problem(409, "withheld", body.withheld or "nobody answered")
        return MarginalEngine(released, question_object.setting.domains, question)

    def _engine(self, name: str, question: str, first: int | None, last: int | None) -> QueryEngine:
        from hubbub.query.engine import QueryEngine

        served, store = self._collector.collections[name], self._collector.store
        asks = asks_of_steps(store, store.closed_asks(served.collection_id, question, 0, _LAST_STEP), first, last)
        key = served.collection_id, question, tuple(asks)
        engine = self._engines.get(key)
        if engine is None:
            table = kept_table(store, self._collector.archive, served, question, asks)
            engine = QueryEngine(table, minimum_people=served.minimum_batch)
        with self._engines_lock:
            # The retention of a step may have ended while its reports were read: the store then no longer has its asks.
            if set(store.closed_asks(served.collection_id, question, 0, _LAST_STEP)).issuperset(asks):
                self._engines[key] = engine
                self._engines.move_to_end(key)
            while len(self._engines) > _MOST_TABLES:
                self._engines.popitem(last=False)
        if engine.table.n < served.minimum_batch:
            too_few = f"{engine.table.n:,} reports; at least {served.minimum_batch:,} are needed"
            raise Problem(409, "withheld", too_few)
        return engine

    def _forget_expired(self, changes: StoreChanges) -> None:
        """Drop the reports of steps whose retention is over, as soon as the store has deleted them."""
        with self._engines_lock:
            for expiry in changes.expired:
                for collection, question, asks in list(self._engines):
                    expired = any(ask.step < expiry.below for ask in asks)
                    if expired and (collection, question) == (expiry.collection, expiry.question):
                        del self._engines[collection, question, asks]
