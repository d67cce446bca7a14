"""A receiver of webhooks, for demonstrations: it takes what is signed right, once, and refuses everything else."""

import base64
import hmac
import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

_TOLERANCE = 300
_MOST_BYTES = 1 << 16


@dataclass(frozen=True)
class DeliveredAlarm:
    """An event that was delivered: its id, and what it says."""

    id: str
    data: Mapping[str, Any]


def signed_right(headers: Mapping[str, str], body: bytes, secret: str, now: float) -> bool:
    """Whether a delivery was signed with a secret, lately."""
    delivery, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not stamp.isascii() or not stamp.isdigit() or abs(now - int(stamp)) > _TOLERANCE:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    right = base64.b64encode(hmac.digest(key, f"{delivery}.{stamp}.".encode() + body, "sha256")).decode()
    signatures = headers.get("webhook-signature", "").split()
    return any(hmac.compare_digest(f"v1,{right}".encode(), signature.encode()) for signature in signatures)


class AlarmReceiver:
    """Listens on this machine while a `with` block lasts."""

    def __init__(self) -> None:
        self.secret = "whsec_" + base64.b64encode(os.urandom(32)).decode()
        self.alarms: list[DeliveredAlarm] = []
        """What was delivered, each event once."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_POST(self) -> None:
                length = self.headers.get("Content-Length", "")
                body = self.rfile.read(min(int(length), _MOST_BYTES)) if length.isdigit() else b""
                headers = {name.lower(): value for name, value in self.headers.items()}
                self.send_response(204 if receiver._take(headers, body) else 401)
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/alarms"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _take(self, headers: Mapping[str, str], body: bytes) -> bool:
        if not signed_right(headers, body, self.secret, time.time()):
            return False
        event = json.loads(body)
        if event["id"] not in {alarm.id for alarm in self.alarms}:  # the same event may come twice
            self.alarms.append(DeliveredAlarm(event["id"], event["data"]))
        return True
