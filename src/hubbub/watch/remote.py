"""Watching a real collector over its public API: the releases of a question, as they come."""

import http.client
import json
import math
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

import msgspec

from hubbub.client.upload import DEADLINE, MOST_BYTES, HttpTransport, Unreachable, uniform
from hubbub.core.bounded_http import Wire
from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.dashboard.alarms import AlarmHistory
from hubbub.questions.keys import NOTHING
from hubbub.random.source import Random
from hubbub.rehearse.columns import one_of
from hubbub.service.alarms import AlarmsBody
from hubbub.watch.moment import Moment, StepTimes

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

    `url`: where it is, such as "http://127.0.0.1:8000". `token`: what results are read with. `timeout`: seconds for a
    whole request; a stream of events has so long to begin.
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
        self._check(answer.status, answer.body)
        try:
            return json.loads(answer.body)
        except ValueError:
            raise InvalidValue("url", self.url, "the address of a collector: the answer is not JSON") from None

    def events(self, collection: str) -> Generator[CollectorEvent | None, None, None]:
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

    def _check(self, status: int, body: bytes = b"") -> None:
        if status in (401, 403):
            raise InvalidValue("token", "one that is not taken", "the collector's, by --token FILE or HUBBUB_TOKEN")
        if status == 404:
            raise InvalidValue("url", self.url, "the address of a collector that serves this: the answer is 404")
        if status == 429 or status >= 500:
            raise Away(f"it answers {status}")
        if status in (400, 409):  # it says what is wrong with the request, or why it withholds the answer
            raise InvalidValue(
                "url", self.url, f"another request: {_fields(body.decode(errors='replace')).get('detail')}"
            )
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


HISTORY = 80
"""How many earlier releases are shown at the beginning."""
_NOBODY = ("(none)",)  # the label of those who have no value
_LONGEST_WAIT = 30.0


class RemoteWatch:
    """Follows a question of a collector. Yields a Moment for each release, and None whenever something else changed.

    It begins with the latest releases. While the collector cannot be reached, `away` says why, and the collector is
    asked again, less and less often; when it is back, the releases that were missed come in order.

    Parameters
    ----------
    collection, question
        Their names; may be left out where there is one.
    watched
        The category whose share is watched; the most frequent unless given.
    steps
        How many releases to show; without end unless given.
    pause
        Waits for a number of seconds.
    """

    def __init__(
        self,
        api: CollectorApi,
        *,
        collection: str | None = None,
        question: str | None = None,
        watched: str | None = None,
        steps: int | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        if steps is not None and steps < 1:
            raise InvalidValue("steps", steps, "a number of releases, from 1")
        self.api, self.steps, self.watched = api, steps, watched
        self.moments: list[Moment] = []
        self.away: str | None = None
        self.withheld: str | None = None
        """Why the newest release has no numbers."""
        self.thresholds: tuple[float, ...] = ()
        self.alarms: AlarmHistory | None = None
        self._pause, self._rng = pause, Random()
        self._last = -1, 0
        try:
            self._choose(collection, question)
        except (KeyError, TypeError, AttributeError):
            raise InvalidValue("url", api.url, "the address of a collector: the answer is another's") from None

    def _choose(self, collection: str | None, question: str | None) -> None:
        """Ask the collector what it serves, and choose what is watched."""
        names = [document["name"] for document in self.api.get("/v1/collections")["collections"]]
        self.collection = chosen_name("collection", collection, names)
        # Whether its seal is right matters to devices; here it only says when steps are.
        spec = json.loads(self.api.get(f"/v1/collections/{self.collection}")["payload"])
        self.question = chosen_name("question", question, list(spec["questions"]))
        begins, length = spec["origin"], spec["step_seconds"]
        study = spec["terms"][self.question].get("study") is not None
        self.times = None if study else StepTimes(float(begins + length), length)
        self._path = f"/v1/collections/{self.collection}/questions/{self.question}/releases"
        shape = self.api.get(f"{self._path}?most=1")["shape"]
        self.share = shape["form"] in ("shares", "distribution", "ranking", "marginals")
        known = not self.share and shape["low"] is not None
        self.span = (shape["low"], shape["high"]) if known else (0.0, 1.0) if self.share else (-math.inf, math.inf)

    @property
    def name(self) -> str:
        number = self.question if self.watched is None else f"{self.question}: {self.watched}"
        return f"{'share' if self.share else 'mean'} of {number}"

    @property
    def changes(self) -> list[Moment]:
        """When an alarm of the question was raised or cleared."""
        return [moment for moment in self.moments if moment.changed]

    def __iter__(self) -> Iterator[Moment | None]:
        failures = 0
        while not self._done():
            try:
                for event in self.api.events(self.collection):
                    back, self.away, failures = self.away, None, 0
                    if back is not None:
                        yield None
                    if event is None or (event.event, event.data.get("question")) == ("release", self.question):
                        yield from self._fetch()
                    if self._done():
                        return
            except Away as away:
                failures += 1
                wait = min(2.0**failures, _LONGEST_WAIT) * (1 + uniform(self._rng)) / 2  # not all at once
                self.away = f"{away}; asked again in {wait:.0f} s"
                yield None
                self._pause(wait)

    def _done(self) -> bool:
        return self.steps is not None and len(self.moments) >= self.steps

    def _fetch(self) -> Iterator[Moment]:
        """The releases since the last one that is known."""
        most = HISTORY if self.steps is None else min(self.steps - len(self.moments), HISTORY)
        first = "" if self._last[0] < 0 else f"&from={self._last[0]}"
        answer = msgspec.convert(self.api.get(f"/v1/collections/{self.collection}/alarms"), AlarmsBody)
        self.alarms = AlarmHistory(answer, self.question)
        for release in self.api.get(f"{self._path}?most={most if not first else 1000}{first}")["releases"]:
            if (release["step"], release["number"]) > self._last and not self._done():
                self._last = release["step"], release["number"]
                self.moments.append(self._moment(release, self.alarms))
                yield self.moments[-1]

    def _moment(self, release: dict[str, Any], alarms: AlarmHistory) -> Moment:
        place = self._place(release)
        self.thresholds = alarms.thresholds(self.watched)
        raised = alarms.raised_at(release["step"])
        value, low, high = (
            math.nan if place is None else _number(release[key][place]) for key in ("value", "low", "high")
        )
        self.withheld = release["withheld"]
        return Moment(
            step=release["step"],
            value=value,
            low=low,
            high=high,
            published=bool(release.get("published", True)),
            spent=_number(release.get("spent")),
            n=_number(release.get("population")),
            alarm=raised,
            changed=bool(self.moments) and self.moments[-1].alarm != raised,
            time=None if self.times is None else self.times.begins(release["step"]),
        )

    def _place(self, release: dict[str, Any]) -> int | None:
        """The place of the watched category among the numbers. The first release with numbers chooses the category."""
        labels, values = release["labels"], release["value"]
        if not values:
            return None
        if self.watched is None:
            known = [code for code, label in enumerate(labels) if label not in _NOBODY and values[code] is not None]
            if not known:
                return None
            self.watched = labels[max(known, key=lambda code: values[code])]
        if self.watched not in labels:
            raise InvalidValue("watch", self.watched, one_of(labels))
        return int(labels.index(self.watched))


def chosen_name(field: str, name: str | None, names: list[str]) -> str:
    """The given name, or the only one there is; refused where it is unknown."""
    if name is None and len(names) == 1:
        return names[0]
    if name not in names:
        given = NOTHING if name is None else name
        raise InvalidValue(field, given, one_of(names) if names else "nothing: there is none")
    return name


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
