"""A shuffler whose next hop, collector or fellow shuffler answers slowly or without end."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from hubbub.client import HttpTransport, Response
from hubbub.shuffler import hop as hop_module
from hubbub.shuffler.batch_states import HopTransport
from hubbub.shuffler.hop import ShufflerHop
from hubbub.wire.batches import decode_shuffled
from tests.served import wait_for
from tests.shared.slow_peers import ENDLESS, HANG, SLOW, SlowAnswer, outcomes, slow_peer
from tests.shuffler.share_world import PATH, PEOPLE, ShareWorld
from tests.shuffler.shuffle_world import HOUR, KEYS, POPULAR, Calling, ShuffleWorld

NEVER = 10 * HANG
"""A deadline that ends no request within a test."""
TWO_QUESTIONS = {"again": POPULAR, "popular": POPULAR}


class Threads(list[threading.Thread]):
    """Threads, one for each request of a shuffler, as in the program."""

    def start(self, work: Callable[[], None]) -> None:
        self.append(threading.Thread(target=work, daemon=True))
        self[-1].start()


def first_hop(
    world: ShuffleWorld, next_hop: Callable[[str], HopTransport], collector: HopTransport | None = None
) -> tuple[ShufflerHop, Threads]:
    """The first shuffler of a world again, which makes requests in threads as the program does."""
    threads = Threads()
    hop = world.hops[0] = world.hop(0, collector, connect=next_hop, start=threads.start)
    return hop, threads


def tick_until(hop: ShufflerHop, true: Callable[[], Any]) -> None:
    """Tick until something is true, which takes as long as the threads of the shuffler take."""

    def ticked() -> Any:
        hop.tick()
        return true()

    wait_for(ticked)


def two_steps(url: str) -> dict[str, Any]:
    """What becomes of a batch whose time ends while nobody takes it, and of the batch of the next step."""
    world = ShuffleWorld()
    hop, _ = first_hop(world, lambda _: HttpTransport(url, timeout=NEVER))
    world.send(world.entries(["dark"] * 25))
    world.turn()
    tick_until(hop, lambda: world.states() == ["made"])
    world.clock.set(8 * HOUR + world.collection.lateness_seconds)
    hop.tick()
    batch = world.status()
    rest = [world.stores[0].outgoing(batch["batch"]), *world.stores[0].reports(batch["batch"])]
    world.collector.tick()
    world.send(world.entries(["dark"] * 25))
    world.turn(9)
    tick_until(hop, lambda: world.states() == ["made"])
    return {
        "first": (batch["state"], batch["note"].partition(": ")[0]),
        "kept": sum(part is not None for part in rest),
    }


@pytest.mark.parametrize("answers", [SLOW, ENDLESS], ids=["slow", "endless"])
def test_a_next_hop_that_does_not_answer_costs_a_batch_and_nothing_else(answers: Mapping[str, SlowAnswer]) -> None:
    dropped = {"first": ("dropped", "nobody took it in time"), "kept": 0}
    assert outcomes(two_steps, answers) == dict.fromkeys(answers, dropped)


def test_a_batch_that_nobody_takes_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if one batch is worked on at a time: the others come first at the next try."""
    monkeypatch.setattr(hop_module, "MOST_AT_WORK", 1)
    world = ShuffleWorld(questions=TWO_QUESTIONS)
    with slow_peer(SLOW["a slow body"]) as peer:

        def some(method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
            frozen = body is not None and decode_shuffled(body).answer.question == "again"
            to: HopTransport = HttpTransport(peer.url, timeout=0.3) if frozen else world.to(world.urls[1])
            return to.request(method, path, headers, body)

        hop, _ = first_hop(world, lambda _: Calling(some))
        for question in ("again", "popular"):
            world.send(world.entries(["dark"] * 25, question))
        world.turn()
        tick_until(hop, lambda: sorted(world.states()) == ["handed", "made"])
        tick_until(hop, lambda: len(peer.requests) > 1)  # it is tried again


def test_batches_are_handed_on_at_the_same_time() -> None:
    world = ShuffleWorld(questions=TWO_QUESTIONS)
    with slow_peer(SLOW["silence"]) as peer:
        hop, threads = first_hop(world, lambda _: HttpTransport(peer.url, timeout=NEVER))
        for question in ("again", "popular"):
            world.send(world.entries(["dark"] * 25, question))
        world.turn()
        tick_until(hop, lambda: len(peer.requests) == 2)
        hop.tick()
        assert len(threads) == 3  # with the look for a collection; no request is made twice while it goes on


def without_a_collector(url: str) -> dict[str, Any]:
    """What becomes of a batch while a look for the collection goes on."""
    world = ShuffleWorld()
    hop, threads = first_hop(world, world.to, HttpTransport(url, timeout=NEVER))
    world.send(world.entries(["dark"] * 25))
    world.turn()
    hop.tick()
    closed = world.states()
    world.clock.set(8 * HOUR + world.collection.lateness_seconds)
    hop.tick()
    note = world.status()["note"].partition(": ")[0]
    return {"states": [closed, world.states()], "note": note, "works": len(threads)}


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

    hop, threads = first_hop(world, lambda _: Calling(late))
    world.send(world.entries(["dark"] * 25))
    world.turn()
    tick_until(hop, asked.is_set)
    world.clock.set(8 * HOUR + world.collection.lateness_seconds)
    hop.tick()
    batch = world.status()
    assert hop.status()["trouble"] == f"{batch['batch']}: {batch['note']}"
    answers.set()
    for thread in threads:
        thread.join(HANG)
    assert world.states() == ["dropped"]
    counts = world.stores[0].counts()
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
    world.turn()
    for hop in world.hops[:number]:
        hop.tick()
    monkeypatch.setattr(Calling, "request", timed)
    world.hops[number].tick()
    assert world.states() == ["handed"]
    assert max(times) == world.collection.lateness_seconds - world.collection.accepts_for - 1


"""A deadline that ends no request within a test."""


def in_threads(world: ShareWorld, number: int, url: str) -> Any:
    """A shuffler of a world again, which makes requests in threads, and to which the last shuffler is a slow peer."""

    def connect(to: str) -> HopTransport:
        return HttpTransport(url, timeout=NEVER) if to == world.urls[2] else world.to(to)

    world.hops[number].close()
    hop = world.hops[number] = ShufflerHop(
        "survey",
        world.keys[number],
        world.stores[number],
        world.to("collector"),
        KEYS.public,
        clock=world.clock,
        connect=connect,
        start=lambda work: threading.Thread(target=work, daemon=True).start(),
    )
    return hop


def until(world: ShareWorld, true: Callable[[], Any]) -> None:
    end = time.monotonic() + HANG
    while not true():
        assert time.monotonic() < end, (world.latest_states(), world.notes())
        world.tick()
        time.sleep(0.01)


def asked_of_shares(url: str) -> dict[str, Any]:
    """What becomes of a batch that waits for a slow shuffler, and of what is sent to the other one meanwhile."""
    world = ShareWorld()
    for number in (0, 1):
        in_threads(world, number, url)
    world.send(world.entries(PEOPLE))
    world.clock.set(8 * HOUR + world.collection.accepts_for + 1)

    def met() -> bool:
        return all(any((to, path) == (world.urls[n], PATH) for to, _, path, _ in world.seen) for n in (0, 1))

    until(world, lambda: met() and world.latest_states()[:2] == ["listed", "listed"])
    world.clock.set(8 * HOUR + world.collection.lateness_seconds)
    world.hops[0].tick()
    world.hops[1].tick()
    dropped = world.latest_states()[:2]
    world.collector.tick()
    for number in (0, 1):
        world.hops[number] = world.hop(number)
    world.send(world.entries(PEOPLE))
    return {"first": dropped, "next": world.shuffle()}


ANSWERS = {name: {**SLOW, **ENDLESS}[name] for name in ("silence", "a slow body", "an endless body")}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_slow_shuffler_costs_its_batch_and_delays_no_other_message(name: str) -> None:
    end = {"first": ["dropped", "dropped"], "next": ["handed"] * 3}
    assert outcomes(asked_of_shares, {name: ANSWERS[name]}) == {name: end}
