"""What a device keeps of a study that it takes part in: the frozen values, what was paid, and how far it is."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from hubbub.core.errors import DecodeError


class StudyState(NamedTuple):
    """One run of a study on one device.

    Parameters
    ----------
    fields
        The id of the fields' domains when the run began.
    limit
        What was paid for the run, in units.
    until
        The tick until which that is counted: the end of the last round.
    declared
        What the asks that were answered declare to spend, together, in units.
    round
        The last round that was answered; 0 before the first.
    values
        The frozen values, as JSON.
    """

    fields: str
    limit: int
    until: int
    values: str
    declared: int = 0
    round: int = 0

    def to_bytes(self) -> bytes:
        """The state to store."""
        return json.dumps(self._asdict()).encode()

    @staticmethod
    def from_bytes(stored: bytes) -> StudyState:
        """Read a state back. What is truncated, or no state of a study, is refused."""
        try:
            content: dict[str, Any] = json.loads(stored)
            state = StudyState(**content)
            json.loads(state.values)
        except (ValueError, TypeError):
            state = None
        counts = () if state is None else (state.limit, state.until, state.declared, state.round)
        if state is None or not isinstance(state.fields, str) or any(type(n) is not int or n < 0 for n in counts):
            raise DecodeError("state", stored, "the state of a study")
        return state
