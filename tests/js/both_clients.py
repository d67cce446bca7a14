"""A real collector that Python's clients and browsers answer together, on one clock that is moved by hand."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from playwright.sync_api import BrowserContext

from hubbub import Random
from hubbub.client import Client
from hubbub.collection import ManualClock
from hubbub.core.reports import Sketch
from hubbub.questions.collection import Collection
from hubbub.service.store.base import EraRow
from tests.js.tab import OpenSite, blank
from tests.shared.in_process import KEYS, InProcess


class BothClients:
    """A collector, a site that relays to it, and a folder for each of Python's devices; a browser's are databases."""

    def __init__(
        self, context: BrowserContext, site: OpenSite, folder: Path, collection: Collection, now: float | None = None
    ) -> None:
        self.context, self.folder, self.collection = context, folder, collection
        self.clock = ManualClock(0.0 if now is None else now)
        self.server = InProcess(collection, self.clock, folder / "store.db", rng=Random(seed=1))
        self.home = site(collection)
        self.home.collector, self.home.clock = self.server, self.clock

    def go(self, step: int) -> None:
        """To a moment in a step when what came late to the one before is in; the collector begins again there."""
        self.clock.set(self.collection.opens(step) + self.collection.lateness_seconds + 1.0)
        self.server.restart()

    @contextmanager
    def python(self, number: int, rng: Random | None = None) -> Iterator[Client]:
        """A device of Python, which answers and sends when the block ends."""
        given: Any = {"clock": self.clock, "monotonic": self.clock.now, "jitter": 0.0, "rng": rng}
        name = self.collection.name
        with Client(self.folder / str(number), self.server, KEYS.public, collection=name, **given) as client:
            yield client
            client.tick()
            client.upload()
            assert client.status().queued == 0

    def browsers(self, count: int, values: str) -> None:
        """Devices of browsers, which answer and send; `values` is what device `n` does before, with its `client`."""
        page = blank(self.context, self.home)
        page.evaluate(
            f"""async options => {{
              for (let n = 0; n < {count}; n++) {{
                const client = await open_client({{ ...options, database: `device ${{n}}` }});
                {values}
                await client.tick();
              }}
            }}""",
            {"collection": self.collection.name, "keys": [KEYS.public.hex()]},
        )
        page.close()

    @property
    def accepted(self) -> int:
        """How many reports were counted; no other outcome is known."""
        counts = {outcome: count for (_, outcome), count in self.server.collector.counts().items() if count}
        assert counts.keys() == {"accepted"}, counts
        return counts["accepted"]

    def releases(self, question: str) -> list[dict[str, Any]]:
        """What was released of a question, with its steps."""
        rows = self.server.store.releases(self.collection.collection_id, question, 0, 99, 99)
        return [{"step": row.step, **json.loads(row.payload)} for row in rows]

    def sketches(self, question: str, first: int) -> list[Sketch]:
        """What was heard of a question's asks since a step, the first of an era."""
        asks = self.server.store.asks(EraRow(self.collection.collection_id, question, first))
        return [Sketch.from_bytes(ask.sketch) for ask in asks if ask.sketch is not None]

    def close(self) -> None:
        self.server.store.close()


OpenBothClients: TypeAlias = Callable[..., BothClients]
