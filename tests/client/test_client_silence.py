"""Silence and cover: uploads have the same names, times and sizes whatever was recorded, and whoever answers."""

from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from hubbub.client import Client
from hubbub.client.answer import Answerer
from hubbub.questions.collection import Collection
from hubbub.wire.upload import UPLOAD_TYPE, decode_upload, encode_upload
from tests.client.device import World, seeded
from tests.client.local_server import survey
from tests.client.real_collector import OpenCollector, RealCollector, Watched
from tests.shared.small_collections import THEME, collection_text

TEXT = collection_text(
    privacy={"user": 7.2, "minimum_batch": 20, "window": {"epsilon": 6.0, "steps": 3}},
    fields={"home": {"kind": "ordinal", "size": 3}, "work": {"kind": "ordinal", "size": 3}},
    questions={
        "popular": {"kind": "histogram", "field": "home", "epsilon": 0.6},
        "page": {"kind": "memo", "field": "home", "epsilon": 0.6, "permanent": 1.2},
        "desk": {"kind": "memo", "field": "work", "epsilon": 0.6, "permanent": 1.2},
    },
)
FIRST = survey(TEXT)
SECOND = survey(TEXT.replace("user = 7.2", "user = 6.0").replace("epsilon = 6.0", "epsilon = 5.0"), version="2")
STEPS = 4
VALUES = (0, 1, None)


def uploads_of(
    folder: Path, homes: Iterable[int | None], versions: tuple[Collection, ...] = (FIRST, SECOND), works: int = 3
) -> list[Any]:
    """All that the network and the server see of a device: requests, and of uploads the names and sizes."""
    here, observed = World(folder, versions[0]), []
    with here.device(rng=seeded("observed")) as client:
        for number, home in enumerate(homes):
            if number == STEPS // 2 and len(versions) > 1:
                here.serve(versions[1])
            here.begin(5 + number)
            here.server.seen.clear()
            here.server.bodies.clear()
            client.record("work", number % works)
            if home is not None:
                client.record("home", home)
            client.tick()
            client.upload()
            uploads = [(len(body), decode_upload(body).version, _named(body)) for body in here.server.bodies]
            observed.append((number, list(here.server.seen), uploads))
    return observed


def _named(body: bytes) -> list[tuple[str, int]]:
    return [(str(entry.name), len(entry.report)) for entry in decode_upload(body).entries]


def histories() -> list[tuple[int | None, ...]]:
    return list(product(VALUES, repeat=STEPS))


def test_all_histories_look_alike(folder: Path) -> None:
    looks = {repr(uploads_of(folder / str(number), homes)) for number, homes in enumerate(histories())}
    assert len(looks) == 1
    # And the budgets were tight: something fell silent, and something went on.
    again = uploads_of(folder / "again", (0, 1, 2, 0))
    names = [name.split(":")[0] for step in again for upload in step[2] for name, _ in upload[2]]
    assert names.count("page") == names.count("desk") == STEPS
    assert names.count("popular") == STEPS - 1


def test_memos_that_others_pay_for_are_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: all questions share one account."""

    def shared(self: Answerer, question: str, step: int, units: int) -> None:
        self._store.book.spend(step, "asks", question, units)

    alone = survey(TEXT.replace("window = {epsilon = 6.0, steps = 3}", ""), user="14.4")
    some = [(0, 0, 0, 0), (0, 1, 2, 0), (0, 1, 0, 1)]
    for bug, looks in ((False, 1), (True, 2)):
        if bug:
            monkeypatch.setattr(Answerer, "_spend", shared)
        observed = {repr(uploads_of(folder / f"{bug}{k}", homes, (alone,), works=1)) for k, homes in enumerate(some)}
        assert len(observed) == looks


TURNS = collection_text(
    privacy={"window": {"epsilon": 1.0, "steps": 4}, "minimum_batch": 20, "cover": True},
    fields={"theme": THEME},
    questions={"trend": {"kind": "stream", "field": "theme", "epsilon": 1.0, "method": "LPU", "w": 4}},
)
SHORT = TURNS.replace("window = {epsilon = 1.0, steps = 4}", "event = 1.0\nuser = 2.0").replace(
    'kind = "stream"\nfield = "theme"\nepsilon = 1.0\nmethod = "LPU"\nw = 4',
    'kind = "histogram"\nfield = "theme"\nepsilon = 1.0',
)
DEVICES = 12
COVER_STEPS = range(7, 15)


def run(here: RealCollector, **options: Any) -> tuple[list[Watched], list[Client]]:
    """Let a dozen devices live through all steps; half of them record something."""
    wires = [Watched(here.server) for _ in range(DEVICES)]
    clients = [here.device(number, wire, **options) for number, wire in enumerate(wires)]
    for step in COVER_STEPS:
        for part in (0.1, 0.6):
            here.go(step, part * here.collection.step_seconds)
            for number, client in enumerate(clients):
                if number % 2:
                    client.record("theme", "dark")
                client.tick()
                client.upload()
    return wires, clients


@pytest.mark.parametrize("form", ["msgpack", "json"])
@pytest.mark.parametrize("text", [TURNS, SHORT], ids=["not its turn", "budget spent"])
def test_every_device_sends_one_frame_an_ask_all_of_one_size(collect: OpenCollector, text: str, form: str) -> None:
    here = collect(text)
    wires, clients = run(here, form=form)
    for wire, client in zip(wires, clients, strict=True):
        assert len(wire.bodies) == len(COVER_STEPS)
        assert len({len(body) for _, body in wire.bodies}) == 1
        assert wire.entries().count(1) == 2  # a turn every four steps, or two units for life
        counts = client.status().counts
        assert (counts["sent"], counts["cover"]) == (2, len(COVER_STEPS) - 2)
        assert client.status().queued == 0
    assert here.counts() == {"accepted": 2 * DEVICES, "cover": (len(COVER_STEPS) - 2) * DEVICES}


def test_without_it_only_answers_are_sent(collect: OpenCollector) -> None:
    wires, clients = run(collect(TURNS.replace("cover = true\n", "")))
    for wire, client in zip(wires, clients, strict=True):
        assert wire.entries() == [1, 1]
        assert set(client.status().counts) == {"sent"}


def test_cover_changes_nothing_but_its_counter(collect: OpenCollector) -> None:
    here = collect(SHORT)
    (window,) = here.server.collector.board.asks.values()
    frame = encode_upload(here.collection.name, here.collection.version, [], here.collection.frame_bytes)
    for _ in range(3):
        response = here.server.request("POST", "/v1/reports", {"Content-Type": UPLOAD_TYPE}, frame)
        assert response.body == b'{"accepted": 0, "duplicates": 0, "rejected": []}'
    assert window.sketch.n == 0
    assert here.counts() == {"cover": 3}
    assert list(here.server.store.id_pages(window.key)) == []


def test_cover_is_sent_once_whatever_is_lost_or_restarted(collect: OpenCollector) -> None:
    """Sent more often than answers are, it could be told from them: it waits, and is retried, as they are."""
    here = collect(SHORT)
    for step in (7, 8):  # all that it may ever spend
        here.go(step, 60.0)
        with here.device() as client:
            assert (client.tick(), client.upload()) == (1, 1)
    here.go(9, 60.0)
    with here.device() as client:
        assert client.tick() == 0
        assert client.status().queued == 0  # it is no report, and was not sent
    with here.device() as client:
        here.wire.lost = True
        client.upload()
        here.wire.lost = False
        here.clock.advance(600.0)
        client.upload()
    with here.device() as client:
        for _ in range(3):
            client.tick()
            client.upload()
        assert here.wire.entries() == [1, 1, 0, 0]
        assert here.wire.bodies[2] == here.wire.bodies[3]
        assert client.status().counts["cover"] == 1
