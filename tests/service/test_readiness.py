"""What /readyz knows: the store, the clock, the kernels; and what a collector warns of."""

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
from hubbub.service.http.metrics import metrics_text
from hubbub.service.store import open_store
from hubbub.service.store.checksums import CHECKED, row_checksum
from hubbub.service.store.postgres import PostgresStore
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.upload import UPLOAD_TYPE
from tests.served import THEMES as EVERY_TWO_SECONDS
from tests.served import ServedCollector, wait_for
from tests.service.clock_world import Machine
from tests.service.process import HUBBUB
from tests.service.web import THEMES, Web, themes, web_of
from tests.shared.in_process import start_collector
from tests.shared.small_collections import collection_text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def web(path: Path) -> Iterator[Web]:
    with web_of(ManualClock(1000.0), SqliteStore(path)) as web:
        yield web


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
    with web_of(ManualClock(1000.0), PostgresStore(url)) as web:
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
    with web_of(clock, SqliteStore(":memory:")) as web:
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
    start_collector(themes(), TrustedClock(None, hold=50.0, read=machine.read), store)
    machine.reboot(40 * 86400.0)
    with web_of(TrustedClock(store.clock(), hold=50.0, read=machine.read), store) as web:
        until(web, "clock")
        machine.wait(60.0)
        until(web)
        assert ready(web)["clock"]["state"] == "moved"


def test_kernels_are_compiled_before_it_is_ready(monkeypatch: pytest.MonkeyPatch):
    go_on = threading.Event()
    monkeypatch.setattr(collector, "warm_up", lambda *questions, **options: go_on.wait(60))
    with web_of(ManualClock(1000.0), SqliteStore(":memory:")) as web:
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
        "films": {"kind": "keyvalue", "keys": ["Alien", "Brazil", "Dune", "Ran"], "low": 1, "high": 5, "most": 2},
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


def serve(folder: Path, *options: str) -> ServedCollector:
    """`hubbub serve`."""
    return ServedCollector(folder, THEMES, *options, program=HUBBUB)


def warnings(served: ServedCollector) -> list[dict[str, Any]]:
    """What it warned of until it served."""
    assert served.stop() == 0
    return [line for line in map(json.loads, served.startup_log.splitlines()) if line["level"] == "warning"]


def test_secrets_that_others_may_read_and_plain_http_in_public_are_warned_of(tmp_path: Path):
    assert warnings(serve(tmp_path)) == []
    (tmp_path / "hubbub-keys" / "signing.key").chmod(0o644)
    (tmp_path / "webhooks.toml").write_text(
        '[webhooks.pager]\nurl = "http://127.0.0.1:9"\nsecret_file = "pager.secret"\n'
    )
    for name in ("pager.secret", "proxy.secret"):
        (tmp_path / name).write_text(f"whsec_{'a2tra2tr' * 4}\n")
        (tmp_path / name).chmod(0o640)
    options = ("--host", "0.0.0.0", "--webhooks", "webhooks.toml", "--proxy-secret", "proxy.secret")
    lines = warnings(serve(tmp_path, *options))
    assert {line["event"] for line in lines} == {"secret exposed", "not encrypted"}
    exposed = [line["detail"].partition(";")[0] for line in lines if line["event"] == "secret exposed"]
    assert [line.rpartition("/")[2] for line in exposed] == [
        "signing.key: others than its owner may read it (mode 644)",
        "proxy.secret: others than its owner may read it (mode 640)",
        "pager.secret: others than its owner may read it (mode 640)",
    ]


def test_the_last_line_of_the_log_says_why_a_commit_failed(tmp_path: Path):
    served = serve(tmp_path)
    other = SqliteStore(tmp_path / "hubbub.db")  # takes over
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    connection.request("POST", "/v1/reports", b"hostile", {"Content-Type": UPLOAD_TYPE})  # to be counted
    assert connection.getresponse().status == 400
    connection.close()
    assert served.ended() == 1
    last = json.loads(served.log[-1])
    assert (last["event"], last["level"], last["error"]) == ("stopped", "error", "StoreFailed")
    assert "another collector has taken over" in last["detail"]
    other.close()


def test_a_collector_stops_when_it_reads_damage_in_its_history(tmp_path: Path):
    """An old release changes on the disk: it is not told, and the collector ends."""
    served = ServedCollector(tmp_path, EVERY_TWO_SECONDS, program=HUBBUB)
    wait_for(lambda: served.read("/v1/collections/themes/questions/popular/releases")["releases"])
    with closing(sqlite3.connect(tmp_path / "hubbub.db", timeout=30)) as store, store:
        store.execute("UPDATE releases SET payload = REPLACE(payload, 'false', 'true') || ' '")
    status, body = served.get("/v1/collections/themes/questions/popular/releases", token=True)
    assert (status, json.loads(body)["type"].rsplit(":")[-1]) == (503, "no_store")
    assert served.ended() == 1
    last = json.loads(served.log[-1])
    assert (last["event"], last["error"]) == ("stopped", "StoreDamaged")
    assert "a row of the table releases has changed" in last["detail"]


def test_the_last_line_of_the_log_says_what_is_not_reproduced(tmp_path: Path):
    assert serve(tmp_path).stop() == 0
    with closing(sqlite3.connect(tmp_path / "hubbub.db")) as store, store:
        store.create_function("row_checksum", -1, row_checksum)
        store.execute("UPDATE asks SET spec = '{}'")
        store.execute(f"UPDATE asks SET checksum = row_checksum({', '.join(CHECKED['asks'])})")
    ended = subprocess.run(
        [*HUBBUB, "serve", "served.toml", "--port", "0"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 1
    last = json.loads(ended.stderr.splitlines()[-1])
    assert (last["event"], last["error"]) == ("stopped", "ReplayMismatch")
    assert re.search("the ask of step .* is not reproduced", last["detail"])
