"""Webhooks: what is signed, sent, tried again and remembered, with a real receiver and a real collector."""

import base64
import hmac
import json
import logging
import re
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hubbub.core.errors import InvalidValue
from hubbub.service.alarms import AlarmEvent
from hubbub.service.base.api import WebhookBody
from hubbub.service.collector.collector import Collector, example_collector
from hubbub.service.http.metrics import metrics_text
from hubbub.service.http.service import Service
from hubbub.service.store.base import AlarmEventRow, StoreChanges
from hubbub.service.webhooks import sender as sender_module
from hubbub.service.webhooks.config import Webhook, load_webhooks
from hubbub.service.webhooks.sender import NotDelivered, WebhookSender, deliver
from tests.receiver import Receiver
from tests.served import THEMES, ServedCollector, wait_for
from tests.service.web import logged
from tests.shared.certificates import write_certificate

SECRET = b"a secret of thirty-two bytes: 32"
WRITTEN = "whsec_" + base64.b64encode(SECRET).decode()


def event(number: int) -> AlarmEvent:
    place = {"collection": "themes", "alarm": "dark", "category": "", "question": "popular", "title": "dark themes"}
    when = {"step": 40 + number, "at": 144000.0 + number, "since": 38}
    numbers = {"value": 0.6, "low": 0.5, "high": 0.7, "threshold": 0.5, "baseline": None}
    state = {"state": "raised" if number % 2 else "cleared", "direction": "above"}
    return msgspec.convert({"number": number, **place, **state, **when, **numbers}, AlarmEvent)


def happen(collector: Collector, *numbers: int) -> None:
    """Events, committed and told as the collector does."""
    rows = [AlarmEventRow("themes", number, json.dumps(event(number).to_json())) for number in numbers]
    collector._commit(StoreChanges(alarm_events=rows))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    new_receiver = Receiver()
    yield new_receiver
    new_receiver.close()


@pytest.fixture
def begin(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., WebhookSender]]:
    monkeypatch.setattr(sender_module, "FIRST_WAIT", 0.02)
    started: list[WebhookSender] = []

    def begin(collector: Collector, **more: Any) -> WebhookSender:
        sender = WebhookSender(Webhook("pager", receiver.url, (SECRET,), **more), collector)
        sender.start()
        started.append(sender)
        return sender

    yield begin
    for sender in started:
        sender.stop()


Begin = Callable[..., WebhookSender]


def test_each_event_is_delivered_once_and_in_order(receiver: Receiver, begin: Begin):
    collector = example_collector()
    sender = begin(collector)
    happen(collector, 1)
    happen(collector, 2, 3)
    wait_for(lambda: len(receiver.taken) == 3)
    assert [delivery.id for delivery in receiver.taken] == ["themes:1:41", "themes:2:42", "themes:3:43"]
    payload = json.loads(receiver.taken[1].body)
    assert (payload["type"], payload["id"]) == ("alarm.cleared", "themes:2:42")
    assert payload["data"] == event(2).to_json()
    assert receiver.taken[0].path == "/alarms?from=tests"
    wait_for(lambda: sender.status("themes") == WebhookBody("pager", 3, 0, None))
    collector.tick()
    assert collector.store.delivered() == {("pager", "themes"): 3}


def test_the_signature_is_of_the_exact_bytes(receiver: Receiver, begin: Begin):
    collector = example_collector()
    begin(collector)
    happen(collector, 1)
    (delivery,) = wait_for(lambda: receiver.taken)
    stamp = delivery.headers["webhook-timestamp"]
    assert abs(time.time() - int(stamp)) < 600
    signed = f"{delivery.id}.{stamp}.".encode() + delivery.body
    right = base64.b64encode(hmac.new(SECRET, signed, "sha256").digest()).decode()
    assert delivery.headers["webhook-signature"] == f"v1,{right}"


def test_the_snippet_of_the_documentation_verifies_it(receiver: Receiver):
    text = (Path(__file__).parents[2] / "docs" / "alarms.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", text, re.S)
    names: dict[str, Any] = {}
    exec(snippet, names)
    verify = names["is_from_hubbub"]
    deliver(Webhook("pager", receiver.url, (b"j" * 32, SECRET)), event(1), time.time())
    deliver(Webhook("pager", receiver.url, (SECRET,)), event(1), time.time() - 1000)
    (_, headers, body), (_, old, _) = receiver.taken
    assert verify(headers, body, WRITTEN)
    assert not verify(headers, body + b" ", WRITTEN)
    assert not verify({**headers, "webhook-id": "themes:2:42"}, body, WRITTEN)
    assert not verify({**headers, "webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)}, body, WRITTEN)
    assert not verify(headers, body, "whsec_" + base64.b64encode(b"k" * 32).decode())
    assert not verify(old, body, WRITTEN)  # right, and too old


def test_with_two_secrets_there_are_two_signatures(receiver: Receiver):
    deliver(Webhook("pager", receiver.url, (SECRET, b"j" * 32)), event(1), 1e9)
    first, second = receiver.taken[0].headers["webhook-signature"].split()
    deliver(Webhook("pager", receiver.url, (SECRET,)), event(1), 1e9)
    assert receiver.taken[1].headers["webhook-signature"] == first != second


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (500, "it answers 500"),
        (404, "it answers 404"),
        (302, "it answers 302: redirects are not followed"),
        ("hang", "no answer within 1 s"),
        ("drip", "no answer within 1 s"),
    ],
)
def test_what_is_not_taken_is_tried_again(
    receiver: Receiver, begin: Begin, caplog: pytest.LogCaptureFixture, answers: int | str, words: str
):
    caplog.set_level(logging.WARNING, "hubbub.service")
    logging.getLogger("hubbub.service").propagate = True
    receiver.answers = answers
    collector = example_collector()
    service = Service(collector)
    sender = begin(collector, timeout=1)
    service.webhooks = [sender]
    happen(collector, 1, 2)
    wait_for(lambda: sender.counts["failed"] >= 2)
    assert sender.status("themes") == WebhookBody("pager", 0, 2, words)
    assert logged(caplog, "webhook failed")[0]["reason"] == words
    assert receiver.url not in caplog.text
    metrics = metrics_text(service)
    for name, value in (("failing", 1.0), ("waiting", 2.0)):
        assert re.search(rf"^hubbub_webhook_{name}{{.*}} {value}$", metrics, re.MULTILINE), metrics
    receiver.answers = 200
    receiver.release.set()
    wait_for(lambda: sender.counts["delivered"] == 2)
    ids = [delivery.id for delivery in receiver.deliveries]
    assert ids == sorted(ids)  # the second is not tried before the first is taken
    assert sender.failing is None


def test_nobody_there_is_a_failure_like_others(receiver: Receiver):
    receiver.close()
    with pytest.raises(NotDelivered, match="Connection refused"):
        deliver(Webhook("pager", receiver.url, (SECRET,)), event(1), 0.0)


def test_a_receiver_whose_certificate_nobody_signed_is_sent_nothing(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(receiver.server, "handle_error", lambda *_: None)  # it would print that the client left
    write_certificate(tmp_path, "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "127.0.0.1.pem", tmp_path / "127.0.0.1.key")
    listening = receiver.server.socket
    receiver.server.socket = context.wrap_socket(listening, server_side=True, do_handshake_on_connect=False)
    with pytest.raises(NotDelivered):
        deliver(Webhook("pager", receiver.url.replace("http:", "https:"), (SECRET,)), event(1), 0.0)
    assert receiver.deliveries == []


def test_it_goes_on_where_it_was(receiver: Receiver, begin: Begin):
    receiver.answers = 503
    collector = example_collector()
    happen(collector, 1)  # before there was a webhook
    first = begin(collector)
    happen(collector, 2, 3)
    wait_for(lambda: first.counts["failed"])
    first.stop()
    collector.tick()  # the collector's last commit
    receiver.answers = 200
    begin(collector)
    wait_for(lambda: len(receiver.taken) == 2)
    collector.tick()
    begin(collector).stop()
    assert [delivery.id for delivery in receiver.taken] == ["themes:2:42", "themes:3:43"]


def test_too_many_that_wait_are_left_out_the_oldest_first(
    receiver: Receiver, begin: Begin, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sender_module, "MOST_WAITING", 3)
    collector = example_collector()
    sender = WebhookSender(Webhook("pager", receiver.url, (SECRET,)), collector)
    happen(collector, *range(1, 11))
    sender.start()
    wait_for(lambda: len(receiver.taken) == 3)
    sender.stop()
    assert [delivery.id for delivery in receiver.taken] == ["themes:8:48", "themes:9:49", "themes:10:50"]
    assert sender.counts == {"left_out": 7, "delivered": 3}


def test_an_event_that_is_never_taken_lets_others_by(receiver: Receiver, begin: Begin, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sender_module, "GIVE_UP", 0.0)
    receiver.answers = 400
    collector = example_collector()
    sender = begin(collector)
    happen(collector, 1)
    wait_for(lambda: sender.counts["left_out"] == 1)
    receiver.answers = 200
    happen(collector, 2)
    wait_for(lambda: [delivery.id for delivery in receiver.taken] == ["themes:2:42"])


def test_waits_double_with_jitter_up_to_a_cap():
    sender = WebhookSender(Webhook("pager", "http://127.0.0.1:9", (SECRET,)), example_collector())
    for failures, most in ((1, 1.0), (2, 2.0), (5, 16.0), (40, 600.0), (10**6, 600.0)):
        waits = {sender._backoff(failures) for _ in range(50)}
        assert all(most / 2 <= wait <= most for wait in waits)
        assert len(waits) > 1


# -- what is configured ----------------------------------------------------------------------------------------


def written(folder: Path, text: str) -> Path:
    (folder / "pager.secret").write_text(WRITTEN + "\n")
    (folder / "webhooks.toml").write_text(text)
    return folder / "webhooks.toml"


def test_a_file_of_webhooks(tmp_path: Path):
    text = """
[webhooks.pager]
url = "https://pager.example.org/x?key=1"
secret_file = "pager.secret"
timeout = "3s"
collections = ["themes"]

[webhooks.chat]
url = "http://127.0.0.1:8080"
secret_env = "CHAT"
"""
    pager, chat = load_webhooks(written(tmp_path, text), {"CHAT": WRITTEN})
    assert (pager.name, pager.secrets, pager.timeout, pager.collections) == ("pager", (SECRET,), 3, ("themes",))
    assert (chat.url, chat.secrets, chat.timeout) == ("http://127.0.0.1:8080", (SECRET,), 10)
    assert "example.org" not in repr(pager)
    assert WRITTEN not in repr(pager)


URL = 'url = "https://pager.example.org"\n'
FILE = 'secret_file = "pager.secret"\n'


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (FILE, "webhooks.pager.url: got nothing"),
        (URL, "one of secret_file and secret_env"),
        (URL + FILE + 'secret_env = "CHAT"\n', "one of secret_file and secret_env"),
        (URL + 'secret_env = "ABSENT"\n', "webhooks.pager.secret_env: got 'ABSENT'"),
        (URL + 'secret_env = "SHORT"\n', "the base64 of 24 to 64 random bytes"),
        (URL + 'secret_env = "THREE"\n', "3 secrets"),
        (URL + 'secret_file = "absent"\n', "No such file"),
        (URL + FILE + 'timeout = "2m"\n', "webhooks.pager.timeout: got 120"),
        (URL + FILE + 'timeuot = "2s"\n', "did you mean timeout?"),
        ('url = "ftp://pager.example.org"\n' + FILE, "webhooks.pager.url: got 'ftp://...'"),
        ('url = "pager.example.org/token"\n' + FILE, "webhooks.pager.url: got 'an address that is not shown'"),
        ('url = "https://me:secret@pager.example.org"\n' + FILE, "webhooks.pager.url: got 'https://...'"),
        ('url = "https://pager.example.org/\\u00e9"\n' + FILE, "webhooks.pager.url"),
        ('url = "http://pager.example.org:99999"\n' + FILE, "webhooks.pager.url"),
        ('url = "http:///x"\n' + FILE, "webhooks.pager.url"),
    ],
)
def test_what_is_refused(tmp_path: Path, lines: str, words: str):
    path = written(tmp_path, "[webhooks.pager]\n" + lines)
    with pytest.raises(InvalidValue) as refused:
        load_webhooks(path, {"SHORT": "whsec_c2hvcnQ=", "CHAT": WRITTEN, "THREE": " ".join([WRITTEN] * 3)})
    assert words in str(refused.value)
    assert "secret@" not in str(refused.value)


def test_a_collection_that_is_not_served_is_refused():
    with pytest.raises(InvalidValue, match=r"webhooks\.pager\.collections: got 'other'"):
        WebhookSender(Webhook("pager", "http://127.0.0.1:9", (SECRET,), collections=("other",)), example_collector())


# -- a collector in a process of its own ---------------------------------------------------------------------------


def test_through_death_and_a_slow_receiver(tmp_path: Path, receiver: Receiver):
    written(tmp_path, f'[webhooks.pager]\nurl = "{receiver.url}"\nsecret_file = "pager.secret"\ntimeout = "30s"\n')
    receiver.answers = 500
    served = ServedCollector(tmp_path, THEMES, "--webhooks", "webhooks.toml")
    try:
        served.answer("themes", "popular", [1] * 200)  # all dark: the alarm is raised
        first = wait_for(lambda: receiver.deliveries)[0]
        assert [status["waiting"] for status in served.read("/v1/collections/themes/alarms")["webhooks"]] == [1]
        assert wait_for(lambda: [line for line in served.log if "webhook failed" in line])
        served.kill()
        assert receiver.taken == []
        # Another one on the same store finds the event that nobody has taken; its receiver takes its time.
        receiver.answers = "hang"
        tried = len(receiver.deliveries)
        served = ServedCollector(tmp_path, THEMES, "--webhooks", "webhooks.toml")
        wait_for(lambda: len(receiver.deliveries) > tried)
        served.answer("themes", "popular", [1] * 200)  # answered while the receiver does not answer
        assert receiver.taken == []
        receiver.answers = 200
        receiver.release.set()
        wait_for(lambda: receiver.taken)
        assert {delivery.id for delivery in receiver.deliveries} == {first.id}
        assert json.loads(receiver.taken[0].body)["data"]["state"] == "raised"
        # An orderly end: what was taken is not delivered again.
        assert served.stop() == 0
        served = ServedCollector(tmp_path, THEMES, "--webhooks", "webhooks.toml")
        status = wait_for(lambda: served.read("/v1/collections/themes/alarms")["webhooks"])
        assert status == [{"webhook": "pager", "taken": 1, "waiting": 0, "failing": None}]
        assert len(receiver.taken) == 1
        text = served.get("/metrics", port=served.metrics)[1].decode()
        assert 'hubbub_alarm_raised{alarm="dark",category="",collection="themes",question="popular"} 1.0' in text
    finally:
        served.close()
