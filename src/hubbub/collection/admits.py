"""Which asks the signed terms of a question allow. Nothing here looks at a value: what is refused tells nothing of one.

The browser client has the same two functions (`clients/js/src/admits.ts`); `tests/vectors/admits.json` is run by both.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from hubbub.collection.terms import Terms
from hubbub.core.event import units_of
from hubbub.mechanisms.stateful import Stateful
from hubbub.protocols.ask import Ask
from hubbub.protocols.cohort import disjoint


def admits(terms: Terms, ask: Ask, *, run: int = 0, round: int = 1, part: int = 0, minimum_arc: int = 0) -> str | None:
    """Why an ask is refused, in one word; None where it is admitted.

    The view must be one that is signed, the mechanism one of those that are, or of a signed family and made for that
    view: then every value that can be recorded has an answer, no value is betrayed by an error, and no epsilon of its
    own tags a device. What the ledger allows is another matter.

    Example:
        >>> from dataclasses import replace
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> from hubbub.protocols.cohort import Arc
        >>> collection = load_collection(EXAMPLE)
        >>> terms, ask = collection.terms["popular"], next(collection.protocol("popular"))
        >>> admits(terms, ask), admits(terms, ask, round=2)
        (None, 'round')
        >>> admits(terms, replace(ask, cohort=Arc(5, 1)), minimum_arc=collection.minimum_arc)
        'arc'
    """
    mechanism = ask.mechanism
    if run < 0 or (run > 0 and (terms.study is None or not terms.study.every)):
        return "run"
    if not 1 <= round <= terms.rounds:
        return "round"
    if not 0 <= part < terms.parts:
        return "part"
    if ask.cohort.length < minimum_arc:
        return "arc"
    if not any(matches(pattern, ask.view.spec()) for pattern in terms.views):
        return "view"
    if mechanism.spec_id not in terms.mechanisms and not _in_family(terms, ask):
        return "mechanism"
    if terms.state != (type(mechanism).__name__ if isinstance(mechanism, Stateful) else ""):
        return "state"
    if mechanism.report_bytes > terms.report_bytes:
        return "size"
    return "limit" if mechanism.event().spent > terms.limit else None


def admits_parts(terms: Terms, asks: Sequence[Ask], *, minimum_arc: int = 0) -> str | None:
    """Why the asks of one round are refused, all of them; None where they are admitted together.

    They are as many as the terms allow, no place on the circle is asked twice, and none of them asks too few.

    Example:
        >>> from dataclasses import replace
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> collection = load_collection(EXAMPLE)
        >>> terms, ask = collection.terms["popular"], next(collection.protocol("popular"))
        >>> admits_parts(terms, [ask]), admits_parts(terms, [ask, ask])
        (None, 'parts')
    """
    if len(asks) > terms.parts or not disjoint(ask.cohort for ask in asks):
        return "parts"
    return "arc" if any(ask.cohort.length < minimum_arc for ask in asks) else None


def matches(pattern: Any, given: Any) -> bool:
    """Whether a view's JSON is one that a pattern stands for.

    {"from": a, "to": b} stands for a number between, ends included; {"most": k} for at most k different integers of at
    least 0, ascending; {"most": k, "each": p} for a list of at most k, each of which p stands for; all else for itself.

    Example:
        >>> matches({"kind": "among", "codes": {"most": 2}}, {"kind": "among", "codes": [3, 8]})
        True
        >>> matches({"sets": {"most": 2, "each": {"most": 2}}}, {"sets": [[3, 8], [5]]})
        True
        >>> matches({"kind": "clipped", "high": {"from": 1, "to": 9}}, {"kind": "clipped", "high": 10})
        False
    """
    if isinstance(pattern, Mapping):
        if pattern.keys() == {"from", "to"}:
            return _number(given) and pattern["from"] <= given <= pattern["to"]
        if pattern.keys() == {"most"}:
            return _ascending(given) and len(given) <= pattern["most"]
        if pattern.keys() == {"most", "each"}:
            few = isinstance(given, list | tuple) and len(given) <= pattern["most"]
            return few and all(matches(pattern["each"], each) for each in given)
        same = isinstance(given, Mapping) and pattern.keys() == given.keys()
        return same and all(matches(pattern[key], given[key]) for key in pattern)
    if isinstance(pattern, list | tuple):
        same = isinstance(given, list | tuple) and len(pattern) == len(given)
        return same and all(matches(each, other) for each, other in zip(pattern, given, strict=True))
    return isinstance(pattern, bool) == isinstance(given, bool) and bool(pattern == given)


def _in_family(terms: Terms, ask: Ask) -> bool:
    mechanism, view = ask.mechanism, ask.view
    units = [family.units for family in terms.families if family.mechanism == type(mechanism).__name__]
    if not any(units_of(mechanism.epsilon) in each for each in units):
        return False
    if getattr(mechanism, "measures", 0) != view.measured:
        return False
    domain = getattr(mechanism, "domain", None)
    items = getattr(domain, "items", None)
    if items is not None:  # it must read any set that the view can give: one too large would betray itself by an error
        return view.sees_sets and bool(getattr(domain, "most", None) == items.size == view.size)
    size, bits = getattr(domain, "size", None), getattr(domain, "bits", None)
    if size is None and bits is not None:  # just as many bits as the view's codes have
        return view.size is not None and bits == max(view.size - 1, 1).bit_length() and not view.sees_sets
    if size is not None:
        return bool(size == view.size) and not view.sees_sets
    ends = [(getattr(each, "low", None), getattr(each, "high", None)) for each in (mechanism, view)]
    return None not in ends[0] and ends[0] == ends[1]


def _number(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)


def _ascending(given: Any) -> bool:
    if not isinstance(given, list | tuple) or any(type(each) is not int or each < 0 for each in given):
        return False
    return all(low < high for low, high in itertools.pairwise(given))
