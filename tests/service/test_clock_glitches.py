"""Clocks that jump, forth and back, while a collector runs, restarts, sleeps or is off: collection goes on."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.service.clock_world import DAY, ClockWorld, Machine
from tests.service.exact_world import exact_collection
from tests.service.test_rounds import asks_and_reports, exact, send, steps
from tests.shared.in_process import Reopen, World, rows_in

STEP = 100.0
JUMPS = [2 * DAY, 40 * DAY, 3 * 365 * DAY]
SIZES = [250.0, *JUMPS, -250.0, *(-size for size in JUMPS)]


def begun(**options: bool) -> ClockWorld:
    world = ClockWorld(exact_collection(**options))
    world.run(430)
    return world


def back(world: ClockWorld, size: float) -> None:
    """A jump is undone: collection goes on within a step, or after the steps that were asked too early."""
    world.machine.off = 0.0
    world.goes_on(within=STEP if abs(size) > 1000 or size < 0 else STEP + size)


# -- the clock itself ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "lost"), [(90.0, None), (190.0, None), (290.0, 1002), *((jump, None) for jump in JUMPS)]
)
@pytest.mark.parametrize("restarts", [False, True])
def test_a_conversation_that_was_led_astray_begins_anew_in_the_present(size: float, lost: int | None, restarts: bool):
    """A clock that is believed at once: three seconds in the future, and back."""
    world = exact(1000 * STEP)
    send(world, world.open[0], [1, 2])
    world.wait(size).wait(3.0).clock.set(1000 * STEP + 3.0)
    if restarts:
        world.begin()
    else:
        world.collector.tick()
    for step in range(1001, 1006):
        world.at(step * STEP)
        assert steps(world) == ([step] if step != lost else [])  # that one was asked before
        for open_ask in world.open:
            assert send(world, open_ask, [step % 100], seed=step).accepted == 1
    assert dict(asks_and_reports(world.at(1006 * STEP))) == {1000: 2} | {
        step: 1 for step in range(1001, 1005) if step != lost
    }


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seconds", [5.0, 40.0])
def test_a_short_glitch_costs_nothing(size: float, seconds: float):
    world = begun()
    world.machine.off = size
    world.run(seconds)
    world.machine.off = 0.0
    first = min(world.heard)
    world.goes_on(within=0)
    assert all(world.heard.get(step) == 1 for step in range(first, world.step))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("seconds", "adaptive"),
    [
        (120.0, True),
        (500.0, False),
        pytest.param(120.0, False, marks=pytest.mark.slow),
        pytest.param(500.0, True, marks=pytest.mark.slow),
    ],
)
def test_a_jump_that_was_accepted_and_is_undone_costs_a_step(size: float, seconds: float, adaptive: bool):
    world = begun(adaptive=adaptive)
    world.machine.off = size
    world.run(seconds)
    assert world.clock.status().state == "moved"
    back(world, size)


@pytest.mark.parametrize("size", [250.0, 40 * DAY, -2 * DAY])
@pytest.mark.parametrize("seconds", [10.0, 120.0])
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_a_glitch_over_restarts(size: float, seconds: float, before: bool, after: bool):
    world = begun()
    world.machine.off = size
    if before:
        world.restart()
    world.run(seconds)
    if not before or after:
        world.restart()
    world.machine.off = 0.0
    if after:
        world.restart()
    back(world, size)


@pytest.mark.parametrize("seconds", [50.0, 3000.0, 40 * DAY])
def test_a_machine_that_slept_goes_on(seconds: float):
    world = begun()
    world.machine.wait(seconds)
    world.goes_on(within=0)


@pytest.mark.parametrize("seconds", [20.0, 3000.0, 40 * DAY])
def test_a_machine_that_was_off_goes_on(seconds: float):
    world = begun()
    world.machine.reboot(seconds)
    world.restart()
    world.goes_on(within=STEP)


@pytest.mark.parametrize("size", [250.0, *JUMPS, -2 * DAY])
@pytest.mark.parametrize("seconds", [5.0, 120.0])
def test_a_machine_that_starts_with_a_wrong_clock(size: float, seconds: float):
    world = begun()
    world.machine.reboot(3000.0)
    world.machine.off = size
    world.restart()
    world.run(seconds)
    back(world, size)


@pytest.mark.parametrize("size", [2 * DAY, -2 * DAY])
def test_a_collector_that_began_with_a_wrong_clock(size: float):
    world = ClockWorld(machine=Machine(off=size))
    world.run(430)
    world.machine.off = 0.0
    world.goes_on(within=STEP)


def test_steps_that_were_asked_by_a_wrong_clock_are_left_out_when_they_come(reopen: Reopen):
    world = ClockWorld(store=reopen())
    world.run(430)
    world.machine.off = 1000.0
    world.run(120)
    world.machine.off = 0.0
    world.run(3000)
    silent = [step for step in range(min(world.heard), world.step) if not world.heard.get(step)]
    # The step that the jump closed; those that were asked ahead, by a device that was not there.
    assert len(silent) <= 4
    assert max(silent) <= min(world.heard) + 16


# -- what is kept ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [5.0, 3600.0])
def test_nothing_is_deleted_by_a_time_in_doubt(seconds: float):
    collection = replace(exact_collection(step=3600, lateness=10), retention_days=2)
    world = ClockWorld(collection)
    world.run(8 * 3600)
    kept = len(world.released)
    assert kept > 6
    world.machine.off = 3 * 365 * DAY
    world.run(seconds)
    world.machine.off = 0.0
    world.run(3600)
    assert not [what for (_, what) in world.collector.deleted if what != "ids"]
    final = "SELECT COUNT(*) FROM asks JOIN sketches USING (collection, ask) WHERE final = 1"
    assert rows_in(world.store, final)[0][0] >= kept


def test_steps_whose_asks_were_deleted_are_not_asked_again(reopen: Reopen):
    """Time goes back by four days, when of three of them nothing is left but what was published."""
    collection = replace(exact_collection(step=21600, lateness=10), retention_days=1)
    world = World(collection, 1000 * DAY, reopen)
    for tick in range(1, 33):
        world.at(1000 * DAY + tick * 10_800.0)
    assert rows_in(world.store, "SELECT MIN(step) FROM asks")[0][0] > 4005
    assert steps(world.at(1000 * DAY + 100.0)) == []
    was_asked = [world.store.was_asked(collection.collection_id, "all", step) for step in (3999, 4000, 4010)]
    assert was_asked == [False, True, True]
    assert steps(world.at(1004 * DAY + 3 * 21600.0)) == [4019]


def test_a_day_after_a_jump_was_accepted_what_is_old_is_deleted():
    collection = replace(exact_collection(step=3600, lateness=10), retention_days=2)
    world = ClockWorld(collection)
    world.run(8 * 3600)
    world.machine.reboot(40 * DAY)
    world.restart()
    world.run(3 * 3600)
    assert not [what for (_, what) in world.collector.deleted if what == "sketches"]
    world.run(DAY)
    assert [what for (_, what) in world.collector.deleted if what == "sketches"]


# -- any history -----------------------------------------------------------------------------------------------

EVENT = st.one_of(
    st.tuples(st.just("run"), st.sampled_from([5.0, 35.0, 60.0, 150.0, 400.0])),
    st.tuples(st.just("off"), st.sampled_from([0.0, 0.0, *SIZES, 60.0, -60.0, 950.0])),
    st.tuples(st.just("restart"), st.just(0.0)),
    st.tuples(st.just("reboot"), st.sampled_from([30.0, 500.0, 2 * DAY])),
    st.tuples(st.just("sleep"), st.sampled_from([30.0, 500.0, 2 * DAY])),
)


def any_history(events: list[tuple[str, float]], adaptive: bool) -> None:
    world = ClockWorld(exact_collection(adaptive=adaptive))
    acts: dict[str, Callable[[float], None]] = {
        "run": world.run,
        "off": lambda size: setattr(world.machine, "off", size),
        "restart": lambda _: world.restart(),
        "sleep": world.machine.wait,
    }
    for kind, amount in events:
        if kind == "reboot":
            world.machine.reboot(amount)
            world.restart()
        else:
            acts[kind](amount)
    world.machine.off = 0.0
    world.run(5)
    # Steps that were asked by a wrong clock, of at most 950 seconds ahead, are not asked again.
    world.run(12 * STEP + 400 * sum(kind == "run" for kind, _ in events))
    world.goes_on(within=STEP)


@settings(max_examples=settings().max_examples // 4, deadline=None)
@given(events=st.lists(EVENT, max_size=10), adaptive=st.booleans())
def test_after_any_history_collection_goes_on(events: list[tuple[str, float]], adaptive: bool):
    any_history(events, adaptive)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(events=st.lists(EVENT, max_size=16), adaptive=st.booleans())
def test_after_two_thousand_histories_collection_goes_on(events: list[tuple[str, float]], adaptive: bool):
    any_history(events, adaptive)
