"""Random lives of a device: whatever the server asks and whatever the clocks do, no unit is overspent."""

import os
import tempfile
from collections import defaultdict

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hubbub.core.errors import InvalidValue
from hubbub.core.event import Event
from hubbub.ledger.clock import DeviceClock, Observation, StepRefused
from hubbub.ledger.promise import Budget, BudgetExceeded, Window
from tests.ledger.budget_ledger import Ledger, LedgerEntry, StepClock, TrueTime
from tests.shared.killed_processes import SHELF

# Nothing here is about the disk: where there is one in memory, syncing costs nothing.
INTERVAL, WIDTH = 10, 3
EVENT, WINDOW, USER = 8, 10, 50
BUDGET = Budget(event=EVENT, window=Window(WINDOW, WIDTH), user=USER)
TEN_YEARS = 10 * 365 * 86400
SETTINGS = settings(
    deadline=None,
    database=None,
    derandomize=True,
    max_examples=2 * settings().max_examples,
    suppress_health_check=list(HealthCheck),
)

Move = tuple[str, int]
ASKS = st.tuples(st.just("ask"), st.integers(1, 9))
HONEST = (
    ASKS
    | st.tuples(st.just("wait"), st.integers(0, 2 * INTERVAL))
    | st.tuples(st.sampled_from(["retry", "acknowledge"]), st.integers(0, 50))
    | st.tuples(st.sampled_from(["observe", "reopen", "freeze"]), st.integers(0, 5))
)
JUMPS = st.integers(-3 * INTERVAL, 5 * INTERVAL) | st.sampled_from([TEN_YEARS, -TEN_YEARS])
HOSTILE = HONEST | ASKS | ASKS | st.tuples(st.sampled_from(["set", "reboot", "lose_power", "flicker"]), JUMPS)
HONEST_LIVES = st.lists(HONEST, min_size=5, max_size=40)
HOSTILE_LIVES = st.lists(HOSTILE, min_size=15, max_size=40)


class Device(TrueTime):
    """A ledger, and all that it ever answered."""

    def __init__(self, folder: str, kind: type[DeviceClock] = DeviceClock) -> None:
        super().__init__()
        self.path, self.device_clock = f"{folder}/ledger", self.clock(INTERVAL, kind=kind)
        self.debits: list[tuple[int, int, int]] = []  # true time, step, spent
        self.entries: list[LedgerEntry] = []
        self.acknowledged: set[bytes] = set()
        self.frozen: dict[int, int] = {}
        self.ledger = Ledger(self.path, BUDGET, clock=self.device_clock)

    def live(self, moves: list[Move]) -> None:
        try:
            for move, amount in moves:
                getattr(self, move)(amount)
                self.check()
        finally:
            self.ledger.close()

    def reboot(self, off: int) -> None:
        super().reboot(abs(off) % (3 * INTERVAL))
        self.reopen()

    def lose_power(self, seconds: int) -> None:
        """A reboot after which the wall clock is wrong."""
        self.set(seconds)
        self.reboot(1)

    def flicker(self, seconds: int) -> None:
        """The wall clock is wrong for a moment, and is seen to be."""
        self.set(seconds)
        self.observe(0)
        self.set(-seconds)

    def reopen(self, _: int = 0) -> None:
        self.ledger.close()
        self.ledger = Ledger(self.path, BUDGET, clock=self.device_clock)

    def observe(self, _: int) -> None:
        assert self.ledger.observe() == self.device_clock.step

    def ask(self, spent: int) -> bool:
        step, number = self.device_clock.step, len(self.entries)
        try:
            entry = self.ledger.answer(f"ask {number}", step, Event("GRR", "0" * 32, spent), lambda: os.urandom(4))
        except (BudgetExceeded, StepRefused):
            return False
        except InvalidValue:
            assert step < 0  # before the collection began
            return False
        self.entries.append(entry)
        self.debits.append((self.true, step, spent))
        return True

    def retry(self, which: int) -> None:
        if not self.entries:
            return
        first = self.entries[which % len(self.entries)]
        before = self.ledger.status()
        try:
            again = self.ledger.answer(
                first.ask_id, first.step, Event("GRR", "0" * 32, first.spent), lambda: pytest.fail("made again")
            )
        except StepRefused:
            assert first.id in self.acknowledged  # long done, and forgotten
        else:
            assert again.id == first.id
            assert again.report == (None if first.id in self.acknowledged else first.report)
        assert self.ledger.status() == before

    def acknowledge(self, which: int) -> None:
        if self.entries:
            entry = self.entries[which % len(self.entries)]
            assert self.ledger.sent(entry.id) == (entry.id not in self.acknowledged)
            self.acknowledged.add(entry.id)

    def freeze(self, value: int) -> None:
        step = self.device_clock.step
        if step >= 0:
            try:
                assert self.ledger.freeze("field", step, value) == self.frozen.setdefault(step, value)
            except StepRefused:
                assert step < max([*self.frozen, *(step for _, step, _ in self.debits)])

    def check(self) -> None:
        by_step: dict[int, int] = defaultdict(int)
        for _, step, spent in self.debits:
            by_step[step] += spent
        assert max(by_step.values(), default=0) <= EVENT
        for first in by_step:
            assert sum(by_step.get(step, 0) for step in range(first, first + WIDTH)) <= WINDOW
        for start, _, _ in self.debits:
            stretch = [spent for true, _, spent in self.debits if start <= true < start + (WIDTH - 1) * INTERVAL]
            assert sum(stretch) <= WINDOW
        assert sum(by_step.values()) <= USER
        assert list(by_step) == sorted(by_step)  # never a step before the latest


def live(moves: list[Move], kind: type[DeviceClock] = DeviceClock) -> None:
    with tempfile.TemporaryDirectory(dir=SHELF) as folder:
        device = Device(folder, kind)
        device.live(moves)


@SETTINGS
@given(HOSTILE_LIVES)
def test_no_unit_is_overspent_whatever_the_clock_does(moves: list[Move]) -> None:
    live(moves)


@pytest.mark.slow
@settings(SETTINGS, max_examples=5000, derandomize=False)
@given(HOSTILE_LIVES)
def test_no_unit_is_overspent_in_many_lives(moves: list[Move]) -> None:
    live(moves)


class WallOnly(DeviceClock):
    """The planted bug: refunds follow the wall clock alone."""

    def _passed(self, last: Observation, wall: int, monotonic: int) -> int:
        return wall - last.wall


class Uptime(DeviceClock):
    """The planted bug: after a reboot, the wall clock is believed."""

    def _passed(self, last: Observation, wall: int, monotonic: int) -> int:
        return wall - last.wall if monotonic < last.monotonic else super()._passed(last, wall, monotonic)


@pytest.mark.parametrize("kind", [WallOnly, Uptime])
def test_a_clock_that_trusts_the_wall_is_caught(kind: type[DeviceClock]) -> None:
    @settings(SETTINGS, max_examples=200, phases=[Phase.generate])
    @given(HOSTILE_LIVES)
    def holds(moves: list[Move]) -> None:
        live(moves, kind)

    with pytest.raises(AssertionError):
        holds()


def allowed(debits: list[tuple[int, int, int]], step: int, units: int) -> bool:
    """What the budget says, told without a ledger."""
    return (
        sum(spent for _, when, spent in debits if when == step) + units <= EVENT
        and sum(spent for _, when, spent in debits if when > step - WIDTH) + units <= WINDOW
        and sum(spent for _, _, spent in debits) + units <= USER
    )


@settings(SETTINGS, max_examples=settings().max_examples)
@given(HONEST_LIVES)
def test_an_honest_clock_is_refused_nothing_that_the_budget_allows(moves: list[Move]) -> None:
    with tempfile.TemporaryDirectory(dir=SHELF) as folder:
        device = Device(folder)

        def ask(amount: int) -> None:
            wanted = allowed(device.debits, device.device_clock.step, amount)
            assert Device.ask(device, amount) == wanted

        device.ask = ask  # type: ignore[method-assign, assignment]
        device.live(moves)


@SETTINGS
@given(st.lists(st.tuples(st.integers(-1, 4), st.integers(1, 9)), max_size=60))
def test_logical_steps_are_refused_exactly_what_the_budget_refuses(asks: list[tuple[int, int]]) -> None:
    clock = StepClock(10)
    debits: list[tuple[int, int, int]] = []
    with Ledger(":memory:", BUDGET, clock=clock) as ledger:
        for number, (move, spent) in enumerate(asks):
            clock.step = max(0, clock.step + move)
            wanted = clock.step >= max((step for _, step, _ in debits), default=0)
            wanted = wanted and allowed(debits, clock.step, spent)
            assert answered(ledger, clock, f"ask {number}", spent) == wanted
            if wanted:
                debits.append((0, clock.step, spent))
        assert ledger.status().lifetime == sum(spent for _, _, spent in debits)


def answered(ledger: Ledger, clock: StepClock, ask_id: str, spent: int) -> bool:
    try:
        ledger.answer(ask_id, clock.step, Event("GRR", "0" * 32, spent), lambda: b"")
    except (BudgetExceeded, StepRefused):
        return False
    return True
