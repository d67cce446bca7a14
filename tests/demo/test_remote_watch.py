"""`hubbub watch URL`: a collector in a process of its own is followed through its death, and errors are lines."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import Hubbub
from tests.served import THEMES, ServedCollector, wait_for

TWO_QUESTIONS = f'{THEMES}\n[questions.again]\nkind = "histogram"\nfield = "theme"\nepsilon = 4.0\n'


class Watching:
    """`hubbub watch` in a process of its own, and what it has printed."""

    def __init__(self, *args: str) -> None:
        self.process = Hubbub(Path()).start("watch", *args, "--json")
        self.lines: list[dict[str, Any]] = []
        self.printed: list[str] = []
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.threads = [
            threading.Thread(target=lambda: self.lines.extend(map(json.loads, self.process.stdout or ()))),
            threading.Thread(target=lambda: self.printed.extend(self.process.stderr or ())),
        ]
        for thread in self.threads:
            thread.start()

    def end(self) -> int:
        code = self.process.wait(120)
        for thread in self.threads:
            thread.join(60)
        self.process.communicate()
        return code


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCollector]:
    """A collector for all of these tests; the last one kills it."""
    collector = ServedCollector(tmp_path_factory.mktemp("served"), TWO_QUESTIONS)
    yield collector
    collector.close()


def refusal(*args: str, **env: str) -> str:
    return Hubbub(Path()).refused("watch", *args, **env)


def test_so_many_releases_and_no_more(served: ServedCollector):
    result = Hubbub(Path())("watch", served.url, "--question", "again", "--steps", 2, HUBBUB_TOKEN=served.token)
    assert result.exit_code == 0
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["value"] for line in lines] == [None, None]  # nobody answered


def test_what_is_refused(served: ServedCollector, tmp_path: Path):
    token = {"HUBBUB_TOKEN": served.token}
    assert "question: got nothing; allowed: one of again, popular" in refusal(served.url, **token)
    assert "question: got 'other'" in refusal(served.url, "--question", "other", **token)
    assert "collection: got 'other'" in refusal(served.url, "--collection", "other", **token)
    assert "token: got" in refusal(served.url, "--question", "popular", HUBBUB_TOKEN="wrong")
    assert "No such file" in refusal(served.url, "--token", str(tmp_path / "absent"))
    assert "every: got '1h'; allowed: nothing with a collector" in refusal(served.url, "--every", "1h", **token)


def test_nobody_is_there():
    assert "refused" in refusal("http://127.0.0.1:9", "--question", "popular")
    without = refusal("--demo", "--question", "popular")
    assert "question: got 'popular'; allowed: nothing without a collector's address" in without


def test_somebody_else_is_there():
    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"hello": "world"}')

        def log_message(self, *args: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        message = refusal(f"http://127.0.0.1:{server.server_address[1]}")
        assert "the address of a collector: the answer is another's" in message
        server.shutdown()


def test_a_collector_is_followed_through_its_death(served: ServedCollector):
    first = served.answer("themes", "popular", [1] * 90 + [0] * 10)
    watching = Watching(served.url, "--question", "popular", "--watch", "dark", "--token", str(served.token_file))
    seen = wait_for(lambda: [line for line in watching.lines if line["step"] == first.step])[0]
    # A report is wrong with probability 0.036: twenty of 100 or more wrong has probability 1e-9.
    assert 0.7 < seen["value"] < 1.1
    assert seen["low"] < seen["value"] < seen["high"]
    assert seen["alarm"] is True
    assert seen["time"].endswith("+00:00")
    served.kill()
    wait_for(lambda: [line for line in watching.printed if "is away" in line])
    again = ServedCollector(served.folder, TWO_QUESTIONS, port=served.port)
    try:
        wait_for(lambda: [line for line in watching.printed if "is back" in line])
        second = again.answer("themes", "popular", [0] * 100)
        seen = wait_for(lambda: [line for line in watching.lines if line["step"] == second.step])[0]
        assert -0.1 < seen["value"] < 0.3
    finally:
        watching.process.send_signal(2)
        assert watching.end() == 130
        again.close()
    steps = [line["step"] for line in watching.lines]
    assert steps == sorted(set(steps))  # nothing twice, and in order
    assert any(line.startswith("Alarm: ") for line in watching.printed)
