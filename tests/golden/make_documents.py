"""Makes golden files of what is published and sent: collection files, signed documents, frames, specs of mechanisms.

    python -m tests.golden.make_documents KIND FOLDER

KIND is toml, collection, shuffled, asks, wire or mechanisms.
"""

import json
import sys
from pathlib import Path
from typing import Any

from hubbub.authoring import load_collection, read_collection
from hubbub.authoring.toml import EXAMPLE
from hubbub.collection import seal
from hubbub.collection.names import AnswerName
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.base import Mechanism, ReportFormat
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.questions.collection import Collection
from hubbub.random.source import Random
from hubbub.wire.batches import encode_batch
from hubbub.wire.upload import Entry, encode_upload, encode_upload_json
from tests.golden.make_store import KEYS, WHOLE, World
from tests.golden.make_transcripts import every_kind
from tests.shared.small_collections import THEME, collection_text

SHUFFLED = collection_text(
    trust="shuffle",
    privacy={"event": 4.0, "user": 40.0},
    fields={"theme": THEME},
    questions={"popular": {"kind": "histogram", "field": "theme", "epsilon": 2.0}},
    shuffle={
        "collector_key": "0c" * 32,
        "delta": 1e-6,
        "least": 1000,
        "fakes": 100,
        "shufflers": [
            {"url": "https://first.example", "encryption_key": "0a" * 32, "signing_key": "1a" * 32},
            {"url": "https://second.example", "encryption_key": "0b" * 32, "signing_key": "1b" * 32},
        ],
    },
)
FILES = Path(__file__).parents[2] / "examples"


def make_toml(folder: Path) -> None:
    """A large file, one with every kind of question, and the smallest there is."""
    (folder / "small.toml").write_text(EXAMPLE)
    (folder / "large.toml").write_text((FILES / "telemetry.toml").read_text())
    (folder / "kinds.toml").write_text(every_kind())
    expected = {path.stem: read_collection(path).spec() for path in sorted(folder.glob("*.toml"))}
    write(folder / "expected.json", expected)


def make_collection(folder: Path) -> None:
    """A signed collection, as devices fetch and keep it."""
    world = World(WHOLE, folder / "store.sqlite", 25 * 3600.0)
    (folder / "signed.json").write_bytes(world.collector.specs["survey"].body)
    expect(folder, world.collection)
    world.store.close()
    tidy(folder)


def make_shuffled(folder: Path) -> None:
    """A collection whose reports are shuffled."""
    collection = load_collection(SHUFFLED)
    (folder / "signed.json").write_text(json.dumps(seal(collection.spec(), KEYS.private)))
    expect(folder, collection)


def make_asks(folder: Path) -> None:
    """The signed asks of a moment, of every kind of question."""
    world = World(WHOLE, folder / "store.sqlite", 25 * 3600.0)
    (folder / "signed.json").write_bytes(world.collector.asks["survey"].body)
    windows = world.collector.board.open(world.collection.collection_id, world.clock.now())
    asks = {window.question: window.ask.ask_id for window in windows}
    rounds = {window.question: window.name.round for window in windows}
    place = {"collection": world.collection.name, "version": world.collection.version}
    write(folder / "expected.json", {"key": KEYS.public.hex(), **place, "asks": asks, "rounds": rounds})
    world.store.close()
    tidy(folder)


def make_wire(folder: Path) -> None:
    """An upload of two reports in both spellings, one without any, and a batch."""
    grr, rng = GRR(epsilon=1.0, domain=3), Random(seed=4)
    reports = [grr.randomize([value], rng) for value in (0, 2)]
    names = [AnswerName("popular", 0, 491520, 1, 0), AnswerName("trend_2", 0, 491520, 2, 0)]
    ids = [bytes([number]) * 16 for number in range(2)]
    rows = zip(names, ids, reports, strict=True)
    entries = [Entry(*name, report_id, report.to_bare()) for name, report_id, report in rows]
    (folder / "upload.msgpack").write_bytes(encode_upload("survey", 3, entries, 1024))
    (folder / "upload.json").write_bytes(encode_upload_json("survey", 3, entries, 1024))
    (folder / "cover.msgpack").write_bytes(encode_upload("survey", 3, [], 1024))
    batch = type(reports[0]).concat(reports)
    (folder / "batch.msgpack").write_bytes(encode_batch("survey", 3, names[1], bytes(range(32)), batch))
    expected = {
        "mechanism": grr.spec(),
        "entries": [[str(entry.name), entry.report_id.hex(), entry.report.hex()] for entry in entries],
        "values": [int(made.private["value"][0]) for made in reports],
    }
    write(folder / "expected.json", expected)


def make_mechanisms(folder: Path) -> None:
    """The spec of every mechanism that has no file yet, with a few reports and their sketch."""
    for mechanism in every_mechanism():
        rows = folder / f"{mechanism.spec()['mechanism']}-{mechanism.spec_id[:8]}.json"
        if rows.exists():
            continue
        expected: dict[str, Any] = {"spec": mechanism.spec(), "spec_id": mechanism.spec_id}
        if isinstance(mechanism, Mechanism):
            reports = mechanism.randomize(mechanism.example_values(4), Random(seed=6))
            expected |= {"reports": reports.to_bytes().hex(), "sketch": mechanism.accumulate(reports).to_bytes().hex()}
        write(rows, expected)


def every_mechanism() -> list[ReportFormat]:
    """The first example of each."""
    return [next(iter(kind.examples())) for kind in MECHANISMS.values()]


def expect(folder: Path, collection: Collection) -> None:
    """Keep what must be read from a signed collection."""
    spec = collection.spec()
    write(folder / "expected.json", {"key": KEYS.public.hex(), "id": collection.collection_id, "spec": spec})


def write(path: Path, expected: Any) -> None:
    """Keep what is expected."""
    path.write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")


def tidy(folder: Path) -> None:
    """Leave no store behind."""
    for path in folder.glob("store.sqlite*"):
        path.unlink()
    (folder / "reports").rmdir()


if __name__ == "__main__":
    made = Path(sys.argv[2])
    made.mkdir(parents=True, exist_ok=sys.argv[1] == "mechanisms")
    kinds = (make_toml, make_collection, make_shuffled, make_asks, make_wire, make_mechanisms)
    {maker.__name__.removeprefix("make_"): maker for maker in kinds}[sys.argv[1]](made)
