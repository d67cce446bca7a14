"""One delivery of one event to one webhook."""

from __future__ import annotations

import http.client
import json

from hubbub.core.bounded_http import HttpPeer
from hubbub.core.errors import HubbubError
from hubbub.service.alarms.event import AlarmEvent
from hubbub.service.webhooks.config import Webhook
from hubbub.service.webhooks.signing import signature

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
