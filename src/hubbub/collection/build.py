"""From a question and the domain of its field to how it is asked; refused where it cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.collection.asked import Averages, Persistent, Shares, Words
from hubbub.collection.fields import symbols
from hubbub.collection.keyed import Keyed
from hubbub.collection.moving import Moves
from hubbub.collection.views import Size
from hubbub.core.domain import Categorical, Domain, Numeric, Ordinal, Sets, Strings
from hubbub.core.errors import InvalidValue
from hubbub.core.keyvalue import KeyValue
from hubbub.protocols.view import Clipped, View, Whole
from hubbub.protocols.window import Statistic

if TYPE_CHECKING:
    from hubbub.collection.question import QuestionSpec

__all__ = ["asked_of", "is_mean"]

_OF: dict[type[Domain], tuple[str | None, ...]] = {
    Numeric: (None, "cells"),
    Sets: ("size",),
    KeyValue: (None, "mean", "frequency", "conditional"),
}
"""What can be asked of a field beside its value."""


def is_mean(spec: QuestionSpec, domain: Domain) -> bool:
    """Whether one number answers: a mean.

    Example:
        >>> from hubbub.collection.question import QuestionSpec
        >>> is_mean(QuestionSpec(kind="stream", field="age", epsilon=1.0, method="LPU", w=4), Numeric(0, 99, cells=9))
        True
    """
    return isinstance(domain, Numeric) and (spec.kind == "mean" or (spec.kind == "stream" and spec.of is None))


def asked_of(spec: QuestionSpec, domain: Domain) -> Statistic:
    """How the question is asked: what the view reads, and which mechanism answers at any epsilon.

    Example:
        >>> from hubbub.collection.question import QuestionSpec
        >>> asked_of(QuestionSpec(kind="histogram", field="age", epsilon=1.0), Numeric(0, 99, cells=9)).view
        Clipped(low=0.0, high=99.0)
    """
    kind = type(domain).__name__.lower()
    if spec.kind == "mean" and not isinstance(domain, Numeric):
        raise InvalidValue("field", spec.field, "a numeric field: only numbers have a mean")
    if spec.kind == "changes":
        return _moves(spec, domain)
    if spec.kind == "keyvalue" and not isinstance(domain, KeyValue):
        raise InvalidValue("field", spec.field, "a field of kind keyvalue: only such have keys")
    if isinstance(domain, KeyValue) and spec.kind != "keyvalue":
        raise InvalidValue("kind", spec.kind, "keyvalue: no other question reads keys and numbers")
    allowed = _OF.get(type(domain), (None,))
    if spec.of not in allowed or (spec.kind == "mean" and spec.of is not None):
        said = " or ".join("nothing" if name is None else f'"{name}"' for name in allowed)
        raise InvalidValue("of", spec.of, f"{said}, for a field of kind {kind}")
    if bool(spec.candidates) != isinstance(domain, Strings):
        raise InvalidValue("candidates", spec.candidates, "at least one for a field of strings, none for any other")
    if isinstance(domain, KeyValue):
        sparsity = domain.most if spec.sparsity is None else spec.sparsity
        return Keyed(domain, sparsity=sparsity, of=spec.of or "mean", ternary=spec.mechanism)  # type: ignore[arg-type]
    if isinstance(domain, Strings):
        return _words(spec, domain)
    if is_mean(spec, domain):
        assert isinstance(domain, Numeric)
        return Averages(domain.low, domain.high, mean=spec.mechanism)
    if isinstance(domain, Numeric):
        return _shares(spec, domain, Clipped(domain.low, domain.high))
    if isinstance(domain, Sets):
        return _shares(spec, Ordinal(domain.most + 1), Size(domain.most))
    assert isinstance(domain, Categorical | Ordinal)
    return _shares(spec, symbols(domain), Whole())


def _moves(spec: QuestionSpec, domain: Domain) -> Statistic:
    for name, allowed in (("of", None), ("candidates", ())):
        if getattr(spec, name) != allowed:
            raise InvalidValue(name, getattr(spec, name), "nothing, for questions of kind changes")
    if spec.mechanism not in (None, "ExSub"):
        raise InvalidValue("mechanism", spec.mechanism, "ExSub: the only one that is said as changes come")
    assert spec.steps is not None
    assert spec.changes is not None
    return Moves(domain, spec.steps, spec.changes)


def _shares(spec: QuestionSpec, domain: Domain, view: View) -> Statistic:
    if spec.kind == "memo":
        assert spec.permanent is not None
        return Persistent(domain, permanent=spec.permanent, memo=spec.mechanism, view=view)
    return Shares(domain, oracle=spec.mechanism, view=view)


def _words(spec: QuestionSpec, domain: Strings) -> Statistic:
    if spec.kind != "histogram":
        raise InvalidValue("kind", spec.kind, "histogram: no other question reads strings yet")
    if spec.mechanism not in (None, "Rappor"):
        raise InvalidValue("mechanism", spec.mechanism, "Rappor")
    try:
        codes = domain.encode(spec.candidates)
    except InvalidValue as error:
        raise InvalidValue("candidates", error.value, error.allowed) from None
    if len(set(codes.tolist())) < len(spec.candidates):
        raise InvalidValue("candidates", spec.candidates, "texts that differ from each other")
    return Words(domain, spec.candidates)
