"""What a collection asks of one field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

from hubbub.collection.build import asked_of, is_mean
from hubbub.collection.fields import labels_of
from hubbub.collection.keyed import ARITHMETIC as KEYED_ARITHMETIC
from hubbub.collection.moving import Moves
from hubbub.collection.turn import start_of, turned
from hubbub.core.domain import Domain, Sets, Strings
from hubbub.core.errors import InvalidValue
from hubbub.core.event import units_of
from hubbub.core.keyvalue import KeyValue
from hubbub.core.spec import Json
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.steady import ARITHMETIC as STEADY_ARITHMETIC
from hubbub.protocols.steady import steady
from hubbub.protocols.symbol_stream import ARITHMETIC as CHANGES_ARITHMETIC
from hubbub.protocols.symbol_stream import symbol_stream
from hubbub.protocols.window import METHODS, BudgetDivision, Statistic, window_stream

if TYPE_CHECKING:
    from hubbub.collection.spec import Collection

__all__ = ["Kind", "QuestionSpec"]

Kind = Literal["histogram", "mean", "stream", "memo", "keyvalue", "changes"]

LONGEST = 200
MOST_W = 10**6
_OWN = {"method": "stream", "w": "stream", "permanent": "memo", "steps": "changes", "changes": "changes"}


@dataclass(frozen=True, kw_only=True)
class QuestionSpec:
    """A question: of which field, how, and at what price.

    Parameters
    ----------
    kind
        "histogram" and "mean" ask everyone at every step; "stream" divides epsilon over a window of w steps; "memo" is
        for values that persist: a permanent answer, randomised again for every report; "keyvalue" asks everyone at
        every step what they hold of each key; "changes" follows values that change rarely over a horizon of steps.
    field
        The field that is asked about.
    epsilon
        What one report may spend; of a stream, what any w consecutive steps may; of changes, all of a horizon.
    title
        The question in words.
    method, w
        Of a stream: a name of `hubbub.protocols.window.METHODS`, and the length of its window.
    permanent
        Of a memo: what all reports of one value may tell together.
    steps, changes
        Of changes: how many steps a horizon has, and how many changes a device may tell of in it.
    mechanism
        The mechanism to use, instead of the best for the field.
    of
        What of the field: "cells" asks for the shares of a numeric field's cells where a stream would ask for the mean;
        "size" asks for the size of a set. Of a key-value field "mean" (unless given: what people have of each key),
        "frequency" (how many hold it) or "conditional" (the mean among those).
    sparsity
        Of a key-value question: how many keys a report can tell of; all that may be held, unless given.
    candidates
        Of a field of strings: the texts whose shares are estimated.
    keep_reports
        Whether the server keeps single reports until the retention is over, instead of their sum alone: then other
        candidates can be asked for later, over any steps.

    Example:
        >>> spec = QuestionSpec(kind="histogram", field="theme", epsilon=1.0)
        >>> QuestionSpec.from_spec(spec.spec()) == spec
        True
        >>> from hubbub import Categorical
        >>> type(spec.mechanism_for(Categorical(["light", "dark"]))).__name__
        'GRR'
    """

    kind: Kind
    field: str
    epsilon: float
    title: str = ""
    method: str | None = None
    w: int | None = None
    permanent: float | None = None
    steps: int | None = None
    changes: int | None = None
    mechanism: str | None = None
    of: str | None = None
    sparsity: int | None = None
    candidates: tuple[str, ...] = ()
    keep_reports: bool = False

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InvalidValue("kind", self.kind, f"one of {', '.join(get_args(Kind))}")
        for name in ("field", "title"):
            value = getattr(self, name)
            if not isinstance(value, str) or len(value) > LONGEST or not value.isprintable():
                raise InvalidValue(name, value, f"a line of text of at most {LONGEST} characters")
        for name, kind in _OWN.items():
            given = getattr(self, name) is not None
            if given != (self.kind == kind):
                raise InvalidValue(name, getattr(self, name), f"given for questions of kind {kind}, and only for them")
        for name in ("epsilon", "permanent"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _epsilon(name, value))
        if self.kind == "stream":
            if not isinstance(self.method, str) or self.method not in METHODS:
                raise InvalidValue("method", self.method, f"one of {', '.join(METHODS)}")
            if isinstance(self.w, bool) or not isinstance(self.w, int) or not 1 <= self.w <= MOST_W:
                raise InvalidValue("w", self.w, f"an integer from 1 to {MOST_W}")
        if self.sparsity is not None and self.kind != "keyvalue":
            raise InvalidValue("sparsity", self.sparsity, "given for questions of kind keyvalue, and only for them")
        if self.mechanism is not None and not isinstance(self.mechanism, str):
            raise InvalidValue("mechanism", self.mechanism, "a mechanism's name")
        if not isinstance(self.candidates, list | tuple):
            raise InvalidValue("candidates", self.candidates, "a list of texts")
        object.__setattr__(self, "candidates", tuple(self.candidates))
        if not isinstance(self.keep_reports, bool) or (self.keep_reports and self.kind != "histogram"):
            # Kept reports of a memo would be a device's fingerprints; a stream's are of no use one by one.
            raise InvalidValue("keep_reports", self.keep_reports, "true for questions of kind histogram, and only them")

    @property
    def adaptive(self) -> bool:
        """Whether a step may hold a second ask, which depends on the answers to the first.

        Example:
            >>> QuestionSpec(kind="stream", field="theme", epsilon=1.0, method="LPA", w=20).adaptive
            True
        """
        return self.kind == "stream" and METHODS[str(self.method)].decision.rounds > 1

    @property
    def arithmetic(self) -> int:
        """The version of its protocol's arithmetic: a server does not go on with another than it began with.

        Example:
            >>> QuestionSpec(kind="histogram", field="theme", epsilon=1.0).arithmetic
            1
        """
        if self.kind == "stream":
            return METHODS[str(self.method)].arithmetic
        own = {"changes": CHANGES_ARITHMETIC, "keyvalue": KEYED_ARITHMETIC}
        words = int(bool(self.candidates))  # of which all are estimated now, whether they are selected or not
        return own.get(self.kind, STEADY_ARITHMETIC) + words

    @property
    def everyone(self) -> bool:
        """Whether every device answers every ask; otherwise a part of them does, and spends the whole epsilon.

        Example:
            >>> QuestionSpec(kind="stream", field="theme", epsilon=1.0, method="LPU", w=20).everyone
            False
        """
        return self.kind != "stream" or METHODS[str(self.method)].division is BudgetDivision

    def question(self, domain: Domain) -> Statistic:
        """How the question is asked of a field of this domain; refused where it cannot be.

        Example:
            >>> from hubbub import Numeric
            >>> QuestionSpec(kind="mean", field="age", epsilon=1.0).question(Numeric(0, 99, cells=9)).size
            1
        """
        asked = asked_of(self, domain)
        asked.mechanism(units_of(self.epsilon))
        return asked

    def mechanism_for(self, domain: Domain) -> Mechanism:
        """The mechanism of a report that spends all of epsilon.

        Example:
            >>> from hubbub import Ordinal
            >>> spec = QuestionSpec(kind="memo", field="theme", epsilon=1.0, permanent=2.0)
            >>> type(spec.mechanism_for(Ordinal(3))).__name__
            'BasicRappor'
        """
        return self.question(domain).mechanism(units_of(self.epsilon))

    def labels(self, domain: Domain) -> tuple[str, ...] | None:
        """A name for each number that answers it.

        Example:
            >>> from hubbub import Categorical
            >>> QuestionSpec(kind="histogram", field="theme", epsilon=1.0).labels(Categorical(["light", "dark"]))
            ('light', 'dark', '(none)')
        """
        if is_mean(self, domain):
            return (self.field,)
        if self.kind == "changes":
            asked = asked_of(self, domain)
            assert isinstance(asked, Moves)
            return asked.labels(self.field)
        if isinstance(domain, KeyValue):
            return domain.keys
        if isinstance(domain, Sets):
            return tuple(map(str, range(domain.most + 1)))
        return self.candidates if isinstance(domain, Strings) else labels_of(domain)

    def protocol(
        self, collection: Collection, name: str | None = None, memory: Memory | None = None, *, first: int = 0
    ) -> Protocol:
        """The generator of its asks and releases; steps count from 1. Its name is needed where another is just alike.

        The horizons of changes are counted in the collection's own steps, of which step 1 is `first`.

        Every question begins at a place of its own on the circle: streams take turns with different devices, and no
        two questions make the same ask, which a report could not tell apart. With a memory it can stop and go on.
        """
        if name is None:
            names = [other for other, question in collection.questions.items() if question == self]
            if len(names) != 1:
                raise InvalidValue("name", names, "one name, by which the collection knows it")
            (name,) = names
        domain = collection.fields[self.field]
        question = self.question(domain)
        if self.kind == "stream":
            assert self.method is not None
            assert self.w is not None
            stream = window_stream(self.method, question, epsilon=self.epsilon, w=self.w, memory=memory)
        elif isinstance(question, Moves):
            symbols = question.mechanism(units_of(self.epsilon))
            stream = symbol_stream(symbols, first=first, view=question.view, memory=memory)
        else:
            stream = steady(question, epsilon=self.epsilon, candidates=self.candidates or None, memory=memory)
        return turned(stream, start_of(name), self.labels(domain))

    def spec(self) -> dict[str, Json]:
        """The question as JSON: what is not given is left out."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        given["candidates"] = list(self.candidates) or None
        given["keep_reports"] = self.keep_reports or None
        return {name: value for name, value in given.items() if value is not None}

    @staticmethod
    def from_spec(spec: Mapping[str, Any]) -> QuestionSpec:
        """Read a question back."""
        known = {field.name for field in fields(QuestionSpec)}
        if not isinstance(spec, Mapping) or not {"kind", "field", "epsilon"} <= spec.keys() <= known:
            raise InvalidValue("question", spec, f"kind, field, epsilon and some of {', '.join(sorted(known))}")
        return QuestionSpec(**spec)


def _epsilon(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not value > 0:
        raise InvalidValue(name, value, "a finite number above 0")
    return float(value)
