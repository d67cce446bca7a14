"""The description and the routes agree, whatever is tried: no answer that is not described, and no 5xx."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from hubbub.alarms.plan import AlarmPlan
from hubbub.authoring import load_collection
from hubbub.collection import ManualClock
from hubbub.service.collector.collector import Collector
from hubbub.service.http.openapi import openapi
from hubbub.service.http.problems import Tokens
from hubbub.service.http.server import bind, create_app
from hubbub.service.http.service import Service
from hubbub.service.store.sqlite import SqliteStore
from tests.service.web import AUTHORIZED, KEYS, THEMES, TOKEN

QUICK, ALL = 4, 300
ENDLESS = "/v1/collections/{name}/events"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    keeping = load_collection(THEMES.replace("epsilon = 1.0", "epsilon = 1.0\nkeep_reports = true", 1))
    watched = {"above": 0.5, "question": "popular"}, {"change": "up", "baseline": 24, "question": "old"}
    plan = AlarmPlan.from_spec({"dark": {**watched[0], "each": True}, "older": watched[1]})
    collector = Collector(
        [keeping], SqliteStore(":memory:"), clock=ManualClock(1000.0), keys=KEYS, alarms={"themes": plan}
    )
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
        operation = result.ok()
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
            checks = [schemathesis.checks.CHECKS.get_one(name) for name in left_out]
            case.validate_response(answer, excluded_checks=checks)

        check()
        tried += 1
    assert tried == len(openapi()["paths"]) - 2


def test_what_is_drawn_from_the_description_is_answered_as_described(address: str):
    try_everything(address, QUICK)


@pytest.mark.slow
def test_much_that_is_drawn_from_the_description_is_answered_as_described(address: str):
    try_everything(address, ALL)
