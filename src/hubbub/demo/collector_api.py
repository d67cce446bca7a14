"""A collector's public API, as whoever watches it needs it: answers, and events as they come."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from hubbub.client.transport import DEADLINE, MOST_BYTES, HttpTransport, Unreachable
from hubbub.core.bounded_http import Wire
from hubbub.core.errors import HubbubError, InvalidValue

SILENCE = 40.0
"""Seconds without a whole line after which the collector is taken for away: it says "still here" every 15."""


class Away(HubbubError):
    """The collector cannot be reached, or cannot answer now: try again later."""


class CollectorEvent(NamedTuple):
    """What the collector tells as it happens: "release", "alarm", "ask" or "counts", with its fields."""

    event: str
    data: dict[str, Any]


class CollectorApi(HttpTransport):
    """A collector at an address.

    Parameters
    ----------
    url
        Where it is, such as "http://127.0.0.1:8000".
    token
        What results are read with.
    timeout
        Seconds for a whole request; a stream of events has so long to begin.
    """

    def __init__(self, url: str, *, token: str | None, timeout: float = DEADLINE) -> None:
        super().__init__(url, timeout=timeout)
        self.url = url
        self._headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})

    def get(self, path: str) -> Any:
        """What the collector answers; `Away` if it does not, `InvalidValue` if it refuses."""
        try:
            answer = self.request("GET", path, self._headers)
        except Unreachable as error:
            raise Away(_reason(error)) from None
        self._check(answer.status)
        try:
            return json.loads(answer.body)
        except ValueError:
            raise InvalidValue("url", self.url, "the address of a collector: the answer is not JSON") from None

    def events(self, collection: str) -> Iterator[CollectorEvent | None]:
        """The events of a collection from now on, until it is `Away`. First None: from here on none is missed."""
        path = f"{self._root}/v1/collections/{collection}/events"
        try:
            with self._peer.connected() as (connection, wire):
                connection.request("GET", path, headers=self._headers)
                answer = connection.getresponse()
                self._check(answer.status)
                yield None
                yield from _read_events(answer, wire)
        except (OSError, http.client.HTTPException) as error:
            raise Away(_reason(error)) from None
        raise Away("it has ended the stream of events")

    def _check(self, status: int) -> None:
        if status in (401, 403):
            raise InvalidValue("token", "one that is not taken", "the collector's, by --token FILE or HUBBUB_TOKEN")
        if status == 404:
            raise InvalidValue("url", self.url, "the address of a collector that serves this: the answer is 404")
        if status == 429 or status >= 500:
            raise Away(f"it answers {status}")
        if status != 200:
            raise InvalidValue("url", self.url, f"the address of a collector: the answer is {status}")


def _read_events(answer: http.client.HTTPResponse, wire: Wire) -> Iterator[CollectorEvent]:
    """Server-sent events: lines of "name: text", a blank line after each event, comments in between.

    A stream may last for ever. Each line has a deadline, and what comes from one event to the next a maximum size.
    """
    name, data = "", ""
    while True:
        wire.renew(seconds=SILENCE)
        line = answer.readline()
        if not line:
            return
        field, _, text = line.decode("utf-8", "replace").rstrip("\r\n").partition(": ")
        if field == "event":
            name = text
        elif field == "data":
            data = text
        elif not field and name:
            yield CollectorEvent(name, _fields(data))
            name, data = "", ""
            wire.renew(most_bytes=MOST_BYTES)


def _fields(text: str) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise Away("its events cannot be read")
    return fields


def _reason(error: BaseException) -> str:
    """Why it is away, in a few words: without the class of the error."""
    cause = error.__cause__ or error
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause) or type(cause).__name__
