"""Reading a signed collection with the kinds of its questions, as authors and servers do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hubbub.collection.document import Collection
from hubbub.collection.signed_form import COMPILED, check_document, read_document
from hubbub.core.errors import InvalidValue, at
from hubbub.core.spec import canonical
from hubbub.questions.base import Question


def read_collection(spec: Mapping[str, Any]) -> Collection:
    """Read a signed collection, of this format or an older one. It must have exactly the fields of its format.

    The terms, promises and size of uploads that are signed must be exactly what the questions compile to. In an older
    format, whose terms had another form, this holds of the promises. The id stays that of the signed document.
    """
    present = check_document(spec)
    questions = {}
    for name, question in present["questions"].items():
        with at(f"questions.{name}"):
            questions[name] = Question.from_spec(question)
    collection = read_document(present, questions)
    compiled = collection.spec()
    older = spec["format"] != present["format"]
    for name in COMPILED:
        if name not in spec or (older and name == "terms"):
            continue
        if canonical(spec[name]) != canonical(compiled[name]):
            raise InvalidValue(name, spec[name], "what the collection's questions and limits compile to")
    if older:
        object.__setattr__(collection, "_signed", dict(spec))
    return collection
