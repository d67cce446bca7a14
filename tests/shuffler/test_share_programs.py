"""Three shufflers of shares and a collector as programs, each of which is killed once on the way."""

import time
from pathlib import Path
from typing import Any

import pytest

from hubbub import Random
from hubbub.client.upload import HttpTransport
from hubbub.collection import SystemClock
from hubbub.collection.names import AnswerName
from hubbub.collection.shuffle_route import ObliviousRoute, batch_name, layer_name
from hubbub.protocols.ask import Ask
from hubbub.shuffle.oblivious import split
from hubbub.shuffle.onion import wrap
from hubbub.shuffle.report_numbers import to_numbers
from hubbub.shuffler.intake import take_entries
from hubbub.shuffler.source import SignedSource
from hubbub.shuffler.store import ShufflerStore
from hubbub.wire.upload import Entry
from tests.shared.asks import randomizer
from tests.shared.shuffled_processes import ShuffledProcesses

FAKES = 100
HANGS = 1800.0  # seconds after which a test gives up, not a measure of anything
TOML = """
name = "themes"
version = 1
title = "Light or dark?"
trust = "oblivious"

[schedule]
step = "{step}s"
lateness = "{lateness}s"
origin = {origin}

[privacy]
user = 40.0
minimum_batch = 20

[fields.theme]
kind = "categorical"
names = ["light", "dark"]

[questions.popular]
kind = "histogram"
field = "theme"
epsilon = 4.0

[shuffle]
collector_key = "COLLECTOR"
delta = 1e-6
least = {least}
fakes = {fakes}
"""


def entries_of(parts: ShuffledProcesses, name: AnswerName, ask: Ask, people: int) -> list[list[Entry]]:
    """What devices send to each shuffler, a quarter of them "light"; encrypted by the fast library."""
    rng, key, route = Random(), parts.secrets.homomorphic_key().public, parts.collection.shuffle
    assert isinstance(route, ObliviousRoute)
    mechanism = randomizer(ask)
    reports = mechanism.randomize([int(person % 4 > 0) for person in range(people)], rng)
    shares = split(to_numbers(mechanism, reports, rng), len(route.shufflers), rng)
    layer, ids = layer_name(batch_name("themes", 1, name), ask), [rng.bytes(16) for _ in range(people)]
    size, every = key.ciphertext_bytes, []
    for place, (numbers, shuffler) in enumerate(zip(shares, route.shufflers, strict=True)):
        last = place + 1 == len(route.shufflers)
        joined = key.to_bytes(key.encrypt(numbers)) if last else b""
        bodies = [
            joined[at * size : (at + 1) * size] if last else int(number).to_bytes(8, "little").ljust(size, b"\0")
            for at, number in enumerate(numbers)
        ]
        public = bytes.fromhex(shuffler.encryption_key)
        sealed = [wrap(body, [public], layer, place=place) for body in bodies]
        every.append([Entry(*name, report_id, share) for report_id, share in zip(ids, sealed, strict=True)])
    return every


def status(parts: ShuffledProcesses, number: int) -> tuple[str, str]:
    """The state and the note of the first batch of a shuffler."""
    batches: list[Any] = parts.get("/v1/status", parts.urls[number])["batches"]
    return (batches[0]["state"], batches[0]["note"]) if batches else ("gathering", "")


def wait(parts: ShuffledProcesses, number: int, *states: str) -> None:
    end = time.monotonic() + HANGS
    while status(parts, number)[0] not in states:
        assert time.monotonic() < end, status(parts, number)
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("people", "lateness"), [(400, 58), (100_000, 1600)])
def test_reports_are_counted_though_every_party_is_killed(tmp_path: Path, people: int, lateness: int) -> None:
    step, left = lateness + 2, 60  # the step is over in a minute, and half of the lateness is for late reports
    origin = int(time.time()) - step + left
    rules = {"step": step, "lateness": lateness, "origin": origin, "least": people // 2, "fakes": FAKES}
    parts = ShuffledProcesses(tmp_path, TOML.format(**rules), shufflers=3)
    try:
        source = SignedSource("themes", HttpTransport(parts.server), bytes.fromhex(parts.public_key))
        name = AnswerName("popular", 0, 0, 1, 0)
        ask = source.ask(name, parts.collection)
        for number, entries in enumerate(entries_of(parts, name, ask, people)):
            parts.kill(str(number))
            store = ShufflerStore(tmp_path / f"{number}.db")
            receipt = take_entries(entries, parts.collection, store, SystemClock())
            store.close()
            assert receipt.accepted == people
            parts.begin(number)
        wait(parts, 2, "closed", "listed")
        for number in (2, 1, 0):
            wait(parts, number, "listed", "made", "handed")
            parts.kill(str(number))
            parts.begin(number)
        wait(parts, 0, "made", "handed")
        parts.kill("collector")
        parts.begin_collector()
        for number in range(3):
            wait(parts, number, "handed", "dropped")
        notes = [status(parts, number) for number in range(3)]
        assert notes == [("handed", f"{people} came, 0 unreadable, 0 incomplete, {FAKES} fakes")] * 3
        (batch,) = parts.get("/v1/collections/themes/shuffled")["questions"]["popular"]["batches"]
        assert (batch["people"], batch["fakes"], batch["unreadable"]) == (people, FAKES, 0)
        end, releases = time.monotonic() + HANGS, list[Any]()
        while not releases and time.monotonic() < end:
            time.sleep(0.3)
            releases = parts.get("/v1/collections/themes/questions/popular/releases?from=0&to=0")["releases"]
        assert releases[0]["n"] == people
        assert abs(releases[0]["value"][0] - 0.25) < 5 * releases[0]["variance"][0] ** 0.5
    finally:
        parts.stop()
