"""The client and the real collector, on one clock: whatever is asked is answered, counted once, and released."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.collection import ManualClock
from tests.client.device import device
from tests.client.local_server import survey
from tests.client.test_client_fleet import TEXT
from tests.shared.in_process import InProcess

DEVICES = 10
STEPS = range(7, 9)
ADAPTIVE = TEXT.replace('method = "LPU"', 'method = "LBD"')


@pytest.mark.parametrize(
    ("text", "form"), [(TEXT, "msgpack"), (ADAPTIVE, "json")], ids=["one ask a step", "two asks a step, in JSON"]
)
def test_reports_are_accepted_and_released(folder: Path, text: str, form: str) -> None:
    collection = survey(text)
    clock = ManualClock(collection.opens(STEPS[0]))
    server = InProcess(collection, clock, folder / "store.db")
    devices = [device(folder / str(number), server, clock, form=form) for number in range(DEVICES)]
    answered = sent = 0
    for step in STEPS:
        for part in (0.1, 0.6):  # in both halves of the step
            clock.set(collection.opens(step) + part * collection.step_seconds)
            server.collector.tick()
            for number, client in enumerate(devices):
                client.record("theme", "dark" if number % 3 else "light")
                client.record("home", number % 3)
                answered += client.tick()
                sent += client.upload()
    clock.set(collection.opens(STEPS[-1] + 1) + collection.lateness_seconds + 1)
    server.collector.tick()
    counts = {outcome: count for (_, outcome), count in server.collector.counts().items() if count}
    assert counts == {"accepted": answered}
    assert sent == answered >= DEVICES * 3 * len(STEPS)
    for name in collection.questions:
        releases = server.collector.releases("survey", name, first=0, last=99, most=99)
        assert [row.step for row in releases] == list(STEPS)
    for client in devices:
        assert client.status().queued == 0
        assert set(client.status().counts) == {"sent"}
        client.close()
    server.store.close()
