"""The debit of a study counts until its last round has closed and the window has passed; recounted independently."""

from __future__ import annotations

import random

import pytest

from hubbub.core.migrations import Format
from hubbub.ledger.book import TABLES, Book
from hubbub.ledger.clock import Observation
from hubbub.ledger.file import LedgerFile
from hubbub.ledger.promise import BudgetExceeded, Promise, of_question

STEP = 10


class Shown:
    """A clock that shows what it is told, and whose trusted time is as true."""

    interval, origin = STEP, 0

    def __init__(self) -> None:
        self.now = 0

    def spec(self) -> dict[str, object]:
        return {}

    def observe(self, last: Observation | None) -> Observation:
        return Observation(self.now // STEP, self.now, self.now, self.now)


def most_in_any(spent: list[tuple[int, int, int]], steps: int, last: int) -> int:
    """The most that any steps of a given number cost: a run costs in every step from its first answer to its end."""
    totals = []
    for first in range(last // STEP + 2):
        low, high = first * STEP, (first + steps) * STEP
        totals.append(sum(units for units, begins, ends in spent if begins < high and ends >= low))
    return max(totals)


@pytest.mark.parametrize("seed", range(40))
def test_no_window_costs_more_than_is_promised(seed: int) -> None:
    draw, clock = random.Random(seed), Shown()
    file = LedgerFile(":memory:", {}, TABLES, Format("version", 2))
    book = Book(file, clock)
    limit, steps, own = draw.randint(4, 20), draw.randint(1, 5), draw.randint(3, 12)
    with file.transaction():
        book.promise(
            [
                Promise(limit, steps, STEP, parts={"asks": limit}),
                Promise(own, 1, STEP, scope=of_question("study")),
                Promise(120, 0, parts={"asks": 120}),
            ]
        )
    spent: list[tuple[int, int, int]] = []
    studies: list[tuple[int, int, int]] = []
    refused = 0
    for _ in range(120):
        clock.now += draw.choice((0, 1, 3, STEP, 2 * STEP))
        question, units = draw.choice(("study", "popular")), draw.randint(1, 6)
        ends = clock.now + draw.randint(0, 6 * STEP) if question == "study" else clock.now
        with file.transaction():
            try:
                book.spend(clock.now // STEP, "asks", question, units, until=ends if question == "study" else None)
            except BudgetExceeded:
                refused += 1
                # It would have been too much: no promise is tighter than it says.
                with_debit = [*spent, (units, clock.now, ends)]
                study_debits = [*studies, (units, clock.now, ends)] if question == "study" else studies
                over = most_in_any(with_debit, steps, clock.now) > limit or sum(debit[0] for debit in with_debit) > 120
                assert over or most_in_any(study_debits, 1, clock.now) > own
                continue
        spent.append((units, clock.now, ends))
        if question == "study":
            studies.append((units, clock.now, ends))
        assert most_in_any(spent, steps, max(debit[2] for debit in spent)) <= limit
        assert most_in_any(studies, 1, max((debit[2] for debit in studies), default=0)) <= own
    assert spent
    assert refused
    file.close()


def test_a_clock_set_forward_does_not_bring_the_end_of_a_run_nearer() -> None:
    class Jumping(Shown):
        trusted = 0

        def observe(self, last: Observation | None) -> Observation:
            return Observation(self.now // STEP, self.now, 0, self.trusted)

    clock = Jumping()
    file = LedgerFile(":memory:", {}, TABLES, Format("version", 2))
    book = Book(file, clock)
    with file.transaction():
        book.promise([Promise(10, 2, STEP, parts={"asks": 10})])
        book.spend(0, "asks", "study", 10, until=5 * STEP - 1)
    for now, trusted, allowed in ((90 * STEP, 0, False), (91 * STEP, 5 * STEP, False), (92 * STEP, 6 * STEP, True)):
        clock.now, clock.trusted = now, trusted
        with file.transaction():
            if allowed:
                book.spend(now // STEP, "asks", "popular", 10)
            else:
                with pytest.raises(BudgetExceeded):
                    book.spend(now // STEP, "asks", "popular", 1)
    file.close()
