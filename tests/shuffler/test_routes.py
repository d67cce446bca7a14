"""The routes of a shuffler and of a collector, over ASGI: what is taken, what is refused, and what is said."""

from collections.abc import Iterator, Mapping

import pytest

from hubbub.client import Response
from hubbub.service.base.limits import SenderLimits
from hubbub.service.http.guard import Senders
from hubbub.service.http.problems import Tokens
from hubbub.service.http.server import create_app
from hubbub.service.http.service import Service
from hubbub.shuffler.app import ShufflerApp
from hubbub.shuffler.spot_check import send_spot_checks
from hubbub.wire.batches import SHUFFLED_TYPE, decode_shuffled, encode_shuffled
from hubbub.wire.upload import UPLOAD_TYPE, encode_upload
from tests.shared.loopback import Loopback, running
from tests.shuffler.shuffle_world import KEYS, ShuffleWorld

TOKEN = "t" * 40


class Over:
    """A transport to a running application."""

    def __init__(self, client: Loopback) -> None:
        self.client = client

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        answer = self.client.request(method, path, headers=dict(headers), content=body)
        return Response(answer.status_code, {}, answer.content)


class Web:
    """The first shuffler and the collector of a world, each with its routes."""

    def __init__(self, world: ShuffleWorld, first: Loopback, collector: Loopback) -> None:
        self.world, self.first, self.collector = world, first, collector

    def post(self, body: bytes, kind: str = UPLOAD_TYPE) -> tuple[int, dict[str, object]]:
        answer = self.first.post("/v1/reports", content=body, headers={"Content-Type": kind})
        return answer.status_code, answer.json()


@pytest.fixture
def web() -> Iterator[Web]:
    world = ShuffleWorld()
    senders = Senders(SenderLimits(rate=1.0, burst=100, secret=b"s" * 32), world.clock)
    service = Service(world.collector)
    with (
        running(ShufflerApp(world.hops[0], senders).app) as first,
        running(create_app(service, Tokens([TOKEN]))) as collector,
    ):
        over = Over(collector)  # the service's own thread alone changes the collector from here on
        world.collector_answers = lambda path, headers, body: over.request(
            "GET" if body is None else "POST", path, headers, body
        )
        yield Web(world, first, collector)


def test_an_upload_is_taken_once_and_any_page_may_send(web: Web) -> None:
    (entry,) = web.world.entries(["dark"])
    frame = encode_upload("survey", 1, [entry], web.world.size)
    assert web.post(frame) == (200, {"accepted": 1, "duplicates": 0, "rejected": []})
    assert web.post(frame) == (200, {"accepted": 0, "duplicates": 1, "rejected": []})
    preflight = web.first.request("OPTIONS", "/v1/reports", headers={"Origin": "https://page.example"})
    assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (204, "*")
    assert web.first.get("/healthz").json() == {"alive": True}
    status = web.first.get("/v1/status").json()
    assert (status["collection"], status["counts"], status["batches"]) == ("survey", {}, [])


@pytest.mark.parametrize(
    ("body", "kind", "status", "slug"),
    [
        (b"hostile", UPLOAD_TYPE, 400, "malformed"),
        (b"{}", "application/json", 400, "malformed"),
        (b"", "text/plain", 400, "malformed"),
        (bytes(5000), UPLOAD_TYPE, 413, "too_large"),
        (encode_upload("others", 1, [], 1024), UPLOAD_TYPE, 404, "unknown_collection"),
        (encode_upload("survey", 2, [], 1024), UPLOAD_TYPE, 404, "unknown_collection"),
        (encode_upload("survey", 1, [], 2048), UPLOAD_TYPE, 400, "malformed"),
    ],
)
def test_bad_uploads_get_a_problem_document(web: Web, body: bytes, kind: str, status: int, slug: str) -> None:
    code, told = web.post(body, kind)
    assert (code, told["type"]) == (status, f"urn:hubbub:problem:{slug}")


def test_a_flood_of_one_sender_is_held_off(web: Web) -> None:
    cover = encode_upload("survey", 1, [], web.world.size)
    codes = {web.post(cover)[0] for _ in range(160)}
    assert codes == {200, 429}


def test_bad_batches_are_refused_by_both(web: Web) -> None:
    world = web.world
    world.send(world.entries(["dark"] * 30))
    for client in (web.first, web.collector):
        headers = {"Content-Type": SHUFFLED_TYPE}
        assert client.post("/v1/shuffled", content=b"hostile", headers=headers).status_code == 400
        assert client.post("/v1/shuffled", content=b"hostile").status_code == 415
    world.close()
    body = world.handed()
    again = web.collector.post("/v1/shuffled", content=body, headers={"Content-Type": SHUFFLED_TYPE})
    assert (again.status_code, again.json()["accepted"]) == (200, 40)
    other = decode_shuffled(body)
    cut = encode_shuffled(type(other)(other.collection, 1, other.answer, other.statements, other.onions[1:]))
    refused = web.collector.post("/v1/shuffled", content=cut, headers={"Content-Type": SHUFFLED_TYPE})
    assert (refused.status_code, refused.json()["type"]) == (400, "urn:hubbub:problem:malformed")


def test_spot_checks_are_made_with_a_token_and_sent_like_any_report(web: Web) -> None:
    root = "/v1/collections/survey/spot-checks"
    assert web.collector.post(root, content=b"{}").status_code == 401
    allowed = {"Authorization": f"Bearer {TOKEN}"}
    assert web.collector.post(root, content=b"{}", headers=allowed).status_code == 400
    late = b'{"answer": "popular:0:1:1:0", "count": 3}'
    assert web.collector.post(root, content=late, headers=allowed).status_code == 400
    sent = send_spot_checks(Over(web.collector), "survey", TOKEN, KEYS.public, 4, connect=lambda url: Over(web.first))
    assert sent == {str(web.world.answer_name): 4}
    web.world.step(["dark"] * 30)
    told = web.collector.get("/v1/collections/survey/shuffled", headers=allowed).json()
    batch = told["questions"]["popular"]["batches"][0]
    assert (batch["checks"], batch["lost_checks"], batch["people"]) == (4, 0, 30)
