"""Mechanisms as they were before specs named a hash function: collections signed then are compiled to them."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from hubbub.core.hashing import FIRST_HASH
from hubbub.core.spec import first_of, is_added
from hubbub.mechanisms.base import Mechanism

AnyMechanism = TypeVar("AnyMechanism", bound=Mechanism)


def with_first_hash(mechanism: AnyMechanism) -> AnyMechanism:
    """The same mechanism with the hash function that a spec means which names none; itself, if it does not hash."""
    firsts: dict[str, Any] = {field.name: first_of(field) for field in dataclasses.fields(mechanism) if is_added(field)}
    return dataclasses.replace(mechanism, **firsts) if firsts else mechanism


def with_hash(mechanism: AnyMechanism, hash: str) -> AnyMechanism:
    """The mechanism that a collection which names this hash function is compiled to."""
    return with_first_hash(mechanism) if hash == FIRST_HASH else mechanism
