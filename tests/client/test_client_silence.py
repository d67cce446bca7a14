"""Silence reveals nothing: whatever a device recorded, its uploads have the same names, times and sizes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from hubbub.client.answer import Answerer
from hubbub.collection import Collection, ManualClock
from hubbub.wire.upload import decode_upload
from tests.client.device import begin, device, seeded
from tests.client.local_server import LocalServer, survey
from tests.shared.small_collections import collection_text

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
    clock, observed = ManualClock(), []
    server = LocalServer(versions[0])
    with device(folder, server, clock, rng=seeded("observed")) as client:
        for number, home in enumerate(homes):
            if number == STEPS // 2 and len(versions) > 1:
                server.__dict__.update(LocalServer(versions[1]).__dict__)
            begin(server, clock, 5 + number)
            server.seen.clear()
            server.bodies.clear()
            client.record("work", number % works)
            if home is not None:
                client.record("home", home)
            client.tick()
            client.upload()
            uploads = [(len(body), decode_upload(body).version, _named(body)) for body in server.bodies]
            observed.append((number, list(server.seen), uploads))
    return observed


def _named(body: bytes) -> list[tuple[str, int]]:
    return [(str(entry.name), len(entry.report)) for entry in decode_upload(body).entries]


def histories() -> list[tuple[int | None, ...]]:
    return list(product(VALUES, repeat=STEPS))


def test_all_histories_look_alike(folder: Path) -> None:
    looks = {repr(uploads_of(folder / str(number), homes)) for number, homes in enumerate(histories())}
    assert len(looks) == 1
    # And the budgets were tight: something fell silent, and something went on.
    names = [
        name.split(":")[0] for step in uploads_of(folder / "again", (0, 1, 2, 0)) for up in step[2] for name, _ in up[2]
    ]
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
        observations = {
            repr(uploads_of(folder / f"{bug}{k}", homes, (alone,), works=1)) for k, homes in enumerate(some)
        }
        assert len(observations) == looks
