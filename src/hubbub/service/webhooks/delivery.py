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
    connection = _connection(webhook)
    done, late = threading.Event(), threading.Event()
    threading.Thread(target=_cut_off, args=(connection, webhook.timeout, done, late), daemon=True).start()
    try:
        connection.request("POST", path, body, headers)
        status = connection.getresponse().status
        if late.is_set():  # an answer that was cut off can look complete
            raise TimeoutError
    except (OSError, http.client.HTTPException, ValueError) as error:
        slow = isinstance(error, TimeoutError) or late.is_set()
        raise NotDelivered(f"no answer within {webhook.timeout} s" if slow else _reason(error)) from None
    finally:
        done.set()
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


def _cut_off(
    connection: http.client.HTTPConnection, timeout: float, done: threading.Event, late: threading.Event
) -> None:
    """Close a delivery after the timeout, even if its receiver still answers byte by byte."""
    wait = timeout
    while not done.wait(wait):
        late.set()
        sock, wait = connection.sock, 0.05
        if sock is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not by TLS, which the other thread uses


def _reason(error: BaseException) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
