"""A receiver of webhooks: a real HTTP server, which takes, refuses, redirects, hangs or drips."""

import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Delivery(NamedTuple):
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


class Receiver:
    """`answers` says what it does: a status, "hang" until `release` is set, or "drip" without end."""

    def __init__(self, answers: int | str = 200) -> None:
        self.answers = answers
        self.deliveries: list[Delivery] = []
        self.taken: list[Delivery] = []
        self.release = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {key.lower(): value for key, value in self.headers.items()}
                receiver.handle(self, Delivery(self.path, headers, body))

            def do_GET(self) -> None:
                raise AssertionError("a redirect was followed")

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/alarms?from=tests"

    def handle(self, request: BaseHTTPRequestHandler, delivery: Delivery) -> None:
        self.deliveries.append(delivery)
        status = self.answers
        if status == "hang":
            self.release.wait(60)
            status = 200
        if status == "drip":
            try:
                request.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
                while not self.release.is_set():
                    request.wfile.write(b"a")
                    time.sleep(0.05)
            except OSError:
                pass
            return
        assert isinstance(status, int)
        if 200 <= status < 300:
            self.taken.append(delivery)
        try:
            request.send_response(status)
            if 300 <= status < 400:
                request.send_header("Location", self.url)
            request.end_headers()
        except OSError:
            pass

    def close(self) -> None:
        self.release.set()
        self.server.shutdown()
        self.server.server_close()
