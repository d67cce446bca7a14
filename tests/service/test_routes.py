"""Every route: what it answers, to whom, and how long it may be kept."""

import base64
import copy
import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import uvicorn

from hubbub.alarms.plan import AlarmPlan
from hubbub.authoring import load_collection
from hubbub.collection import ManualClock, open_sealed
from hubbub.core.errors import InvalidValue
from hubbub.protocols.ask import Ask
from hubbub.questions import read_collection
from hubbub.service.base.limits import REASONS
from hubbub.service.base.logs import JsonLines, log, set_up
from hubbub.service.http.metrics import metrics_app, metrics_text
from hubbub.service.http.openapi import openapi
from hubbub.service.http.problems import Tokens
from hubbub.service.http.queries import Queries
from hubbub.service.http.server import bind, create_app
from hubbub.service.http.service import Service
from hubbub.service.store.base import StoreFailed
from hubbub.wire.upload import UPLOAD_TYPE
from tests.service.web import AUTHORIZED, THEMES, TOKEN, Web, logged, problem, website
from tests.shared.in_process import KEYS, start_collector


@pytest.fixture
def web() -> Iterator[Web]:
    with website() as made:
        yield made


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, problem(answer)


RELEASES = "/v1/collections/themes/questions/popular/releases"


def test_what_is_served(web: Web):
    answer = web.client.get("/v1/collections")
    themes = {"name": "themes", "version": 2, "title": "Light or dark?", "collection_id": web.collection.collection_id}
    assert answer.json() == {"collections": [themes]}
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


@pytest.mark.parametrize("path", ["/v1/collections/themes/counts", "/v1/collections/themes/events", RELEASES])
def test_results_need_a_token(web: Web, path: str):
    almost = TOKEN[:-1] + "X"
    wrong = [{}, {"Authorization": almost}, {"Authorization": f"Bearer {almost}"}, {"Authorization": "Basic !!!"}]
    wrong += [{"Authorization": "Basic " + base64.b64encode(f"me:{almost}".encode()).decode()}]
    wrong += [{"Authorization": "Basic " + base64.b64encode(b"\xff:\xff").decode()}]
    for headers in wrong:
        answer = web.client.get(path, headers=headers)
        assert refused(answer) == (401, "no_token")
        assert "Basic" in answer.headers["www-authenticate"]


PUBLIC = {
    "/v1/reports",
    "/v1/shuffled",
    "/v1/collections",
    "/v1/collections/{name}",
    "/v1/collections/{name}/asks",
    "/v1/collections/{name}/asks/{answer}",
    "/v1/collections/{name}/models/{model}",
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
            assert refused(answer) == (401, "no_token"), path
            for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://other.example"}, {"Origin": "null"}):
                answer = web.client.request(method.upper(), address, headers={**AUTHORIZED, **headers})
                assert refused(answer) == (403, "foreign_site"), path


def test_a_short_token_is_refused_and_not_shown():
    assert Tokens(["x" * 16]).allow("Bearer " + "x" * 16)
    with pytest.raises(InvalidValue, match="at least 16 characters") as refused:
        Tokens([TOKEN, "fifteen letters"])
    assert "fifteen letters" not in str(refused.value)


def test_releases_have_intervals(web: Web):
    begun = web.client.get(RELEASES, headers=AUTHORIZED).json()
    assert (begun["question"], begun["versions"], begun["earlier"]) == ("popular", [1, 2], [])
    assert [(release["step"], release["version"], release["n"]) for release in begun["releases"]] == [(9, 1, 0)]
    assert (begun["shape"]["form"], begun["shape"]["unit"]) == ("shares", "share")
    web.fill()
    latest = web.client.get(f"{RELEASES}/latest", headers=AUTHORIZED).json()
    assert latest["labels"] == ["light", "dark", "(none)"]
    assert (latest["step"], latest["n"], latest["published"], latest["bias"]) == (10, 40, True, "none")
    for low, value, high in zip(latest["low"], latest["value"], latest["high"], strict=True):
        assert low < value < high
    narrow = web.client.get(f"{RELEASES}/latest?level=0.5", headers=AUTHORIZED).json()
    assert narrow["high"][0] - narrow["low"][0] < latest["high"][0] - latest["low"][0]
    web.wait_until(1210.0)  # a step in which nobody answered
    listed = web.client.get(RELEASES, headers=AUTHORIZED).json()["releases"]
    assert [(release["step"], release["version"]) for release in listed] == [(9, 1), (10, 2), (11, 2)]
    assert listed[1] == latest
    assert listed[2]["withheld"] == "0 reports; at least 20 are needed"
    assert listed[2]["value"] is None
    for query, steps in (("from=11", [11]), ("to=10", [9, 10]), ("from=12", []), ("most=1", [11]), ("most=-5", [11])):
        got = web.client.get(f"{RELEASES}?{query}", headers=AUTHORIZED).json()["releases"]
        assert [release["step"] for release in got] == steps


def test_parameters_are_checked(web: Web):
    wrong = ["from=x", "to=1.5", "from=", "most=one", "version=x", "from=" + "9" * 30]
    for query in [*wrong, "level=0", "level=1", "level=nan", "level=x"]:
        answer = web.client.get(f"{RELEASES}?{query}", headers=AUTHORIZED)
        assert refused(answer) == (400, "invalid_parameter"), query


def test_what_is_not_there_is_a_problem_document(web: Web):
    other = [f"/v1/collections/other{path}" for path in ("", "/asks", "/counts", "/events")]
    other += [RELEASES.replace("popular", "other"), RELEASES.replace("popular", "other") + "/latest"]
    for path in (*other, RELEASES.replace("themes", "other"), "/nothing", "/v1/reports/more"):
        assert refused(web.client.get(path, headers=AUTHORIZED)) == (404, "not_found"), path


def test_reading_routes_only_read(web: Web):
    answer = web.client.post("/v1/collections")
    assert refused(answer) == (405, "not_allowed")


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
    assert web.client.get("/metrics").status_code == 404
    answer = web.client.to(metrics_app(web.service)).get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")


def test_the_description_names_every_route(web: Web):
    described = web.client.get("/openapi.json").json()
    assert described == json.loads(json.dumps(openapi()))
    routes = {route.path for route in Queries(web.service, Tokens([])).routes()}
    assert set(described["paths"]) == routes | {"/v1/reports", "/v1/shuffled", "/v1/collections/{name}/spot-checks"}


def test_a_failure_is_logged_by_place_and_says_nothing_of_values(
    web: Web, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def fails(*given: object, **more: object) -> None:
        raise ValueError("the value 4711")

    monkeypatch.setattr(web.collector, "releases", fails)
    monkeypatch.setattr(web.collector, "admit", fails)
    answers = [web.client.get(RELEASES, headers=AUTHORIZED), web.post(UPLOAD_TYPE, web.frame())]
    assert [refused(answer) for answer in answers] == [(500, "internal")] * 2
    lines = [json.loads(JsonLines().format(record)) for record in caplog.records]
    asked = [(line["method"], line["path"], line["route"], line["error"]) for line in lines]
    assert asked == [("GET", RELEASES, "Queries.releases", "ValueError"), ("POST", "/v1/reports", None, "ValueError")]
    assert "http/queries.py:" in lines[0]["detail"]
    assert "http/reports.py:" in lines[1]["detail"]
    assert "4711" not in "".join([*(answer.text for answer in answers), *map(str, lines)])


def test_a_store_that_does_not_answer_is_said(web: Web, monkeypatch: pytest.MonkeyPatch):
    def fails(*given: object, **more: object) -> None:
        raise StoreFailed("at a secret address")

    monkeypatch.setattr(web.collector, "releases", fails)
    answer = web.client.get(RELEASES, headers=AUTHORIZED)
    assert refused(answer) == (503, "no_store")
    assert "secret" not in answer.text


def test_logs_hold_no_bodies_addresses_or_queries(web: Web, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, logger="hubbub.service"):
        web.client.get("/v1/collections/themes/asks?secret=1", headers={"X-Forwarded-For": "203.0.113.9"})
        web.post(UPLOAD_TYPE, web.frame(web.entry(1)))
        web.post(UPLOAD_TYPE, b"hostile")
    (fields,) = logged(caplog)
    assert set(fields) == {"method", "path", "status", "ms"}
    assert fields["path"] == "/v1/collections/themes/asks"


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


# -- the description and the routes agree, whatever is tried: no answer that is not described, and no 5xx ------

QUICK, ALL = 4, 300
ENDLESS = "/v1/collections/{name}/events"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    keeping = load_collection(THEMES.replace("epsilon = 1.0", "epsilon = 1.0\nkeep_reports = true", 1))
    watched = {"above": 0.5, "question": "popular"}, {"change": "up", "baseline": 24, "question": "old"}
    plan = AlarmPlan.from_spec({"dark": {**watched[0], "each": True}, "older": watched[1]})
    collector = start_collector(keeping, ManualClock(1000.0), alarms={"themes": plan})
    app = create_app(Service(collector), Tokens([TOKEN]))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
    listening = bind("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()


def described() -> dict[str, Any]:
    """The description; where any name could be drawn, one that exists often is."""
    document = copy.deepcopy(openapi())
    del document["paths"]["/v1/shuffled"]  # binary alone, which is not drawn: tests/shuffler tries it
    for path in document["paths"].values():
        for parameter in path.get("get", {}).get("parameters", []):
            if parameter["in"] == "path":
                exists = {"name": "themes", "answer": "popular:0:0:1:0"}.get(parameter["name"], "popular")
                parameter["schema"] = {"anyOf": [{"enum": [exists]}, {"type": "string", "minLength": 1}]}
    return document


def try_everything(address: str, examples: int) -> None:
    import schemathesis
    from hypothesis import HealthCheck, given, settings

    schema = schemathesis.openapi.from_dict(described())
    tried = 0
    for result in schema.get_all_operations():
        operation: Any = result.ok()  # type: ignore[union-attr]
        if operation.path == ENDLESS:
            continue

        @given(case=operation.as_strategy())
        @settings(
            max_examples=examples,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        def check(case: schemathesis.Case) -> None:
            answer = case.call(base_url=address, headers=AUTHORIZED, timeout=30)
            assert answer.status_code < 500
            # A token is always sent; what makes bytes a frame, or a text a candidate, cannot be said in a schema.
            unsaid = case.method == "POST" or case.path.endswith("/candidates")
            left_out = ["ignored_auth", *(["positive_data_acceptance"] if unsaid else [])]
            checks: list[Any] = [schemathesis.checks.CHECKS.get_one(name) for name in left_out]
            case.validate_response(answer, excluded_checks=checks)

        check()
        tried += 1
    assert tried == len(openapi()["paths"]) - 2


def test_what_is_drawn_from_the_description_is_answered_as_described(address: str):
    try_everything(address, QUICK)


@pytest.mark.slow
def test_much_that_is_drawn_from_the_description_is_answered_as_described(address: str):
    try_everything(address, ALL)


def test_a_model_that_no_ask_is_about_is_not_there(web: Web) -> None:
    answer = web.client.get(f"/v1/collections/themes/models/{'0' * 64}")
    assert (answer.status_code, problem(answer)) == (404, "not_found")
