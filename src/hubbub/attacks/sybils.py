"""Many devices that are one: a sender with as many ids as it likes, against a running collector's quotas, over HTTP."""

import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from hubbub.attacks.outcome import Attack, AttackOutcome, AttackSetting, exactly
from hubbub.collection import open_sealed
from hubbub.collection.names import AnswerName
from hubbub.core.errors import HubbubError
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask
from hubbub.random.source import Random
from hubbub.wire.batches import BATCH_TYPE, encode_batch

RATE = 50.0
_BURST = 4 * RATE  # as `hubbub serve --sender-quota` has it
_SIZE = 10
_SECONDS = 2.0
_COLLECTION = """
name = "sybils"
version = 1
title = "Who is how many?"
[schedule]
step = "1h"
lateness = "10m"
[privacy]
event = 4.0
minimum_batch = 100
planned_devices = 100_000
[fields.value]
kind = "categorical"
names = ["a", "b"]
[questions.asked]
kind = "histogram"
field = "value"
epsilon = 1.0
"""


class NotServed(HubbubError):
    """The collector did not start."""


@contextmanager
def collector() -> Iterator[tuple[int, bytes]]:
    """A collector of its own process, on a free port; yields the port and its public key."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "served.toml").write_text(_COLLECTION, encoding="utf-8")
        program = [sys.executable, "-c", "from hubbub.cli import main; main()", "serve", "served.toml", "--port", "0"]
        options = ["--metrics-port", "0", "--sender-quota", f"{RATE:g}"]
        with subprocess.Popen([*program, *options], cwd=folder, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            try:
                yield _started(process.stderr)
            finally:
                process.terminate()
                process.stderr.read()


def _started(log: Iterator[str]) -> tuple[int, bytes]:
    for line in log:
        if line.startswith("{"):
            event = json.loads(line)
            if event["event"] == "serving":
                return urlsplit(event["at"]).port or 0, bytes.fromhex(event["public_key"])
    raise NotServed("the collector ended before it served")


class Sender:
    """One sender, at an address of its own on this machine."""

    def __init__(self, port: int, address: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60, source_address=(address, 0))

    def get(self, path: str) -> bytes:
        """The body of a response."""
        self._connection.request("GET", path)
        return self._connection.getresponse().read()

    def send(self, ask: Ask, version: int, name: AnswerName, rng: Random) -> int:
        """Send some forged reports under new ids; returns how many were counted."""
        assert isinstance(ask.mechanism, Mechanism)
        reports = ask.mechanism.randomize([0] * _SIZE, rng)
        body = encode_batch("sybils", version, name, rng.bytes(16 * _SIZE), reports)
        try:
            self._connection.request("POST", "/v1/reports", body, {"Content-Type": BATCH_TYPE})
            response = self._connection.getresponse()
            receipt = json.loads(response.read())
        except (OSError, http.client.HTTPException):  # the collector hangs up on whoever is far over a quota
            self._connection.close()
            time.sleep(0.01)
            return 0
        return int(receipt["accepted"]) if response.status == 200 else 0


def _run(setting: AttackSetting) -> Iterator[AttackOutcome]:
    for addresses in (1, 4):
        with collector() as (port, key):
            senders = [Sender(port, f"127.0.0.{2 + number}") for number in range(addresses)]
            document = open_sealed(json.loads(senders[0].get("/v1/collections/sybils/asks")), key)
            (published,) = document["asks"]
            ask = Ask.from_spec(published["ask"])
            name = AnswerName("asked", published["run"], ask.step, published["round"], published["part"])
            counted, tried, rng = [0] * addresses, 0, setting.rng(addresses)
            start = time.monotonic()
            while time.monotonic() < start + _SECONDS:
                for number, sender in enumerate(senders):
                    counted[number] += sender.send(ask, document["version"], name, rng)
                    tried += _SIZE
            bound = _BURST + RATE * (time.monotonic() - start) + _SIZE
        note = f"{sum(counted)} of {tried:,} forged reports were counted, all under new ids"
        case = f"the most from one of {addresses} address{'es' * (addresses > 1)}"
        yield exactly(case, float(max(counted)), bound, unit="reports", note=note)
    note = "more addresses are more senders: quotas count addresses, not people"
    yield exactly("all addresses together", float(sum(counted)), None, unit="reports", note=note)


ATTACK = Attack(
    title="A sender forges reports under as many ids as it likes, from one address or several.",
    promise=f"`--sender-quota`: of one sender, a burst and then so many a second are counted ({_BURST:.0f} and "
    f"{RATE:.0f} here). Nothing counts people: whoever has many addresses is many senders.",
    quantity="forged reports that were counted",
    run=_run,
)
