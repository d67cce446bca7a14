"""Reading a signed collection with the kinds of its questions, as authors and servers do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hubbub.collection.document import COMPILED, Collection, check_document, read_document
from hubbub.collection.error_path import at
from hubbub.core.errors import InvalidValue
from hubbub.core.spec import canonical
from hubbub.questions.base import Question


def read_collection(spec: Mapping[str, Any]) -> Collection:
    """Read a collection back, of this format or an older one; every field must be there, and no other.

    What is signed beside the questions must be the very terms, promises and size of uploads that they compile to. Of an
    older format, whose terms had another form, the promises must; its id stays that of what was signed.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> collection = load_collection(EXAMPLE)
        >>> read_collection(collection.spec()) == collection
        True
        >>> read_collection({**collection.spec(), "promises": []})
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: promises: got []; allowed: what the collection's questions and limits ...
    """
    present = check_document(spec)
    questions = {}
    for name, question in present["questions"].items():
        with at(f"questions.{name}"):
            questions[name] = Question.from_spec(question)
    made = read_document(present, questions)
    compiled = made.spec()
    older = spec["format"] != present["format"]
    for name in COMPILED:
        if name not in spec or (older and name == "terms"):
            continue
        if canonical(spec[name]) != canonical(compiled[name]):
            raise InvalidValue(name, spec[name], "what the collection's questions and limits compile to")
    if older:
        object.__setattr__(made, "_signed", dict(spec))
    return made
