"""A table question: devices report on one level, reports are kept, and SQL is asked of them by the API and the page."""

import base64
import gc
import json
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import pytest

from hubbub import Random
from hubbub.authoring import check, forecast, load_collection, promise
from hubbub.collection import seal
from hubbub.collection.safety import UnsafeCollection
from hubbub.collection.safety import open_collection as open_on_device
from hubbub.core.domain import Categorical, Ordinal, Strings
from hubbub.core.errors import InvalidValue
from hubbub.dashboard.query_box import answer_csv
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ranges.hierarchy import cell_oracle
from hubbub.query.answer import AnswerColumn, QueryAnswer
from hubbub.query.connect import RemoteTable, connect
from hubbub.query.errors import QueryError
from hubbub.query.schema import METHODS
from hubbub.questions import Question, read_collection
from hubbub.questions.table import TableQuestion
from hubbub.service.collector.collector import Collector
from hubbub.service.collector.kept_table import kept_table
from hubbub.service.http import table_queries
from hubbub.service.http.problems import Problem
from hubbub.service.http.service import Service
from hubbub.service.http.table_queries import TableQueries
from hubbub.service.kept.archive import Archive
from tests.questions.settings import placed
from tests.served import ServedCollector, requested
from tests.service.web import AUTHORIZED, TOKEN, problem, site
from tests.shared.in_process import KEYS, World, open_now, send_values
from tests.shared.loopback import Loopback
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
COUNT = "SELECT COUNT(*) FROM people"
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
    rng = Random(seed=step)
    send_records(collector, {name: column[:people] for name, column in records(step).items()}, rng.uint32(people), rng)


def send_records(collector: Collector, values: Mapping[str, Any], places: Any, rng: Random) -> None:
    """Have people who hold records answer each question of a table that asks them."""
    for open_ask in open_now(collector):
        inside = open_ask.ask.cohort.holds(places)
        seen = open_ask.ask.view.look({name: column[inside] for name, column in values.items()}, rng)
        assert send_values(collector, open_ask, seen, rng).accepted == inside.sum()


def filled(folder: Path) -> World:
    """A collector whose two steps are closed."""
    world = World(PEOPLE, STEPS[0] * HOUR, archive=Archive(folder))
    for step in STEPS:
        fill(world.at(step * HOUR).collector, step)
        world.at((step + 1) * HOUR + 11)
    return world


class Tables(NamedTuple):
    """Requests to a collector that has heard two steps."""

    client: Loopback
    service: Service

    def ask(self, text: str, question: str = "people", **more: Any) -> httpx.Response:
        return self.post({"sql": text, **more}, f"/v1/collections/people/questions/{question}/sql")

    def post(self, body: Any, path: str = PATH, headers: Mapping[str, str] = AUTHORIZED) -> httpx.Response:
        content = body if isinstance(body, (bytes, str)) or hasattr(body, "__next__") else json.dumps(body)
        return self.client.post(path, content=content, headers=headers)

    def get(self, path: str, headers: Mapping[str, str] = AUTHORIZED) -> httpx.Response:
        return self.client.get(path, headers=headers)

    def sql(self, text: str, question: str = "people", **more: Any) -> Any:
        response = self.ask(text, question, **more)
        assert response.status_code == 200, response.text
        return response.json()


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tables]:
    service = Service(filled(tmp_path_factory.mktemp("table") / "reports").collector)
    with site(service, pages=True, private=True) as client:
        yield Tables(client, service)


def holds(cell: dict[str, Any], truth: float) -> bool:
    """Whether an interval of 99.99% holds the truth: of some twenty, one in 500 runs of other seeds would not."""
    return bool(cell["low"] <= truth <= cell["high"])


def test_counts_of_boxes_are_near_the_truth(api: Tables) -> None:
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
        answer = api.sql(f"SELECT COUNT(*) AS n FROM people WHERE {condition}", level=0.9999)
        assert answer["n"] == N
        ((cell,),) = answer["rows"]
        assert holds(cell, int(inside.sum())), (condition, cell, int(inside.sum()))
        if condition != "TRUE":
            assert cell["high"] - cell["low"] < 0.9 * N  # it says something


def test_measures_that_are_sent_as_they_are_can_be_summed(api: Tables) -> None:
    values = records(8)
    known = ~np.isnan(values["spent"])
    south = (values["state"] == 1) & known
    query = "SELECT SUM(spent) AS s, AVG(spent) AS a, COUNT(*) AS n FROM shop"
    condition = "state = 'south' AND spent IS NOT NULL"
    ((total, mean, count),) = api.sql(f"{query} WHERE {condition}", "shop", level=0.9999)["rows"]
    assert holds(total, float(values["spent"][south].sum()))
    assert holds(mean, float(values["spent"][south].mean()))
    assert holds(count, int(south.sum()))
    assert mean["low"] > float(values["spent"][known].mean()) - 2.0
    ((everyone,),) = api.sql("SELECT SUM(spent) AS s FROM shop", "shop")["rows"]
    assert everyone["value"] == pytest.approx(float(values["spent"][known].sum()))  # public: exact
    young = api.sql("SELECT COUNT(*) AS n FROM shop WHERE spent > 10 AND age < 40", "shop", level=0.9999)
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


def test_steps_are_a_public_column_and_can_be_asked_together(api: Tables) -> None:
    both: dict[str, Any] = {"from": 7, "level": 0.9999}
    answer = api.sql("SELECT step, COUNT(*) AS n FROM people WHERE age < 20 GROUP BY step", **both)
    assert answer["n"] == 2 * N
    assert [row[0] for row in answer["rows"]] == [7, 8]
    for step, cell in answer["rows"]:
        assert holds(cell, int((records(step)["age"] < 20).sum()))
    assert api.sql(COUNT, **both, to=7)["n"] == N


DAY = "1970-01-01"


@pytest.mark.parametrize(
    ("asked", "where", "steps"),
    [
        ({}, "", [8]),
        ({}, "WHERE step BETWEEN 7 AND 8", [7, 8]),
        ({}, "WHERE step = 7 AND age < 70", [7]),
        ({}, "WHERE 8 > step AND step >= 5", [7]),
        ({}, "WHERE step IN (7, 8) OR age < 70", [8]),
        ({}, f"WHERE step BETWEEN '{DAY}T07:00' AND '{DAY}'", [7, 8]),
        ({}, f"WHERE step < '{DAY}T08:00' AND '{DAY}T06:00:01' <= step", [7]),
        ({}, f"WHERE step > '{DAY}T07:30' AND step = '{DAY}'", [8]),
        ({"from": f"{DAY}T07:00"}, "", [7, 8]),
        ({"to": f"{DAY}T07:59:59"}, "", [7]),
        ({"from": DAY, "to": DAY}, "", [7, 8]),
        ({"from": f"{DAY}T07:00:01+00:00"}, "", [8]),
    ],
)
def test_steps_are_named_by_number_by_date_or_behind_where(api: Tables, asked: Any, where: str, steps: Any) -> None:
    answer = api.sql(f"SELECT step, COUNT(*) AS n FROM people {where} GROUP BY step", **asked)
    assert [row[0] for row in answer["rows"]] == steps


def test_a_step_that_is_no_date_is_refused(api: Tables) -> None:
    with pytest.raises(InvalidValue, match=r"step: got 'soon'; allowed: a step, a date such as"):
        TableQueries(api.service.collector).answer(
            "people", "people", "SELECT COUNT(*) AS n FROM people WHERE step < 'soon'"
        )


def test_steps_without_reports_are_passed_over(tmp_path: Path) -> None:
    world = filled(tmp_path / "reports")
    tables = TableQueries(world.at(12 * HOUR + 11).collector)  # steps 9 to 11 are closed, and nobody has answered
    steps = tables.answer("people", "people", "SELECT step, COUNT(*) AS n FROM people GROUP BY step")
    assert [row[0] for row in steps.rows] == [8]
    assert tables.answer("people", "people", COUNT, first=7, last=11).n == 2 * N
    with pytest.raises(Problem, match="409 withheld: 0 reports"):
        tables.answer("people", "people", COUNT, first=9)
    with pytest.raises(InvalidValue, match=r"from: got 'yesterday'; allowed: a step, a date such as"):
        tables.answer("people", "people", COUNT, first="yesterday")
    tables.close()


def test_numbers_of_private_columns_sub_queries_and_joins_are_answered(api: Tables) -> None:
    ages, state = records(8)["age"], records(8)["state"]
    text = """WITH grown AS (SELECT * FROM people WHERE age >= 18)
        SELECT AVG(age) AS a, MEDIAN(age) AS m, STDDEV(age) AS d, COUNT(*) FILTER (WHERE state = 'south') AS s
        FROM grown"""
    mean, median, spread, south = api.sql(text, level=0.9999)["rows"][0]
    grown = ages[ages >= 18]
    assert holds(mean, float(grown.mean()))
    assert holds(median, float(np.median(grown)))
    assert holds(spread, float(grown.std(ddof=1)))
    assert holds(south, int(((ages >= 18) & (state == 1)).sum()))
    assert mean["high"] - mean["low"] < 12
    text = "SELECT WIDTH_BUCKET(age, 0, 60, 3) AS third, COUNT(*) AS n FROM people GROUP BY third"
    buckets = api.sql(text, level=0.9999)["rows"]
    assert [row[0] for row in buckets] == [1, 2, 3, None]
    assert all(holds(cell, int((ages // 20 == third - 1).sum())) for third, cell in buckets[:3])
    text = (
        "SELECT w.part, COUNT(*) AS n FROM people JOIN weeks w ON people.step = w.step WHERE age < 30 GROUP BY w.part"
    )
    weeks = {"weeks": {"step": [7, 8], "part": ["first", "second"]}}
    named: dict[str, Any] = {"from": 7, "tables": weeks}
    rows = api.sql(text, level=0.9999, **named)["rows"]
    assert [row[0] for row in rows] == ["first", "second"]
    assert all(holds(cell, int((records(step)["age"] < 30).sum())) for step, (_, cell) in zip(STEPS, rows, strict=True))


def test_columns_and_tables_are_listed(api: Tables) -> None:
    listed = api.sql("DESCRIBE shop", "shop")
    assert [row[:3] for row in listed["rows"]] == [
        ["age", "BIGINT", "private"],
        ["state", "VARCHAR", "private"],
        ["step", "BIGINT", "public"],
        ["spent", "DOUBLE", "public"],
    ]
    assert api.sql("SHOW TABLES")["rows"] == [["people", "private"]]
    assert "0 to 59" in api.post("sql=DESCRIBE+people&from=&to=", PAGE).text
    page = api.post(f"sql=SELECT+AVG(age)+AS+a+FROM+people&from={DAY}&to=", PAGE).text
    assert f"From {2 * N:,} reports" in page
    assert f'value="{DAY}"' in page


def test_what_cannot_be_answered_is_a_problem_that_says_why(api: Tables) -> None:
    def refused(body: Any, headers: Any = AUTHORIZED) -> tuple[int, str, str]:
        response = api.post(body, headers=headers)
        return response.status_code, problem(response), response.json().get("detail", "")

    assert refused({"sql": COUNT}, {})[:2] == (401, "no_token")
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
    assert refused({"sql": COUNT, "from": 70})[:2] == (409, "withheld")
    assert api.ask("", "gone").status_code == 404


def test_nothing_is_answered_over_fewer_reports_than_the_promise_says(api: Tables) -> None:
    """`minimum_batch` is 20: public conditions, keys and weights do not get below it."""
    assert "A statistic is published only if it is made from at least 20 reports" in promise(PEOPLE)
    spent = records(8)["spent"]
    chosen = np.sort(spent[~np.isnan(spent)])[[18, 19]]  # 19 people, and 20
    for border, status in zip(chosen, (422, 200), strict=True):
        for query in (
            "SELECT COUNT(*) FROM shop WHERE spent <= {} AND age < 40",
            "SELECT SUM(2) FROM shop WHERE spent <= {}",
            "SELECT SUM(CASE WHEN spent <= {} THEN 2 ELSE 0 END) FROM shop WHERE age < 40",
        ):
            response = api.ask(query.format(float(border)), "shop")
            assert response.status_code == status, response.text
    hidden = f"spent <= {float(chosen[0])}"
    condition = f"({hidden} AND age < 40) OR (spent < 0 AND age < 9)"
    response = api.ask(f"SELECT COUNT(*) FROM shop WHERE {condition}", "shop")
    assert response.status_code == 422
    assert "at least 20 are needed" in response.json()["detail"]
    groups = api.sql(f"SELECT {hidden} AS low, COUNT(*) FROM shop WHERE spent > 0 AND age < 9 GROUP BY 1", "shop")
    assert [row[0] for row in groups["rows"]] == [False]
    assert "1 groups of fewer than 20 people are left out" in groups["notes"]


@pytest.mark.parametrize("people", [19, 20])
def test_a_table_of_fewer_reports_than_the_promise_says_is_withheld(tmp_path: Path, people: int) -> None:
    world = World(PEOPLE, 7 * HOUR, archive=Archive(tmp_path))
    fill(world.collector, 7, people)
    tables = TableQueries(world.at(8 * HOUR + 11).collector)
    if people == 20:
        assert tables.answer("people", "people", COUNT).n == 20
    else:
        with pytest.raises(Problem, match="409 withheld: 19 reports; at least 20 are needed"):
            tables.answer("people", "people", COUNT)
    tables.close()


def test_connect_asks_a_collector_as_it_asks_a_store(api: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """The network is left out: what would go over it is handed to the application."""

    def post(_table: RemoteTable, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
        response = api.post(body, headers=headers)
        return response.status_code, response.json()

    monkeypatch.setattr(RemoteTable, "_post", post)
    table = connect("http://127.0.0.1:1", token=TOKEN, collection="people", question="people")
    answer = table.sql("SELECT state, COUNT(*) AS n FROM people GROUP BY state", explain=True)
    assert answer.column("state") == ["north", "south", "west", None]
    assert "HIO" in answer.plan
    with pytest.raises(QueryError, match=r"line 1, column 35: .*did you mean age"):
        table.sql("SELECT COUNT(*) FROM people WHERE agee > 3")


def test_one_query_at_a_time(api: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    began, go_on = threading.Event(), threading.Event()

    def waits(*arguments: Any) -> Any:
        began.set()
        go_on.wait(60)
        return kept_table(*arguments)

    monkeypatch.setattr(table_queries, "kept_table", waits)
    monkeypatch.setattr(api.service, "tables", TableQueries(api.service.collector))  # which have read nothing yet
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(api.ask, COUNT)
        assert began.wait(60)
        response = api.ask(COUNT)
        go_on.set()
    assert (response.status_code, problem(response)) == (503, "query_busy")
    assert first.result().status_code == 200


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
def test_a_slow_query_is_stopped_and_the_next_one_answered(
    api: Tables, monkeypatch: pytest.MonkeyPatch, question: str, query: str
) -> None:
    """Without a time limit these queries take a minute and more than ten seconds."""

    def post(text: str, seconds: float) -> Any:
        monkeypatch.setattr(api.service.tables, "seconds", seconds)
        return api.ask(text, question, **{"from": 7})

    short = f"SELECT COUNT(*) FROM {question} WHERE age < "
    assert post(f"{short} 5", 300.0).status_code == 200  # everything is compiled
    stopped = post(query, 0.5)
    assert (stopped.status_code, problem(stopped)) == (503, "query_too_slow")
    response = post(f"{short} 6", 300.0)
    assert response.status_code == 200, response.text


def test_the_next_query_may_follow_at_once(api: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that follows an answer is never refused as busy, however late callbacks of the first one's future run."""
    add = Future.add_done_callback

    def add_slow(future: Future[Any], callback: Callable[[Future[Any]], object]) -> None:
        add(future, lambda done: (time.sleep(0.2), callback(done)))

    monkeypatch.setattr(Future, "add_done_callback", add_slow)
    for _ in range(2):
        api.service.tables.answer("people", "people", COUNT)


def test_reports_leave_memory_when_their_step_expires(tmp_path: Path) -> None:
    """The retention of the collection is a day. Nobody asks anything after step 7 has expired."""
    world = filled(tmp_path / "reports")
    tables = TableQueries(world.collector)
    tables_in_memory = {}
    for step in STEPS:
        tables.answer("people", "people", "SELECT COUNT(*) FROM people WHERE age < 9", first=step, last=step)
        tables_in_memory[step] = weakref.ref(next(reversed(tables._engines.values())).table)
    world.at((7 + 24) * HOUR + 1)
    gc.collect()
    assert tables_in_memory[7]() is not None  # it is over for less than a day
    world.at((8 + 24) * HOUR + 2)
    gc.collect()
    assert tables_in_memory[7]() is None
    assert tables_in_memory[8]() is not None


def test_reports_that_expire_while_they_are_read_do_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = filled(tmp_path / "reports")
    tables = TableQueries(world.collector)

    def expiring(*arguments: Any) -> Any:
        table = kept_table(*arguments)
        world.at((9 + 25) * HOUR + 1)
        return table

    monkeypatch.setattr(table_queries, "kept_table", expiring)
    assert tables.answer("people", "people", COUNT, first=7).n == 2 * N
    assert not tables._engines


def test_the_page_has_a_box_a_drawing_a_plan_and_a_file(api: Tables) -> None:
    page = api.get("/results/people/people").text
    assert 'SELECT COUNT(*) FROM "people"' in page
    assert "0 to 59" in page
    assert "north, south, west" in page  # what a condition can name
    assert 'method="post"' in page
    answer = api.post(BOX, PAGE).text
    assert "north" in answer
    assert "How it was answered" in answer
    assert "data-feed" not in answer
    sheet = api.post(BOX, f"{PAGE}/answer.csv")
    assert sheet.headers["content-disposition"] == 'attachment; filename="people.csv"'
    assert sheet.text.splitlines()[0] == "state,n,n_low,n_high"
    assert len(sheet.text.splitlines()) == 5
    wrong = api.post("sql=SELECT+%3Cb%3E", PAGE).text
    assert 'role="alert"' in wrong
    assert "<b>" not in wrong.split('role="alert"')[1][:200]
    assert api.post(b"sql=%ff%00&sql", PAGE).status_code == 200
    assert api.post("sql=", f"{PAGE}/answer.csv").status_code == 404
    for path in (PAGE, f"{PAGE}/answer.csv"):
        assert api.post(BOX, path, {}).status_code == 401
        long = "sql=" + "x" * (64 << 10)
        for content in (long, iter([b"sql=", long.encode()])):  # of a length that is told, and of one that is not
            assert api.post(content, path).status_code == 413


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


def asked(api: Tables, headers: dict[str, str]) -> list[int]:
    """The status of each way to ask a table with the credentials that a browser sends."""
    ways = (PAGE, BOX), (f"{PAGE}/answer.csv", BOX), (PATH, json.dumps({"sql": COUNT}))
    return [api.post(content, path, {**BROWSER, **headers}).status_code for path, content in ways]


def test_no_other_site_asks_with_a_browsers_credentials(api: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_an_address_alone_asks_nothing(api: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TableQueries, "answer", None)
    assert api.get(f"{PAGE}?{BOX}").status_code == 200
    assert api.get(f"{PAGE}/answer.csv?{BOX}").status_code == 405


def test_a_release_has_the_shares_of_every_column(api: Tables) -> None:
    answer = api.get("/v1/collections/people/questions/people/releases/latest?level=0.9999").json()
    values = records(8)
    assert list(answer["estimates"]) == ["estimate", "state", "load"]
    shares = answer["estimates"]["state"]
    assert shares["labels"] == ["north", "south", "west", "(none)"]
    for place, (low, high) in enumerate(zip(shares["low"], shares["high"], strict=True)):
        assert low <= float(np.mean(values["state"] == place)) <= high
    assert answer["labels"][0] == "0"


@pytest.mark.parametrize("method", METHODS)
def test_levels_as_devices_run_them_are_those_of_the_table(method: str) -> None:
    """A hash supports the same cells whether its domain is listed or not."""
    columns = ["age", "state", "load"] if method not in ("HI", "MG") else ["state", "load"]
    plain = Question.make("table", columns=columns, method=method, epsilon=2.0)
    question = placed(plain, *(PEOPLE.fields[name] for name in columns))
    assert isinstance(question, TableQuestion)
    table = question.table()
    asked: list[Any] = []
    for part, levels in zip(question.parts(), table.parts, strict=True):
        oracles = getattr(part.mechanism, "oracles", (part.mechanism,))
        sizes = part.view.sizes or (part.view.size,)
        asked += zip(levels, oracles, sizes, strict=True)
    for level, device, size in asked:
        oracle = table.oracle(level)
        assert isinstance(device, FrequencyOracle)
        assert oracle == cell_oracle(oracle.epsilon, size)
        assert device.rates == oracle.rates
        assert device.columns == oracle.columns
        reports = device.randomize(np.arange(200) % size, Random(seed=1))
        cells = np.arange(min(size, 50), dtype=np.uint64)
        same = type(reports)(oracle.spec_id, public=reports.public, private=reports.private)
        assert device.supports(reports, cells).tolist() == oracle.supports(same, cells).tolist()


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
        ({"columns": []}, ()),
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
        placed(question, *domains).check()

    with pytest.raises(InvalidValue) as refused:
        checked()
    assert refused.value.field == "columns"


@pytest.mark.parametrize(
    ("keys", "field", "words"),
    [
        ({"method": "OLH"}, "method", "HIO, HI, MG, SC, HDG"),
        ({"method": ["HIO", "HIO"]}, "method", "each once"),
        ({"method": []}, "method", "one or several"),
        ({"method": ["HIO", "SC"], "shares": [0.5]}, "shares", "2 numbers"),
        ({"method": ["HIO", "SC"], "shares": [0.5, 0.6]}, "shares", "add up to 1"),
        ({"method": ["HIO", "SC"], "shares": [1.0, 0.0]}, "shares", "above 0"),
        ({"method": "HI", "fanout": 2}, "method", "at most 64 levels"),
        ({"method": "MG"}, "method", "at most 4,096 cells"),
    ],
)
def test_a_method_that_cannot_be_is_refused_by_its_key(keys: Any, field: str, words: str) -> None:
    def checked() -> None:
        question = Question.make("table", columns=["age", "income"], epsilon=1.0, **keys)
        placed(question, Ordinal(300), Ordinal(300)).check()

    with pytest.raises(InvalidValue, match=words) as refused:
        checked()
    assert refused.value.field == field


def test_a_categorical_column_of_two_has_no_order() -> None:
    question = Question.make("table", columns=["os", "crashed"], epsilon=1.0)
    assert placed(question, Categorical(["a", "b"]), Categorical(["no", "yes"])).terms().parts == 3


def test_a_collector_without_sql_says_so(api: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """`test_a_collector_installed_without_sql` looks at a real one."""
    # Its own queries: others may have read this table while there was a database.
    monkeypatch.setattr(api.service, "tables", TableQueries(api.service.collector))
    monkeypatch.setitem(sys.modules, "duckdb", None)
    response = api.ask("SELECT 1", to=7)
    assert (response.status_code, problem(response)) == (501, "no_sql")


@pytest.mark.slow
def test_a_collector_installed_without_sql(tmp_path: Path) -> None:
    """As `pip install hubbub[server]` gives it: everything else is as ever."""
    served = ServedCollector(tmp_path, TEXT.replace('step = "1h"', 'step = "1d"'))
    try:
        headers = {"Authorization": f"Bearer {served.token}"}
        status, body = requested(served.port, PATH, json.dumps({"sql": COUNT}).encode(), headers)
        answer = json.loads(body)
        assert (status, answer["type"]) == (501, "urn:hubbub:problem:no_sql"), answer
        assert "hubbub-ldp[sql]" in answer["detail"]
        assert served.get("/results/people/people", token=True)[0] == 200
    finally:
        served.close()
