"""Makes golden files of what devices keep, in the formats of the code that it is run with.

    python -m tests.golden.make_device client FOLDER
    python -m tests.golden.make_device client-later FOLDER

Next to the files it writes `expected.json`: what was spent, and what waits.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hubbub.authoring import load_collection
from hubbub.client import Client, Response, Transport
from hubbub.collection import ManualClock
from hubbub.random.source import Random
from tests.shared.in_process import KEYS, InProcess
from tests.shared.small_collections import THEME, collection_text

HOUR = 3600
HORIZON = 8
FIRST = 3 * HORIZON
SURVEY = collection_text(
    privacy={"user": 40.0, "minimum_batch": 20, "window": {"epsilon": 20.0, "steps": 24}},
    fields={
        "theme": THEME,
        "home": {"kind": "ordinal", "size": 6},
        "place": {"kind": "categorical", "names": ["home", "work", "away"]},
    },
    questions={
        "popular": {"kind": "histogram", "field": "theme", "epsilon": 0.25},
        "page": {"kind": "memo", "field": "home", "epsilon": 1.0, "permanent": 2.0},
        "places": {"kind": "changes", "field": "place", "epsilon": 2.0, "steps": 8, "changes": 3},
    },
)


class SurveyServer(InProcess):
    """A collector of the survey, whose answers to uploads may get lost."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock, self.lost = clock, False
        self.serve(1)

    def serve(self, version: int) -> None:
        """Begin with a version of the collection."""
        collection = load_collection(SURVEY.replace("version = 1", f"version = {version}"))
        super().__init__(collection, self.clock, ":memory:", rng=Random(seed=1))

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        """Answer; with `lost`, what is uploaded gets no answer."""
        if body is not None and self.lost:
            return Response(503, {}, b"")
        return super().request(method, path, headers, body)


def device(folder: Path, clock: ManualClock, server: Transport) -> Client:
    """A client on the clock."""
    given: dict[str, Any] = {"clock": clock, "monotonic": clock.now, "jitter": 0.0, "collection": "survey"}
    return Client(folder, server, KEYS.public, rng=Random(seed=2), **given)


def make_client(folder: Path) -> None:
    """Four steps of a device: a histogram, two memos, a stream of changes; the last step's reports still wait."""
    clock = ManualClock(FIRST * HOUR + 60.0)
    server = SurveyServer(clock)
    with device(folder, clock, server) as client:
        live(client, server, FIRST)
        expect(folder, client, clock)


def make_client_later(folder: Path) -> None:
    """A device that has gone on to the second version of its collection, once the first had left its window."""
    clock = ManualClock(FIRST * HOUR + 60.0)
    server = SurveyServer(clock)
    with device(folder, clock, server) as client:
        live(client, server, FIRST)
        server.serve(2)
        live(client, server, FIRST + 4 * HORIZON)
        expect(folder, client, clock)


def live(client: Client, server: SurveyServer, first: int) -> None:
    """Four steps."""
    for number, (home, place) in enumerate([(3, "home"), (3, "home"), (1, "work"), (1, "work")]):
        server.clock.set((first + number) * HOUR + 60.0)
        server.collector.tick()
        server.lost = number == 3
        client.record("theme", "dark" if number % 2 else "light")
        client.record("home", home)
        client.record("place", place)
        client.tick()
        client.upload()


def expect(folder: Path, client: Client, clock: ManualClock) -> None:
    """Note where a client stands."""
    status = client.status()
    units = {unit: getattr(status, unit) for unit in ("event", "window", "user")}
    expected = {
        "now": clock.now(),
        "version": status.version,
        "spent": status.spent,
        "queued": status.queued,
        "memos": dict(status.memos),
        "counts": dict(status.counts),
        "remaining": {unit: spending.remaining for unit, spending in units.items() if spending is not None},
    }
    write(folder, expected)


def write(folder: Path, expected: Mapping[str, object]) -> None:
    """Keep what is expected next to the files."""
    (folder / "expected.json").write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    kind, place = sys.argv[1:]
    {"client": make_client, "client-later": make_client_later}[kind](Path(place))
