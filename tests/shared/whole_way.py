"""A question's whole way: devices answer it, two collectors hear them, one of which begins again after every step."""

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import httpx

from hubbub.client import Response
from hubbub.collection import ManualClock
from hubbub.questions import read_collection
from hubbub.questions.collection import Collection
from hubbub.random.source import Random
from tests.client.device import collection_of
from tests.shared.in_process import InProcess
from tests.shared.killed_processes import SHELF  # ledgers that are synced to a disk take a minute

DEVICES = 24
_TOKEN = "a token for the tests"


class Twins(InProcess):
    """Two collectors that hear the same; one of them is stopped and started after every step."""

    def __init__(self, collection: Collection, clock: ManualClock, folder: Path) -> None:
        read = read_collection(json.loads(json.dumps(collection.spec())))
        super().__init__(read, clock, folder / "steady.db")
        self.restarted = InProcess(read, clock, folder / "restarted.db")

    def at(self, now: float) -> Self:
        self.restarted.at(now)
        return super().at(now)

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        twin = self.restarted.request(method, path, headers, body) if body is not None else None
        response = super().request(method, path, headers, body)
        assert twin is None or json.loads(twin.body) == json.loads(response.body)
        return response


@contextmanager
def answered(
    collection: Collection, question: str, field: str | tuple[str, ...], value: Callable[[int], Any], steps: range
) -> Iterator[tuple[list[dict[str, Any]], Callable[[str], httpx.Response]]]:
    """Let 24 devices answer for a number of steps. What both collectors released, and how a page of one is fetched.

    Of several fields a device has several values, or None where it records nothing.
    """
    fields = (field,) if isinstance(field, str) else field
    with tempfile.TemporaryDirectory(dir=SHELF) as name:
        folder, clock = Path(name), ManualClock(collection.opens(steps[0]))
        twins = Twins(collection, clock, folder)
        devices = [twins.device(folder / str(number), rng=Random(seed=number)) for number in range(DEVICES)]
        for step in steps:
            twins.at(collection.opens(step) + 0.1 * collection.step_seconds)
            for number, client in enumerate(devices):
                given_values = (value(number),) if isinstance(field, str) else value(number)
                for recorded, held in zip(fields, given_values, strict=True):
                    if held is not None:
                        client.record(recorded, held)
                assert client.tick() == 1
                assert client.upload() == 1
            clock.set(collection.opens(step) + 0.9 * collection.step_seconds)
            twins.restarted.restart()
        twins.at(collection.opens(steps[-1] + 1) + collection.lateness_seconds + 1)
        collectors = twins.collector, twins.restarted.collector
        steady, restarted = (each.releases(collection.name, question, first=0, last=99, most=99) for each in collectors)
        assert [(row.step, row.payload) for row in steady] == [(row.step, row.payload) for row in restarted]
        for client in devices:
            assert not hasattr(collection_of(client), "questions")
            client.close()
        yield [json.loads(row.payload) for row in restarted], site(collectors[1])
        for collector in collectors:
            collector.store.close()


def site(collector: Any) -> Callable[[str], httpx.Response]:
    """The API and every page of a collector, to someone who has the token."""
    from hubbub.dashboard.pages import routes
    from hubbub.dashboard.reader import Reader
    from hubbub.service.http.problems import Tokens
    from hubbub.service.http.server import create_app
    from hubbub.service.http.service import Service

    service = Service(collector)
    site = create_app(service, Tokens([_TOKEN]), routes=routes(Reader(service)))

    async def fetch(path: str) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(site), base_url="http://here") as client:
            return await client.get(path, headers={"Authorization": f"Bearer {_TOKEN}"})

    return lambda path: asyncio.run(fetch(path))
