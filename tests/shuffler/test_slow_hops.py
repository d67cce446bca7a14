"""A shuffler whose next hop, or whose collector, answers slowly or without end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from hubbub.client import HttpTransport, Response, Transport
from hubbub.shuffler import hop as hop_module
from hubbub.shuffler.hop import ShufflerHop
from hubbub.wire.batches import decode_shuffled
from tests.shared.slow_peers import ENDLESS, HANG, SLOW, SlowAnswer, outcomes, slow_peer
from tests.shuffler.shuffle_world import HOUR, KEYS, TEXT, Calling, ShuffleWorld

NEVER = 10 * HANG
"""A deadline that ends no request within a test."""
AGAIN = '[questions.again]\nkind = "histogram"\nfield = "theme"\nepsilon = 2.0\n\n'
TWO_QUESTIONS = TEXT.replace("[shuffle]", f"{AGAIN}[shuffle]")


def in_a_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True).start()


def first_hop(world: ShuffleWorld, next_hop: Callable[[str], Transport], collector: Transport | None = None) -> Any:
    """The first shuffler of a world again, which makes requests in threads as the program does."""
    hop = world.hops[0] = ShufflerHop(
        "survey",
        world.keys[0],
        world.stores[0],
        collector or world.to("collector"),
        KEYS.public,
        clock=world.clock,
        connect=next_hop,
        start=in_a_thread,
    )
    return hop


def states(world: ShuffleWorld) -> list[str]:
    return [row.state for row in world.stores[0].batches()]


def tick_until(hop: ShufflerHop, true: Callable[[], Any]) -> None:
    """Tick until something is true, which takes as long as the threads of the shuffler take."""
    end = time.monotonic() + HANG
    while not true():
        assert time.monotonic() < end, "it did not happen"
        hop.tick()
        time.sleep(0.01)


def two_steps(url: str) -> dict[str, Any]:
    """What becomes of a batch whose time ends while nobody takes it, and of the batch of the next step."""
    world = ShuffleWorld()
    hop = first_hop(world, lambda _: HttpTransport(url, timeout=NEVER))
    world.send(world.entries(["dark"] * 25))
    world.clock.set(8 * HOUR + world.collection.accepts_for + 1)
    tick_until(hop, lambda: states(world) == ["made"])
    world.clock.set(8 * HOUR + world.collection.lateness_seconds)
    hop.tick()
    (batch,) = hop.status()["batches"]
    rest = [world.stores[0].outgoing(batch["batch"]), *world.stores[0].onions(batch["batch"])]
    told = hop.status()["trouble"]
    world.collector.tick()
    world.send(world.entries(["dark"] * 25))
    world.clock.set(9 * HOUR + world.collection.accepts_for + 1)
    tick_until(hop, lambda: states(world) == ["made"])
    return {
        "first": (batch["state"], batch["note"].partition(": ")[0]),
        "told": f"{batch['batch']}: {batch['note']}" == told,
        "kept": sum(part is not None for part in rest),
    }


@pytest.mark.parametrize("answers", [SLOW, ENDLESS], ids=["slow", "endless"])
def test_a_next_hop_that_does_not_answer_costs_a_batch_and_nothing_else(answers: Mapping[str, SlowAnswer]) -> None:
    dropped = {"first": ("dropped", "nobody took it in time"), "told": True, "kept": 0}
    assert outcomes(two_steps, answers) == dict.fromkeys(answers, dropped)


def test_a_batch_that_nobody_takes_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if one batch is worked on at a time: the others come first at the next try."""
    monkeypatch.setattr(hop_module, "MOST_AT_WORK", 1)
    world = ShuffleWorld(text=TWO_QUESTIONS)
    with slow_peer(SLOW["a slow body"]) as peer:

        def some(method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
            frozen = body is not None and decode_shuffled(body).answer.question == "again"
            to: Transport = HttpTransport(peer.url, timeout=0.3) if frozen else world.to(world.urls[1])
            return to.request(method, path, headers, body)

        hop = first_hop(world, lambda _: Calling(some))
        for question in ("again", "popular"):
            world.send(world.entries(["dark"] * 25, question))
        world.clock.set(8 * HOUR + world.collection.accepts_for + 1)
        tick_until(hop, lambda: sorted(states(world)) == ["handed", "made"])
        tick_until(hop, lambda: len(peer.requests) > 1)  # it is tried again


def test_batches_are_handed_on_at_the_same_time() -> None:
    world = ShuffleWorld(text=TWO_QUESTIONS)
    with slow_peer(SLOW["silence"]) as peer:
        hop = first_hop(world, lambda _: HttpTransport(peer.url, timeout=NEVER))
        for question in ("again", "popular"):
            world.send(world.entries(["dark"] * 25, question))
        world.clock.set(8 * HOUR + world.collection.accepts_for + 1)
        works = []
        hop._start = lambda work: works.append(work) or in_a_thread(work)  # type: ignore[func-returns-value]
        tick_until(hop, lambda: len(peer.requests) == 2)
        hop.tick()
        assert len(works) == 3  # with the look for a collection; no request is made twice while it goes on


def without_a_collector(url: str) -> dict[str, Any]:
    """What becomes of a batch while a look for the collection goes on."""
    world = ShuffleWorld()
    hop, works = first_hop(world, world.to, HttpTransport(url, timeout=NEVER)), []
    hop._start = lambda work: works.append(work) or in_a_thread(work)  # type: ignore[func-returns-value]
    world.send(world.entries(["dark"] * 25))
    world.clock.set(8 * HOUR + world.collection.accepts_for + 1)
    hop.tick()
    closed = states(world)
    world.clock.set(8 * HOUR + world.collection.lateness_seconds)
    hop.tick()
    note = hop.status()["batches"][0]["note"]
    return {"states": [closed, states(world)], "note": note.partition(": ")[0], "works": len(works)}


def test_a_collector_that_does_not_answer_delays_no_closing_and_no_dropping() -> None:
    """And it is asked twice: for the collection, until that request ends, and for the ask of the batch."""
    end = {"states": [["closed"], ["dropped"]], "note": "nobody took it in time", "works": 2}
    assert outcomes(without_a_collector, SLOW) == dict.fromkeys(SLOW, end)


def test_a_batch_that_was_dropped_is_not_handed_on_by_a_late_answer() -> None:
    world, asked, answers = ShuffleWorld(), threading.Event(), threading.Event()

    def late(*_: object) -> Response:
        asked.set()
        answers.wait(HANG)
        return Response(200, {}, b"{}")

    hop = first_hop(world, lambda _: Calling(late))
    world.send(world.entries(["dark"] * 25))
    world.clock.set(8 * HOUR + world.collection.accepts_for + 1)
    tick_until(hop, asked.is_set)
    world.clock.set(8 * HOUR + world.collection.lateness_seconds)
    hop.tick()
    answers.set()
    tick_until(hop, lambda: not hop._at_work)
    assert states(world) == ["dropped"]
    counts = hop.status()["counts"]
    assert (counts["batches dropped"], counts.get("batches handed")) == (1, None)


@pytest.mark.parametrize("number", [0, 1], ids=["to a shuffler", "to the collector"])
def test_a_request_has_no_more_time_than_its_batch(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it takes no place from later batches."""
    world, times = ShuffleWorld(), []
    request = Calling.request

    def timed(self: Calling, *given: Any, at_most: float = 0.0) -> Response:
        times.append(at_most)
        return request(self, *given)

    world.send(world.entries(["dark"] * 25))
    world.clock.set(8 * HOUR + world.collection.accepts_for + 1)
    for hop in world.hops[:number]:
        hop.tick()
    monkeypatch.setattr(Calling, "request", timed)
    world.hops[number].tick()
    assert states(world) == ["handed"]
    assert max(times) == world.collection.lateness_seconds - world.collection.accepts_for - 1
