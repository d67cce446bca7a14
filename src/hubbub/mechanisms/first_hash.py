"""Mechanisms as they were before specs named a hash function: collections signed then are compiled to them."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from hubbub.core.hashing import FIRST_HASH
from hubbub.core.spec import first_of, is_added
from hubbub.mechanisms.base import Mechanism

AnyMechanism = TypeVar("AnyMechanism", bound=Mechanism)


def with_first_hash(mechanism: AnyMechanism) -> AnyMechanism:
    """The same mechanism with the hash function that a spec means which names none; itself, if it does not hash.

    Example:
        >>> from hubbub import GRR, OLH
        >>> olh, grr = OLH(epsilon=1.0, domain=9), GRR(epsilon=1.0, domain=9)
        >>> olh.hash, with_first_hash(olh).hash, with_first_hash(grr) is grr
        ('product32', 'mix32', True)
    """
    firsts: dict[str, Any] = {field.name: first_of(field) for field in dataclasses.fields(mechanism) if is_added(field)}
    return dataclasses.replace(mechanism, **firsts) if firsts else mechanism


def with_hash(mechanism: AnyMechanism, hash: str) -> AnyMechanism:
    """The mechanism that a collection which names this hash function is compiled to.

    Example:
        >>> from hubbub import OLH
        >>> [with_hash(OLH(epsilon=1.0, domain=9), name).hash for name in ("product32", "mix32")]
        ['product32', 'mix32']
    """
    return with_first_hash(mechanism) if hash == FIRST_HASH else mechanism
