"""What /readyz knows: the store, the clock, the kernels; and what a collector warns of."""

from __future__ import annotations

import http.client
import json
import logging
import os
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hubbub.collection import ManualClock
from hubbub.service.base.trusted_clock import TrustedClock
from hubbub.service.collector import collector
from hubbub.service.collector.collector import Collector
from hubbub.service.http.metrics import metrics_text
from hubbub.service.http.problems import Tokens
from hubbub.service.http.server import create_app
from hubbub.service.http.service import Service
from hubbub.service.store import open_store
from hubbub.service.store.postgres import PostgresStore
from hubbub.service.store.schema import CHECKED, row_checksum
from hubbub.service.store.sql import Store
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.upload import UPLOAD_TYPE
from tests.served import wait_for
from tests.service.clock_world import Machine
from tests.service.test_server import HUBBUB
from tests.service.web import KEYS, THEMES, TOKEN, Web, themes
from tests.shared.loopback import running
from tests.shared.small_collections import collection_text


def serving(store: Store, clock: Any = None) -> Iterator[Web]:
    clock = clock or ManualClock(1000.0)
    collector = Collector([themes()], store, clock=clock, keys=KEYS)
    service = Service(collector)
    with running(create_app(service, Tokens([TOKEN]))) as client:
        yield Web(client, collector, service, clock)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def web(path: Path) -> Iterator[Web]:
    yield from serving(SqliteStore(path))


def ready(web: Web) -> dict[str, Any]:
    answer = web.client.get("/readyz")
    told: dict[str, Any] = answer.json()
    assert answer.status_code == (200 if told["ready"] else 503)
    assert told["ready"] == (not told["not_ready"])
    return told


def until(web: Web, *problems: str) -> None:
    """Wait until just this is not ready; what was seen stands for a second."""
    wait_for(lambda: set(ready(web)["not_ready"]) == set(problems))


# -- the store -------------------------------------------------------------------------------------------------


def test_a_locked_store_is_not_ready_until_it_is_free(web: Web, path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "hubbub.service")
    until(web)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    until(web, "store")
    assert str(path) not in json.dumps(ready(web))  # anyone may ask: what is wrong in detail is in the log
    assert web.client.get("/healthz").status_code == 200  # the event loop goes on meanwhile
    assert "hubbub_ready 0" in metrics_text(web.service)
    other.execute("ROLLBACK")
    until(web)
    other.close()
    events = {record.getMessage(): record for record in caplog.records}
    assert {"store not ready", "store ready"} <= set(events)
    assert "locked" in str(events["store not ready"].__dict__["fields"])


@pytest.mark.parametrize("replaced", [False, True])
def test_a_store_whose_file_is_gone_or_another_is_not_ready(web: Web, path: Path, replaced: bool):
    until(web)
    if replaced:
        copy = path.with_suffix(".copy")
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        os.replace(copy, path)
    else:
        path.unlink()
    until(web, "store")


def test_a_store_that_another_has_taken_over_is_not_ready(web: Web, path: Path):
    until(web)
    other = SqliteStore(path)
    until(web, "store")
    other.close()


def test_a_store_that_does_not_answer_stops_no_request(web: Web, monkeypatch: pytest.MonkeyPatch):
    until(web)
    go_on = threading.Event()
    monkeypatch.setattr(web.collector.store, "probe", lambda seconds: go_on.wait(60))
    try:
        until(web, "store")
        assert web.client.get("/v1/collections").status_code == 200
    finally:
        go_on.set()
    until(web)


def test_postgresql_that_is_locked_or_dead_is_not_ready(postgres: Callable[[], str]):
    import psycopg

    url = postgres()
    for web in serving(PostgresStore(url)):
        until(web)
        with psycopg.connect(url) as other:
            other.execute("SELECT value FROM meta WHERE key = 'owner' FOR UPDATE")
            until(web, "store")
        until(web)
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        until(web, "store")


# -- the clock and the kernels ---------------------------------------------------------------------------------


def test_a_clock_in_doubt_is_told_and_reports_are_taken():
    machine = Machine()
    clock = TrustedClock(None, hold=50.0, read=machine.read)
    for web in serving(SqliteStore(":memory:"), clock):
        until(web)
        machine.off = 3 * 365 * 86400.0
        status = ready(web)
        assert (status["ready"], status["clock"]["state"]) == (True, "in doubt")
        assert (status["clock"]["wall"][:4], status["clock"]["going_by"][:4]) == ("2027", "2024")
        assert "hubbub_clock_in_doubt 1.0\n" in metrics_text(web.service)
        machine.off = 0.0
        assert ready(web)["clock"] == {"state": "sure"}
        assert "hubbub_clock_in_doubt 0.0\n" in metrics_text(web.service)


def test_after_a_reboot_a_clock_in_doubt_is_not_ready():
    machine = Machine()
    store = open_store("sqlite:///:memory:")
    Collector([themes()], store, clock=TrustedClock(None, hold=50.0, read=machine.read), keys=KEYS)
    machine.true += 40 * 86400.0
    machine.boots += 1
    for web in serving(store, TrustedClock(store.clock(), hold=50.0, read=machine.read)):
        until(web, "clock")
        machine.true += 60.0
        machine.since_boot += 60.0
        until(web)
        assert ready(web)["clock"]["state"] == "moved"


def test_kernels_are_compiled_before_it_is_ready(monkeypatch: pytest.MonkeyPatch):
    go_on = threading.Event()
    monkeypatch.setattr(collector, "warm_up", lambda *questions, **options: go_on.wait(60))
    for web in serving(SqliteStore(":memory:")):
        assert set(ready(web)["not_ready"]) == {"kernels"}
        go_on.set()
        until(web)


KINDS = collection_text(
    "kinds",
    "Kinds",
    schedule={"step": "100s", "lateness": "10s"},
    privacy={"event": 9.0, "minimum_batch": 20},
    fields={
        "word": {"kind": "ordinal", "size": 1000},
        "films": {
            "kind": "keyvalue",
            "keys": ["Alien", "Brazil", "Casablanca", "Dune"],
            "low": 1,
            "high": 5,
            "most": 2,
        },
    },
    questions={
        "hashed": {"kind": "histogram", "field": "word", "epsilon": 1.0, "mechanism": "OLH"},
        "unary": {"kind": "histogram", "field": "word", "epsilon": 3.0, "mechanism": "OUE"},
        "transformed": {"kind": "histogram", "field": "word", "epsilon": 1.0, "mechanism": "Hadamard"},
        "rated": {"kind": "keyvalue", "field": "films", "epsilon": 1.0, "mechanism": "CoCo"},
    },
)


@pytest.mark.parametrize("how", ["warm", "cold"])
def test_real_reports_compile_nothing_more(tmp_path: Path, how: str):
    (tmp_path / "kinds.toml").write_text(KINDS)
    script = str(Path(__file__).parent / "kernels_used.py")
    command = [sys.executable, script, how, "kinds.toml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    before, more = map(int, done.stdout.split())
    assert (before > 2, more == 0) == ((True, True) if how == "warm" else (False, False))


# -- what is said ----------------------------------------------------------------------------------------------


class Serve:
    """`hubbub serve`, its lines of log, and its end."""

    def __init__(self, folder: Path, *options: str) -> None:
        (folder / "themes.toml").write_text(THEMES)
        command = [*HUBBUB, "serve", "themes.toml", "--port", "0", *options]
        self.process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)

    def lines(self, until: str | None = None) -> list[str]:
        assert self.process.stderr is not None
        found: list[str] = []
        for line in self.process.stderr:
            found.append(line)
            if until is not None and until in line:
                return found
        return found

    def ended(self) -> tuple[int, list[str]]:
        """The exit code, and what was said until then."""
        lines = self.lines()
        assert self.process.stderr is not None
        self.process.stderr.close()
        return self.process.wait(60), lines

    def end(self) -> int:
        self.process.terminate()
        return self.ended()[0]


SERVING = '"event": "serving"'


def logged(lines: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


def test_secrets_that_others_may_read_and_plain_http_in_public_are_warned_of(tmp_path: Path):
    first = Serve(tmp_path)
    quiet = logged(first.lines(SERVING))
    assert first.end() == 0
    assert not [line for line in quiet if line["level"] == "warning"]
    (tmp_path / "hubbub-keys" / "signing.key").chmod(0o644)
    (tmp_path / "webhooks.toml").write_text(
        '[webhooks.pager]\nurl = "http://127.0.0.1:9"\nsecret_file = "pager.secret"\n'
    )
    for name in ("pager.secret", "proxy.secret"):
        (tmp_path / name).write_text(f"whsec_{'a2tra2tr' * 4}\n")
        (tmp_path / name).chmod(0o640)
    options = ("--host", "0.0.0.0", "--webhooks", "webhooks.toml", "--proxy-secret", "proxy.secret")
    second = Serve(tmp_path, *options)
    lines = [line for line in logged(second.lines(SERVING)) if line["level"] == "warning"]
    assert second.end() == 0
    assert {line["event"] for line in lines} == {"secret exposed", "not encrypted"}
    exposed = [line["detail"].partition(";")[0] for line in lines if line["event"] == "secret exposed"]
    assert [line.rpartition("/")[2] for line in exposed] == [
        "signing.key: others than its owner may read it (mode 644)",
        "proxy.secret: others than its owner may read it (mode 640)",
        "pager.secret: others than its owner may read it (mode 640)",
    ]


def test_the_last_line_of_the_log_says_why_a_commit_failed(tmp_path: Path):
    served = Serve(tmp_path)
    port = int(re.search(r"127\.0\.0\.1:(\d+)", "".join(served.lines(SERVING)))[1])  # type: ignore[index]
    other = SqliteStore(tmp_path / "hubbub.db")  # takes over
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", "/v1/reports", b"hostile", {"Content-Type": UPLOAD_TYPE})  # to be counted
    assert connection.getresponse().status == 400
    connection.close()
    code, lines = served.ended()
    assert code == 1
    last = json.loads(lines[-1])
    assert (last["event"], last["level"], last["error"]) == ("stopped", "error", "StoreFailed")
    assert "another collector has taken over" in last["detail"]
    other.close()


def test_the_last_line_of_the_log_says_what_is_not_reproduced(tmp_path: Path):
    first = Serve(tmp_path)
    first.lines(SERVING)
    assert first.end() == 0
    with closing(sqlite3.connect(tmp_path / "hubbub.db")) as store, store:
        store.create_function("row_checksum", -1, row_checksum)
        store.execute("UPDATE asks SET spec = '{}'")
        store.execute(f"UPDATE asks SET checksum = row_checksum({', '.join(CHECKED['asks'])})")
    code, lines = Serve(tmp_path).ended()
    assert code == 1
    last = json.loads(lines[-1])
    assert (last["event"], last["error"]) == ("stopped", "ReplayMismatch")
    assert re.search("the ask of step .* is not reproduced", last["detail"])
