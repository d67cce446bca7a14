"""Results are for holders of a token; promises are for everyone."""

from __future__ import annotations

import base64

import pytest

from hubbub.dashboard.app import dashboard
from hubbub.service.collector.collector import Collector
from hubbub.service.http.problems import Tokens
from hubbub.service.http.server import create_app
from hubbub.service.http.service import Service
from tests.dashboard.pages_outline import Outline
from tests.dashboard.pages_visit import TOKEN, ask

PRIVATE = ["/", "/results/emoji", "/results/emoji/popular", "/ingest/emoji", "/live/emoji", "/results/nothing"]
PUBLIC = ["/privacy/emoji", "/collections/emoji"]


@pytest.fixture(scope="module")
def app(collector: Collector) -> object:
    service, tokens = Service(collector), Tokens([TOKEN])
    return create_app(service, tokens, routes=dashboard(tokens)(service))


def basic(password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"anyone:{password}".encode()).decode()}


@pytest.mark.parametrize("path", PRIVATE)
@pytest.mark.parametrize(
    "headers", [{}, basic("another"), {"Authorization": "Bearer another"}], ids=["no", "bad", "bearer"]
)
def test_without_a_token_a_page_asks_for_it_and_tells_nothing(app: object, path: str, headers: dict[str, str]):
    answered = ask(app, path, headers=headers)
    assert answered.status == 401
    assert answered.headers["www-authenticate"].startswith("Basic ")
    assert "%" not in Outline(answered.text).all("main")[0].text
    assert "default-src 'self'" in answered.headers["content-security-policy"]


@pytest.mark.parametrize("path", ["/", "/results/emoji", "/results/emoji/popular", "/ingest/emoji"])
def test_with_a_token_it_opens(app: object, path: str):
    assert ask(app, path, headers=basic(TOKEN)).status == 200
    assert ask(app, path, headers={"Authorization": f"Bearer {TOKEN}"}).status == 200


@pytest.mark.parametrize("path", PUBLIC)
def test_promises_need_none(app: object, path: str):
    page = Outline(ask(app, path).text)
    assert not page.all("script")
    assert not page.all("data")


@pytest.mark.parametrize("path", [*PUBLIC, "/results/telemetry"])
def test_a_page_that_is_known_is_not_sent_again(app: object, path: str):
    first = ask(app, path, headers=basic(TOKEN))
    tag = first.headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}'):
        again = ask(app, path, headers={**basic(TOKEN), "If-None-Match": known})
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
        assert again.headers["cache-control"] == first.headers["cache-control"]
    assert ask(app, path, headers={**basic(TOKEN), "If-None-Match": '"other"'}).body == first.body
    if path not in PUBLIC:
        assert ask(app, path, headers={"If-None-Match": tag}).status == 401
