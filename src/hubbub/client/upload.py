"""Sealing reports and sending answers: in frames of one size, at random times, the same until acknowledged."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from hubbub.client.store import Answer, DeviceStore
from hubbub.client.transport import Backoff, Delay, HttpTransport, Response, Transport, Unreachable, uniform
from hubbub.collection import Collection
from hubbub.collection.names import AnswerName
from hubbub.collection.shuffle_route import batch_name, layer_name
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.protocols.ask import Ask
from hubbub.random.source import Random
from hubbub.shuffle.onion import wrap
from hubbub.wire.upload import JSON_TYPE, UPLOAD_TYPE, Entry, encode_upload, encode_upload_json


class OnionReports:
    """Encrypts each report for the collector, and then in one layer for each shuffler, the last shuffler first.

    Every layer is bound to the name of the answer (collection, version, question, run, step, round, part), to the ask,
    and to the position of the party that opens it. It cannot be opened as part of anything else.

    Parameters
    ----------
    collection
        The collection in force, which says who shuffles.
    """

    def __init__(self, collection: Collection) -> None:
        if collection.shuffle is None:
            raise InvalidValue("trust", collection.trust, '"shuffle"')
        self._collection, self._route = collection, collection.shuffle.route

    def seal(self, name: AnswerName, ask: Ask, report: bytes) -> bytes:
        """The report in its layers. The report's id is outside of them: only the first shuffler learns it."""
        batch = batch_name(self._collection.name, self._collection.version, name)
        return wrap(report, self._route, layer_name(batch, ask))


class ReportSealer(Protocol):
    """Seals each report once, before it is queued, so that a retry sends the same bytes."""

    def seal(self, name: AnswerName, ask: Ask, report: bytes) -> bytes:
        """The bytes to send: never empty, and of the same length for reports of the same length."""
        ...


class PlainReports:
    """Sends reports unchanged: the collector reads them directly."""

    def seal(self, name: AnswerName, ask: Ask, report: bytes) -> bytes:
        """The report."""
        return report


def sealer_for(collection: Collection) -> ReportSealer:
    """The sealer of a collection's reports: plain, or in layers where reports are shuffled."""
    if collection.shuffle is None:
        return PlainReports()

    return OnionReports(collection)


_AGAIN = frozenset({"too_early", "over_quota"})
"""Rejections after which the same report may be accepted later."""


class Uploader:
    """Uploads the answers that wait.

    Parameters
    ----------
    store, transport
        The device's file, and the way to the server. Reports that are shuffled go to the first shuffler instead.
    rng
        Where delays come from.
    per_frame
        How many reports a frame holds at most; every frame has the same size.
    jitter
        Over which part of a step uploads are spread; 0 sends at once.
    form
        "msgpack" or "json".
    connect
        Makes the transport to a shuffler from its address.
    """

    def __init__(
        self,
        store: DeviceStore,
        transport: Transport,
        rng: Random,
        *,
        per_frame: int,
        jitter: float,
        form: str,
        connect: Callable[[str], Transport] = HttpTransport,
    ) -> None:
        check_integer("per_frame", per_frame, 1)
        if not 0 <= jitter <= 1:
            raise InvalidValue("jitter", jitter, "a number from 0 to 1")
        if form not in ("msgpack", "json"):
            raise InvalidValue("form", form, "msgpack or json")
        self._store, self._transport, self._rng = store, transport, rng
        self._per_frame, self._jitter, self._form = per_frame, jitter, form
        self._connect = connect
        self._backoff = Backoff(rng)
        self._delays: dict[bytes, Delay] = {}

    def upload(self, collection: Collection, waiting: Sequence[Answer], now: float) -> int:
        """Send the waiting answers that are due, cover too, and return how many reports were acknowledged."""
        late = [answer for answer in waiting if now >= answer.closes + collection.accepts_for]
        for answer in late:
            self._finish(answer, "late" if answer.report else "late cover")
        due = [answer for answer in waiting if answer not in late and self._due(collection, answer, now)]
        self._delays = {answer.id: self._delays[answer.id] for answer in waiting if answer.id in self._delays}
        acknowledged = 0
        for start in range(0, len(due), self._per_frame):
            if not self._backoff.ready(now):
                break
            acknowledged += self._send(collection, due[start : start + self._per_frame], now)
        return acknowledged

    def _send(self, collection: Collection, answers: Sequence[Answer], now: float) -> int:
        reports = [answer for answer in answers if answer.report]
        entries = [Entry(*AnswerName.read(answer.name), answer.id, answer.report or b"") for answer in reports]
        encode, kind = (encode_upload_json, JSON_TYPE) if self._form == "json" else (encode_upload, UPLOAD_TYPE)
        frame = encode(collection.name, collection.version, entries, collection.frame_bytes)
        try:
            response = self._transport_to(collection).request("POST", "/v1/reports", {"Content-Type": kind}, frame)
            reasons = _reasons(response)
        except Unreachable as error:
            self._backoff.failed(now, getattr(error, "at_least", 0.0))
            return 0
        self._backoff.succeeded()
        acknowledged = 0
        for answer in answers:
            reason = reasons.get(answer.id.hex())
            if reason in _AGAIN:
                self._backoff.failed(now)
                continue
            outcome = "sent" if answer.report else "cover"
            self._finish(answer, outcome if reason is None else f"rejected: {reason}")
            acknowledged += reason is None and outcome == "sent"
        return acknowledged

    def _transport_to(self, collection: Collection) -> Transport:
        """The way to the collector, or to the first shuffler."""
        route = collection.shuffle
        return self._transport if route is None else self._connect(route.shufflers[0].url)

    def _finish(self, answer: Answer, outcome: str) -> None:
        with self._store.transaction():
            self._store.settle_enrolment(answer.id, acknowledged=outcome == "sent")
            if self._store.outbox.finish(answer.id):  # of two processes that sent it, one counts it
                self._store.outbox.count(outcome)

    def _due(self, collection: Collection, answer: Answer, now: float) -> bool:
        if answer.id not in self._delays:
            room = answer.closes + collection.accepts_for / 2 - now
            most = max(0.0, min(self._jitter * collection.step_seconds, room))
            self._delays[answer.id] = Delay(now, uniform(self._rng) * most)
        return self._delays[answer.id].over(now)


def _reasons(response: Response) -> dict[str, str]:
    """Why reports were rejected, by id. A response that is no acknowledgement raises `Unreachable`."""
    if response.status != 200:
        failure = Unreachable(f"POST /v1/reports: status {response.status}")
        retry_after = response.headers.get("retry-after", "")
        failure.at_least = float(retry_after) if retry_after.isdigit() else 0.0  # type: ignore[attr-defined]
        raise failure
    try:
        answer: Any = json.loads(response.body)
        return {str(rejected["id"]): str(rejected["reason"])[:64] for rejected in answer["rejected"]}
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise Unreachable(f"POST /v1/reports: {error!r}") from error
