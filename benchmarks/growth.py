"""Growth: time in proportion to the number of reports, memory that does not grow with it; and the collector's.

python benchmarks/growth.py PLOT.png [--quick]    draws what the collector's tick, start and page cost
"""

import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from measure import BUILD, Result, cpu_seconds, in_process, short

import hubbub as hb
from hubbub.authoring import load_collection
from hubbub.collection import Keys, ManualClock
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Reports
from hubbub.dashboard.reader import Reader
from hubbub.dashboard.results import results_page
from hubbub.protocols.driver import MAIN, Release
from hubbub.questions.collection import Collection
from hubbub.service.collector.collector import Collector
from hubbub.service.http.service import Service
from hubbub.service.ingest.frames import Frame
from hubbub.service.rounds.releases import release_row
from hubbub.service.store.base import StoreChanges
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.batches import Batch

D, CHUNK = 256, 1_000_000
BAND = (0.7, 1.3)  # of the smallest size's cost a report; runs here differ by 15% on their own
MIB = 1 << 20


def growth(quick: bool) -> Iterator[Result]:
    """OLH over d=256: accumulation at three sizes, then a stream."""
    oracle = hb.OLH(epsilon=1.0, domain=D)
    sizes = (100_000, 1_000_000) if quick else (100_000, 1_000_000, 10_000_000)
    values, rng = np.arange(CHUNK) % D, hb.Random()
    reports = Reports.concat(oracle.randomize(values, rng) for _ in range(sizes[-1] // CHUNK))
    best = cpu_seconds({str(n): lambda n=n: oracle.accumulate(reports[:n]) for n in sizes}, repeats=5)
    cost = {n: best[str(n)] / n for n in sizes}
    for n in sizes[1:]:
        yield Result(
            what=f"OLH accumulate, cost a report, n={short(n)}, d={D}",
            unit="ns",
            ours=cost[n] * 1e9,
            versus=f"n={short(sizes[0])}",
            theirs=cost[sizes[0]] * 1e9,
            ratio=cost[n] / cost[sizes[0]],
            least=BAND[0],
            most=BAND[1],
        )

    few, many = (in_process("stream.py", n, CHUNK, D) for n in (2 * CHUNK, 10 * CHUNK if quick else 100 * CHUNK))
    what = f"OLH stream, n={short(many['n'])}, d={D}, chunks of 1e6"
    yield Result(what=f"{what}: peak memory", unit="MiB", ours=many["peak"] / MIB, most=1024)
    yield Result(
        what=f"{what}: peak memory",
        unit="MiB",
        ours=many["peak"] / MIB,
        versus=f"n={short(few['n'])}",
        theirs=few["peak"] / MIB,
        ratio=many["peak"] / few["peak"],
        most=1.1,
    )
    yield Result(what=f"{what}: CPU", unit="s", ours=many["cpu"])


# -- the collector ---------------------------------------------------------------------------------------------

HOUR = 3600.0
BEGIN = 100_000
"""The step of an hour in which a collector begins."""
TEN_YEARS, YEAR, DAY = 87_600, 8_760, 24  # hours
FIGURES = ("the step", "the release", "nothing due", "start again", "a page")
Costs = dict[str, float]
"""CPU seconds, by what they were spent on."""


def served(questions: int, collections: int = 1, **keys: object) -> list[Collection]:
    """Hourly collections of so many questions each, each about a field of its own of `size` values."""
    size, groups = keys.pop("size", 4), keys.pop("groups", 0)
    given = "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
    asked = f'kind = "histogram"\nepsilon = 0.001\nmechanism = "GRR"\n{given}' if "kind" not in keys else given
    fields = f'[fields.group]\nkind = "ordinal"\nsize = {groups}\n' if groups else ""
    by = 'by = "group"\n' if groups else ""
    for place in range(questions):
        fields += f'[fields.f{place}]\nkind = "ordinal"\nsize = {size}\n'
        fields += f'[questions.q{place}]\nfield = "f{place}"\n{asked}{by}'
    head = 'version = 1\ntitle = "Growth"\nschedule = { step = "1h", lateness = "1m", retention = "1d" }\n'
    head += "privacy = { event = 4.0, minimum_batch = 20 }\n"
    return [load_collection(f'name = "growth{number}"\n{head}{fields}') for number in range(collections)]


def timed(do: Callable[[], object]) -> float:
    start = time.process_time()
    do()
    return time.process_time() - start


class Life:
    """A collector over a file, on a clock that is moved."""

    def __init__(self, collections: list[Collection], folder: Path) -> None:
        self.collections, self.path, self.clock = collections, folder / "hubbub.db", ManualClock(BEGIN * HOUR)
        self.hour = BEGIN
        self.open()

    def open(self) -> None:
        keys = Keys(bytes(32))
        self.collector = Collector(self.collections, SqliteStore(self.path), clock=self.clock, keys=keys)

    def again(self) -> None:
        self.collector.store.close()
        self.open()

    def at(self, time: float) -> None:
        self.clock.set(time)
        self.collector.tick()

    def page(self) -> None:
        reader = Reader(Service(self.collector))
        for collection in self.collections:
            results_page(reader, collection)

    def costs(self, steps: int = 4) -> Costs:
        """The best of some steps, and of two starts and pages."""
        best = dict.fromkeys(FIGURES, math.inf)
        for _ in range(steps):
            self.hour += 1
            for name, when in (("the step", 0.0), ("the release", 60.0), ("nothing due", 61.0)):
                best[name] = min(best[name], timed(partial(self.at, self.hour * HOUR + when)))
        for name, do in (("start again", self.again), ("a page", self.page)):
            best[name] = min(timed(do) for _ in range(2))
        return best

    def remember(self, hours: int) -> None:
        """Have a release of each of so many earlier hours in the store, for the first question."""
        collection = self.collections[0]
        size = len(collection.questions["q0"].labels() or ()) or 4
        share, spread = np.full(size, 1 / size) + np.linspace(0, 1e-3, size), np.full(size, 1.2345678e-4)
        estimate = Estimate(share, spread, 100_000, labels=collection.questions["q0"].labels())
        release = Release(step=0, estimates={MAIN: estimate}, published=True, spent=0.001, n=1e5)
        row = release_row(release, collection=collection.collection_id, question="q0", time=0.0, minimum_batch=20)
        rows = [row._replace(step=BEGIN - 1 - hour) for hour in range(hours)]
        self.collector.store.commit(StoreChanges(releases=rows))


def life(collections: list[Collection], hours: int = 0) -> Costs:
    with tempfile.TemporaryDirectory() as folder:
        lived = Life(collections, Path(folder))
        lived.remember(hours)
        costs = lived.costs()
        lived.collector.store.close()
    return costs


def held(count: int) -> Costs:
    """Ten thousand more reports to an ask that has the ids of `count` already."""
    (collection,) = served(1)
    with tempfile.TemporaryDirectory() as folder:
        lived, rng = Life([collection], Path(folder)), hb.Random()
        (ask,) = lived.collector.board.asks.values()

        def send(reports: int) -> float:
            made = ask.ask.mechanism.randomize(np.arange(reports) % 4, rng)
            batch = Batch(collection.name, 1, ask.name, rng.bytes(16 * reports), made.to_bare())
            return timed(lambda: lived.collector.ingest([Frame(collection.collection_id, batch=batch)]))

        for _ in range(count // 10_000):
            send(10_000)
        cost = min(send(10_000) for _ in range(3)) / 10_000
        lived.collector.store.close()
    return {"a report": cost}


def folded(n: int, d: int) -> Costs:
    oracle = hb.OLH(epsilon=1.0, domain=d)
    reports = oracle.randomize(np.arange(n) % d, hb.Random())
    return {"fold": cpu_seconds({"": lambda: oracle.accumulate(reports)}, repeats=3)[""]}


def curves(quick: bool) -> Iterator[tuple[str, dict[int, Costs]]]:
    """What costs how much, by what grows."""

    def over(values: Iterable[int], cost: Callable[[int], Costs]) -> dict[int, Costs]:
        return {value: cost(value) for value in values}

    yield "n: reports", over((10_000, 100_000, 1_000_000), lambda n: folded(n, 256))
    yield "d: values of a field", over((16, 64, 256, 1024, 4096), lambda d: folded(20_000, d))
    stream = {"kind": "stream", "epsilon": 1.0, "method": "LPA"}
    yield "w: steps of a window", over((4, 32, 256), lambda w: life(served(1, w=w, **stream)))
    yield "T: hours of history", over((DAY, YEAR // 8, YEAR, TEN_YEARS), lambda hours: life(served(1), hours))
    yield "questions", over((1, 10, 100) if quick else (1, 10, 100, 300, 1000), lambda count: life(served(count)))
    yield "collections", over((1, 10) if quick else (1, 10, 30, 100), lambda count: life(served(1, count)))
    yield "ids held of an ask", over((0, 100_000) if quick else (0, 100_000, 1_000_000), held)
    yield "releases of 100 values", over((DAY, YEAR // 8, YEAR), lambda hours: life(served(1, size=100), hours))
    yield "groups", over((2, 8, 32), lambda groups: life(served(1, groups=groups)))


def collector(quick: bool) -> Iterator[Result]:
    """The collector's tick, start and page, with more questions, more collections, more history."""
    found = dict(curves(quick))
    draw(found, BUILD / "growth.png")
    yield from judged(found)


def judged(found: dict[str, dict[int, Costs]]) -> Iterator[Result]:
    """The lines of the table."""
    most = {"questions": {"the step": 1.0, "the release": 1.0, "start again": 5.0}}
    most["releases of 100 values"] = {"start again": 5.0, "a page": 1.0}
    for what, curve in found.items():
        first, *_, last = curve
        for name, cost in curve[last].items():
            flat = what.startswith("T:") and name in ("the step", "the release", "nothing due")
            yield Result(
                what=f"{what}, {last:,}: {name}",
                unit="s",
                ours=cost,
                versus=f"{first:,}",
                theirs=curve[first][name],
                ratio=cost / curve[first][name] if flat else None,
                most=1.2 if flat else most.get(what, {}).get(name),
            )


def draw(found: dict[str, dict[int, Costs]], path: Path) -> None:
    """All curves, on logarithmic axes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = 3
    figure, axes = plt.subplots(math.ceil(len(found) / columns), columns, figsize=(11, 9), layout="constrained")
    for axis, (what, curve) in zip(axes.flat, found.items(), strict=False):
        for name in next(iter(curve.values())):
            places = [max(value, 1) for value in curve]
            axis.plot(places, [1e3 * costs[name] for costs in curve.values()], marker="o", markersize=3, label=name)
        axis.set(title=what, xscale="log", yscale="log", ylabel="CPU milliseconds")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7)
    figure.savefig(path, dpi=72)


if __name__ == "__main__":
    measured = dict(curves(quick="--quick" in sys.argv))
    for result in judged(measured):
        ratio = "" if result.ratio is None else f", {result.ratio:.2f} times"
        print(f"{result.what}: {result.ours * 1e3:.3g} ms ({result.versus}: {1e3 * (result.theirs or 0):.3g}){ratio}")
    draw(measured, Path(sys.argv[1]))
