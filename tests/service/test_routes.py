"""Every route: what it answers, to whom, and how long it may be kept."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator

import pytest

from hubbub.collection import open_sealed
from hubbub.core.errors import InvalidValue
from hubbub.protocols.ask import Ask
from hubbub.questions import read_collection
from hubbub.service.base.limits import REASONS
from hubbub.service.base.logs import JsonLines
from hubbub.service.http.metrics import metrics_app, metrics_text
from hubbub.service.http.openapi import openapi
from hubbub.service.http.problems import Tokens
from hubbub.service.http.queries import Queries
from hubbub.service.store.base import StoreFailed
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from hubbub.wire.upload import UPLOAD_TYPE
from tests.service.web import AUTHORIZED, KEYS, TOKEN, Web, problem, website


@pytest.fixture
def web() -> Iterator[Web]:
    with website() as made:
        yield made


def fill(web: Web, count: int = 40) -> None:
    """One step's worth of reports, and a release."""
    ask = web.ask()
    reports = ask.mechanism.randomize([0, 1] * (count // 2), web.draw)
    frame = encode_batch("themes", 2, web.name(ask), web.draw.bytes(16 * count), reports)
    assert web.post(BATCH_TYPE, frame).json()["accepted"] == count
    web.wait_until(1110.0)


def test_what_is_served(web: Web):
    answer = web.client.get("/v1/collections")
    assert answer.json() == {
        "collections": [
            {
                "name": "themes",
                "version": 2,
                "title": "Light or dark?",
                "collection_id": web.collection.collection_id,
            }
        ]
    }
    assert answer.headers["access-control-allow-origin"] == "*"


def test_a_collection_is_sealed_and_may_be_kept(web: Web):
    answer = web.client.get("/v1/collections/themes")
    assert read_collection(open_sealed(answer.json(), KEYS.public)) == web.collection
    assert answer.headers["cache-control"] == "public, max-age=3600"
    tag = answer.headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = web.client.get("/v1/collections/themes", headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert web.client.get("/v1/collections/themes", headers={"If-None-Match": '"other"'}).status_code == 200


def test_asks_are_sealed_and_may_be_kept_until_they_close(web: Web):
    answer = web.client.get("/v1/collections/themes/asks")
    document = open_sealed(answer.json(), KEYS.public)
    assert (document["collection"], document["version"]) == ("themes", 2)
    assert (document["step"], document["closes"]) == (10, 1100)
    asks = {entry["question"]: Ask.from_spec(entry["ask"]) for entry in document["asks"]}
    assert asks == {"old": web.ask("old"), "popular": web.ask("popular")}
    assert answer.headers["cache-control"] == "public, max-age=100"
    web.clock.advance(30.5)
    assert web.client.get("/v1/collections/themes/asks").headers["cache-control"] == "public, max-age=69"
    tag = answer.headers["etag"]
    web.wait_until(1110.0)
    later = web.client.get("/v1/collections/themes/asks", headers={"If-None-Match": tag})
    assert later.status_code == 200
    assert open_sealed(later.json(), KEYS.public)["step"] == 11


@pytest.mark.parametrize(
    "path",
    [
        "/v1/collections/themes/counts",
        "/v1/collections/themes/events",
        "/v1/collections/themes/questions/popular/releases",
        "/v1/collections/themes/questions/popular/releases/latest",
    ],
)
def test_results_need_a_token(web: Web, path: str):
    almost = TOKEN[:-1] + "X"
    wrong = [{}, {"Authorization": almost}, {"Authorization": f"Bearer {almost}"}, {"Authorization": "Basic !!!"}]
    wrong += [{"Authorization": "Basic " + base64.b64encode(f"me:{almost}".encode()).decode()}]
    wrong += [{"Authorization": "Basic " + base64.b64encode(b"\xff:\xff").decode()}]
    for headers in wrong:
        answer = web.client.get(path, headers=headers)
        assert (answer.status_code, problem(answer)) == (401, "no_token")
        assert "Basic" in answer.headers["www-authenticate"]


PUBLIC = {
    "/v1/reports",
    "/v1/shuffled",
    "/v1/collections",
    "/v1/collections/{name}",
    "/v1/collections/{name}/asks",
    "/v1/collections/{name}/asks/{answer}",
    "/healthz",
    "/readyz",
    "/openapi.json",
}


def test_all_other_routes_need_a_token_and_answer_no_page_of_another_site(web: Web):
    """A browser sends its user's credentials whichever site asks."""
    private = {path: list(methods) for path, methods in openapi()["paths"].items() if path not in PUBLIC}
    assert len(private) == len(openapi()["paths"]) - len(PUBLIC) > 8
    for path, methods in private.items():
        address = path.format(name="themes", question="popular")
        for method in methods:
            answer = web.client.request(method.upper(), address)
            assert (answer.status_code, problem(answer)) == (401, "no_token"), path
            for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://other.example"}, {"Origin": "null"}):
                answer = web.client.request(method.upper(), address, headers={**AUTHORIZED, **headers})
                assert (answer.status_code, problem(answer)) == (403, "foreign_site"), path


def test_a_short_token_is_refused_and_not_shown():
    assert Tokens(["x" * 16]).allow("Bearer " + "x" * 16)
    with pytest.raises(InvalidValue, match="at least 16 characters") as refused:
        Tokens([TOKEN, "fifteen letters"])
    assert "fifteen letters" not in str(refused.value)


def test_a_browser_may_give_the_token_as_a_password(web: Web):
    credentials = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
    answer = web.client.get("/v1/collections/themes/counts", headers={"Authorization": f"Basic {credentials}"})
    assert answer.status_code == 200


def test_releases_have_intervals(web: Web):
    base = "/v1/collections/themes/questions/popular/releases"
    begun = web.client.get(base, headers=AUTHORIZED).json()
    assert (begun["question"], begun["versions"], begun["earlier"]) == ("popular", [1, 2], [])
    assert [(release["step"], release["version"], release["n"]) for release in begun["releases"]] == [(9, 1, 0)]
    assert (begun["shape"]["form"], begun["shape"]["unit"]) == ("shares", "share")
    fill(web)
    latest = web.client.get(f"{base}/latest", headers=AUTHORIZED).json()
    assert latest["labels"] == ["light", "dark", "(none)"]
    assert (latest["step"], latest["n"], latest["published"], latest["bias"]) == (10, 40, True, "none")
    for low, value, high in zip(latest["low"], latest["value"], latest["high"], strict=True):
        assert low < value < high
    narrow = web.client.get(f"{base}/latest?level=0.5", headers=AUTHORIZED).json()
    assert narrow["high"][0] - narrow["low"][0] < latest["high"][0] - latest["low"][0]
    web.wait_until(1210.0)  # a step in which nobody answered
    listed = web.client.get(base, headers=AUTHORIZED).json()["releases"]
    assert [(release["step"], release["version"]) for release in listed] == [(9, 1), (10, 2), (11, 2)]
    assert listed[1] == latest
    assert listed[2]["withheld"] == "0 reports; at least 20 are needed"
    assert listed[2]["value"] is None
    for query, steps in (("from=11", [11]), ("to=10", [9, 10]), ("from=12", []), ("most=1", [11]), ("most=-5", [11])):
        got = web.client.get(f"{base}?{query}", headers=AUTHORIZED).json()["releases"]
        assert [release["step"] for release in got] == steps


@pytest.mark.parametrize(
    "query",
    [
        "from=x",
        "to=1.5",
        "from=",
        "most=one",
        "level=0",
        "level=1",
        "level=nan",
        "level=x",
        "version=x",
        "from=" + "9" * 30,
    ],
)
def test_parameters_are_checked(web: Web, query: str):
    path = f"/v1/collections/themes/questions/popular/releases?{query}"
    answer = web.client.get(path, headers=AUTHORIZED)
    assert (answer.status_code, problem(answer)) == (400, "invalid_parameter")


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/v1/collections/other",
        "/v1/collections/other/asks",
        "/v1/collections/other/counts",
        "/v1/collections/other/events",
        "/v1/collections/themes/questions/other/releases",
        "/v1/collections/themes/questions/other/releases/latest",
        "/v1/collections/other/questions/popular/releases",
        "/v1/reports/more",
    ],
)
def test_what_is_not_there_is_a_problem_document(web: Web, path: str):
    answer = web.client.get(path, headers=AUTHORIZED)
    assert (answer.status_code, problem(answer)) == (404, "not_found")


def test_reading_routes_only_read(web: Web):
    answer = web.client.post("/v1/collections")
    assert (answer.status_code, problem(answer)) == (405, "not_allowed")


def test_counts(web: Web):
    web.post(UPLOAD_TYPE, web.frame(web.entry(1)))
    web.post(UPLOAD_TYPE, b"hostile")
    entry = web.entry(0)
    for _ in range(2):
        web.post(UPLOAD_TYPE, web.frame(entry))
    answer = web.client.get("/v1/collections/themes/counts", headers=AUTHORIZED).json()
    assert answer["outcomes"] == {"accepted": 2, "duplicate": 1}
    assert {"question": "popular", "step": 10, "reports": 2, "closes": 1100} in answer["open"]


def test_health_and_readiness(web: Web):
    assert web.client.get("/healthz").json() == {"alive": True}
    while (answer := web.client.get("/readyz")).status_code != 200:
        assert answer.json()["not_ready"].keys() == {"kernels"}  # at the very beginning
    assert answer.json() == {"ready": True, "not_ready": {}}
    web.service.drain()
    assert web.client.get("/healthz").status_code == 200
    answer = web.client.get("/readyz")
    assert (answer.status_code, answer.json()) == (503, {"ready": False, "not_ready": {"collector": "it is stopping"}})


def test_metrics_count_by_collection_and_reason(web: Web):
    web.post(UPLOAD_TYPE, web.frame(web.entry(1)))
    web.post(UPLOAD_TYPE, b"hostile")
    text = metrics_text(web.service)
    assert "hubbub_clock_in_doubt 0.0\n" in text
    assert 'hubbub_reports_total{collection="themes",outcome="accepted"} 1.0\n' in text
    assert 'hubbub_reports_total{collection="",outcome="malformed"} 1.0\n' in text
    assert "hubbub_open_asks 2.0\n" in text
    assert "hubbub_held_ids 1.0\n" in text
    assert "hubbub_ready 1.0\n" in text
    for reason in REASONS:
        assert f'outcome="{reason}"' in text
    for line in text.splitlines():
        assert line.startswith(("# HELP hubbub_", "# TYPE hubbub_", "hubbub_"))


def test_metrics_are_on_a_port_of_their_own(web: Web):
    import asyncio

    import httpx

    assert web.client.get("/metrics").status_code == 404

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=metrics_app(web.service))
        async with httpx.AsyncClient(transport=transport, base_url="http://metrics") as client:
            return await client.get("/metrics")

    answer = asyncio.run(ask())
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")


def test_the_description_names_every_route(web: Web):
    described = web.client.get("/openapi.json").json()
    assert described == json.loads(json.dumps(openapi()))
    from hubbub.service.http.problems import Tokens

    routes = {route.path for route in Queries(web.service, Tokens([])).routes()}
    assert set(described["paths"]) == routes | {"/v1/reports", "/v1/shuffled", "/v1/collections/{name}/spot-checks"}


def test_a_failure_is_logged_by_place_and_says_nothing_of_values(
    web: Web, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def fails(*given: object, **more: object) -> None:
        raise ValueError("the value 4711")

    monkeypatch.setattr(web.collector, "releases", fails)
    monkeypatch.setattr(web.collector, "admit", fails)
    path = "/v1/collections/themes/questions/popular/releases"
    answers = [web.client.get(path, headers=AUTHORIZED), web.post(UPLOAD_TYPE, web.frame())]
    assert [(answer.status_code, problem(answer)) for answer in answers] == [(500, "internal")] * 2
    lines = [json.loads(JsonLines().format(record)) for record in caplog.records]
    asked = [(line["method"], line["path"], line["route"], line["error"]) for line in lines]
    assert asked == [("GET", path, "Queries.releases", "ValueError"), ("POST", "/v1/reports", None, "ValueError")]
    assert "http/queries.py:" in lines[0]["detail"]
    assert "http/reports.py:" in lines[1]["detail"]
    assert "4711" not in "".join([*(answer.text for answer in answers), *map(str, lines)])


def test_a_store_that_does_not_answer_is_said(web: Web, monkeypatch: pytest.MonkeyPatch):
    def fails(*given: object, **more: object) -> None:
        raise StoreFailed("at a secret address")

    monkeypatch.setattr(web.collector, "releases", fails)
    answer = web.client.get("/v1/collections/themes/questions/popular/releases", headers=AUTHORIZED)
    assert (answer.status_code, problem(answer)) == (503, "no_store")
    assert "secret" not in answer.text


def test_logs_hold_no_bodies_addresses_or_queries(web: Web, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, logger="hubbub.service"):
        web.client.get("/v1/collections/themes/asks?secret=1", headers={"X-Forwarded-For": "203.0.113.9"})
        web.post(UPLOAD_TYPE, web.frame(web.entry(1)))
        web.post(UPLOAD_TYPE, b"hostile")
    (record,) = caplog.records
    assert set(record.fields) == {"method", "path", "status", "ms"}
    assert record.fields["path"] == "/v1/collections/themes/asks"


@pytest.fixture
def loggers() -> Iterator[None]:
    """Leaves the loggers as they were."""
    names = ("hubbub.service", "uvicorn")
    before = [(logger, logger.handlers, logger.propagate, logger.level) for logger in map(logging.getLogger, names)]
    yield
    for logger, handlers, propagate, level in before:
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


@pytest.mark.usefixtures("loggers")
def test_a_log_line_is_json(capsys: pytest.CaptureFixture[str]):
    from hubbub.service.base.logs import log, set_up

    set_up()
    log("started", collections=["themes"])
    try:
        raise ValueError("a secret")
    except ValueError:
        logging.getLogger("hubbub.service").exception("failed")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (first["event"], first["collections"]) == ("started", ["themes"])
    assert second["error"] == "ValueError"
    assert "secret" not in json.dumps(second)
