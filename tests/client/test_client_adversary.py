"""Generated histories of an adversarial server: no promise that was ever signed is broken, no name answered twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from adversary import history

from hubbub.privacy.book import Book


def lives(folder: Path, seeds: range) -> tuple[list[str], int]:
    wrong, heard = [], 0
    for seed in seeds:
        found, reports = history(folder / str(seed), seed)
        wrong += [f"history {seed}: {each}" for each in found]
        heard += reports
    return wrong, heard


def test_no_promise_is_broken_whatever_the_server_says(folder: Path) -> None:
    wrong, heard = lives(folder, range(200))
    assert wrong == []
    assert heard > 400  # devices did answer


@pytest.mark.slow
def test_no_promise_is_broken_in_ten_thousand_histories(folder: Path) -> None:
    wrong, heard = lives(folder, range(10_000, 20_000))
    assert wrong == []
    assert heard > 20_000


def test_a_device_that_forgets_older_promises_is_caught(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Book.promise

    def newest(self: Book, promises: Any) -> None:
        self.rows.drop_promises(self.rows.promises())
        real(self, promises)

    monkeypatch.setattr(Book, "promise", newest)
    wrong, _ = lives(folder, range(200))
    assert wrong
