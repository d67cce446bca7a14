"""The ledgers of simulated devices are the ledgers of devices: every debit is paid or refused by both."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.core.errors import InvalidValue
from hubbub.core.migrations import Format
from hubbub.core.spec import Json
from hubbub.ledger.book import TABLES, Book
from hubbub.ledger.clock import Observation
from hubbub.ledger.file import LedgerFile
from hubbub.ledger.promise import BudgetExceeded, Promise, of_question
from hubbub.simulate.ledgers import Ledgers, Tally

DEVICES = 3
ACCOUNTS, QUESTIONS = ("asks", "memo"), ("popular", "page")


@dataclass
class TickClock:
    """An honest clock that is moved by hand, on the grid of the collection."""

    now: int = 0
    interval: int = 5
    origin: int = 2

    def spec(self) -> dict[str, Json]:
        return {"clock": "ticks"}

    def observe(self, last: Observation | None) -> Observation:
        trusted = 0 if last is None else last.trusted + self.now - last.wall
        return Observation((self.now - self.origin) // self.interval, self.now, self.now, trusted)


@st.composite
def promises(draw: st.DrawFn) -> Promise:
    limit, steps = draw(st.integers(0, 30)), draw(st.integers(0, 4))
    grid = (draw(st.integers(1, 12)), draw(st.integers(-9, 9))) if steps else (0, 0)
    if draw(st.booleans()):
        return Promise(limit, steps, *grid, scope=of_question(draw(st.sampled_from(QUESTIONS))))
    part = draw(st.integers(0, limit))
    parts = draw(st.sampled_from([{"asks": limit}, {"asks": part, "memo": limit - part}]))
    return Promise(limit, steps, *grid, parts=parts)


@dataclass(frozen=True)
class Debit:
    later: int
    account: str
    question: str
    units: tuple[int, ...]
    """One per device; negative where it is not asked."""
    lasts: int | None = None
    """For how long it pays, of a study."""


debits = st.builds(
    Debit,
    later=st.one_of(st.integers(0, 3), st.integers(0, 40)),
    account=st.sampled_from(ACCOUNTS),
    question=st.sampled_from(QUESTIONS),
    units=st.tuples(*[st.integers(-3, 12)] * DEVICES),
    lasts=st.one_of(st.none(), st.integers(-5, 40)),
)


def debit_both_ways(kept_promises: list[Promise], requests: list[Debit]) -> tuple[list[list[bool]], list[list[bool]]]:
    """Who pays what: by the books of devices, one by one, and by the ledgers of all."""
    clock, ledgers = TickClock(), Ledgers(DEVICES, kept_promises)
    files = [LedgerFile(":memory:", {}, TABLES, Format("version", 2)) for _ in range(DEVICES)]
    books = [Book(file, clock) for file in files]
    for file, book in zip(files, books, strict=True):
        with file.transaction():
            book.promise(kept_promises)
    one_by_one, at_once = [], []
    for debit in requests:
        clock.now += debit.later
        until = None if debit.lasts is None else clock.now + debit.lasts
        paid = []
        for file, book, units in zip(files, books, debit.units, strict=True):
            try:
                with file.transaction():
                    if units >= 0:
                        book.spend(book.now().step, debit.account, debit.question, units, until=until)
                paid.append(units >= 0)
            except BudgetExceeded:
                paid.append(False)
        one_by_one.append(paid)
        prices = np.array(debit.units)
        devices = np.flatnonzero(prices >= 0)
        account = {"account": debit.account, "question": debit.question}
        able = ledgers.spend(clock.now, prices[devices], devices, until=until, **account)
        at_once.append(np.isin(np.arange(DEVICES), devices[able]).tolist())
    for file, book in zip(files, books, strict=True):
        with file.transaction():
            assert book.promises() == list(ledgers.promises)
        file.close()
    return one_by_one, at_once


@given(st.lists(promises(), min_size=1, max_size=5), st.lists(debits, max_size=25))
def test_every_debit_is_paid_or_refused_as_a_device_would(kept_promises: list[Promise], requests: list[Debit]) -> None:
    one_by_one, at_once = debit_both_ways(kept_promises, requests)
    assert at_once == one_by_one


@pytest.mark.slow
@given(st.lists(promises(), min_size=1, max_size=8), st.lists(debits, max_size=60))
@settings(max_examples=5000, deadline=None)
def test_every_debit_of_long_lives_is_paid_or_refused_as_a_device_would(
    kept_promises: list[Promise], requests: list[Debit]
) -> None:
    one_by_one, at_once = debit_both_ways(kept_promises, requests)
    assert at_once == one_by_one


@pytest.mark.parametrize("early", [1, -1])
def test_a_debit_forgotten_a_tick_early_or_late_would_be_noticed(monkeypatch: pytest.MonkeyPatch, early: int) -> None:
    """The planted bug: the same debits, counted a tick too short or too long."""
    real = Tally.forget
    monkeypatch.setattr(Tally, "forget", lambda self, now: real(self, now + early))
    kept_promises = [Promise(10, 2, 5, 2, parts={"asks": 10})]
    requests = [Debit(later, "asks", "page", (10,) * DEVICES) for later in (2, 9, 1, 4, 4)]
    one_by_one, at_once = debit_both_ways(kept_promises, requests)
    assert at_once != one_by_one


def test_a_slice_is_charged_as_its_devices_are() -> None:
    by_slice, by_number = (Ledgers.of_window(9, epsilon=1.0, w=3) for _ in range(2))
    for step, start, stop, units in [(1, 0, 5, 6), (1, 3, 9, 4), (2, 0, 9, 5), (4, 2, 4, 10), (5, 0, 9, 10)]:
        spent = (step, units * 10**11)
        assert by_slice.spend(*spent, slice(start, stop)).tolist() == (
            by_number.spend(*spent, np.arange(start, stop)).tolist()
        )
        assert by_slice.most == by_number.most


def test_strict_ledgers_refuse_for_all_and_change_nothing() -> None:
    ledgers = Ledgers.of_window(3, epsilon=1.0, w=2, strict=True)
    ledgers.spend(1, 6 * 10**11, slice(1, 3))
    with pytest.raises(BudgetExceeded, match=r"window: 0.6 epsilon spent, 0.5 asked, limit 1"):
        ledgers.spend(2, 5 * 10**11, slice(0, 3))
    ledgers.spend(2, 10**12, slice(0, 1))


def test_clocks_that_go_back_are_refused() -> None:
    ledgers = Ledgers.of_window(3, epsilon=1.0, w=2)
    ledgers.spend(5, 1, slice(0, 3))
    with pytest.raises(InvalidValue, match="now"):
        ledgers.spend(4, 1, slice(0, 3))
