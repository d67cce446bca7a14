"""What a question knows of its collection: its own name, the domains of its fields, and the grid of steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hubbub.core.domain import Domain
from hubbub.core.hashing import BEST_HASH


class Setting(NamedTuple):
    """What a question knows of its collection.

    Parameters
    ----------
    name
        The question's name in the collection.
    domains
        The domains of the fields that it reads, by name.
    step_seconds, origin
        The grid of steps.
    hash
        The hash function of mechanisms that need one.
    """

    name: str
    domains: Mapping[str, Domain]
    step_seconds: int
    origin: int = 0
    hash: str = BEST_HASH

    @property
    def domain(self) -> Domain:
        """The domain of the first field, which for most questions is the only one."""
        return next(iter(self.domains.values()))
