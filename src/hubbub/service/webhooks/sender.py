"""The thread that sends the events of a webhook in order, each until it is taken."""

import http.client
import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable

from hubbub.core.bounded_http import HttpPeer
from hubbub.core.errors import HubbubError
from hubbub.random.source import Random
from hubbub.service.alarms import AlarmEvent
from hubbub.service.base.api import WebhookBody
from hubbub.service.base.logs import log, log_error
from hubbub.service.collector.collector import Collector
from hubbub.service.webhooks.config import Webhook, signature

MOST_BYTES = 1 << 16
"""The longest answer that is read up to its status and headers."""


class NotDelivered(HubbubError):
    """The receiver did not take a delivery. The message gives the reason without the address."""


def id_of(event: AlarmEvent) -> str:
    """The id of a delivery, the same at every retry: a receiver knows by it whether it has seen the event.

    The id includes the step: after a new start with an empty store, numbers are used again.
    """
    return f"{event.collection}:{event.number}:{event.step}"


def body_of(event: AlarmEvent) -> bytes:
    """The body of a delivery: the type of the event, the id, and the event."""
    return json.dumps({"type": f"alarm.{event.state}", "id": id_of(event), "data": event.to_json()}).encode()


def deliver(webhook: Webhook, event: AlarmEvent, now: float) -> None:
    """Send an event; `NotDelivered` unless the receiver answers with a status of 200 to 299 within its timeout.

    Redirects are not followed: only the operator decides on the address. Of the answer only the status is read.
    """
    body, timestamp = body_of(event), int(now)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "hubbub",
        "Connection": "close",
        "webhook-id": id_of(event),
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signature(secret, id_of(event), timestamp, body) for secret in webhook.secrets),
    }
    address = webhook.address
    path = (address.path or "/") + (f"?{address.query}" if address.query else "")
    try:
        with HttpPeer(address, seconds=webhook.timeout, most_bytes=MOST_BYTES).connected() as (connection, _):
            connection.request("POST", path, body, headers)
            status = connection.getresponse().status
    except TimeoutError:
        raise NotDelivered(f"no answer within {webhook.timeout} s") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotDelivered(_reason(error)) from None
    if not 200 <= status < 300:
        raise NotDelivered(f"it answers {status}" + (": redirects are not followed" if 300 <= status < 400 else ""))


def _reason(error: BaseException) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__


MOST_WAITING = 1000
"""The most events of a collection that wait for a webhook; of more, the oldest are left out."""
GIVE_UP = 3 * 86400.0
"""Seconds after which an event that cannot be delivered is left out, so that the next ones are sent."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 600.0
OUTCOMES = ("delivered", "failed", "left_out")

_IDLE = 30.0
_LOOK = 1.0  # seconds between two looks whether this process leads
_PATIENCE = 5.0


class WebhookSender:
    """Sends the events of some collections to a webhook, in order.

    The store is the queue: the stored events wait whose number is above the last that the webhook took, which is stored
    too. Each event is delivered at least once; twice if the collector dies between the receiver's answer and the next
    commit. A new webhook gets the events that come after it was configured.

    `webhook`, `collector`: the receiver, and the collector with the events.
    """

    def __init__(self, webhook: Webhook, collector: Collector, clock: Callable[[], float] = time.time) -> None:
        self.webhook, self._collector, self._clock = webhook, collector, clock
        self.counts: Counter[str] = Counter()
        """Attempts since the start, by outcome."""
        self.failing: str | None = None
        """Why the last attempt failed; None if it did not."""
        self._rng = Random()
        self._led = collector.leads
        self._change = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=f"hubbub-webhook-{webhook.name}", daemon=True)
        known = collector.store.delivered()
        self._taken: dict[str, int] = {}
        for name in webhook.wants(collector.collections):
            number = known.get((webhook.name, name))
            if number is None:  # stored with the next commit, and so with the first event at the latest
                number = collector.store.last_alarm_event(name)
                collector.delivered(webhook.name, name, number)
            self._taken[name] = number
        collector.alarms.listen(lambda event: self._change.set())

    def start(self) -> None:
        """Start the thread, which first sends the events that still wait."""
        self._thread.start()

    def stop(self) -> None:
        """Send no more events. Waits a few seconds for an attempt under way."""
        self._stopping = True
        self._change.set()
        if self._thread.is_alive():
            self._thread.join(_PATIENCE)

    def waiting(self, name: str) -> int:
        """How many events of a collection wait."""
        return max(self._collector.store.last_alarm_event(name) - self._taken[name], 0) if name in self._taken else 0

    def status(self, name: str) -> WebhookBody | None:
        """How many events of a collection were taken and wait; None if they are not sent to this webhook."""
        if name not in self._taken:
            return None
        taken, waiting = self._taken[name], self.waiting(name)
        return WebhookBody(webhook=self.webhook.name, taken=taken, waiting=waiting, failing=self.failing)

    def _run(self) -> None:
        while not self._stopping:
            self._change.clear()
            try:
                if not self._may_send():
                    self._change.wait(_LOOK)
                    continue
                event = self._next()
                if event is not None:
                    self._send(event)
                else:
                    self._change.wait(_IDLE)
            except Exception as error:  # such as a store that is gone: the thread goes on until the collector stops
                log_error("webhook stuck", error, webhook=self.webhook.name)
                self._wait(_IDLE)

    def _may_send(self) -> bool:
        """Whether this process leads: only a leader sends. One that begins to lead goes on where another ended."""
        leads = self._collector.leads
        if leads and not self._led:
            known = self._collector.store.delivered()
            for name, number in list(self._taken.items()):
                self._take(name, known.get((self.webhook.name, name), number))
        self._led = leads
        return leads

    def _next(self) -> AlarmEvent | None:
        """The oldest event that waits."""
        waiting: list[AlarmEvent] = []
        for name in self._taken:
            excess = self.waiting(name) - MOST_WAITING
            if excess > 0:
                self._leave_out(name, self._taken[name] + excess, f"more than {MOST_WAITING} wait")
            waiting += self._collector.alarms.events(name, after=self._taken[name], most=1)
        return min(waiting, key=lambda event: event.at, default=None)

    def _send(self, event: AlarmEvent) -> None:
        """Try until the event is taken, or has been tried for too long."""
        failures, began = 0, time.monotonic()
        while not self._stopping:
            try:
                deliver(self.webhook, event, self._clock())
            except NotDelivered as error:
                failures += 1
                self.counts["failed"] += 1
                self.failing = str(error)
                about = {"webhook": self.webhook.name, "collection": event.collection, "number": event.number}
                log("webhook failed", level=logging.WARNING, **about, failures=failures, reason=self.failing)
                if time.monotonic() - began > GIVE_UP:
                    self._leave_out(event.collection, event.number, "tried for too long")
                    return
                self._wait(self._backoff(failures))
            else:
                self.counts["delivered"] += 1
                self.failing = None
                self._take(event.collection, event.number)
                return

    def _take(self, name: str, number: int) -> None:
        self._taken[name] = number
        self._collector.delivered(self.webhook.name, name, number)

    def _leave_out(self, name: str, number: int, reason: str) -> None:
        count = number - self._taken[name]
        self.counts["left_out"] += count
        log(
            "webhook left out", level=logging.ERROR, webhook=self.webhook.name, collection=name, count=count, why=reason
        )
        self._take(name, number)

    def _backoff(self, failures: int) -> float:
        """Seconds to wait: twice as many after each failure, with jitter, so that senders do not retry together."""
        most = min(FIRST_WAIT * 2.0 ** min(failures - 1, 30), LONGEST_WAIT)
        return most * (0.5 + float(self._rng.uint32(1)[0]) / (1 << 33))

    def _wait(self, seconds: float) -> None:
        """Wait, unless the collector stops; new events do not end the wait."""
        until = time.monotonic() + seconds
        while not self._stopping and (left := until - time.monotonic()) > 0:
            self._change.clear()
            if not self._stopping:
                self._change.wait(left)
