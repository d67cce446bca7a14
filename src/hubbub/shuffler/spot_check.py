"""Reports of the collector's own, sent to shufflers as devices send theirs."""

import base64
import json
from collections.abc import Callable
from itertools import cycle
from typing import Any

from hubbub.client.documents import trusted_keys
from hubbub.client.upload import HttpTransport, Transport, Unreachable
from hubbub.collection.names import AnswerName
from hubbub.collection.safety import open_collection
from hubbub.collection.sealing import ASKS, open_sealed
from hubbub.core.errors import InvalidValue
from hubbub.wire.upload import JSON_TYPE, UPLOAD_TYPE


def send_spot_checks(
    server: str | Transport,
    name: str,
    token: str,
    public_key: str | bytes,
    count: int,
    *,
    connect: Callable[[str], Transport] = HttpTransport,
) -> dict[str, int]:
    """Have the collector make reports to each open ask, and send them; returns how many were accepted for each ask.

    `connect`: makes the transport to the shuffler from its address.
    """
    collector, keys = connect(server) if isinstance(server, str) else server, trusted_keys(public_key)
    root = f"/v1/collections/{name}"
    collection = open_collection(_request(collector, "GET", root), keys)
    if collection.shuffle is None:
        raise InvalidValue("collection", name, "one whose reports are shuffled")
    receivers = [connect(shuffler.url) for shuffler in collection.shuffle.receivers]
    asks = ASKS.upgrade(open_sealed(_request(collector, "GET", f"{root}/asks"), keys))["asks"]
    accepted = {}
    for ask in asks:
        answer = str(AnswerName(*(ask[key] for key in AnswerName._fields)))
        headers = {"Authorization": f"Bearer {token}", "Content-Type": JSON_TYPE}
        body = json.dumps({"answer": answer, "count": count}).encode()
        uploads = _request(collector, "POST", f"{root}/spot-checks", headers, body)["uploads"]
        taken = [
            _request(receiver, "POST", "/v1/reports", {"Content-Type": UPLOAD_TYPE}, base64.b64decode(upload))[
                "accepted"
            ]
            for receiver, upload in zip(cycle(receivers), uploads, strict=False)
        ]
        every = range(0, len(taken), len(receivers))
        accepted[answer] = sum(min(taken[at : at + len(receivers)]) for at in every)
    return accepted


def _request(
    transport: Transport, method: str, path: str, headers: dict[str, str] | None = None, body: bytes | None = None
) -> Any:
    response = transport.request(method, path, headers or {"Accept": JSON_TYPE}, body)
    if response.status != 200:
        raise Unreachable(f"{method} {path}: status {response.status}")
    return json.loads(response.body)
