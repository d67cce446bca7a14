"""A collector with a clock of its own, and devices that answer it in bulk: what the pages of the tests show."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub import Random
from hubbub.authoring import load_collection
from hubbub.collection import Keys, ManualClock
from hubbub.data import emoji
from hubbub.questions.collection import Collection
from hubbub.questions.histogram import HistogramQuestion
from hubbub.service.base.limits import RefusedRequest
from hubbub.service.collector.collector import Collector
from hubbub.service.ingest.open_asks import OpenAsk
from hubbub.service.store.sqlite import SqliteStore
from hubbub.simulate.devices import Stream
from hubbub.simulate.fleet import Fleet
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from tests.shared.asks import randomizer

EXAMPLES = Path(__file__).parents[2] / "examples"
CHUNK = 5000
Values = Callable[[int], Mapping[str, Any]]
"""From a step to the devices' values, as codes, by field."""


class Held(Stream):
    """What devices hold of one field."""

    steps = None

    def __init__(self, n: int, values: Values, field: str) -> None:
        self.n, self._values, self._field = n, values, field

    def values(self, step: int, start: int, stop: int) -> NDArray[Any]:
        held = self._values(step)[self._field]
        if isinstance(held, list):  # of sets, texts or pairs, which numpy must not take apart
            items, held = held, np.empty(len(held), dtype=object)
            held[:] = items
        return np.asarray(held[start:stop])

    def truth(self, step: int) -> NDArray[np.float64]:
        raise NotImplementedError("nobody asks for it")


class PageFleet:
    """Devices that answer every ask of one collection once: a simulated fleet for each question."""

    def __init__(self, collection: Collection, n: int, values: Values, seed: int) -> None:
        self.collection = collection
        self._rng = Random(seed=seed)
        self._fleets = {
            name: Fleet(Held(n, values, next(iter(collection.questions[name].setting.domains))), self._rng, first=1)
            for name in collection.questions
        }
        self._answered: set[Any] = set()

    def answer(self, collector: Collector) -> None:
        """Answer what is open and was not answered yet."""
        for window in collector.board.open(self.collection.collection_id, collector.clock.now()):
            if window.key in self._answered:
                continue
            self._answered.add(window.key)
            for body in self.bodies(window):
                collector.ingest([collector.admit(BATCH_TYPE, body)])

    def bodies(self, window: OpenAsk) -> list[bytes]:
        """What the devices on the ask's arc send."""
        fleet, made = self._fleets[window.question], []
        for who in fleet.on_arc(window.ask.cohort):
            for start in range(who.start, who.stop, CHUNK):
                for reports in fleet.reports(window.ask, slice(start, min(start + CHUNK, who.stop))):
                    if not len(reports):
                        continue  # nobody of a level has anything to say
                    ids = self._rng.bytes(16 * len(reports))
                    made.append(encode_batch(self.collection.name, self.collection.version, window.name, ids, reports))
        return made


def serve(fleets: Sequence[PageFleet], *, start: float, seconds: float, then: float = 0.0, **options: Any) -> Collector:
    """A collector whose devices have answered for so long, and again `then` seconds into a further step."""
    collections, clock, store = [fleet.collection for fleet in fleets], ManualClock(start), SqliteStore(":memory:")
    collector = Collector(collections, store, clock=clock, keys=Keys.new(), rng=Random(seed=9), **options)
    while clock.now() < start + seconds:
        until = collector.tick()
        for fleet in fleets:
            fleet.answer(collector)
        clock.set(min(until, start + seconds))
    collector.tick()
    clock.advance(then)
    collector.tick()
    return collector


def emoji_fleet(n: int = 20_000, *, step_seconds: int | None = None, origin: int | None = None) -> PageFleet:
    """Which emoji people use, from real counts; a celebration comes and goes."""
    collection = load_collection(EXAMPLES / "emoji.toml")
    if step_seconds is not None and origin is not None:
        collection = replace(collection, step_seconds=step_seconds, origin=origin, lateness_seconds=0)
    names = list(collection.fields["used"].labels or ())
    found = dict(zip(emoji().labels.tolist(), emoji().counts.tolist(), strict=True))
    weights = np.array([found.get(name, 0) for name in names], dtype=float)
    weights[-1] = sum(found.values()) - weights.sum()
    party, none = names.index("🎉"), len(names)

    def values(step: int) -> Mapping[str, Any]:
        draw = partial(_uniform, Random(seed=step + 1), n)
        lifted = weights.copy()
        lifted[party] += 0.2 * weights.sum() * np.exp(-(((step % 40) - 20) ** 2) / 30)
        codes = np.searchsorted(np.cumsum(lifted / lifted.sum()), draw()).clip(0, none - 1)
        return {"used": np.where(draw() < 0.06, none, codes)}

    return PageFleet(collection, n, values, seed=1)


def telemetry_fleet(n: int = 6_000) -> PageFleet:
    """Every kind of field and question."""
    collection = load_collection(EXAMPLES / "telemetry.toml")
    wanted = collection.questions["help_wanted"]
    assert isinstance(wanted, HistogramQuestion)
    words = (*wanted.candidates, "printer", "fonts")

    def values(step: int) -> Mapping[str, Any]:
        draw = partial(_uniform, Random(seed=step + 1), n)
        starts = 3.0 + 9.0 * draw() * draw() + 0.05 * (step % 30)
        chosen = (draw() ** 2 * len(words)).astype(int)
        return {
            "platform": np.searchsorted([0.15, 0.4, 1.0], draw()),
            "crashes": np.minimum((draw() ** -0.5 - 1).astype(np.int64), 9),
            "startup": starts,
            "search": [words[code] for code in chosen.tolist()],
            "plugins": [tuple(range(size)) for size in (draw() * 6).astype(int).tolist()],
        }

    return PageFleet(collection, n, values, seed=2)


def three_weeks() -> Collector:
    """Three weeks of emoji and of telemetry, and seven hours of the day after; some reports were turned away."""
    fleets = [emoji_fleet(12_000), telemetry_fleet(2_000)]
    made = serve(fleets, start=fleets[0].collection.opens(100), seconds=21 * 86400, then=7 * 3600)
    for fleet in fleets:
        fleet.answer(made)
    trouble(made, fleets[0])
    return made


def _uniform(rng: Random, n: int) -> Any:
    return (rng.uint32(n) + 0.5) / 2**32


def trouble(collector: Collector, fleet: PageFleet) -> None:
    """Reports that are turned away, for several reasons."""
    window = collector.board.open(fleet.collection.collection_id, collector.clock.now())[0]
    body, *_ = fleet.bodies(window)
    for _ in range(2):
        collector.ingest([collector.admit(BATCH_TYPE, body)])
    place = fleet.collection.name, fleet.collection.version
    stranger = window.name._replace(step=window.name.step + 999)
    ids = bytes(range(16)) * 7
    reports = randomizer(window.ask).randomize([0] * 7, Random(seed=3))
    collector.ingest([collector.admit(BATCH_TYPE, encode_batch(*place, stranger, ids, reports))])
    for hostile in (b"hostile", encode_batch("nobody", 1, window.name, ids, reports), bytes(5 << 20)):
        with pytest.raises(RefusedRequest):
            collector.admit(BATCH_TYPE, hostile)
    collector.tick()
