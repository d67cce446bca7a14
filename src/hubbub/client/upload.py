"""How a client reaches its server, and how it sends answers: in frames of one size, at random times, the same until
acknowledged.
"""

import http.client
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

from hubbub.client.store import Answer, DeviceStore
from hubbub.collection import SignedCollection
from hubbub.collection.names import AnswerName
from hubbub.collection.shuffle_route import ObliviousRoute, ShuffleRoute, batch_name, layer_name
from hubbub.core.bounded_http import HttpPeer, Response
from hubbub.core.errors import HubbubError, InvalidValue, check_integer
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask
from hubbub.random.source import Random
from hubbub.wire.upload import JSON_TYPE, UPLOAD_TYPE, Entry, encode_upload, encode_upload_json


def uniform(rng: Random) -> float:
    """A random number from 0 to below 1, for delays: privacy does not depend on it."""
    return float(rng.uint32(1)[0]) / (1 << 32)


class Delay:
    """A wait of some seconds from now. It is over at once if the clock is set back before its beginning."""

    def __init__(self, now: float, seconds: float) -> None:
        self.since, self.until = now, now + seconds

    def over(self, now: float) -> bool:
        """Whether the wait is over."""
        return not self.since <= now < self.until


class Backoff:
    """Exponential backoff with full jitter: after k failures in a row, anything up to base 2^k seconds, at most `cap`.

    `base`, `cap`: seconds.
    """

    def __init__(self, rng: Random, *, base: float = 1.0, cap: float = 3600.0) -> None:
        self._rng, self._base, self._cap = rng, base, cap
        self._failures = 0
        self._delay: Delay | None = None

    def ready(self, now: float) -> bool:
        """Whether it is time to try."""
        return self._delay is None or self._delay.over(now)

    def failed(self, now: float, at_least: float = 0.0) -> None:
        """Wait after a failure, for at least as long as the server asked for."""
        self._failures += 1
        most = min(self._cap, self._base * 2.0 ** min(self._failures, 30))
        self._delay = Delay(now, max(uniform(self._rng) * most, min(at_least, self._cap)))

    def succeeded(self) -> None:
        """Reset after a success: the next failure counts as the first."""
        self._failures, self._delay = 0, None


MOST_BYTES = 8 << 20
"""The longest response that is read: a collection with a very long list of names takes a tenth of it."""
DEADLINE = 30.0
"""Seconds for a whole request, however the server answers: a very long collection on a slow line takes half of it."""


class Unreachable(HubbubError):
    """The server gave no response, or none that can be used: try again later."""


class Transport(Protocol):
    """Anything that carries a request to a server."""

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        """The server's response; `Unreachable` where there is none."""
        ...


class HttpTransport:
    """HTTP or HTTPS, with nothing but the standard library. Redirects are not followed.

    `url`: where the server is, such as "https://stats.example.org". `timeout`: seconds for a whole request: connecting,
    sending, and reading the response to its last byte.

    Example:
        >>> HttpTransport("ftp://stats.example.org")
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: url: got 'ftp://stats.example.org'; allowed: an http or https address
    """

    def __init__(self, url: str, *, timeout: float = DEADLINE) -> None:
        try:
            parts = urlsplit(url)
            valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except (ValueError, AttributeError):
            valid = False
        if not valid:
            raise InvalidValue("url", url, "an http or https address")
        self._peer = HttpPeer(parts, seconds=timeout, most_bytes=MOST_BYTES)
        self._root = parts.path.rstrip("/")

    def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        at_most: float = math.inf,
    ) -> Response:
        """Send a request and read its response; one that is too slow or too long raises `Unreachable`.

        With `at_most`, it takes no more seconds than that.
        """
        try:
            return self._peer.request(method, self._root + path, headers, body, at_most=at_most)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreachable(f"{method} {path}: {type(error).__name__}: {error}") from error


class OnionReports:
    """Encrypts each report for the collector, and then in one layer for each shuffler, the last shuffler first.

    Every layer is bound to the name of the answer (collection, version, question, run, step, round, part), to the ask,
    and to the position of the party that opens it. It cannot be opened as part of anything else.

    `collection`: the collection in force, which says who shuffles.
    """

    def __init__(self, collection: SignedCollection) -> None:
        if not isinstance(collection.shuffle, ShuffleRoute):
            raise InvalidValue("trust", collection.trust, '"shuffle"')
        self._collection, self._route = collection, collection.shuffle.route

    def seal(self, name: AnswerName, ask: Ask, report: bytes) -> bytes:
        """The report in its layers. The report's id is outside of them: only the first shuffler learns it."""
        from hubbub.shuffle.onion import wrap  # for devices with shufflers alone

        batch = batch_name(self._collection.name, self._collection.version, name)
        return wrap(report, self._route, layer_name(batch, ask))


class SharedReports:
    """Divides each report into shares, and seals each to its shuffler: see `hubbub.shuffle.device_shares`.

    Every share is bound to the name of the answer, to the ask, and to the shuffler's position.

    `collection`: the collection in force, which says who shuffles.
    """

    def __init__(self, collection: SignedCollection, rng: Random) -> None:
        if not isinstance(collection.shuffle, ObliviousRoute):
            raise InvalidValue("trust", collection.trust, '"oblivious"')
        self._collection, self._route, self._rng = collection, collection.shuffle, rng

    def seal(self, name: AnswerName, ask: Ask, report: bytes) -> bytes:
        """The sealed shares, in the order of the shufflers."""
        from hubbub.shuffle.device_shares import sealed_shares
        from hubbub.shuffle.report_numbers import to_numbers

        assert isinstance(ask.mechanism, Mechanism)  # as `admit` has checked
        number = to_numbers(ask.mechanism, ask.mechanism.read_bare(report), self._rng)
        keys = [bytes.fromhex(shuffler.encryption_key) for shuffler in self._route.shufflers]
        batch = layer_name(batch_name(self._collection.name, self._collection.version, name), ask)
        return sealed_shares(number, self._route.homomorphic_key, keys, batch, self._rng)


class ReportSealer(Protocol):
    """Seals each report once, before it is queued, so that a retry sends the same bytes."""

    def seal(self, name: AnswerName, ask: Ask, report: bytes) -> bytes:
        """The bytes to send: never empty, and of the same length for reports of the same length."""
        ...


class PlainReports:
    """Sends reports unchanged: the collector reads them directly."""

    def seal(self, name: AnswerName, ask: Ask, report: bytes) -> bytes:
        return report


def sealer_for(collection: SignedCollection, rng: Random) -> ReportSealer:
    """The sealer of a collection's reports: plain, in layers, or in shares, as its trust says."""
    if collection.shuffle is None:
        return PlainReports()
    if isinstance(collection.shuffle, ObliviousRoute):
        return SharedReports(collection, rng)
    return OnionReports(collection)


_AGAIN = frozenset({"too_early", "over_quota"})
"""Rejections after which the same report may be accepted later."""


class Uploader:
    """Uploads the answers that wait.

    Parameters
    ----------
    store, transport
        The device's file, and the way to the server. Reports that are shuffled go to shufflers instead.
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
        self._responses: dict[bytes, dict[int, str | None]] = {}

    def upload(self, collection: SignedCollection, waiting: Sequence[Answer], now: float) -> int:
        """Send the waiting answers that are due, cover too, and return how many reports were acknowledged."""
        late = [answer for answer in waiting if now >= answer.closes + collection.accepts_for]
        unenrolled = self._awaiting_enrolment(collection)
        for answer in late:
            self._finish(collection, answer, "late" if answer.report else "late cover")
        ready = [answer for answer in waiting if answer not in late and answer not in unenrolled]
        due = [answer for answer in ready if self._due(collection, answer, now)]
        ids = {answer.id for answer in waiting}
        self._delays = {id: delay for id, delay in self._delays.items() if id in ids}
        self._responses = {id: responses for id, responses in self._responses.items() if id in ids}
        acknowledged = 0
        for start in range(0, len(due), self._per_frame):
            if not self._backoff.ready(now):
                break
            acknowledged += self._send(collection, due[start : start + self._per_frame], now)
        return acknowledged

    def _send(self, collection: SignedCollection, answers: Sequence[Answer], now: float) -> int:
        """Send answers to each receiver that has not responded to them; returns how many all receivers accepted."""
        receivers = self._receivers(collection)
        failure: Unreachable | None = None
        for place, transport in enumerate(receivers):
            waiting = [answer for answer in answers if place not in self._responses.get(answer.id, {})]
            try:
                reasons = self._post(collection, waiting, transport, place, len(receivers)) if waiting else {}
            except Unreachable as error:
                failure = error
                continue
            for answer in waiting:
                reason = reasons.get(answer.id.hex())
                if reason in _AGAIN:
                    failure = failure or Unreachable(reason)
                else:
                    self._responses.setdefault(answer.id, {})[place] = reason
        if failure is None:
            self._backoff.succeeded()
        else:
            self._backoff.failed(now, getattr(failure, "at_least", 0.0))
        complete = [answer for answer in answers if len(self._responses.get(answer.id, {})) == len(receivers)]
        return sum(self._completed(collection, answer) for answer in complete)

    def _post(
        self, collection: SignedCollection, answers: Sequence[Answer], transport: Transport, place: int, receivers: int
    ) -> dict[str, str]:
        """Send one receiver its piece of each answer; returns the reasons of rejections, by id."""
        entries = [
            Entry(*AnswerName.read(answer.name), answer.id, _piece(answer.report, place, receivers))
            for answer in answers
            if answer.report
        ]
        encode, kind = (encode_upload_json, JSON_TYPE) if self._form == "json" else (encode_upload, UPLOAD_TYPE)
        frame = encode(collection.name, collection.version, entries, collection.frame_bytes)
        return _reasons(transport.request("POST", "/v1/reports", {"Content-Type": kind}, frame))

    def _completed(self, collection: SignedCollection, answer: Answer) -> bool:
        """Finish an answer to which every receiver has responded; returns whether its report was accepted by all."""
        reason = next((reason for reason in self._responses.pop(answer.id).values() if reason is not None), None)
        outcome = "sent" if answer.report else "cover"
        self._finish(collection, answer, outcome if reason is None else f"rejected: {reason}")
        return reason is None and outcome == "sent"

    def _receivers(self, collection: SignedCollection) -> list[Transport]:
        """The way to the collector, or to each of the shufflers that devices send to."""
        route = collection.shuffle
        return [self._transport] if route is None else [self._connect(shuffler.url) for shuffler in route.receivers]

    def _awaiting_enrolment(self, collection: SignedCollection) -> list[Answer]:
        """Answers that wait for the one that enrols the device.

        Where reports are shuffled, those who were in every batch are counted from enrolments: a report of a device that
        is not enrolled would stand in for one of a device that missed the batch.
        """
        if collection.shuffle is None:
            return []
        with self._store.transaction():
            return [each for first in self._store.enrolling() for each in self._store.outbox.followers(first)]

    def _finish(self, collection: SignedCollection, answer: Answer, outcome: str) -> None:
        with self._store.transaction():
            in_vain = outcome != "sent" and answer.id in self._store.enrolling()
            if in_vain and collection.shuffle is not None:
                self._store.outbox.drop_followers(answer.id)
            self._store.settle_enrolment(answer.id, acknowledged=outcome == "sent")
            if self._store.outbox.finish(answer.id):  # of two processes that sent it, one counts it
                self._store.outbox.count(outcome)

    def _due(self, collection: SignedCollection, answer: Answer, now: float) -> bool:
        if answer.id not in self._delays:
            room = answer.closes + collection.accepts_for / 2 - now
            most = max(0.0, min(self._jitter * collection.step_seconds, room))
            self._delays[answer.id] = Delay(now, uniform(self._rng) * most)
        return self._delays[answer.id].over(now)


def _piece(report: bytes, place: int, receivers: int) -> bytes:
    """What one of the receivers gets of a sealed report."""
    size = len(report) // receivers
    return report[place * size : (place + 1) * size]


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
