"""Serve the example page next to a collector: python examples/browser/serve.py --server http://127.0.0.1:8000 --key KEY

KEY is the collector's public key, 64 hexadecimal digits. Requests for /v1 are handed on, so that the page and the
collector have one address, as behind a reverse proxy.
"""

import argparse
import json
import subprocess
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).parent
CLIENT = HERE.parents[1] / "clients" / "js"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css", ".mjs": "text/javascript"}


class Handler(BaseHTTPRequestHandler):
    server_address: str
    settings: bytes

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path.startswith("/v1/"):
            return self.forward(None)
        if path == "/settings.json":
            return self.answer(200, "application/json", self.settings)
        name = path.strip("/") or "index.html"
        file = CLIENT / "dist" / name if name == "hubbub.mjs" else HERE / name
        if file.parent.name in ("dist", HERE.name) and file.suffix in TYPES and file.is_file():
            return self.answer(200, TYPES[file.suffix], file.read_bytes())
        return self.answer(404, "text/plain", b"not found")

    def do_POST(self) -> None:
        self.forward(self.rfile.read(int(self.headers["content-length"])))

    def forward(self, body: bytes | None) -> None:
        kind = {"content-type": self.headers["content-type"]} if body is not None else {}
        request = urllib.request.Request(self.server_address + self.path, data=body, headers=kind)
        try:
            with urllib.request.urlopen(request, timeout=10) as found:
                self.answer(found.status, found.headers["content-type"], found.read())
        except urllib.error.HTTPError as error:
            self.answer(error.code, error.headers["content-type"], error.read())
        except urllib.error.URLError as error:
            self.answer(502, "text/plain", str(error.reason).encode())

    def answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True, help="the collector's address")
    parser.add_argument("--key", required=True, help="its public key")
    parser.add_argument("--collection", default="emoji")
    parser.add_argument("--port", type=int, default=8010)
    given = parser.parse_args()
    if not (CLIENT / "dist" / "hubbub.mjs").exists():
        subprocess.run(["npm", "ci"], cwd=CLIENT, check=True)
        subprocess.run(["npm", "run", "build"], cwd=CLIENT, check=True)
    Handler.server_address = given.server.rstrip("/")
    Handler.settings = json.dumps({"collection": given.collection, "keys": [given.key]}).encode()
    with ThreadingHTTPServer(("127.0.0.1", given.port), Handler) as server:
        print(f"open http://127.0.0.1:{server.server_port}/")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
