"""Terms: what a device has to know of a question, compiled by its author and signed with the collection.

A device enforces what is signed here, knows no kind of question, and derives no cost and no limit by itself: which
fields are read and how they are frozen, what may be looked at, by which mechanisms, in how many rounds and parts, which
account pays, and what the question alone may cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, get_args

from hubbub.core.errors import InvalidValue
from hubbub.core.spec import Json, integer
from hubbub.privacy.budget import MOST_UNITS
from hubbub.privacy.promise import Promise, of_question

ASKS = "asks"
"""The account that pays for everything but memos."""

Frozen = Literal["step", "last", "study"]

MOST_ROUNDS = 1 << 10
MOST_PARTS = 1 << 10
MOST_REPORT_BYTES = 1 << 24
_MOST_LISTED = 1 << 24
_MOST_TIME = 1 << 40


class Family(NamedTuple):
    """A mechanism by name, where its parameters depend on the view: what it declares to spend is one of `units`."""

    mechanism: str
    units: tuple[int, ...]

    def spec(self) -> dict[str, Json]:
        """The family as JSON."""
        return {"mechanism": self.mechanism, "units": list(self.units)}

    @staticmethod
    def from_spec(spec: Any) -> Family:
        """Read a family back.

        Example:
            >>> Family.from_spec({"mechanism": "OUE", "units": [10, "20"]})
            Family(mechanism='OUE', units=(10, 20))
        """
        _exactly("families", spec, {"mechanism", "units"})
        units = tuple(_whole("units", each, 1, MOST_UNITS) for each in _list("units", spec["units"]))
        if not units or list(units) != sorted(set(units)):
            raise InvalidValue("units", list(units), "at least one, ascending")
        return Family(_text("mechanism", spec["mechanism"]), units)


class Study(NamedTuple):
    """When a protocol that ends is asked: run k begins at start + k every, and its rounds are of this many seconds.

    `every` is 0 where there is run 0 alone.
    """

    start: int
    round_seconds: int
    every: int = 0

    def spec(self) -> dict[str, Json]:
        """The schedule as JSON."""
        return dict(self._asdict())

    @staticmethod
    def from_spec(spec: Any, rounds: int) -> Study:
        """Read a schedule of so many rounds back.

        Example:
            >>> Study.from_spec({"start": 0, "round_seconds": 60, "every": 100}, rounds=2)
            Traceback (most recent call last):
                ...
            hubbub.core.errors.InvalidValue: every: got 100; allowed: 0, or at least the 120 seconds of a run
        """
        _exactly("study", spec, set(Study._fields))
        study = Study(
            _whole("start", spec["start"], 0, _MOST_TIME),
            _whole("round_seconds", spec["round_seconds"], 1, _MOST_TIME),
            _whole("every", spec["every"], 0, _MOST_TIME),
        )
        if 0 < study.every < rounds * study.round_seconds:
            raise InvalidValue(
                "every", study.every, f"0, or at least the {rounds * study.round_seconds} seconds of a run"
            )
        return study


@dataclass(frozen=True, kw_only=True)
class Terms:
    """A question as a device knows it.

    Parameters
    ----------
    fields
        What it reads. All of them are frozen together.
    frozen
        An answer is about what was recorded in its step ("step"), what was last recorded ("last"), or what was so at
        the first answer of a whole study ("study").
    views
        Patterns of what may be looked at: the JSON of a view, in which {"from": a, "to": b} stands for any number
        between, {"most": k} for at most k different integers of at least 0, ascending, and {"most": k, "each": pattern}
        for a list of at most k that match the pattern.
    mechanisms
        The ids of the specs that an ask may name, sorted.
    families
        Mechanisms that an ask may name whatever their parameters, as long as they read what the view gives.
    rounds, parts
        How many rounds a step (or a run of a study) has, and how many asks a round, of which a device answers one.
    account
        Which account pays.
    state
        Empty where every report is fresh; else the mechanism whose state the device keeps from step to step.
    limit
        The most that one step, or one run of a study, may cost: the sum over its answers, in units.
    promises
        What this question alone may cost, in seconds.
    report_bytes
        The size of the largest report.
    study
        The schedule of a study; None of a question that is asked step by step.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> terms = load_collection(EXAMPLE).terms["popular"]
        >>> terms.account, terms.rounds, terms.limit, terms.views
        ('asks', 1, 1000000000000, ({'kind': 'whole'},))
        >>> Terms.from_spec(terms.spec(), "popular") == terms
        True
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

    def spec(self) -> dict[str, Json]:
        """The terms as JSON."""
        plain: dict[str, Json] = {name: getattr(self, name) for name in _PLAIN}
        return {
            **plain,
            "fields": list(self.fields),
            "views": [dict(view) for view in self.views],
            "mechanisms": list(self.mechanisms),
            "families": [family.spec() for family in self.families],
            "promises": [promise.spec() for promise in self.promises],
            "study": None if self.study is None else self.study.spec(),
        }

    @staticmethod
    def from_spec(spec: Any, question: str) -> Terms:
        """Read terms back; every field must be there, and no other. What they allow is for `admits` to say."""
        _exactly("terms", spec, {part.name for part in fields(Terms)})
        frozen, state = spec["frozen"], spec["state"]
        if frozen not in get_args(Frozen):
            raise InvalidValue("frozen", frozen, f"one of {', '.join(get_args(Frozen))}")
        rounds = _whole("rounds", spec["rounds"], 1, MOST_ROUNDS)
        study = None if spec["study"] is None else Study.from_spec(spec["study"], rounds)
        if (study is not None) != (frozen == "study"):
            raise InvalidValue("frozen", frozen, '"study" for studies, and only for them')
        terms = Terms(
            fields=tuple(_text("fields", name) for name in _list("fields", spec["fields"])),
            frozen=frozen,
            views=tuple(_view(view) for view in _list("views", spec["views"])),
            mechanisms=tuple(_text("mechanisms", each) for each in _list("mechanisms", spec["mechanisms"])),
            families=tuple(Family.from_spec(family) for family in _list("families", spec["families"])),
            rounds=rounds,
            parts=_whole("parts", spec["parts"], 1, MOST_PARTS),
            account=_text("account", spec["account"]),
            state=state if state == "" else _text("state", state),
            limit=_whole("limit", spec["limit"], 1, MOST_UNITS),
            promises=tuple(
                Promise.from_spec(promise, of_question(question)) for promise in _list("promises", spec["promises"])
            ),
            report_bytes=_whole("report_bytes", spec["report_bytes"], 1, MOST_REPORT_BYTES),
            study=study,
        )
        for name in ("fields", "views", "promises"):
            if not getattr(terms, name):
                raise InvalidValue(name, [], "at least one")
        if not terms.mechanisms and not terms.families:
            raise InvalidValue("mechanisms", [], "at least one, or a family")
        return terms


_PLAIN = ("frozen", "rounds", "parts", "account", "state", "limit", "report_bytes")


def memo_account(field: str, spec_id: str) -> str:
    """The account that pays for the memos of a field, under which they are kept.

    Memos that two fields share would tell whether their values are equal. And what one account spends depends on its
    field's values: paying for another question too, it would show in when that one falls silent.

    Example:
        >>> memo_account("home", "94a6cc75375060baaad23a40ff0b42d0")
        'memo:home:94a6cc75375060baaad23a40ff0b42d0'
    """
    return f"memo:{field}:{spec_id}"


def _exactly(name: str, spec: Any, wanted: set[str]) -> None:
    if not isinstance(spec, Mapping) or set(spec) != wanted:
        raise InvalidValue(name, spec, f"exactly the fields {', '.join(sorted(wanted))}")


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidValue(name, value, "a list")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidValue(name, value, "a name")
    return value


def _whole(name: str, value: Any, low: int, high: int) -> int:
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
        if pattern.keys() in ({"most"}, {"most", "each"}):
            _whole("most", pattern["most"], 0, _MOST_LISTED)
        for part in pattern.values():
            _check_pattern(part)
    elif isinstance(pattern, list | tuple):
        for part in pattern:
            _check_pattern(part)
