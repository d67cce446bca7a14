"""Terms: what a device has to know of a question, compiled by authoring and signed with the collection.

Terms say which fields are read and how they are frozen, which views and mechanisms an ask may name, how many rounds and
parts there are, which account pays, and what the question alone may cost. A device enforces them. It knows no kinds of
questions, and derives no cost and no limit by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, get_args

from hubbub.collection.names import LONGEST_NAME
from hubbub.core.errors import InvalidValue
from hubbub.core.spec import Json, check_fields, integer
from hubbub.ledger.promise import MOST_UNITS, Promise, of_question

BLOCK = 1024
HEAD_BYTES = 1 + 1 + (2 + LONGEST_NAME) + 5 + 5 + 5
"""The bytes of a frame without entries: array, kind, collection's name, version, heads of the list and of the
padding."""
ENTRY_BYTES = 80
"""The most bytes of an entry without its question's name and its report. In binary: the array (1), the heads of the
three texts (2 + 2 + 5), run, step, round and part (5 + 9 + 5 + 5), the report's id (16). Twice as much, which is what a
readable frame has, holds the readable form too: keys and punctuation (70), numbers (42), id (32), and a report whose
length is not a multiple of three (4)."""

ASKS = "asks"
"""The account that pays for everything but memos."""

Frozen = Literal["step", "last", "study"]

MOST_ROUNDS = 1 << 10
MOST_PARTS = 1 << 10
MOST_GROUPS = 1 << 10
MOST_REPORT_BYTES = 1 << 24
_MOST_LISTED = 1 << 24
_MOST_TIME = 1 << 40


class Family(NamedTuple):
    """A mechanism by name, whose parameters depend on the view. Its declared epsilon must be one of `units`."""

    mechanism: str
    units: tuple[int, ...]

    def spec(self) -> dict[str, Json]:
        return {"mechanism": self.mechanism, "units": list(self.units)}

    @staticmethod
    def from_spec(spec: Any) -> Family:
        """Read a family back."""
        check_fields("families", spec, {"mechanism", "units"})
        units = tuple(_integer("units", unit, 1, MOST_UNITS) for unit in _list("units", spec["units"]))
        if not units or list(units) != sorted(set(units)):
            raise InvalidValue("units", list(units), "at least one, ascending")
        return Family(_text("mechanism", spec["mechanism"]), units)


class Study(NamedTuple):
    """The schedule of a study: run k begins at start + k every, and each round takes `round_seconds`.

    `every` is 0 where the study is not repeated.
    """

    start: int
    round_seconds: int
    every: int = 0

    def spec(self) -> dict[str, Json]:
        """The schedule as JSON."""
        return dict(self._asdict())

    @staticmethod
    def from_spec(spec: Any, rounds: int) -> Study:
        """Read back the schedule of a study of a given number of rounds."""
        check_fields("study", spec, set(Study._fields))
        study = Study(
            _integer("start", spec["start"], 0, _MOST_TIME),
            _integer("round_seconds", spec["round_seconds"], 1, _MOST_TIME),
            _integer("every", spec["every"], 0, _MOST_TIME),
        )
        if 0 < study.every < rounds * study.round_seconds:
            raise InvalidValue(
                "every", study.every, f"0, or at least the {rounds * study.round_seconds} seconds of a run"
            )
        return study


class Group(NamedTuple):
    """The devices that a question is asked of: one of several equal groups. Its own secret puts a device in a group."""

    number: int = 0
    of: int = 1

    def spec(self) -> dict[str, Json]:
        return dict(self._asdict())

    @staticmethod
    def from_spec(spec: Any) -> Group:
        """Read a group back; a single one, which has everyone, is not written."""
        check_fields("group", spec, set(Group._fields))
        of = _integer("of", spec["of"], 2, MOST_GROUPS)
        return Group(_integer("number", spec["number"], 0, of - 1), of)


ALL_DEVICES = Group()


@dataclass(frozen=True, kw_only=True)
class Terms:
    """A question as a device knows it.

    Parameters
    ----------
    fields
        The fields that the question reads. Their values are frozen together.
    frozen
        Which values an answer is about: those recorded in its step ("step"), those recorded last ("last"), or those
        recorded last at the first answer of the study's run ("study").
    views
        Patterns of the views that an ask may name: see `hubbub.collection.admits.matches`.
    mechanisms
        The ids of the specs that an ask may name, sorted.
    families
        Mechanisms that an ask may name with any parameters that fit the view.
    rounds, parts
        How many rounds a step (or a run of a study) has, and how many asks a round has. A device answers one of them.
    account
        The account that pays.
    state
        The mechanism whose state a device keeps from step to step; empty where every report is fresh.
    limit
        The most that the answers of one step, or of one run of a study, may cost together, in units of 1e-12 epsilon.
    promises
        What this question alone may cost; grids are in seconds.
    report_bytes
        The size of the largest report.
    study
        The schedule of a study; None for a question that is asked step by step.
    group
        The devices that it is asked of; cohorts are arcs of their circle.
    """

    fields: tuple[str, ...]
    views: tuple[Mapping[str, Json], ...]
    mechanisms: tuple[str, ...] = ()
    families: tuple[Family, ...] = ()
    frozen: Frozen = "step"
    rounds: int = 1
    parts: int = 1
    account: str = ASKS
    state: str = ""
    limit: int
    promises: tuple[Promise, ...]
    report_bytes: int
    study: Study | None = None
    group: Group = ALL_DEVICES

    def spec(self) -> dict[str, Json]:
        plain: dict[str, Json] = {name: getattr(self, name) for name in _PLAIN}
        return {
            **plain,
            "fields": list(self.fields),
            "views": [dict(view) for view in self.views],
            "mechanisms": list(self.mechanisms),
            "families": [family.spec() for family in self.families],
            "promises": [promise.spec() for promise in self.promises],
            "study": None if self.study is None else self.study.spec(),
            **({} if self.group.of == 1 else {"group": self.group.spec()}),
        }

    @staticmethod
    def from_spec(spec: Any, question: str) -> Terms:
        """Read terms back; they must have exactly these fields. Which asks they allow is decided by `admits`."""
        names = {part.name for part in fields(Terms)}
        check_fields("terms", spec, names if isinstance(spec, Mapping) and "group" in spec else names - {"group"})
        frozen, state = spec["frozen"], spec["state"]
        if frozen not in get_args(Frozen):
            raise InvalidValue("frozen", frozen, f"one of {', '.join(get_args(Frozen))}")
        rounds = _integer("rounds", spec["rounds"], 1, MOST_ROUNDS)
        study = None if spec["study"] is None else Study.from_spec(spec["study"], rounds)
        if (study is not None) != (frozen == "study"):
            raise InvalidValue("frozen", frozen, '"study" for studies, and only for them')
        terms = Terms(
            fields=tuple(_text("fields", name) for name in _list("fields", spec["fields"])),
            frozen=frozen,
            views=tuple(_view(view) for view in _list("views", spec["views"])),
            mechanisms=tuple(_text("mechanisms", spec_id) for spec_id in _list("mechanisms", spec["mechanisms"])),
            families=tuple(Family.from_spec(family) for family in _list("families", spec["families"])),
            rounds=rounds,
            parts=_integer("parts", spec["parts"], 1, MOST_PARTS),
            account=_text("account", spec["account"]),
            state=state if state == "" else _text("state", state),
            limit=_integer("limit", spec["limit"], 1, MOST_UNITS),
            promises=tuple(
                Promise.from_spec(promise, of_question(question)) for promise in _list("promises", spec["promises"])
            ),
            report_bytes=_integer("report_bytes", spec["report_bytes"], 1, MOST_REPORT_BYTES),
            study=study,
            group=Group.from_spec(spec["group"]) if "group" in spec else ALL_DEVICES,
        )
        for name in ("fields", "views", "promises"):
            if not getattr(terms, name):
                raise InvalidValue(name, [], "at least one")
        if not terms.mechanisms and not terms.families:
            raise InvalidValue("mechanisms", [], "at least one, or a family")
        return terms


_PLAIN = ("frozen", "rounds", "parts", "account", "state", "limit", "report_bytes")


def memo_account(field: str, spec_id: str) -> str:
    """The account that pays for the memos of a field; its name is also the key of their state.

    Each field has an account of its own. Memos that two fields share would reveal whether their values are equal. And
    the spending of the account depends on the field's values: another question that it paid for would fall silent
    depending on them.
    """
    return f"memo:{field}:{spec_id}"


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidValue(name, value, "a list")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidValue(name, value, "a name")
    return value


def _integer(name: str, value: Any, low: int, high: int) -> int:
    number = integer(name, value)
    if not low <= number <= high:
        raise InvalidValue(name, number, f"an integer from {low} to {high}")
    return number


def _view(value: Any) -> Mapping[str, Json]:
    if not isinstance(value, Mapping) or not isinstance(value.get("kind"), str):
        raise InvalidValue("views", value, "objects with a kind")
    _check_pattern(value)
    return dict(value)


def _check_pattern(pattern: Any) -> None:
    """Refuse bounds that are no bounds: `matches` compares with them."""
    if isinstance(pattern, Mapping) and pattern.keys() == {"from", "to"}:
        ends = pattern["from"], pattern["to"]
        numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends)
        if not numbers or not ends[0] <= ends[1]:
            raise InvalidValue("views", pattern, "a range from a number to one that is not smaller")
    elif isinstance(pattern, Mapping):
        if pattern.keys() == {"hex"}:
            _integer("hex", pattern["hex"], 1, _MOST_LISTED)
        if pattern.keys() in ({"most"}, {"most", "each"}):
            _integer("most", pattern["most"], 0, _MOST_LISTED)
        for part in pattern.values():
            _check_pattern(part)
    elif isinstance(pattern, list | tuple):
        for part in pattern:
            _check_pattern(part)


def entry_bytes(question: str, report: int) -> int:
    """The most bytes of one entry of an upload: the name of the answer, the report's id, and the report."""
    return ENTRY_BYTES + len(question) + report


def frame_bytes(entries: int) -> int:
    """The size of a frame whose entries take a given number of bytes, in whole blocks of 1024."""
    return -(-(HEAD_BYTES + entries) // BLOCK) * BLOCK


def frame_for(terms: Mapping[str, Terms], sealed_bytes: Callable[[int], int] = int) -> int:
    """The size of every upload of a collection: room for one answer to each round of each question of a group.

    `sealed_bytes` gives the size of a sealed report from that of the report, which are the same where none is sealed.
    """
    sizes = {name: entry_bytes(name, sealed_bytes(question.report_bytes)) for name, question in terms.items()}
    groups: dict[Group, int] = {}
    for name, size in sizes.items():
        groups[terms[name].group] = groups.get(terms[name].group, 0) + size * terms[name].rounds
    return frame_bytes(max(groups.values(), default=0))
