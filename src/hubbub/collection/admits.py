"""Which asks the signed terms of a question allow. Nothing here reads a recorded value, so no refusal depends on one.

The browser client has the same two functions (`clients/js/src/admits.ts`); `tests/vectors/admits.json` is run by both.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hubbub.collection.terms import Terms
from hubbub.core.domain import DOMAINS, Domain
from hubbub.core.event import units_of
from hubbub.core.plugins import is_foreign
from hubbub.mechanisms.stateful import Stateful
from hubbub.protocols.ask import Ask, disjoint

if TYPE_CHECKING:
    from hubbub.core.spec import Json
    from hubbub.mechanisms.base import ReportFormat
    from hubbub.protocols.views.basic import View


def admits(
    terms: Terms,
    ask: Ask,
    *,
    run: int = 0,
    round: int = 1,
    part: int = 0,
    minimum_arc: int = 0,
    fields: Mapping[str, Domain] | None = None,
) -> str | None:
    """Why an ask is refused, in one word; None where it is admitted.

    The view must match a signed pattern. The mechanism must be a signed one or of a signed family, and take everything
    that the view can give of the `fields` of the collection: then every value that can be recorded has an answer, no
    value reveals itself by an error, and no device is marked by an epsilon of its own. Whether the ledger allows the
    answer is checked elsewhere.
    """
    mechanism = ask.mechanism
    if run < 0 or (run > 0 and (terms.study is None or not terms.study.every)):
        return "run"
    if not 1 <= round <= terms.rounds:
        return "round"
    if not 0 <= part < terms.parts:
        return "part"
    if ask.cohort.length < minimum_arc * terms.group.of:  # the least part of all devices
        return "arc"
    if not any(matches(pattern, ask.view.spec()) for pattern in terms.views):
        return "view"
    field = (fields or {}).get(terms.fields[0]) if len(terms.fields) == 1 else None
    signed = mechanism.spec_id in terms.mechanisms and _takes(mechanism, ask.view, field)
    if not signed and not _in_family(terms, ask):
        return "mechanism"
    if terms.state != (type(mechanism).__name__ if isinstance(mechanism, Stateful) else ""):
        return "state"
    if mechanism.report_bytes > terms.report_bytes:
        return "size"
    return "limit" if mechanism.event().spent > terms.limit else None


def admits_parts(terms: Terms, asks: Sequence[Ask], *, minimum_arc: int = 0) -> str | None:
    """Why all asks of one round are refused, in one word; None where they are admitted together.

    There may be no more asks than the terms allow, and their arcs must be disjoint and long enough.
    """
    if len(asks) > terms.parts or not disjoint(ask.cohort for ask in asks):
        return "parts"
    return "arc" if any(ask.cohort.length < minimum_arc * terms.group.of for ask in asks) else None


def matches(pattern: Any, view: Any) -> bool:
    """Whether the JSON of a view matches a pattern.

    {"from": a, "to": b} matches a number from a to b; {"most": k} at most k different integers of at least 0,
    ascending; {"most": k, "each": p} a list of at most k items that match p; {"hex": k} a text of k hexadecimal digits;
    anything else matches itself.
    """
    if isinstance(pattern, Mapping):
        if pattern.keys() == {"from", "to"}:
            return _is_number(view) and pattern["from"] <= view <= pattern["to"]
        if pattern.keys() == {"most"}:
            return _is_ascending(view) and len(view) <= pattern["most"]
        if pattern.keys() == {"hex"}:
            return isinstance(view, str) and len(view) == pattern["hex"] and set(view) <= set("0123456789abcdef")
        if pattern.keys() == {"most", "each"}:
            few = isinstance(view, list | tuple) and len(view) <= pattern["most"]
            return few and all(matches(pattern["each"], item) for item in view)
        same = isinstance(view, Mapping) and pattern.keys() == view.keys()
        return same and all(matches(pattern[key], view[key]) for key in pattern)
    if isinstance(pattern, list | tuple):
        same = isinstance(view, list | tuple) and len(pattern) == len(view)
        return same and all(matches(part, item) for part, item in zip(pattern, view, strict=True))
    return isinstance(pattern, bool) == isinstance(view, bool) and bool(pattern == view)


def _in_family(terms: Terms, ask: Ask) -> bool:
    """Whether the mechanism is of a signed family, and takes everything that the view can give.

    A value that the mechanism did not take would reveal itself by an error.
    """
    mechanism, view = ask.mechanism, ask.view
    units = [family.units for family in terms.families if family.mechanism == type(mechanism).__name__]
    if not any(units_of(mechanism.epsilon) in allowed for allowed in units):
        return False
    if getattr(mechanism, "measures", 0) != view.measured:
        return False
    domain = getattr(mechanism, "domain", None)
    if domain is not None:
        return domain.spec() in _domains_of(view)
    return view.range is not None and view.range == (getattr(mechanism, "low", None), getattr(mechanism, "high", None))


def _takes(mechanism: ReportFormat, view: View, field: Domain | None) -> bool:
    """Whether a signed mechanism takes everything that a view gives; True where one of them is of another package."""
    if getattr(mechanism, "measures", 0) != view.measured:
        return False
    given, taken = _given(view, field), _taken(mechanism)
    return not given or not taken or any(_within(one, other) for one in given for other in taken)


Inputs = tuple[Any, ...]
"""What mechanisms read: ("codes", how many), ("numbers", low, high), ("sets", items, most), ("texts", bytes),
("vector", entries), ("cells", how many, how many, ...) of several codes, or another word for what no mechanism and no
view share."""


def _within(given: Inputs, taken: Inputs) -> bool:
    if given[0] != taken[0]:
        return False
    if given[0] == "numbers":
        return bool(taken[1] <= given[1] and given[2] <= taken[2])
    if given[0] == "cells":
        return len(given) == len(taken) and all(one <= other for one, other in zip(given[1:], taken[1:], strict=True))
    if given[0] in ("vector", "sets"):
        return bool(given[1] == taken[1] and given[2:] <= taken[2:])
    return bool(given[1:] <= taken[1:])


def _given(view: View, field: Domain | None) -> list[Inputs]:
    spec: dict[str, Any] = view.spec()
    kind = spec["kind"]
    if kind == "whole":
        return [] if field is None else _recorded(field)
    if kind in ("held", "members", "on"):
        return [("vector", spec.get("keys", spec.get("items", 1)))]
    if kind == "update":
        return [("vector", spec["dimension"])]
    if kind in ("prefix", "size"):
        return [("codes", 1 << 64 if kind == "prefix" else spec["most"] + 1)]
    if view.sizes:
        return [("cells", *view.sizes)]
    given: list[Inputs] = [] if view.range is None else [("numbers", *view.range)]
    if view.size is not None:
        given.append(("sets", view.size, view.size) if view.sees_sets else ("codes", view.size))
    return given


def _recorded(field: Domain) -> list[Inputs]:
    """The codes of a field's values, and of "nothing was recorded"; numbers are recorded as they are, of any size."""
    spec = field.spec()
    if spec["kind"] == "numeric":
        return [("any number",)]
    return _of_domain(spec) if field.size is None else [("codes", field.size + 1)]


def _taken(mechanism: ReportFormat) -> list[Inputs]:
    if is_foreign(type(mechanism)):  # its spec may mean anything by a name; its domain is what it reads
        domain = getattr(mechanism, "domain", None)
        return _of_domain(domain.spec()) if isinstance(domain, Domain) else []
    spec: dict[str, Any] = mechanism.spec()
    if "dimension" in spec:  # a stream of changes of one value reads a code, of which the last is no entry
        return [("codes", spec["dimension"] + 1) if spec.get("one") else ("vector", spec["dimension"])]
    if "oracles" in spec:
        return [("cells", *(_of_domain(oracle["domain"])[0][1] for oracle in spec["oracles"]))]
    if "domain" in spec:
        return _of_domain(spec["domain"])
    return [("numbers", spec["low"], spec["high"])] if {"low", "high"} <= spec.keys() else []


def _of_domain(domain: Mapping[str, Any]) -> list[Inputs]:
    """What the values of a domain are; nothing for a domain of another package, whose spec does not tell."""
    kind = domain["kind"]
    if kind == "ordinal":
        return [("codes", domain["size"])]
    if kind == "bitstrings":
        return [("codes", 1 << domain["bits"])]
    if kind == "numeric":
        return [("numbers", domain["low"], domain["high"])]
    if kind == "sets":
        return [("sets", Domain.from_spec(domain["items"]).size, domain["most"])]
    if kind == "strings":
        return [("texts", domain["longest"])]
    return [] if is_foreign(DOMAINS.get(kind, object)) else [(kind,)]


def _domains_of(view: View) -> list[dict[str, Json]]:
    """The specs of the domains of exactly what a view gives: its codes, or their bits; or all sets of its codes."""
    size = view.size
    if size is None:
        return []
    codes: dict[str, Json] = {"kind": "ordinal", "size": size}
    if view.sees_sets:
        return [{"kind": "sets", "items": codes, "most": size}]
    return [codes, {"kind": "bitstrings", "bits": max(size - 1, 1).bit_length()}]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_ascending(codes: Any) -> bool:
    if not isinstance(codes, list | tuple) or any(type(code) is not int or code < 0 for code in codes):
        return False
    return all(low < high for low, high in itertools.pairwise(codes))
