"""Names of collections, fields, questions and answers, as they stand in files, in addresses and on the wire."""

from __future__ import annotations

import re
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from hubbub.core.errors import DecodeError

LONGEST_NAME = 64
_SLUG = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_RANGES = {
    "version": (1, 1 << 31),
    "run": (0, (1 << 31) - 1),
    "step": (0, (1 << 53) - 1),
    "round": (1, (1 << 31) - 1),
    "part": (0, (1 << 31) - 1),
}


def is_slug(value: object) -> bool:
    """Whether a value is at most 64 letters a-z, digits, - and _, and begins with a letter."""
    return isinstance(value, str) and _SLUG.fullmatch(value) is not None


class AnswerName(NamedTuple):
    """Which ask a report answers: the question, its run and step, the round of the step, and the part of the round.

    Rounds are counted from 1. `run` is 0 unless a study is repeated, and `part` is 0 where a round has one ask.
    """

    question: str
    run: int
    step: int
    round: int
    part: int

    def __str__(self) -> str:
        return ":".join(map(str, self))

    @staticmethod
    def read(text: str) -> AnswerName:
        """Read a name back from its text."""
        question, *numbers = text.split(":")
        if len(numbers) != 4 or not all(number.isascii() and number.isdigit() for number in numbers):
            raise DecodeError("name", text, "question:run:step:round:part")
        run, step, round_, part = map(int, numbers)
        name = AnswerName(question, run, step, round_, part)
        check_answer_name(name)
        return name


def described(field: str) -> Meta:
    """What the description of the API says of a field. `check_collection` and `check_answer_name` check it."""
    if field not in _RANGES:
        return Meta(extra_json_schema={"pattern": f"^{_SLUG.pattern}$"})
    low, high = _RANGES[field]
    return Meta(extra_json_schema={"minimum": low, "maximum": high})


class AnswerFields(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The fields of an answer's name, as they begin an entry of an upload."""

    question: Annotated[str, described("question")]
    run: Annotated[int, described("run")]
    step: Annotated[int, described("step")]
    round: Annotated[int, described("round")]
    part: Annotated[int, described("part")]

    @property
    def name(self) -> AnswerName:
        return AnswerName(self.question, self.run, self.step, self.round, self.part)


def check_collection(collection: str, version: int) -> None:
    """Refuse a name that no collection has, and a number that no version has."""
    _check_slug("collection", collection)
    _check_range("version", version)


def check_answer_name(name: AnswerName | AnswerFields) -> None:
    """Refuse a name that no answer has."""
    _check_slug("question", name.question)
    _check_range("run", name.run)
    _check_range("step", name.step)
    _check_range("round", name.round)
    _check_range("part", name.part)


def _check_slug(field: str, value: str) -> None:
    if not is_slug(value):
        raise DecodeError(field, value[:80], "a name: at most 64 letters a-z, digits, - and _, a letter first")


def _check_range(field: str, value: int) -> None:
    low, high = _RANGES[field]
    if not low <= value <= high:
        raise DecodeError(field, value, f"an integer from {low} to {high}")
