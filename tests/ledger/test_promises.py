"""Promises on grids of their own: whatever versions and clocks do, no promise that was ever made is broken."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hubbub.core.errors import InvalidValue
from hubbub.ledger.book import TABLES, Book, TooManyPromises, all_spent
from hubbub.ledger.clock import TICKS, StepRefused
from hubbub.ledger.file import LedgerFile
from hubbub.ledger.promise import BudgetExceeded, Promise, of_question
from tests.ledger.budget_ledger import FORMAT, TrueTime

SETTINGS = settings(
    deadline=None,
    database=None,
    derandomize=True,
    max_examples=settings().max_examples,
    suppress_health_check=list(HealthCheck),
)
GRIDS = st.sampled_from([(10, 0), (10, 3), (1, 0), (25, 7), (100, 0)])
ACCOUNTS = ["asks", "memo:home:1"]
QUESTIONS = ["a", "b"]


@st.composite
def promises(draw: Any) -> Promise:
    """A promise in seconds: of the whole, divided somehow, or of a question."""
    limit, steps = draw(st.integers(0, 30)), draw(st.integers(0, 4))
    interval, origin = draw(GRIDS) if steps else (0, 0)
    if draw(st.booleans()):
        return Promise(limit, steps, interval, origin, scope=of_question(draw(st.sampled_from(QUESTIONS))))
    first = draw(st.integers(0, limit))
    parts = draw(st.sampled_from([{}, {"asks": limit}, {"asks": first, ACCOUNTS[1]: limit - first}]))
    return Promise(limit, steps, interval, origin, parts=parts)


SPEND = st.tuples(st.just("spend"), st.sampled_from(ACCOUNTS), st.sampled_from(QUESTIONS), st.integers(1, 9))
MOVES = (
    SPEND
    | SPEND
    | SPEND
    | st.tuples(st.just("wait"), st.integers(0, 40))
    | st.tuples(st.sampled_from(["set", "reboot", "flicker"]), st.integers(-60, 120) | st.just(10**8))
    | st.tuples(st.just("version"), GRIDS, st.lists(promises(), min_size=1, max_size=3))
)
LIVES = st.lists(MOVES, min_size=15, max_size=40)


class Device(TrueTime):
    """A book, every debit that it let pass, and every promise ever made."""

    def __init__(self, book: type[Book] = Book, tables: tuple[str, ...] = TABLES) -> None:
        super().__init__()
        self.file = LedgerFile(":memory:", {}, tables, FORMAT)
        self.book = book(self.file, self.clock(10))
        self.debits: list[tuple[int, int, str, str, int]] = []  # true time, wall, account, question, spent
        self.trusted: list[int] = []
        self.made: list[tuple[int, Promise]] = []  # how many debits there were, and the promise
        self.version((10, 0), [Promise(20, 3, 10, 0, parts={"asks": 12, ACCOUNTS[1]: 8})])

    def live(self, moves: list[Any]) -> None:
        try:
            for name, *arguments in moves:
                getattr(self, name)(*arguments)
                if name == "spend":
                    self.check()
        finally:
            self.file.close()

    def reboot(self, off: int) -> None:
        super().reboot(abs(off) % 50)

    def flicker(self, seconds: int) -> None:
        self.set(seconds)
        with self.file.transaction():
            self.book.observe()
        self.set(-seconds)

    def version(self, grid: tuple[int, int], several: list[Promise]) -> None:
        self.book.clock = self.clock(grid[0], origin=grid[1])
        with self.file.transaction():
            self.book.promise(promise.scaled(TICKS) for promise in several)
        self.made += [(len(self.debits), promise) for promise in several]

    def spend(self, account: str, question: str, units: int) -> None:
        with self.file.transaction():
            promises, now, latest = self.book.promises(), self.book.now(), self.book.rows.times().latest
        times = (max(now.wall, now.wall if latest is None else latest), now.trusted)
        try:
            with self.file.transaction():
                self.book.spend(now.step, account, question, units)
            passed = True
        except StepRefused:
            return
        except BudgetExceeded:
            passed = False
        since = {repr(promise.scaled(TICKS)): first for first, promise in self.made[::-1]}
        firsts = [since[repr(promise)] for promise in promises]
        if self.allowed(list(zip(promises, [0] * len(promises), strict=True)), times, account, question, units):
            assert passed  # not refused anything
        if passed:
            assert self.allowed(list(zip(promises, firsts, strict=True)), times, account, question, units)
            # A clock set back within its step counts as standing still.
            self.debits.append((self.true, times[0] // TICKS, account, question, units))
            self.trusted.append(now.trusted)

    def allowed(
        self, promises: list[tuple[Promise, int]], times: tuple[int, int], account: str, question: str, units: int
    ) -> bool:
        """What promises say, told from all debits from a first one on, with none of them forgotten."""
        latest, trusted = times
        for promise, first in promises:
            about_all = promise.scope == ""
            if not about_all and promise.scope != f"question:{question}":
                continue
            spent = 0
            for number, (_, wall, by, on, cost) in enumerate(self.debits):
                if number < first or (by != account if about_all else on != question):
                    continue
                if promise.steps:
                    step = (latest - promise.origin) // promise.interval
                    start = promise.origin + (step - promise.steps + 1) * promise.interval
                    after = trusted - (promise.steps - 1) * promise.interval
                    if wall * TICKS < start and self.trusted[number] <= after:
                        continue
                spent += cost
            if spent + units > (promise.parts.get(account, 0) if about_all else promise.limit):
                return False
        return True

    def check(self) -> None:
        for first, promise in self.made:
            own = [
                debit for debit in self.debits[first:] if promise.scope == "" or promise.scope == of_question(debit[3])
            ]
            if not promise.steps:
                assert sum(debit[4] for debit in own) <= promise.limit
                continue
            steps = [(debit[1] - promise.origin) // promise.interval for debit in own]
            for start in steps:
                stretch = range(start, start + promise.steps)
                spent = sum(d[4] for d, step in zip(own, steps, strict=True) if step in stretch)
                assert spent <= promise.limit, promise
            for true, *_ in own:
                most = true + (promise.steps - 1) * promise.interval
                assert sum(debit[4] for debit in own if true <= debit[0] < most) <= promise.limit, promise


@SETTINGS
@given(LIVES)
def test_no_promise_ever_made_is_broken(moves: list[Any]) -> None:
    Device().live(moves)


@pytest.mark.slow
@settings(SETTINGS, max_examples=5000, derandomize=False)
@given(LIVES)
def test_no_promise_is_broken_in_many_lives(moves: list[Any]) -> None:
    Device().live(moves)


class Newest(Book):
    """The planted bug: a new version's promises take the place of the old ones."""

    def promise(self, promises: Any) -> None:
        self.rows.drop_promises(self.rows.promises())
        super().promise(promises)


class Trusting(Book):
    """The planted bug: a debit leaves a window by the wall clock alone."""

    def _spent(self, promise: Any, times: Any, now: Any, *scope: Any) -> int:
        return super()._spent(promise, times, now._replace(trusted=1 << 62), *scope)


@pytest.mark.parametrize("book", [Newest, Trusting])
def test_a_book_that_forgets_is_caught(book: type[Book]) -> None:
    @settings(SETTINGS, max_examples=200, phases=[Phase.generate])
    @given(LIVES)
    def holds(moves: list[Any]) -> None:
        Device(book).live(moves)

    with pytest.raises(AssertionError):
        holds()


@SETTINGS
@given(promises(), promises(), st.integers(0, 500), st.integers(0, 500), st.integers(0, 500), st.integers(0, 500))
def test_what_counts_toward_an_implied_promise_counts_toward_the_other(
    first: Promise, other: Promise, latest: int, before: int, trusted: int, age: int
) -> None:
    if not first.implies(other) or other.steps == 0 or first.steps == 0:
        return
    wall, then = latest - before, trusted - age
    a, b = first.since(latest, trusted), other.since(latest, trusted)
    assert a is not None
    assert b is not None
    if wall >= b.wall or then > b.trusted:
        assert wall >= a.wall or then > a.trusted


def test_every_pair_that_is_implied() -> None:
    """The three ways in which a promise implies another, and the nearest that do not."""
    week = Promise(8, 168, 3600)
    assert Promise(8, 0).implies(week)
    assert not week.implies(Promise(8, 0))
    assert week.implies(Promise(8, 24, 3600))
    assert week.implies(Promise(9, 167, 3600, 0))
    assert not week.implies(Promise(7, 168, 3600))
    assert not week.implies(Promise(8, 168, 3600, 1))
    assert week.implies(Promise(8, 167, 3600, 1))
    assert week.implies(Promise(8, 60 * 167, 60, 17))
    assert not week.implies(Promise(8, 60 * 167 + 1, 60, 17))
    assert not week.implies(Promise(8, 24, 3600, scope="question:a"))


def test_what_is_kept_apart_is_fixed_by_the_first_version() -> None:
    device = Device()
    device.version((10, 0), [Promise(20, 3, 10, 0, parts={"asks": 20})])
    with device.file.transaction():
        assert [dict(promise.parts) for promise in device.book.promises()] == [{"asks": 12, ACCOUNTS[1]: 8}]
        device.book.spend(100, "asks", "a", 12)
        with pytest.raises(BudgetExceeded):
            device.book.spend(100, "asks", "a", 1)
        device.book.spend(100, ACCOUNTS[1], "b", 8)
    device.file.close()


def test_a_tighter_promise_that_gives_an_account_more_does_not_push_the_older_out() -> None:
    device = Device()
    device.version((10, 0), [Promise(19, 3, 10, 0, parts={"asks": 19})])
    with device.file.transaction():
        device.book.spend(100, "asks", "a", 12)
        with pytest.raises(BudgetExceeded):
            device.book.spend(100, "asks", "a", 1)
        assert len(device.book.promises()) == 2
    device.version((10, 0), [Promise(12, 3, 10, 0, parts={"asks": 12})])
    with device.file.transaction():
        assert [promise.limit for promise in device.book.promises()] == [12]
    device.file.close()


def test_a_book_without_its_past_supposes_that_everything_is_spent() -> None:
    device = Device(tables=(*TABLES, *all_spent(1000 * TICKS)))
    device.version((10, 0), [Promise(5, 0, scope="question:a"), Promise(5, 2, 10, scope="question:b")])
    with device.file.transaction():
        device.book.observe()
    for waited in (0, 19, 10):  # the two steps of b are over then; the whole takes three
        device.true += waited
        for question in QUESTIONS:
            with device.file.transaction(), pytest.raises(BudgetExceeded):
                device.book.spend(device.book.now().step, "asks", question, 1)
    device.true += 1
    with device.file.transaction():
        with pytest.raises(BudgetExceeded, match="question:a"):
            device.book.spend(103, "asks", "a", 1)
        device.book.spend(103, "asks", "b", 1)
    device.true += 10**7
    with device.file.transaction(), pytest.raises(BudgetExceeded, match="question:a"):
        device.book.spend(device.book.now().step, "asks", "a", 1)
    device.file.close()


def test_there_is_an_end_of_promises() -> None:
    device = Device()
    many = [Promise(5, 1, 10, scope=of_question(f"q{number}")) for number in range(512)]
    with pytest.raises(TooManyPromises):
        device.version((10, 0), many)
    with device.file.transaction():
        assert len(device.book.promises()) == 1  # nothing of it was kept
    device.version((10, 0), many[:511])
    device.file.close()


@pytest.mark.parametrize(
    "bad",
    [
        {"limit": -1, "steps": 1, "interval": 1},
        {"limit": 1.0, "steps": 1, "interval": 1},
        {"limit": 1, "steps": -1},
        {"limit": 1, "steps": 1, "interval": 0},
        {"limit": 1, "steps": 0, "interval": 5},
        {"limit": 1, "steps": 0, "origin": 5},
        {"limit": 1, "steps": 0, "parts": {"asks": 2}},
        {"limit": 1, "steps": 0, "parts": {"asks": 1, "memo": 1}},
    ],
)
def test_bad_promises_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        Promise(**bad)
