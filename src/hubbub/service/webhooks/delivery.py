"""One delivery of one event to one webhook."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading

from hubbub.core.errors import HubbubError
from hubbub.service.alarms.event import AlarmEvent
from hubbub.service.webhooks.config import Webhook
from hubbub.service.webhooks.signing import signature


class NotDelivered(HubbubError):
    """The receiver did not take it: why, in words that tell nothing of its address."""


def id_of(event: AlarmEvent) -> str:
    """What a delivery is called: the same whenever it is tried again. A receiver that knows it has heard of it.

    The step is in it for the sake of a collector whose store was begun anew: its numbers are, too.
    """
    return f"{event.collection}:{event.number}:{event.step}"


def body_of(event: AlarmEvent) -> bytes:
    """What is sent: the event, and what happened in it."""
    return json.dumps({"type": f"alarm.{event.state}", "id": id_of(event), "data": event.to_json()}).encode()


def deliver(webhook: Webhook, event: AlarmEvent, now: float) -> None:
    """Send an event, and see that it is taken: any answer of 200 to 299. All of it takes `timeout` seconds at most.

    Redirects are not followed: the address is the operator's word. Of the answer nothing but its status is read.
    """
    body, timestamp = body_of(event), int(now)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "hubbub",
        "Connection": "close",
        "webhook-id": id_of(event),
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signature(each, id_of(event), timestamp, body) for each in webhook.secrets),
    }
    address = webhook.address
    path = (address.path or "/") + (f"?{address.query}" if address.query else "")
    connection = _connection(webhook)
    over, late = threading.Event(), threading.Event()
    threading.Thread(target=_cut, args=(connection, webhook.timeout, over, late), daemon=True).start()
    try:
        connection.request("POST", path, body, headers)
        status = connection.getresponse().status
        if late.is_set():  # what was cut off can look like an answer
            raise TimeoutError
    except (OSError, http.client.HTTPException, ValueError) as error:
        slow = isinstance(error, TimeoutError) or late.is_set()
        raise NotDelivered(f"no answer within {webhook.timeout} s" if slow else _reason(error)) from None
    finally:
        over.set()
        connection.close()
    if not 200 <= status < 300:
        raise NotDelivered(f"it answers {status}" + (": redirects are not followed" if 300 <= status < 400 else ""))


def _connection(webhook: Webhook) -> http.client.HTTPConnection:
    address = webhook.address
    assert address.hostname is not None
    if address.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(address.hostname, address.port, timeout=webhook.timeout, context=context)
    return http.client.HTTPConnection(address.hostname, address.port, timeout=webhook.timeout)


def _cut(connection: http.client.HTTPConnection, timeout: float, over: threading.Event, late: threading.Event) -> None:
    """End a delivery whose receiver answers, but byte by byte: each of them is in time, and all are not."""
    wait = timeout
    while not over.wait(wait):
        late.set()
        sock, wait = connection.sock, 0.05
        if sock is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # below any TLS, which is of the other thread


def _reason(error: BaseException) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
