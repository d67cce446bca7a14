"""A kind of field of another package: the built-in questions ask about it, devices answer, and pages show its names."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from hubbub.authoring import load_collection
from hubbub.collection.admits import admits
from hubbub.core.domain import DOMAINS, Domain
from hubbub.protocols.ask import Ask
from tests.shared.small_collections import collection_text
from tests.shared.whole_way import answered

NAMES = ("monday", "tuesday", "wednesday")
TEXT = collection_text(
    "week",
    "Days",
    privacy={"event": 4.0, "minimum_batch": 20},
    fields={"day": {"kind": "weekday", "days": 3}, "crashed": {"kind": "categorical", "names": ["yes", "no"]}},
    questions={"which": {"kind": "histogram", "epsilon": 4.0}},
)


@dataclass(frozen=True)
class Weekday(Domain):
    """The first days of a week: a kind of field with the least that a domain must have."""

    kind: ClassVar[str] = "weekday"
    days: int

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.days

    @property
    def labels(self) -> tuple[str, ...]:
        return NAMES[: self.days]

    def describe(self) -> str:
        return f"one of {self.days} days"

    def encode(self, values: Any) -> Any:
        return np.array([NAMES.index(value) for value in values], dtype=np.int64)


@pytest.fixture(autouse=True)
def _weekday(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DOMAINS, "weekday", Weekday)


def test_a_field_of_another_package_is_asked_answered_and_shown() -> None:
    collection = load_collection(TEXT + 'field = "day"')
    assert collection.questions["which"].labels() == (*NAMES, "(none)")
    with answered(collection, "which", "day", lambda device: NAMES[device % 3], range(8, 10)) as (releases, get):
        assert [release["published"] for release in releases] == [True, True]
        assert "wednesday" in get("/results/week/which").text


def test_devices_refuse_a_mechanism_that_does_not_take_all_of_its_values() -> None:
    collection = load_collection(TEXT + 'field = "day"')
    terms, ask = collection.terms["which"], next(collection.protocol("which"))
    assert isinstance(ask, Ask)
    says = {days: admits(terms, ask, fields={"day": Weekday(days)}) for days in (2, 3, 4)}
    assert says == {2: None, 3: None, 4: "mechanism"}


def test_a_field_of_another_package_makes_groups() -> None:
    collection, fields = load_collection(TEXT + 'field = "crashed"\nby = "day"'), ("day", "crashed")
    with answered(collection, "which", fields, lambda _: ("tuesday", "no"), range(8, 9)) as (releases, get):
        assert [release["published"] for release in releases] == [True]
        assert "tuesday" in get("/results/week/which").text
