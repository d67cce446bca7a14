"""Two pure functions are all that an engine needs: `fold(batch, plan) -> bytes` and `merge(bytes, bytes) -> bytes`.

Both take and give bytes alone, so that any engine can run them anywhere and in any order: threads, processes, Spark's
`mapInArrow` and `applyInArrow`. The bytes of the same reports are the same, however they were divided.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from hubbub.backends import LOCAL
from hubbub.backends.report_files import SketchKey, Specs, mechanisms_of
from hubbub.backends.report_rows import ReadBatch, RowGroup, read_batch
from hubbub.core.domain import as_domain
from hubbub.core.errors import DecodeError, InvalidValue, SpecMismatch, at
from hubbub.core.migrations import Versions
from hubbub.core.reports import Ints, Sketch
from hubbub.core.spec import Json, canonical, check_fields
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.frequency.oracle import SupportMechanism
from hubbub.mechanisms.frequency.screen import with_screen

if TYPE_CHECKING:
    import pyarrow as pa

    from hubbub.core.estimate import Estimate

SKETCHES: Versions[None] = Versions("sketches", 1)
MOST_BYTES = 1 << 28
"""The most bytes that the sketches of one fold may take together."""
REASONS = ("bad_name", "bad_weight", "bad_id", "unknown_spec", "malformed")
"""Why rows are left out."""


@dataclass(frozen=True, kw_only=True)
class FoldPlan:
    """Which reports are added up, and how: all of a fold but the reports themselves.

    Parameters
    ----------
    specs
        The specs of mechanisms by their ids. If empty, those in the metadata of files are taken; if not, reports of
        any other spec are left out as `unknown_spec`.
    questions, first, last
        Which questions, and the first and last step, are added up. No questions are all of them.
    candidates
        For each question whose supports of candidates are counted instead of a whole sketch, the candidates.
    weight
        A column of integers: each report counts as its weight. Candidates are then all values where none are given.
    screen
        Whether whole sketches have a screen of their reports, by which forged ones are told.
    """

    specs: Mapping[str, Json] = field(default_factory=dict)
    questions: tuple[str, ...] = ()
    first: int = 0
    last: int | None = None
    candidates: Mapping[str, Sequence[int | str]] = field(default_factory=dict)
    weight: str | None = None
    screen: bool = False

    def to_json(self) -> str:
        """The plan as `fold` takes it; equal plans give equal texts."""
        return canonical(
            {
                "specs": dict(self.specs),
                "questions": [*sorted(self.questions)],
                "first": self.first,
                "last": self.last,
                "candidates": {name: list(values) for name, values in self.candidates.items()},
                "weight": self.weight,
                "screen": self.screen,
            }
        )

    def wants(self, key: SketchKey) -> bool:
        """Whether reports of a key are added up."""
        named = not self.questions or key.question in self.questions
        return named and self.first <= key.step and (self.last is None or key.step <= self.last)

    def read(self, batch: pa.RecordBatch) -> ReadBatch:
        """The reports of a batch that are to be added up."""
        return read_batch(batch, _mechanisms(canonical(dict(self.specs))), self.wants, weight=self.weight)


@lru_cache(maxsize=64)
def _mechanisms(specs: str) -> Specs:
    return mechanisms_of(json.loads(specs))


@lru_cache(maxsize=64)
def read_plan(text: str) -> FoldPlan:
    """A plan from its JSON text.

    Example:
        >>> read_plan(FoldPlan(questions=("theme",)).to_json()).questions
        ('theme',)
    """
    try:
        plan = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise DecodeError("plan", str(text)[:40], "the JSON text of a FoldPlan") from None
    check_fields("plan", plan, set(FoldPlan.__dataclass_fields__))
    ends = [plan["first"], 0 if plan["last"] is None else plan["last"]]
    candidates, questions, weight = plan["candidates"], plan["questions"], plan["weight"]
    if not all(isinstance(end, int) and end >= 0 for end in ends):
        raise InvalidValue("steps", ends, "integers of at least 0")
    if not isinstance(questions, list) or not all(isinstance(name, str) for name in questions):
        raise InvalidValue("questions", questions, "a list of names")
    if not isinstance(candidates, dict) or not all(isinstance(each, list) and each for each in candidates.values()):
        raise InvalidValue("candidates", candidates, "a list of at least one for each question that is named")
    if not isinstance(weight, str | None):
        raise InvalidValue("weight", weight, "the name of a column, or null")
    if not isinstance(plan["screen"], bool):
        raise InvalidValue("screen", plan["screen"], "true or false")
    mechanisms_of(plan["specs"])
    return FoldPlan(
        specs=plan["specs"],
        questions=tuple(questions),
        first=plan["first"],
        last=plan["last"],
        candidates=candidates,
        weight=weight,
        screen=plan["screen"],
    )


class _Stored(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    kind: Literal["sketches"]
    format: int
    specs: bytes
    candidates: bytes
    weighted: bool
    groups: list[tuple[tuple[str, int, str, int, int, int, int, str], bytes]]
    left_out: dict[str, int]


class Folded:
    """Sketches by what they are of, with the specs to estimate from them, and how many rows were left out and why.

    `candidates`, `weighted`: as in `FoldPlan`: sketches of other candidates do not merge.
    """

    def __init__(self, candidates: Mapping[str, Sequence[int | str]], weighted: bool) -> None:
        self.candidates = dict(candidates)
        self.weighted = weighted
        self.mechanisms: dict[str, ReportFormat] = {}
        self.sketches: dict[SketchKey, Sketch] = {}
        self.left_out: dict[str, int] = {}
        self._bytes = 0

    @property
    def n(self) -> int:
        """How many reports were added up."""
        return sum(sketch.n for sketch in self.sketches.values())

    def add(self, key: SketchKey, mechanism: ReportFormat, sketch: Sketch) -> None:
        if not sketch.n:
            return
        self.mechanisms[key.spec_id] = mechanism
        present = self.sketches.get(key)
        self._bytes += sketch.counts.nbytes if present is None else 0
        if self._bytes > MOST_BYTES:
            allowed = f"sketches of at most {MOST_BYTES:,} bytes together: fold fewer questions or steps at a time"
            raise InvalidValue("sketches", f"more than {len(self.sketches):,}", allowed)
        with at(f"{key.question}, step {key.step}"):
            self.sketches[key] = sketch if present is None else present + sketch

    def leave_out(self, reason: str, rows: int) -> None:
        """Count rows that are left out."""
        if rows:
            self.left_out[reason] = self.left_out.get(reason, 0) + rows

    def merge(self, other: Folded) -> None:
        """Add all that another has."""
        if (self.candidates, self.weighted) != (other.candidates, other.weighted):
            raise SpecMismatch("candidates", list(other.candidates), "the same candidates, both weighted or neither")
        for key, sketch in other.sketches.items():
            self.add(key, other.mechanisms[key.spec_id], sketch)
        for reason, rows in other.left_out.items():
            self.leave_out(reason, rows)

    def candidates_of(self, key: SketchKey) -> Sequence[Any] | None:
        """The candidates whose support was counted for a key; None where it was folded whole."""
        return _candidates(self.candidates, self.weighted, key, self.mechanisms[key.spec_id])

    def estimate(self, key: SketchKey) -> Estimate:
        return self.mechanisms[key.spec_id].estimate(self.sketches[key], self.candidates_of(key))

    def to_bytes(self) -> bytes:
        """All of it in bytes, which do not depend on the order of folding."""
        specs: dict[str, Json] = {identity: each.spec() for identity, each in self.mechanisms.items()}
        stored = _Stored(
            "sketches",
            SKETCHES.version,
            canonical(specs).encode(),
            canonical(dict(sorted(self.candidates.items()))).encode(),  # type: ignore[arg-type]
            self.weighted,
            [(key, self.sketches[key].to_bytes()) for key in sorted(self.sketches)],
            dict(sorted(self.left_out.items())),
        )
        return msgspec.msgpack.encode(stored)

    @staticmethod
    def from_bytes(data: bytes) -> Folded:
        """Read what `to_bytes` wrote; anything that is not well formed is refused.

        Example:
            >>> Folded.from_bytes(b"hostile")
            Traceback (most recent call last):
                ...
            hubbub.core.errors.DecodeError: sketches: got b'hostile'; allowed: ...
        """
        try:
            stored = msgspec.msgpack.decode(data, type=_Stored)
            specs, candidates = json.loads(stored.specs), json.loads(stored.candidates)
        except (msgspec.DecodeError, ValueError, TypeError, RecursionError) as error:
            start = data[:40] if isinstance(data, bytes) else data
            raise DecodeError("sketches", start, f"what `hubbub fold` wrote ({error})") from None
        SKETCHES.check(stored.format)
        if not isinstance(candidates, dict) or not all(isinstance(values, list) for values in candidates.values()):
            raise DecodeError("candidates", stored.candidates[:40], "a list for each question that is named")
        folded, mechanisms = Folded(candidates, stored.weighted), mechanisms_of(specs)
        for fields, sketch in stored.groups:
            key = SketchKey.read(fields)
            if key.spec_id not in mechanisms or key in folded.sketches:
                raise DecodeError("sketches", key, "sketches of different keys, each of one of the specs")
            folded.add(key, mechanisms[key.spec_id], Sketch.from_bytes(sketch))
        for reason, rows in stored.left_out.items():
            if reason not in REASONS or rows < 1:
                raise DecodeError("left_out", reason, f"counts by one of {', '.join(REASONS)}")
            folded.leave_out(reason, rows)
        return folded


def fold(batch: pa.RecordBatch, plan: str) -> bytes:
    """Add up the reports of a batch into sketches, one for each ask that they answer.

    Rows that cannot be read or counted are left out and counted by reason (`REASONS`). Repeated ids are counted as
    often as they stand there: whoever divides the rows into batches drops repetitions first.

    `batch`: rows of a landing file or of an archive (`hubbub.backends.report_files`), in any Arrow record batch.
    `plan`: what to add up: `FoldPlan.to_json`.

    Returns
    -------
    bytes
        For `merge` and `Folded.from_bytes`.

    Example:
        >>> import hubbub as hb
        >>> from hubbub.backends.report_files import SketchKey, landing_batch
        >>> oracle = hb.OLH(epsilon=1.0, domain=5)
        >>> key = SketchKey("survey", 1, "theme", 0, 7, 1, 0, oracle.spec_id)
        >>> reports = oracle.randomize([3, 3, 1], hb.Random(seed=1))
        >>> rows = [(key, bytes([i] * 16), reports[i : i + 1].to_bare()) for i in range(3)]
        >>> plan = FoldPlan().to_json()
        >>> halves = [fold(landing_batch(part, [oracle]), plan) for part in (rows[:1], rows[1:])]
        >>> Folded.from_bytes(merge(*halves)).sketches[key] == oracle.accumulate(reports)
        True
    """
    reading = read_plan(plan)
    folded = Folded(reading.candidates, reading.weight is not None)
    add_batch(folded, batch, reading)
    return folded.to_bytes()


def merge(first: bytes, second: bytes) -> bytes:
    """Add up two results of `fold`: associative and commutative, bit for bit.

    Example:
        >>> nothing = Folded({}, False).to_bytes()
        >>> merge(nothing, nothing) == nothing
        True
    """
    folded = Folded.from_bytes(first)
    folded.merge(Folded.from_bytes(second))
    return folded.to_bytes()


def add_batch(folded: Folded, batch: pa.RecordBatch, plan: FoldPlan) -> dict[str, Ints]:
    """Add the reports of a batch to what was folded before. Returns the rows that were left out, by reason."""

    def add(group: RowGroup) -> None:
        folded.add(group.key, group.mechanism, _sketch(group, plan))

    left_out = divide(plan.read(batch), add)
    for reason, rows in left_out.items():
        folded.leave_out(reason, len(rows))
    return left_out


def divide(batch: ReadBatch, take: Callable[[RowGroup], None]) -> dict[str, Ints]:
    """Call `take` with all reports that their mechanism accepts. Returns the rows that are left out, by reason.

    A group with reports that are refused is halved until each of them is alone.
    """
    malformed = []
    pending = list(batch.groups)
    while pending:
        group = pending.pop()
        try:
            group.mechanism.check(group.reports)
        except InvalidValue:
            if len(group.reports) > 1:
                half = len(group.reports) // 2
                pending += [group.take(slice(half, None)), group.take(slice(half))]
            else:
                malformed += group.rows.tolist()
        else:
            take(group)
    if not malformed:
        return batch.left_out
    before = batch.left_out.get("malformed", np.zeros(0, dtype=np.int64))
    return {**batch.left_out, "malformed": np.sort(np.append(before, malformed))}


def _sketch(group: RowGroup, plan: FoldPlan) -> Sketch:
    candidates = _candidates(plan.candidates, plan.weight is not None, group.key, group.mechanism)
    if candidates is None:
        sketch = LOCAL.fold([group.reports], group.mechanism)
        return with_screen(group.mechanism, group.reports, sketch) if plan.screen else sketch
    assert isinstance(group.mechanism, SupportMechanism)
    weights = None if group.weights is None else [group.weights]
    return LOCAL.support([group.reports], group.mechanism, candidates, weights)


def _candidates(
    candidates: Mapping[str, Sequence[int | str]], weighted: bool, key: SketchKey, mechanism: ReportFormat
) -> Sequence[Any] | None:
    given = candidates.get(key.question)
    if given is None and not weighted:
        return None
    if not isinstance(mechanism, SupportMechanism):
        allowed = "a mechanism whose reports support values: no candidates, and no weights"
        raise InvalidValue(f"{key.question}.mechanism", type(mechanism).__name__, allowed)
    if given is None:
        if mechanism.is_open:
            raise InvalidValue("candidates", "none", f"candidates of {key.question}, whose domain is open")
        return mechanism.example_values(mechanism.size)
    domain = as_domain("domain", mechanism.domain)
    texts = domain.labels is None  # where values have names, a text is a name
    return [domain.candidate(value) if texts and isinstance(value, str) else value for value in given]
