"""Generated histories of an adversarial server: no signed promise is broken, and no round is answered twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hubbub.ledger.book import Book
from tests.client.adversary import history

pytestmark = pytest.mark.usefixtures("any_version")


def lives(folder: Path, seeds: range, *, stop: bool = False) -> tuple[list[str], int]:
    """What went wrong in some histories, and how much was heard; with `stop`, up to the first that goes wrong."""
    wrong: list[str] = []
    answered = 0
    for seed in seeds:
        faults, reports = history(folder / str(seed), seed)
        wrong += [f"history {seed}: {fault}" for fault in faults]
        answered += reports
        if stop and wrong:
            break
    return wrong, answered


def test_no_promise_is_broken_whatever_the_server_says(folder: Path) -> None:
    wrong, answered = lives(folder, range(12))
    assert wrong == []
    assert answered > 20  # devices did answer


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_no_promise_is_broken_in_ten_thousand_histories(folder: Path, part: int) -> None:
    wrong, answered = lives(folder, range(1000 + 500 * part, 1500 + 500 * part))
    assert wrong == []
    assert answered > 1000


def test_a_device_that_forgets_older_promises_is_caught(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Book.promise

    def newest(self: Book, promises: Any) -> None:
        self.rows.drop_promises(self.rows.promises())
        real(self, promises)

    monkeypatch.setattr(Book, "promise", newest)
    wrong, _ = lives(folder, range(60), stop=True)
    assert wrong
