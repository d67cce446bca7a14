"""Small collections for tests, as the text of a file."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask
from hubbub.questions import Question
from hubbub.questions.collection import Collection

HOURLY = {"step": "1h", "lateness": "10m"}
THEME = {"kind": "categorical", "names": ["light", "dark"]}
"""A field of two values."""


def collection_text(
    name: str = "survey",
    title: str = "A survey",
    *,
    fields: Mapping[str, Mapping[str, Any]],
    questions: Mapping[str, Mapping[str, Any]],
    privacy: Mapping[str, Any],
    schedule: Mapping[str, Any] = HOURLY,
    version: int = 1,
    trust: str | None = None,
    **tables: Mapping[str, Any],
) -> str:
    """A collection file: one key per line, the tables in the order in which people write them."""
    lines = [f"name = {_value(name)}", f"version = {version}", f"title = {_value(title)}"]
    lines += [] if trust is None else [f"trust = {_value(trust)}"]
    named = {f"fields.{field}": keys for field, keys in fields.items()}
    named |= {f"questions.{question}": keys for question, keys in questions.items()}
    named |= {f"alarms.{alarm}": keys for alarm, keys in tables.pop("alarms", {}).items()}
    for table, keys in {"schedule": schedule, "privacy": privacy, **tables, **named}.items():
        lines += ["", f"[{table}]", *(f"{key} = {_value(value)}" for key, value in keys.items())]
    return "\n".join(["", *lines, ""])


def changed(question: Question, **keys: Any) -> Question:
    """The question with other values of some of its kind's keys."""
    return replace(question, **keys)


def first_ask(collection: Collection, question: str) -> tuple[Ask, Mechanism]:
    """What a question asks first, and the mechanism of its reports."""
    ask = next(collection.protocol(question))
    assert isinstance(ask, Ask)
    assert isinstance(ask.mechanism, Mechanism)
    return ask, ask.mechanism


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
