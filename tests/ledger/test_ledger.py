"""The ledger's rules, one at a time."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from hubbub import GRR, Random
from hubbub.core.errors import InvalidValue, SpecMismatch
from hubbub.core.event import Event
from hubbub.ledger.clock import DeviceClock, StepRefused
from hubbub.ledger.file import LedgerUnavailable
from hubbub.ledger.promise import Budget, BudgetExceeded, Spending, Window
from tests.ledger.budget_ledger import Ledger, StepClock, TrueTime

DAY = 86400
TEN_YEARS = 3650 * DAY


def event(spent: int) -> Event:
    return Event("GRR", "0" * 32, spent)


def never() -> bytes:
    pytest.fail("make was called")


@pytest.fixture
def clock() -> StepClock:
    return StepClock()


class World(TrueTime):
    """A device with steps of a day, window 3, and a ledger on its disk."""

    def __init__(self, path: Path, budget: Budget) -> None:
        super().__init__(20_000 * DAY, 5 * DAY)
        self.path, self.budget, self.asks = path, budget, 0
        self.days = self.clock(DAY)

    def ask(self, spent: int) -> None:
        """Every use opens the file anew: nothing is remembered elsewhere."""
        self.asks += 1
        with Ledger(self.path, self.budget, clock=self.days) as ledger:
            ledger.answer(f"ask {self.asks}", self.days.step, event(spent), lambda: b"")

    def observe(self) -> None:
        with Ledger(self.path, self.budget, clock=self.days) as ledger:
            ledger.observe()

    def is_refused(self, spent: int) -> int:
        """That a budget refuses as much; what is spent of it."""
        with pytest.raises(BudgetExceeded) as refused:
            self.ask(spent)
        return refused.value.spent


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "ledger", Budget(window=Window(10, 3)))


def test_a_retry_is_the_same_and_free(tmp_path: Path, clock: StepClock) -> None:
    path = tmp_path / "ledger"
    budget = Budget(event=10, window=Window(20, 2), user=30)
    with Ledger(path, budget, clock=clock) as ledger:
        first = ledger.answer("a", 0, event(10), lambda: b"randomised")
        assert ledger.answer("a", 0, event(10), never) == first
        status = ledger.status()
    clock.step = 5  # and later too
    with Ledger(path, budget, clock=clock) as ledger:
        assert ledger.answer("a", 0, event(10), never) == first
        assert ledger.pending() == [first]
        assert ledger.status().lifetime == status.lifetime == 10


def test_every_unit_is_charged_and_reported(clock: StepClock) -> None:
    with Ledger(":memory:", Budget(event=10, window=Window(15, 2), user=25), clock=clock) as ledger:
        ledger.answer("a", 0, event(4), lambda: b"")
        ledger.answer("b", 0, event(6), lambda: b"")
        clock.step = 1
        ledger.answer("c", 1, event(5), lambda: b"")
        status = ledger.status()
        assert (status.step, status.lifetime, status.pending) == (1, 15, 3)
        assert status.event == Spending(spent=5, remaining=5, limit=10)
        assert status.window == Spending(spent=15, remaining=0, limit=15)
        assert status.user == Spending(spent=15, remaining=10, limit=25)
        clock.step = 2
        assert ledger.status().window == Spending(spent=5, remaining=10, limit=15)


@pytest.mark.parametrize(
    ("budget", "unit"), [(Budget(event=9), "event"), (Budget(window=Window(9, 4)), "window"), (Budget(user=9), "user")]
)
def test_a_refusal_names_the_unit_and_stores_nothing(clock: StepClock, budget: Budget, unit: str) -> None:
    with Ledger(":memory:", budget, clock=clock) as ledger:
        ledger.answer("a", 0, event(5), lambda: b"")
        before = ledger.status()
        with pytest.raises(BudgetExceeded) as refused:
            ledger.answer("b", 0, event(5), never)
        refusal = refused.value
        assert (refusal.unit, refusal.spent, refusal.requested, refusal.limit) == (unit, 5, 5, 9)
        assert ledger.status() == before
        ledger.answer("b", 0, event(4), lambda: b"")  # the id was not used up


def test_a_failing_make_spends_nothing(clock: StepClock) -> None:
    def fails() -> bytes:
        raise KeyboardInterrupt

    with Ledger(":memory:", Budget(user=5), clock=clock) as ledger:
        with pytest.raises(KeyboardInterrupt):
            ledger.answer("a", 0, event(5), fails)
        with pytest.raises(LedgerUnavailable, match="within one of its own"):
            ledger.answer("a", 0, event(5), lambda: ledger.answer("b", 0, event(5), never).id)
        assert ledger.status().lifetime == ledger.status().pending == 0
        assert ledger.answer("a", 0, event(5), lambda: b"x").report == b"x"


def test_only_the_current_step_is_answered(clock: StepClock) -> None:
    clock.step = 5
    with Ledger(":memory:", Budget(user=50), clock=clock) as ledger:
        for step in (4, 6):
            with pytest.raises(StepRefused, match="in step 5"):
                ledger.answer("a", step, event(5), never)
        ledger.answer("a", 5, event(5), lambda: b"")
        clock.step = 4
        with pytest.raises(StepRefused, match="set back"):
            ledger.answer("b", 4, event(5), never)


def test_acknowledged_bytes_are_dropped_and_debits_stay(tmp_path: Path, clock: StepClock) -> None:
    path = tmp_path / "ledger"
    secret = os.urandom(32)
    with Ledger(path, Budget(window=Window(10, 3)), clock=clock) as ledger:
        entries = [ledger.answer(name, 0, event(5), lambda: secret) for name in "ab"]
        assert secret in path.read_bytes()
        assert ledger.sent(entries[0].id)
        assert not ledger.sent(entries[0].id)
        assert not ledger.sent(bytes(16))
        assert ledger.pending() == entries[1:]
        assert ledger.answer("a", 0, event(5), never).report is None
        assert ledger.sent(entries[1].id)
        assert secret not in path.read_bytes()
        assert ledger.status().window == Spending(10, 0, 10)


def test_the_file_does_not_grow_for_ever(tmp_path: Path, clock: StepClock) -> None:
    path = tmp_path / "ledger"
    with Ledger(path, Budget(event=2, window=Window(6, 3), user=10**6), clock=clock) as ledger:
        sizes = []
        for step in range(40):
            clock.step = step
            ledger.freeze("field", step, step)
            ledger.sent(ledger.answer(f"ask {step}", step, event(2), lambda: bytes(1000)).id)
            sizes.append(path.stat().st_size)
        assert ledger.status().lifetime == 80
    assert max(sizes) == sizes[5]
    with sqlite3.connect(path) as database:
        tables = "debits", "entries", "frozen"
        rows = [database.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables]
    database.close()
    assert rows == [3, 1, 1]


def test_a_value_is_frozen_for_its_step(tmp_path: Path, clock: StepClock) -> None:
    path = tmp_path / "ledger"
    budget = Budget(user=5)
    with Ledger(path, budget, clock=clock) as ledger:
        assert ledger.freeze("browser", 0, 3) == 3
        assert ledger.freeze("page", 0, b"home") == b"home"
    with Ledger(path, budget, clock=clock) as ledger:
        assert ledger.freeze("browser", 0, 4) == 3
        assert ledger.freeze("page", 0, b"away") == b"home"
        with pytest.raises(StepRefused):
            ledger.freeze("browser", 1, 4)
        clock.step = 1
        assert ledger.freeze("browser", 1, 4) == 4
        assert b"home" not in path.read_bytes()  # only the current step's are kept
        clock.step = 0
        with pytest.raises(StepRefused):
            ledger.freeze("browser", 0, 5)


def test_another_budget_clock_or_collection_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    budget = Budget.of(window=(1.0, 20))
    Ledger(path, budget, clock=DeviceClock(60), collection="demo 1").close()
    Ledger(path, Budget.of(window=(1.0, 20)), clock=DeviceClock(60), collection="demo 1").close()
    others: list[tuple[str, Budget, Any, str]] = [
        ("budget", Budget.of(window=(1.0, 10)), DeviceClock(60), "demo 1"),
        ("budget", Budget.of(window=(1.0, 20), user=5), DeviceClock(60), "demo 1"),
        ("clock", budget, DeviceClock(1), "demo 1"),
        ("clock", budget, DeviceClock(60, origin=5), "demo 1"),
        ("clock", budget, StepClock(), "demo 1"),
        ("collection", budget, DeviceClock(60), "demo 2"),
    ]
    for field, other, clock, collection in others:
        with pytest.raises(SpecMismatch, match=f"^{field}: .* new collection"):
            Ledger(path, other, clock=clock, collection=collection)


def test_a_file_that_is_not_a_ledger_is_refused_and_left_alone(tmp_path: Path, clock: StepClock) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"not a database, and long enough to be sure of it" * 30)
    foreign = tmp_path / "foreign"
    database = sqlite3.connect(foreign)
    database.execute("CREATE TABLE other (x)")
    database.close()
    for path in (text, foreign, tmp_path / "missing" / "ledger"):
        before = path.read_bytes() if path.exists() else None
        with pytest.raises(LedgerUnavailable):
            Ledger(path, Budget(user=5), clock=clock)
        assert (path.read_bytes() if path.exists() else None) == before
    with pytest.raises(InvalidValue):
        Ledger("", Budget(user=5), clock=clock)


@pytest.mark.skipif(os.name != "posix", reason="permissions of files")
def test_only_the_owner_can_read_it(tmp_path: Path, clock: StepClock) -> None:
    Ledger(tmp_path / "ledger", Budget(user=5), clock=clock).close()
    assert stat.S_IMODE((tmp_path / "ledger").stat().st_mode) == 0o600


def test_transactions_are_synced(tmp_path: Path, clock: StepClock) -> None:
    with Ledger(tmp_path / "ledger", Budget(user=5), clock=clock) as ledger:
        assert ledger.file.run("PRAGMA synchronous") == [(3,)]  # EXTRA
        assert ledger.file.run("PRAGMA journal_mode") == [("delete",)]


def test_threads_share_a_ledger(clock: StepClock) -> None:
    won: list[str] = []
    with Ledger(":memory:", Budget(user=10), clock=clock) as ledger:

        def ask(name: str) -> None:
            for number in range(10):
                try:
                    won.append(ledger.answer(f"{name} {number}", 0, event(1), lambda: b"").ask_id)
                except BudgetExceeded:
                    return

        threads = [threading.Thread(target=ask, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == len(ledger.pending()) == 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_a_forked_child_cannot_spend_the_same_budget_again() -> None:
    code = """if True:
        import os, sys
        from hubbub.core.event import Event
        from tests.ledger.budget_ledger import Ledger, StepClock
        from hubbub.ledger.promise import Budget
        from hubbub.ledger.file import LedgerUnavailable
        ledger = Ledger(":memory:", Budget(user=1), clock=StepClock())
        pid = os.fork()
        try:
            ledger.answer("a", 0, Event("GRR", "0" * 32, 1), lambda: b"")
        except LedgerUnavailable:
            os._exit(7)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 7)
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_real_report_goes_through(clock: StepClock) -> None:
    grr, rng = GRR(epsilon=1.0, domain=4), Random(seed=1)
    with Ledger(":memory:", Budget.of(event=1.0), clock=clock, rng=Random(seed=2)) as ledger:
        entry = ledger.answer("a", 0, grr.event(), lambda: grr.randomize([2], rng).private["value"].tobytes())
        assert entry.report is not None
        assert len(entry.id) == 16
        assert entry.spec_id == grr.spec_id
    with Ledger(":memory:", Budget.of(event=1.0), clock=clock, rng=Random(seed=2)) as ledger:
        assert ledger.answer("a", 0, grr.event(), lambda: b"").id == entry.id  # reproducible in a simulation


def test_the_lifetime_total_has_no_ceiling(clock: StepClock) -> None:
    with Ledger(":memory:", Budget(event=10**18), clock=clock) as ledger:
        for step in range(12):
            clock.step = step
            ledger.answer(f"{step}", step, event(10**18), lambda: b"")
        assert ledger.status().lifetime == 12 * 10**18  # more than 63 bits


def test_the_widest_window() -> None:
    clock = DeviceClock(10**12, wall=lambda: 0.0, monotonic=lambda: 0.0)
    with Ledger(":memory:", Budget(window=Window(10, 10**9)), clock=clock) as ledger:
        ledger.answer("a", 0, event(10), lambda: b"")
        with pytest.raises(BudgetExceeded):
            ledger.answer("b", 0, event(1), never)


# -- time -----------------------------------------------------------------------------------------------------------


def test_the_window_is_refunded_as_time_passes(world: World) -> None:
    world.ask(10)
    world.wait(3 * DAY - 1)
    world.is_refused(1)
    world.wait(1)
    world.ask(10)


def test_answers_w_steps_apart_may_be_nearer_than_w_intervals(world: World) -> None:
    world.wait(DAY - 1)
    world.ask(10)
    world.wait(2 * DAY + 1)
    world.ask(10)


def test_each_debit_leaves_the_window_by_its_own_time(world: World) -> None:
    world.ask(1)
    world.wait(DAY - 1)
    world.ask(9)
    world.set(TEN_YEARS)
    world.wait(2 * DAY - 1)
    assert world.is_refused(2) == 9  # the debit of 1 was made earlier, and two days of trusted time are over for it
    world.wait(1)
    world.ask(10)


def test_a_clock_set_ten_years_forward_refunds_nothing(world: World) -> None:
    world.ask(10)
    world.set(TEN_YEARS)
    for _ in range(3):
        world.is_refused(1)
        world.observe()
    world.wait(2 * DAY)  # true time, by the other clock
    world.ask(10)
    world.set(-TEN_YEARS)
    with pytest.raises(StepRefused, match="set back"):
        world.ask(1)


def test_a_clock_set_back_ten_years_refunds_nothing_and_answers_nothing(world: World) -> None:
    world.ask(4)
    world.set(-TEN_YEARS)
    for _ in range(5):
        world.wait(DAY)
        with pytest.raises(StepRefused, match="set back"):
            world.ask(1)
    world.set(TEN_YEARS)
    world.ask(6)  # five days on, three of them would have sufficed


def test_a_clock_set_back_and_forth_within_the_window_refunds_nothing(world: World) -> None:
    world.ask(10)
    for _ in range(10):
        world.set(-3 * DAY)
        world.observe()
        world.set(3 * DAY)
        world.observe()
    world.is_refused(1)


def test_a_reboot_counts_only_the_time_since_boot(world: World) -> None:
    world.ask(10)
    world.set(30 * DAY)  # off, or set forward: nobody can tell
    world.boot = world.true - DAY
    world.is_refused(1)
    world.wait(DAY - 1)
    world.is_refused(1)
    world.wait(1)
    world.ask(10)


@pytest.mark.parametrize(
    ("budget", "unit", "spent"), [(Budget(event=6), "event", 4), (Budget(window=Window(12, 2)), "window", 10)]
)
def test_a_moment_in_the_future_forgets_nothing(tmp_path: Path, budget: Budget, unit: str, spent: int) -> None:
    """Debits are folded by the steps that were answered, not by those the clock has shown."""
    world = World(tmp_path / "ledger", budget)
    world.ask(6)
    world.wait(DAY)
    world.ask(4)
    for _ in range(2):
        world.set(50 * DAY)
        world.observe()
        world.set(-50 * DAY)
    with pytest.raises(BudgetExceeded) as refused:
        world.ask(3)
    assert (refused.value.unit, refused.value.spent) == (unit, spent)


# -- what a device loads --------------------------------------------------------------------------------------------


def test_a_device_loads_neither_numpy_nor_the_planner() -> None:
    code = "import sys, hubbub.ledger.book; print(*sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(process.stdout.split())
    heavy = {"numpy", "scipy", "numba", "cryptography", "hubbub.privacy.audit", "hubbub.planning.plan"}
    assert "hubbub.ledger.book" in loaded
    assert not loaded & heavy
