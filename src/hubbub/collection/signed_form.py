"""The signed form of a collection: the JSON that is signed, and how it is checked and read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from hubbub.collection import formats
from hubbub.collection.document import INTEGER_RANGES, Collection
from hubbub.collection.shuffle_route import ShuffleRoute
from hubbub.collection.terms import Terms, frame_for
from hubbub.core.domain import Domain
from hubbub.core.errors import InvalidValue, at
from hubbub.core.spec import Json, integer
from hubbub.ledger.promise import Budget, Promise

COMPILED = ("promises", "terms", "frame_bytes")
"""The fields of a signed document that are compiled from its questions."""


def document_of(collection: Collection) -> dict[str, Json]:
    """The document of a collection in the present format, which is signed."""
    plain: dict[str, Json] = {name: getattr(collection, name) for name in (*INTEGER_RANGES, "name", "title", "trust")}
    return {
        "format": formats.COLLECTION.version,
        **plain,
        "fields": {name: domain.spec() for name, domain in collection.fields.items()},
        "questions": {name: _json(question) for name, question in collection.questions.items()},
        "budget": collection.budget.spec(),
        "overrides": dict(collection.overrides),
        **({"cover": True} if collection.cover else {}),
        **({} if collection.planned_devices is None else {"planned_devices": collection.planned_devices}),
        **({} if collection.shuffle is None else {"shuffle": collection.shuffle.spec()}),
        "promises": [promise.spec() for promise in collection.promises],
        "terms": {name: terms.spec() for name, terms in collection.terms.items()},
        "frame_bytes": collection.frame_bytes,
    }


def check_document(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A signed document, upgraded to the present format; refused unless it has exactly the fields of that."""
    present = formats.COLLECTION.upgrade(spec) if isinstance(spec, Mapping) and "format" in spec else {}
    expected = {"format"} | {part.name for part in fields(Collection)} | set(COMPILED)
    redundant = present.get("cover", True) is not True
    redundant = redundant or any(present.get(name, "") is None for name in ("planned_devices", "shuffle"))
    if set(present) | {"cover", "planned_devices", "shuffle"} != expected or redundant:
        raise InvalidValue("collection", spec, f"exactly the fields {', '.join(sorted(expected))}")
    for name in ("fields", "questions"):
        if not isinstance(present[name], Mapping):
            raise InvalidValue(name, present[name], "an object")
    return present


def read_document(present: Mapping[str, Any], questions: Mapping[str, Any]) -> Collection:
    """The collection of a checked document, with questions that are read already."""
    values = {name: value for name, value in present.items() if name not in ("format", *COMPILED)}
    for name in (*INTEGER_RANGES, *({"planned_devices"} & values.keys())):
        values[name] = integer(name, values[name])
    domains = {}
    for name, domain in values["fields"].items():
        with at(f"fields.{name}"):
            domains[name] = Domain.from_spec(domain)
    with at("budget"):
        values["budget"] = Budget.from_spec(values["budget"])
    if "shuffle" in values:
        with at("shuffle"):
            values["shuffle"] = ShuffleRoute.from_spec(values["shuffle"])
    return Collection(**{**values, "fields": domains, "questions": questions})


def read_signed(spec: Mapping[str, Any]) -> Collection:
    """Read a signed document as a device does: the body of `Collection.from_spec`."""
    present = check_document(spec)
    collection = read_document(present, present["questions"])
    terms = _read_terms(collection, present["terms"])
    if not isinstance(present["promises"], list):
        raise InvalidValue("promises", present["promises"], "a list")
    with at("promises"):
        promises = tuple(Promise.from_spec(promise) for promise in present["promises"])
    size = integer("frame_bytes", present["frame_bytes"])
    needed = frame_for(terms, collection._layer_bytes)
    if size != needed:
        raise InvalidValue("frame_bytes", size, f"{needed}, which the largest answers need")
    collection.__dict__.update(terms=terms, promises=promises, frame_bytes=size)
    return collection


def _read_terms(collection: Collection, spec: Any) -> Mapping[str, Terms]:
    if not isinstance(spec, Mapping) or spec.keys() != collection.questions.keys():
        raise InvalidValue("terms", spec, "the terms of each question, and no others")
    terms = {}
    for name in collection.questions:
        with at(f"terms.{name}"):
            terms[name] = Terms.from_spec(spec[name], name)
            for key in terms[name].fields:
                if key not in collection.fields:
                    raise InvalidValue("fields", key, f"one of {', '.join(collection.fields)}")
    return MappingProxyType(terms)


def _json(question: Any) -> dict[str, Json]:
    return dict(question) if isinstance(question, Mapping) else question.spec()
