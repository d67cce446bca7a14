"""SQL over the kept reports of table questions: one query at a time, in a thread of its own, with limits."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TYPE_CHECKING

from hubbub.core.errors import MissingDependency
from hubbub.service.collector.collector import Collector
from hubbub.service.collector.kept_table import asks_of_steps, kept_table
from hubbub.service.http.problems import Problem
from hubbub.service.kept.archive import ReportsMissing
from hubbub.service.store.base import ClosedAsk, StoreChanges

if TYPE_CHECKING:
    from hubbub.query.answer import QueryAnswer
    from hubbub.query.engine import QueryEngine

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

    Parameters
    ----------
    collector
        The collector with the reports.
    seconds
        Seconds after which a query is stopped.

    Example:
        >>> from hubbub.service.collector.example import example_collector
        >>> TableQueries(example_collector()).answer("themes", "popular", "SELECT COUNT(*) FROM popular")
        Traceback (most recent call last):
            ...
        hubbub.service.http.problems.Problem: 404 not_found: popular is no table
    """

    def __init__(self, collector: Collector, *, seconds: float = SECONDS) -> None:
        self._collector, self._seconds = collector, seconds
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
        first: int | None = None,
        last: int | None = None,
        level: float = 0.95,
        explain: bool = False,
    ) -> QueryAnswer:
        """Answer a query over the reports of closed steps from `first` to `last`; by default of the latest step.

        `Problem` if the query cannot be answered, takes too long, or rests on too few reports.
        """
        served = self._collector.collections[collection]
        if not served.shape(question).columns:
            raise Problem(404, "not_found", f"{question} is no table")
        if len(text) > LONGEST_QUERY:
            raise Problem(413, "too_large", f"a query has at most {LONGEST_QUERY:,} characters")
        if not self._free.acquire(blocking=False):
            raise Problem(503, "query_busy", "another query is being answered", headers=[("Retry-After", "1")])
        future: Future[QueryAnswer] = self._thread.submit(
            self._run, collection, question, text, first, last, level, explain
        )
        try:
            return future.result(self._seconds + GRACE)
        except FutureTimeout:
            raise self._too_slow() from None

    def _too_slow(self) -> Problem:
        detail = f"it was not answered in {self._seconds:g} seconds: ask for less, or for fewer steps"
        return Problem(503, "query_too_slow", detail)

    def close(self) -> None:
        """Take no more queries."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _run(
        self, name: str, question: str, text: str, first: int | None, last: int | None, level: float, explain: bool
    ) -> QueryAnswer:
        try:
            from hubbub.query.errors import QueryError
            from hubbub.query.sandbox import QueryTimeout, time_limit

            try:
                with time_limit(self._seconds):
                    engine = self._engine(name, question, first, last)
                    return engine.sql(text, level=level, explain=explain)
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

    def _engine(self, name: str, question: str, first: int | None, last: int | None) -> QueryEngine:
        from hubbub.query.engine import QueryEngine

        served, store = self._collector.collections[name], self._collector.store
        asks = asks_of_steps(store.closed_asks(served.collection_id, question, 0, _LAST_STEP), first, last)
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
