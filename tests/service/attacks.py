"""Six ways of one client to take a collector down, and honest devices that measure how they fare meanwhile.

    python attacks.py ATTACK PORT SECONDS [SIZE] [SOURCE]     one attack, from one address
    python attacks.py honest PORT SECONDS [RATE]              single reports, and how long each took

Traffic goes to 127.0.0.1 alone, and ends by itself; attackers yield the processor to the others. Both print one line
of JSON; before it, an attacker says "begun" at its first connection, from which on its time counts.
"""

import asyncio
import contextlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

from hubbub import Random
from hubbub.mechanisms import MECHANISMS
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from hubbub.wire.upload import UPLOAD_TYPE, Entry, encode_upload
from tests.service.exact_world import EXACT, Exact
from tests.service.process import COLLECTION, ask_at

HOST = "127.0.0.1"
SOURCE = "127.0.0.2"
MOST_BODY = 4 << 20

Told = Counter[str]


class Attacker:
    """One client with many connections, until its time is over."""

    def __init__(self, port: int, seconds: float, size: int, source: str) -> None:
        self.port, self.size, self.source = port, size, source
        self.seconds, self.until = seconds, time.monotonic() + seconds + 60.0
        self.told: Told = Counter()
        self.limits: set[asyncio.Timeout] = set()

    @property
    def on(self) -> bool:
        return time.monotonic() < self.until

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection(HOST, self.port, local_addr=(self.source, 0))
        self.told["connections"] += 1
        if self.told["connections"] == 1:
            self._begin()
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    def _begin(self) -> None:
        print("begun", flush=True)
        self.until = time.monotonic() + self.seconds
        for limit in self.limits:
            limit.reschedule(asyncio.get_running_loop().time() + self.seconds)

    async def again_and_again(self, act: Callable[[], Awaitable[None]]) -> None:
        """Whoever is thrown out comes back."""
        while self.on:
            try:
                async with asyncio.timeout(max(self.until - time.monotonic(), 0.0)) as limit:
                    self.limits.add(limit)
                    try:
                        await act()
                    finally:
                        self.limits.discard(limit)
            except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
                self.told[type(error).__name__] += 1
                await asyncio.sleep(0.05)

    async def everywhere(self, act: Callable[[], Awaitable[None]]) -> None:
        await asyncio.gather(*(self.again_and_again(act) for _ in range(self.size)))


Attack = Callable[[Attacker], Coroutine[Any, Any, None]]


# -- the attacks -----------------------------------------------------------------------------------------------


async def forged_batches(attacker: Attacker) -> None:
    """Batches of well-formed reports with new ids, as fast as they are taken."""
    count = 20_000
    ask = ask_at(attacker.port)
    reports = EXACT.randomize([number % 100 for number in range(count)], Random(seed=0))
    hole = b"\xaa" * (16 * count)
    before, after = post(BATCH_TYPE, encode_batch(COLLECTION.name, COLLECTION.version, ask, hole, reports)).split(hole)

    async def act() -> None:
        async with attacker.connection() as (reader, writer):
            while attacker.on:
                writer.write(before + os.urandom(16 * count) + after)
                status, body = await answer(reader)
                attacker.told[str(status)] += 1
                attacker.told["accepted"] += json.loads(body).get("accepted", 0)
                if status != 200:
                    return

    await attacker.everywhere(act)


async def unfinished_bodies(attacker: Attacker) -> None:
    """As much of a body as is taken, but for the last byte."""
    head = f"POST /v1/reports HTTP/1.1\r\nContent-Type: {BATCH_TYPE}\r\nContent-Length: {MOST_BODY}\r\n\r\n".encode()
    piece, last = bytes(65536), bytes(MOST_BODY % 65536 or 65535)  # not all at once: memory is faster than any network

    async def act() -> None:
        async with attacker.connection() as (reader, writer):
            writer.write(head)
            for _ in range((MOST_BODY - 1) // 65536):
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            writer.write(last)
            await reader.read(1)
            attacker.told["sent away"] += 1
            await asyncio.sleep(0.5)

    await attacker.everywhere(act)


async def idle_connections(attacker: Attacker) -> None:
    """Connections that say nothing, opened again as soon as they are closed."""

    async def act() -> None:
        async with attacker.connection() as (reader, _):
            await reader.read(1)
            await asyncio.sleep(0.5)

    await attacker.everywhere(act)


def dripping(head: bytes, piece: bytes, pause: float, *, reads: bool = True) -> Attack:
    """A beginning, and then the same piece without end."""

    async def attack(attacker: Attacker) -> None:
        async def act() -> None:
            async with attacker.connection() as (reader, writer):
                if not reads:
                    writer.transport.pause_reading()  # type: ignore[attr-defined]
                writer.write(head)
                while attacker.on and not reader.at_eof():
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(pause)

        await attacker.everywhere(act)

    return attack


QUESTION = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
ATTACKS: dict[str, tuple[Attack, int]] = {
    "forged_batches": (forged_batches, 8),
    # A header that has no end, in pieces so small that each of them is parsed.
    "endless_header": (dripping(b"GET / HTTP/1.1\r\nX: ", b"a" * 4096, 0.0), 4),
    # A line of a header every second, on many connections.
    "slow_headers": (dripping(b"GET / HTTP/1.1\r\n", b"X: a\r\n", 1.0), 2000),
    "unfinished_bodies": (unfinished_bodies, 400),
    "idle_connections": (idle_connections, 6000),
    # Many questions, whose answers nobody reads.
    "slow_readers": (dripping(b"", QUESTION * 8, 0.1, reads=False), 200),
}
"""Each with how many connections it has, unless told otherwise."""


# -- honest devices --------------------------------------------------------------------------------------------


async def honest(port: int, seconds: float, rate: float) -> dict[str, Any]:
    """Single reports at a given rate per second, each on a connection of its own as devices do it."""
    ask, until = ask_at(port), time.monotonic() + seconds
    report = EXACT.randomize([3], Random(seed=0)).to_bare()
    took: list[float] = []
    told: Told = Counter()

    async def send() -> None:
        entry = Entry(*ask, os.urandom(16), report)
        body = encode_upload(COLLECTION.name, COLLECTION.version, [entry], COLLECTION.frame_bytes)
        began = time.monotonic()
        try:
            async with asyncio.timeout(10):
                reader, writer = await asyncio.open_connection(HOST, port)
                try:
                    writer.write(post(UPLOAD_TYPE, body))
                    status, body = await answer(reader)
                    told[str(status)] += 1
                    told["accepted"] += json.loads(body).get("accepted", 0)
                finally:
                    writer.transport.abort()
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            told[type(error).__name__] += 1
        took.append(time.monotonic() - began)

    tasks = []
    while time.monotonic() < until:
        tasks.append(asyncio.ensure_future(send()))
        await asyncio.sleep(1 / rate)
    await asyncio.gather(*tasks)
    took.sort()
    share = {f"p{percent}": took[min(percent * len(took) // 100, len(took) - 1)] for percent in (50, 99)}
    return {**share, "longest": took[-1], "requests": len(took), **told}


# -- parts -----------------------------------------------------------------------------------------------------


def post(kind: str, body: bytes) -> bytes:
    head = f"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return int(head.split(b" ", 2)[1]), await reader.readexactly(lengths[0])


def main() -> None:
    MECHANISMS["Exact"] = Exact
    name, port, seconds, *more = sys.argv[1:]
    if name == "honest":
        print(json.dumps(asyncio.run(honest(int(port), float(seconds), float(more[0]) if more else 50.0))))
        return
    os.nice(15)  # an attacker has a processor of its own, and does not take the server's
    act, size = ATTACKS[name]
    attacker = Attacker(int(port), float(seconds), int(more[0]) if more else size, more[1] if len(more) > 1 else SOURCE)
    asyncio.run(act(attacker))
    print(json.dumps(attacker.told))


if __name__ == "__main__":
    main()
