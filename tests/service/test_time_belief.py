"""What a collector believes of its clock, whatever the clock does."""

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.service.base.trusted_clock import MEMORY, Belief, ClockReading, Jump, believe, settled
from tests.service.clock_world import DAY, Machine

HOLD, TOLERANCE = 300.0, 10.0
SIZES = [size * sign for size in (60.0, 2 * DAY, 40 * DAY, 3 * 365 * DAY) for sign in (1, -1)]


def after(belief: Belief | None, machine: Machine) -> Belief:
    # Through JSON: whatever is believed can be stored and goes on from there.
    belief_after = believe(belief, machine.read(), hold=HOLD, tolerance=TOLERANCE)
    again = msgspec.json.decode(msgspec.json.encode(belief_after), type=Belief)
    assert again == belief_after
    return again


def watch(belief: Belief, machine: Machine, seconds: float, every: float = 5.0) -> Belief:
    waited = 0.0
    while waited < seconds:
        step = min(every, seconds - waited)
        machine.wait(step)
        waited += step
        belief = after(belief, machine)
    return belief


def begun() -> tuple[Machine, Belief]:
    """A machine whose clock is right, watched for a minute."""
    machine = Machine()
    return machine, watch(after(None, machine), machine, 60)


@pytest.mark.parametrize("size", SIZES)
def test_a_glitch_that_is_over_before_the_hold_changes_nothing(size: float):
    machine, belief = begun()
    machine.off = size
    belief = watch(belief, machine, HOLD - 10)
    assert belief.trusted == pytest.approx(machine.true)
    assert belief.doubt is not None
    assert settled(belief) == pytest.approx(machine.true + min(size, 0))
    machine.off = 0.0
    belief = after(belief, machine)
    assert (belief.trusted, belief.doubt, belief.jumps) == (machine.true, None, ())


@pytest.mark.parametrize("size", SIZES)
def test_a_jump_that_stays_is_accepted_and_goes_back_when_wall_time_does(size: float):
    machine, belief = begun()
    machine.off = size
    belief = watch(belief, machine, HOLD + 5)
    assert belief.doubt is None
    assert belief.trusted == machine.true + size
    assert settled(belief) <= machine.true + 1e-3
    machine.wait(600)
    belief = after(belief, machine)
    machine.off = 0.0
    belief = after(belief, machine)
    assert (belief.trusted, belief.doubt, belief.jumps) == (machine.true, None, ())


def test_sleep_is_not_a_jump():
    machine, belief = begun()
    machine.wait(40 * DAY)  # the clock since boot runs on
    belief = after(belief, machine)
    assert (belief.trusted, belief.doubt, belief.jumps) == (machine.true, None, ())


def test_a_machine_that_was_off_for_less_than_the_hold_goes_on_at_once():
    machine, belief = begun()
    machine.reboot(HOLD - 1)
    belief = after(belief, machine)
    assert (belief.trusted, belief.doubt, belief.tied) == (machine.true, None, True)


def test_a_machine_that_was_off_for_forty_days_goes_on_after_the_hold_and_deletes_nothing_for_a_day():
    machine, belief = begun()
    last = machine.true
    machine.reboot(40 * DAY)
    belief = after(belief, machine)
    assert (belief.trusted, belief.tied) == (last, False)
    belief = watch(belief, machine, HOLD)
    assert (belief.trusted, belief.doubt, belief.tied) == (machine.true, None, True)
    assert settled(belief) <= last + HOLD + 1e-3
    belief = watch(belief, machine, MEMORY + 5, every=60.0)
    assert settled(belief) == belief.trusted == machine.true


def test_a_wrong_clock_after_a_reboot_is_left_for_any_time_that_may_be_right():
    machine, belief = begun()
    machine.reboot(3 * DAY)
    machine.off = 400 * DAY
    belief = watch(after(belief, machine), machine, HOLD + 60, every=60.0)  # and one more reading
    assert belief.trusted == machine.true + machine.off
    machine.off = 0.0
    belief = after(belief, machine)
    assert (belief.trusted, belief.doubt) == (machine.true, None)


def test_a_clock_that_jumps_about_is_not_followed():
    machine, belief = begun()
    for number in range(100):
        machine.off = number * DAY * (-1) ** number
        belief = watch(belief, machine, HOLD / 2)
        assert belief.trusted == pytest.approx(machine.true, abs=TOLERANCE)


def test_corrections_are_followed():
    machine, belief = begun()
    for number in range(50):
        machine.off += (-1) ** number * TOLERANCE / 2
        machine.wait(1.0)
        belief = after(belief, machine)
        assert belief.trusted == pytest.approx(machine.true + machine.off)
        assert belief.doubt is None


def test_jumps_are_remembered_for_a_day():
    recent, old = Jump(100.0, 50.0, False), Jump(10.0, 50.0, False)
    belief = Belief(0.0, 0.0, 0.0, "a", lived=MEMORY + 50.0, jumps=(old, recent))
    assert believe(belief, ClockReading(0.0, 0.0, "a"), hold=HOLD, tolerance=TOLERANCE).jumps == (recent,)


EVENT = st.one_of(
    st.tuples(st.just("wait"), st.floats(0.5, 2000.0)),
    st.tuples(st.just("sleep"), st.floats(1.0, 50 * DAY)),
    st.tuples(st.just("off"), st.sampled_from([0.0, 0.0, 3.0, -3.0, *SIZES]) | st.floats(-1e8, 1e8)),
    st.tuples(st.just("reboot"), st.floats(1.0, 50 * DAY)),
    st.tuples(st.just("restart"), st.integers(1, 5)),
)


def history(events: list[tuple[str, float]]) -> tuple[Machine, Belief]:
    """What is believed after some history, in which restarts go on from an older record."""
    machine = Machine()
    beliefs = [after(None, machine)]
    for kind, amount in events:
        if kind == "off":
            machine.off = amount
        elif kind == "sleep":
            machine.wait(amount)
        elif kind == "reboot":
            machine.reboot(amount)
        elif kind == "restart":
            beliefs.append(beliefs[-min(int(amount), len(beliefs))])
        for _ in range(10 if kind == "wait" else 1):
            machine.wait(amount / 10 if kind == "wait" else 0.01)
            beliefs.append(after(beliefs[-1], machine))
    return machine, beliefs[-1]


@settings(max_examples=2 * settings().max_examples)
@given(events=st.lists(EVENT, max_size=20))
def test_whatever_happened_a_clock_that_is_right_is_believed_after_the_hold(events: list[tuple[str, float]]):
    machine, belief = history(events)
    machine.off = 0.0
    belief = watch(after(belief, machine), machine, HOLD + 60, every=60.0)  # and one more reading
    assert (belief.trusted, belief.doubt, belief.tied) == (machine.true, None, True)


@settings(max_examples=2 * settings().max_examples)
@given(events=st.lists(EVENT.filter(lambda event: event[0] != "reboot"), max_size=20))
def test_in_one_boot_a_clock_that_is_right_again_within_a_day_is_believed_at_once(events: list[tuple[str, float]]):
    machine, belief = history([event for event in events if event[0] != "sleep"])
    assert belief.lived < MEMORY  # 20 waits are shorter
    machine.off = 0.0
    belief = after(belief, machine)
    # Small corrections are followed, so that the way back may end within the tolerance, or take the hold.
    if belief.doubt is not None:
        drift = sum(abs(amount) for kind, amount in events if kind == "off" and abs(amount) <= TOLERANCE)
        assert drift > 0
        belief = watch(belief, machine, HOLD + 60, every=60.0)
    assert belief.trusted == machine.true


@settings(max_examples=2 * settings().max_examples)
@given(events=st.lists(EVENT.filter(lambda event: event[0] in ("wait", "off", "restart")), max_size=20))
def test_nothing_is_deleted_by_a_time_that_is_wrong_for_less_than_a_day(events: list[tuple[str, float]]):
    machine, belief = history(events)
    corrections = sum(abs(amount) for kind, amount in events if kind == "off" and abs(amount) <= 10 * TOLERANCE)
    assert settled(belief) <= machine.true + corrections + TOLERANCE


def test_a_reading_never_makes_trusted_time_from_nothing():
    belief = Belief(1000.0, 1000.0, 50.0, "a")
    for wall in (-1e12, 0.0, 1e12):
        belief_after = believe(belief, ClockReading(wall, 51.0, "a"), hold=HOLD, tolerance=TOLERANCE)
        assert belief_after.trusted == 1001.0
        assert replace(belief_after, doubt=None, wall=0.0) == replace(
            belief, trusted=1001.0, since_boot=51.0, lived=1.0, wall=0.0
        )
