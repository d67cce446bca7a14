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
    """Read a signed collection. It must have exactly the fields of its format.

    The terms, promises and size of uploads that are signed must be exactly what the questions compile to.
    """
    present = check_document(spec)
    questions = {}
    for name, question in present["questions"].items():
        with at(f"questions.{name}"):
            questions[name] = Question.from_spec(question)
    collection = read_document(present, questions)
    compiled = collection.spec()
    for name in COMPILED:
        if canonical(present[name]) != canonical(compiled[name]):
            raise InvalidValue(name, present[name], "what the collection's questions and limits compile to")
    return collection
