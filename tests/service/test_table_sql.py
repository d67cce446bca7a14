"""A table question: devices report on one level, reports are kept, and SQL is asked of them by the API and the page."""

from __future__ import annotations

import base64
import gc
import http.client
import json
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub import Random
from hubbub.authoring import check, forecast, load_collection, promise
from hubbub.collection import ManualClock, seal
from hubbub.collection.safety import open_collection as open_on_device
from hubbub.collection.setting import UnsafeCollection
from hubbub.core.domain import Categorical, Ordinal, Strings
from hubbub.core.errors import InvalidValue
from hubbub.dashboard.app import dashboard
from hubbub.dashboard.query_box import answer_csv
from hubbub.protocols.ranges.hierarchy import cell_oracle
from hubbub.query.answer import AnswerColumn, QueryAnswer
from hubbub.query.connect import RemoteTable, connect
from hubbub.query.errors import QueryError
from hubbub.questions import Question, Setting, read_collection
from hubbub.service.collector.collector import Collector
from hubbub.service.collector.kept_table import kept_table
from hubbub.service.http import table_queries
from hubbub.service.http.problems import Problem, Tokens
from hubbub.service.http.server import create_app
from hubbub.service.http.service import Service
from hubbub.service.http.table_queries import TableQueries
from hubbub.service.ingest.frames import Frame
from hubbub.service.kept.archive import Archive
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.batches import Batch
from tests.service.web import AUTHORIZED, KEYS, TOKEN, problem
from tests.shared.loopback import running
from tests.shared.small_collections import collection_text

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

TEXT = collection_text(
    "people",
    "People",
    schedule={"step": "1h", "lateness": "10s", "retention": "1d"},
    privacy={"event": 4.0, "minimum_batch": 20},
    fields={
        "age": {"kind": "ordinal", "size": 60},
        "state": {"kind": "categorical", "names": ["north", "south", "west"]},
        "load": {"kind": "numeric", "low": 0.0, "high": 10.0, "cells": 5},
        "spent": {"kind": "numeric", "low": 0.0, "high": 50.0, "cells": 5},
    },
    questions={
        "people": {"kind": "table", "columns": ["age", "state", "load"], "epsilon": 2.0},
        "shop": {"kind": "table", "columns": ["age", "state"], "measures": ["spent"], "epsilon": 2.0},
    },
    override={"sent_as_it_is": "the shop knows what is paid"},
)
PEOPLE = load_collection(TEXT)
N, STEPS = 12_000, (7, 8)
HOUR = 3600.0
PATH = "/v1/collections/people/questions/people/sql"
PAGE, BOX = "/results/people/people", "sql=SELECT+state,+COUNT(*)+AS+n+FROM+people+GROUP+BY+state&from=&to="


def records(step: int) -> dict[str, Any]:
    """What people hold: a fifth says no state; loads go with the state, and in step 8 all are ten years older."""
    rng = np.random.default_rng(5)
    state = rng.choice(4, N, p=[0.4, 0.3, 0.1, 0.2])
    age = np.minimum(rng.binomial(45, 0.4, N) + 10 * (step == 8), 59)
    load = np.clip(rng.normal(2.0 + 2.0 * (state % 3), 1.0, N), 0, 10)
    spent = np.where(rng.random(N) < 0.1, np.nan, 5.0 + 10.0 * (state == 1) + rng.random(N))
    return {"age": age, "state": state, "load": load, "spent": spent}


def fill(collector: Collector, step: int, people: int = N) -> None:
    rng, values = Random(seed=step), {name: column[:people] for name, column in records(step).items()}
    places = rng.uint32(people)
    for open_ask in collector.board.open(PEOPLE.collection_id, collector.clock.now()):
        inside = open_ask.ask.cohort.holds(places)
        seen = open_ask.ask.view.look({name: column[inside] for name, column in values.items()}, rng)
        reports = open_ask.ask.mechanism.randomize(seen, rng)
        batch = Batch("people", 1, open_ask.name, rng.bytes(16 * len(reports)), reports.to_bare())
        assert collector.ingest([Frame(PEOPLE.collection_id, batch=batch)])[0].accepted == len(reports)


def filled_collector(folder: Path, clock: ManualClock) -> Collector:
    """A collector whose two steps are closed."""
    collector = Collector([PEOPLE], SqliteStore(":memory:"), clock=clock, keys=KEYS, archive=Archive(folder))
    for step in STEPS:
        clock.set(step * HOUR)
        collector.tick()
        fill(collector, step)
        clock.set((step + 1) * HOUR + 11)
        collector.tick()
    return collector


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    collector = filled_collector(tmp_path_factory.mktemp("table") / "reports", ManualClock(STEPS[0] * HOUR))
    service, tokens = Service(collector), Tokens([TOKEN])
    routes = dashboard(tokens)(service)
    with running(create_app(service, tokens, routes=routes)) as client:
        client.service = service  # type: ignore[attr-defined]
        yield client
    collector.store.close()


def sql(api: Any, text: str, path: str = PATH, **more: Any) -> Any:
    response = api.post(path, content=json.dumps({"sql": text, **more}), headers=AUTHORIZED)
    assert response.status_code == 200, response.text
    return response.json()


def holds(cell: dict[str, Any], truth: float) -> bool:
    """Whether an interval of 99.99% holds the truth: of some twenty, one in 500 runs of other seeds would not."""
    return bool(cell["low"] <= truth <= cell["high"])


def test_counts_of_boxes_are_near_the_truth(api: Any) -> None:
    values = records(8)
    conditions = {
        "TRUE": np.ones(N, dtype=bool),
        "age BETWEEN 20 AND 39": (values["age"] >= 20) & (values["age"] <= 39),
        "age >= 30 AND state = 'south'": (values["age"] >= 30) & (values["state"] == 1),
        "state IN ('north', 'west') AND load < 4": np.isin(values["state"], [0, 2]) & (values["load"] < 4),
        "state IS NULL": values["state"] == 3,
        "NOT (age < 25 OR state = 'north')": (values["age"] >= 25) & np.isin(values["state"], [1, 2]),
    }
    for condition, inside in conditions.items():
        answer = sql(api, f"SELECT COUNT(*) AS n FROM people WHERE {condition}", level=0.9999)
        assert answer["n"] == N
        ((cell,),) = answer["rows"]
        assert holds(cell, int(inside.sum())), (condition, cell, int(inside.sum()))
        if condition != "TRUE":
            assert cell["high"] - cell["low"] < 0.9 * N  # it says something


def test_measures_that_are_sent_as_they_are_can_be_summed(api: Any) -> None:
    path, values = PATH.replace("questions/people", "questions/shop"), records(8)
    known = ~np.isnan(values["spent"])
    south = (values["state"] == 1) & known
    query = "SELECT SUM(spent) AS s, AVG(spent) AS a, COUNT(*) AS n FROM shop"
    condition = "state = 'south' AND spent IS NOT NULL"
    ((total, mean, count),) = sql(api, f"{query} WHERE {condition}", path, level=0.9999)["rows"]
    assert holds(total, float(values["spent"][south].sum()))
    assert holds(mean, float(values["spent"][south].mean()))
    assert holds(count, int(south.sum()))
    assert mean["low"] > float(values["spent"][known].mean()) - 2.0
    ((everyone,),) = sql(api, "SELECT SUM(spent) AS s FROM shop", path)["rows"]
    assert everyone["value"] == pytest.approx(float(values["spent"][known].sum()))  # public: exact
    young = sql(api, "SELECT COUNT(*) AS n FROM shop WHERE spent > 10 AND age < 40", path, level=0.9999)
    assert holds(young["rows"][0][0], int(((values["spent"] > 10) & (values["age"] < 40)).sum()))


def test_devices_send_numbers_as_they_are_only_with_a_reason() -> None:
    words = promise(PEOPLE)
    assert "The value of spent is sent as it is, without protection." in words
    assert "Except for the values that are named under shop, the device sends only randomised reports" in words
    assert "Several reports of shop can be linked to one device by its values of spent." in words
    assert any("sent as it is: nothing protects it" in finding.text for finding in check(PEOPLE))
    with pytest.raises(UnsafeCollection, match="sent_as_it_is"):
        load_collection(TEXT.replace('sent_as_it_is = "the shop knows what is paid"', ""))
    assert PEOPLE.terms["shop"].fields == ("age", "state", "spent")
    document = seal(replace(PEOPLE, overrides={}).spec(), KEYS.private)
    with pytest.raises(UnsafeCollection, match="sends numbers as they are"):
        open_on_device(document, KEYS.public)


def test_steps_are_a_public_column_and_can_be_asked_together(api: Any) -> None:
    answer = sql(
        api, "SELECT step, COUNT(*) AS n FROM people WHERE age < 20 GROUP BY step", level=0.9999, **{"from": 7}
    )
    assert answer["n"] == 2 * N
    assert [row[0] for row in answer["rows"]] == [7, 8]
    for step, cell in answer["rows"]:
        assert holds(cell, int((records(step)["age"] < 20).sum()))
    single_step = sql(api, "SELECT COUNT(*) FROM people", **{"from": 7, "to": 7})
    assert single_step["n"] == N


def test_what_cannot_be_answered_is_a_problem_that_says_why(api: Any) -> None:
    def refused(body: Any, headers: Any = AUTHORIZED) -> tuple[int, str, str]:
        response = api.post(PATH, content=body if isinstance(body, bytes) else json.dumps(body), headers=headers)
        return response.status_code, problem(response), response.json().get("detail", "")

    assert refused({"sql": "SELECT COUNT(*) FROM people"}, {})[:2] == (401, "no_token")
    status, kind, why = refused({"sql": "SELECT COUNT(*) FROM people WHERE agee > 3"})
    assert (status, kind) == (422, "query_refused")
    assert "did you mean age?" in why
    assert "line 1" in why
    assert refused({"sql": "SELECT age FROM people"})[:2] == (422, "query_refused")
    assert refused({"sql": "SELECT COUNT(*) FROM people, people"})[:2] == (422, "query_refused")
    assert refused(b"{")[:2] == (400, "malformed")
    wrong = {"levle": 1, "sql": 3, "from": -1, "to": 1.5, "level": 1, "explain": 1}
    for name, value in [*wrong.items(), ("sql", " ")]:
        status, kind, why = refused({"sql": "SELECT 1", name: value})
        assert (status, kind) == (400, "invalid_parameter")
        assert name in why
    assert refused([])[:2] == refused({})[:2] == (400, "invalid_parameter")
    assert refused({"sql": "x" * 20_000})[:2] == (413, "too_large")
    assert refused({"sql": "SELECT COUNT(*) FROM people", "from": 70})[:2] == (409, "withheld")
    nothing = api.post(PATH.replace("questions/people", "questions/gone"), content="{}", headers=AUTHORIZED)
    assert nothing.status_code == 404


def test_nothing_is_answered_over_fewer_reports_than_the_promise_says(api: Any) -> None:
    """`minimum_batch` is 20: public conditions, keys and weights do not get below it."""
    assert "A statistic is published only if it is made from at least 20 reports" in promise(PEOPLE)
    path, spent = PATH.replace("questions/people", "questions/shop"), records(8)["spent"]
    chosen = np.sort(spent[~np.isnan(spent)])[[18, 19]]  # 19 people, and 20
    for border, status in zip(chosen, (422, 200), strict=True):
        for query in (
            "SELECT COUNT(*) FROM shop WHERE spent <= {} AND age < 40",
            "SELECT SUM(2) FROM shop WHERE spent <= {}",
            "SELECT SUM(CASE WHEN spent <= {} THEN 2 ELSE 0 END) FROM shop WHERE age < 40",
        ):
            body = json.dumps({"sql": query.format(float(border))})
            response = api.post(path, content=body, headers=AUTHORIZED)
            assert response.status_code == status, response.text
    hidden = f"spent <= {float(chosen[0])}"
    condition = f"({hidden} AND age < 40) OR (spent < 0 AND age < 9)"
    response = api.post(
        path, content=json.dumps({"sql": f"SELECT COUNT(*) FROM shop WHERE {condition}"}), headers=AUTHORIZED
    )
    assert response.status_code == 422
    assert "at least 20 are needed" in response.json()["detail"]
    groups = sql(api, f"SELECT {hidden} AS low, COUNT(*) FROM shop WHERE spent > 0 AND age < 9 GROUP BY 1", path)
    assert [row[0] for row in groups["rows"]] == [False]
    assert "1 groups of fewer than 20 people are left out" in groups["notes"]


@pytest.mark.parametrize("people", [19, 20])
def test_a_table_of_fewer_reports_than_the_promise_says_is_withheld(tmp_path: Path, people: int) -> None:
    clock = ManualClock(7 * HOUR)
    collector = Collector([PEOPLE], SqliteStore(":memory:"), clock=clock, keys=KEYS, archive=Archive(tmp_path))
    collector.tick()
    fill(collector, 7, people)
    clock.set(8 * HOUR + 11)
    collector.tick()
    tables = TableQueries(collector)
    if people == 20:
        assert tables.answer("people", "people", "SELECT COUNT(*) FROM people").n == 20
    else:
        with pytest.raises(Problem, match="409 withheld: 19 reports; at least 20 are needed"):
            tables.answer("people", "people", "SELECT COUNT(*) FROM people")
    tables.close()
    collector.store.close()


def test_connect_asks_a_collector_as_it_asks_a_store(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The network is left out: what would go over it is handed to the application."""

    def post(_table: RemoteTable, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
        response = api.post(PATH, content=body, headers=headers)
        return response.status_code, response.json()

    monkeypatch.setattr(RemoteTable, "_post", post)
    table = connect("http://127.0.0.1:1", token=TOKEN, collection="people", question="people")
    answer = table.sql("SELECT state, COUNT(*) AS n FROM people GROUP BY state", explain=True)
    assert answer.column("state") == ["north", "south", "west", None]
    assert "HIO" in answer.plan
    with pytest.raises(QueryError, match=r"line 1, column 35: .*did you mean age"):
        table.sql("SELECT COUNT(*) FROM people WHERE agee > 3")


def test_one_query_at_a_time(api: Any) -> None:
    tables = api.service.tables
    tables._free.acquire()
    try:
        response = api.post(PATH, content=json.dumps({"sql": "SELECT COUNT(*) FROM people"}), headers=AUTHORIZED)
        assert (response.status_code, problem(response)) == (503, "query_busy")
    finally:
        tables._free.release()


SLOW = {
    "many groups": (
        "shop",
        "SELECT ROUND(spent * 4), age, COUNT(*), MEDIAN(spent * spent) FROM shop "
        "WHERE age > 4 GROUP BY ROUND(spent * 4), age",
    ),
    "many boxes": (
        "people",
        "SELECT age, state, load, COUNT(*) FROM people WHERE "
        + " OR ".join(f"(age BETWEEN {7 * k % 50} AND {7 * k % 50 + k % 9} AND load >= {k % 4 * 2})" for k in range(99))
        + " GROUP BY age, state, load",
    ),
}


@pytest.mark.parametrize(("question", "query"), SLOW.values(), ids=SLOW)
def test_a_slow_query_is_stopped_and_the_next_one_answered(api: Any, question: str, query: str) -> None:
    """Without a time limit these queries take a minute and more than ten seconds."""
    tables = api.service.tables

    def post(text: str) -> Any:
        path = PATH.replace("questions/people", f"questions/{question}")
        return api.post(path, content=json.dumps({"sql": text, "from": 7}), headers=AUTHORIZED)

    assert post(f"SELECT COUNT(*) FROM {question} WHERE age < 5").status_code == 200  # everything is compiled
    tables._seconds = 0.5
    try:
        stopped = post(query)
        assert (stopped.status_code, problem(stopped)) == (503, "query_too_slow")
        tables._seconds = 30.0
        response = post(f"SELECT COUNT(*) FROM {question} WHERE age < 6")
        assert response.status_code == 200, response.text
    finally:
        tables._seconds = 30.0


def test_the_next_query_may_follow_at_once(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that follows an answer is never refused as busy, however late callbacks of the first one's future run."""
    add = Future.add_done_callback

    def add_slow(future: Future[Any], callback: Callable[[Future[Any]], object]) -> None:
        add(future, lambda done: (time.sleep(0.2), callback(done)))

    monkeypatch.setattr(Future, "add_done_callback", add_slow)
    for _ in range(2):
        api.service.tables.answer("people", "people", "SELECT COUNT(*) FROM people")


def test_reports_leave_memory_when_their_step_expires(tmp_path: Path) -> None:
    """The retention of the collection is a day. Nobody asks anything after step 7 has expired."""
    clock = ManualClock(STEPS[0] * HOUR)
    collector = filled_collector(tmp_path / "reports", clock)
    tables = TableQueries(collector)
    tables_in_memory = {}
    for step in STEPS:
        tables.answer("people", "people", "SELECT COUNT(*) FROM people WHERE age < 9", first=step, last=step)
        tables_in_memory[step] = weakref.ref(next(reversed(tables._engines.values())).table)
    clock.set((7 + 24) * HOUR + 1)
    collector.tick()
    gc.collect()
    assert tables_in_memory[7]() is not None  # it is over for less than a day
    clock.set((8 + 24) * HOUR + 2)
    collector.tick()
    gc.collect()
    assert tables_in_memory[7]() is None
    assert tables_in_memory[8]() is not None
    collector.store.close()


def test_reports_that_expire_while_they_are_read_do_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock(STEPS[0] * HOUR)
    collector = filled_collector(tmp_path / "reports", clock)
    tables = TableQueries(collector)

    def expiring(*arguments: Any) -> Any:
        table = kept_table(*arguments)
        clock.set((9 + 25) * HOUR + 1)
        collector.tick()
        return table

    monkeypatch.setattr(table_queries, "kept_table", expiring)
    assert tables.answer("people", "people", "SELECT COUNT(*) FROM people", first=7).n == 2 * N
    assert not tables._engines
    collector.store.close()


def test_the_page_has_a_box_a_drawing_a_plan_and_a_file(api: Any) -> None:
    page = api.get("/results/people/people", headers=AUTHORIZED).text
    assert 'SELECT COUNT(*) FROM "people"' in page
    assert "0 to 59" in page
    assert "north, south, west" in page  # what a condition can name
    assert 'method="post"' in page
    answer = api.post(PAGE, content=BOX, headers=AUTHORIZED).text
    assert "north" in answer
    assert "How it was answered" in answer
    assert "data-feed" not in answer
    sheet = api.post(f"{PAGE}/answer.csv", content=BOX, headers=AUTHORIZED)
    assert sheet.headers["content-disposition"] == 'attachment; filename="people.csv"'
    assert sheet.text.splitlines()[0] == "state,n,n_low,n_high"
    assert len(sheet.text.splitlines()) == 5
    wrong = api.post(PAGE, content="sql=SELECT+%3Cb%3E", headers=AUTHORIZED).text
    assert 'role="alert"' in wrong
    assert "<b>" not in wrong.split('role="alert"')[1][:200]
    assert api.post(PAGE, content=b"sql=%ff%00&sql", headers=AUTHORIZED).status_code == 200
    assert api.post(f"{PAGE}/answer.csv", content="sql=", headers=AUTHORIZED).status_code == 404
    for path in (PAGE, f"{PAGE}/answer.csv"):
        assert api.post(path, content=BOX).status_code == 401
        long = "sql=" + "x" * (64 << 10)
        for content in (long, iter([b"sql=", long.encode()])):  # of a length that is told, and of one that is not
            assert api.post(path, content=content, headers=AUTHORIZED).status_code == 413


HERE = [
    {},
    {"Sec-Fetch-Site": "same-origin", "Origin": "https://a-proxy-that-renames.example"},
    {"Sec-Fetch-Site": "none"},
    {"Origin": "http://collector"},
]
ELSEWHERE = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://collector"},
    {"Origin": "https://evil.example"},
    {"Origin": "http://collector.evil.example"},
    {"Origin": "null"},
    {"Origin": "http://["},
]
BROWSER = {"Authorization": "Basic " + base64.b64encode(f"me:{TOKEN}".encode()).decode()}


def asked(api: Any, headers: dict[str, str]) -> list[int]:
    """The status of each way to ask a table with the credentials that a browser sends."""
    ways = (PAGE, BOX), (f"{PAGE}/answer.csv", BOX), (PATH, json.dumps({"sql": "SELECT COUNT(*) FROM people"}))
    return [api.post(path, content=content, headers={**BROWSER, **headers}).status_code for path, content in ways]


def test_no_other_site_asks_with_a_browsers_credentials(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for headers in HERE:
        assert asked(api, headers) == [200, 200, 200], headers
    monkeypatch.setattr(TableQueries, "answer", None)  # nothing is computed
    for headers in ELSEWHERE:
        assert asked(api, headers) == [403, 403, 403], headers
        for path in ("candidates?candidate=1", "releases"):
            address = f"/v1/collections/people/questions/people/{path}"
            assert api.get(address, headers={**BROWSER, **headers}).status_code == 403


def test_no_cell_of_a_file_is_a_formula() -> None:
    answer = QueryAnswer(
        (AnswerColumn("=n", False),), (("=1+1",), ("+1",), ("-1",), ("@x",), ("a=b",), (-1,)), 0.95, 10
    )
    assert answer_csv(answer).splitlines() == ["'=n", "'=1+1", "'+1", "'-1", "'@x", "a=b", "-1"]


def test_an_address_alone_asks_nothing(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TableQueries, "answer", None)
    assert api.get(f"{PAGE}?{BOX}", headers=AUTHORIZED).status_code == 200
    assert api.get(f"{PAGE}/answer.csv?{BOX}", headers=AUTHORIZED).status_code == 405


def test_a_release_has_the_shares_of_every_column(api: Any) -> None:
    answer = api.get("/v1/collections/people/questions/people/releases/latest?level=0.9999", headers=AUTHORIZED).json()
    values = records(8)
    assert list(answer["estimates"]) == ["estimate", "state", "load"]
    shares = answer["estimates"]["state"]
    assert shares["labels"] == ["north", "south", "west", "(none)"]
    for place, (low, high) in enumerate(zip(shares["low"], shares["high"], strict=True)):
        assert low <= float(np.mean(values["state"] == place)) <= high
    assert answer["labels"][0] == "0"


def test_levels_as_devices_run_them_are_those_of_the_table() -> None:
    """A hash supports the same cells whether its domain is listed or not."""
    question, where = PEOPLE.questions["people"], PEOPLE.setting("people")
    hio = question.mechanism(where)
    assert question.table(where).mechanism == hio
    for part, level in zip(question.parts(where), hio.levels, strict=True):
        oracle = hio.oracle(level)
        assert oracle == cell_oracle(hio.level_epsilon, part.view.size)
        assert part.mechanism.rates == oracle.rates
        assert part.mechanism.columns == oracle.columns
        reports = part.mechanism.randomize(np.arange(200) % part.view.size, Random(seed=1))
        cells = np.arange(min(part.view.size, 50), dtype=np.uint64)
        same = type(reports)(oracle.spec_id, public=reports.public, private=reports.private)
        assert part.mechanism.supports(reports, cells).tolist() == oracle.supports(same, cells).tolist()


def test_it_is_checked_planned_and_promised() -> None:
    assert read_collection(PEOPLE.spec()) == PEOPLE
    words = promise(PEOPLE)
    assert "It covers age, state and load together" in words
    assert "The server keeps the single reports of people and shop" in words
    assert any("SQL can ask about them" in finding.text for finding in check(PEOPLE))
    row, _ = forecast(PEOPLE)
    assert row.kind == "table of age, state and load"
    assert 0 < row.errors[100_000] < row.errors[10_000] < 0.2  # type: ignore[operator]


@pytest.mark.parametrize(
    ("keys", "domains"),
    [
        ({"columns": ["age"]}, (Ordinal(9),)),
        ({"columns": ["age", "age"]}, (Ordinal(9), Ordinal(9))),
        ({"columns": ["age", "step"]}, (Ordinal(9), Ordinal(9))),
        ({"columns": ["age", "word"]}, (Ordinal(9), Strings(9))),
        ({"columns": ["a", "b", "c", "d"], "fanout": 2}, (Ordinal(900),) * 4),
        ({"columns": ["a", "b"], "fanout": 10_000}, (Ordinal(5000), Ordinal(9))),
    ],
)
def test_what_makes_no_table_is_refused_by_its_key(keys: Any, domains: Any) -> None:
    def checked() -> None:
        question = Question.make("table", epsilon=1.0, **keys)
        question.check(Setting("q", dict(zip(question.reads(), domains, strict=True)), 3600))

    with pytest.raises(InvalidValue) as refused:
        checked()
    assert refused.value.field == "columns"


def test_a_categorical_column_of_two_has_no_order() -> None:
    question = Question.make("table", columns=["os", "crashed"], epsilon=1.0)
    where = Setting("q", {"os": Categorical(["a", "b"]), "crashed": Categorical(["no", "yes"])}, 3600)
    assert question.terms(where).parts == 3


def test_a_collector_without_sql_says_so(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`test_a_collector_installed_without_sql` looks at a real one."""
    # Its own queries: others may have read this table while there was a database.
    monkeypatch.setattr(api.service, "tables", TableQueries(api.service.collector))
    monkeypatch.setitem(sys.modules, "duckdb", None)
    response = api.post(PATH, content=json.dumps({"sql": "SELECT 1", "from": 7, "to": 7}), headers=AUTHORIZED)
    assert (response.status_code, problem(response)) == (501, "no_sql")


@pytest.mark.slow
def test_a_collector_installed_without_sql(tmp_path: Path) -> None:
    """As `pip install hubbub[server]` gives it: everything else is as ever."""
    from tests.served import ServedCollector

    served = ServedCollector(tmp_path, TEXT.replace('step = "1h"', 'step = "1d"'))
    try:
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        headers = {"Authorization": f"Bearer {served.token}"}
        connection.request("POST", PATH, json.dumps({"sql": "SELECT COUNT(*) FROM people"}), headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        assert (response.status, answer["type"]) == (501, "urn:hubbub:problem:no_sql"), answer
        assert "hubbub-ldp[sql]" in answer["detail"]
        assert served.get("/results/people/people", token=True)[0] == 200
    finally:
        served.close()
