"""What the ledger takes in: anything it does not know is refused, never guessed."""

from __future__ import annotations

from hubbub.core.errors import InvalidValue
from hubbub.core.event import Event
from hubbub.privacy.budget import MOST_UNITS
from hubbub.privacy.clock import MOST_STEP
from hubbub.privacy.ledger_entries import LedgerEntry

__all__ = ["check_event", "check_name", "check_same", "check_step"]

_LONGEST_NAME = 256


def check_name(field: str, name: object) -> None:
    """An id or a name: a short string.

    Example:
        >>> check_name("ask_id", "")
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: ask_id: got ''; allowed: a string of 1 to 256 characters
    """
    if not isinstance(name, str) or not 1 <= len(name) <= _LONGEST_NAME or not _encodes(name):
        raise InvalidValue(field, name, f"a string of 1 to {_LONGEST_NAME} characters")


def check_step(step: object) -> None:
    """A step: a whole number.

    Example:
        >>> check_step(-1)
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: step: got -1; allowed: an integer from 0, below 2^62
    """
    if type(step) is not int or not 0 <= step < MOST_STEP:
        raise InvalidValue("step", step, "an integer from 0, below 2^62")


def check_event(event: object, step: int) -> None:
    """An event that can be charged, about this step.

    Example:
        >>> check_event(Event("GRR", "0" * 32, 0), step=3)
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: event.spent: got 0; allowed: an integer from 1 to 1000000000000000000
    """
    # A subclass may mean something else by its fields.
    if type(event) is not Event:
        raise InvalidValue("event", event, "an Event")
    if type(event.spent) is not int or not 1 <= event.spent <= MOST_UNITS:
        raise InvalidValue("event.spent", event.spent, f"an integer from 1 to {MOST_UNITS}")
    check_name("event.mechanism", event.mechanism)
    check_name("event.spec_id", event.spec_id)
    if event.step is not None and (type(event.step) is not int or event.step != step):
        raise InvalidValue("event.step", event.step, f"the step of the ask, {step}, or None")


def check_same(known: LedgerEntry, step: int, event: Event) -> None:
    """An ask that was answered before must be the same ask.

    Example:
        >>> known = LedgerEntry(bytes(16), "ask 1", 0, "GRR", "0" * 32, 500, b"randomised")
        >>> check_same(known, 0, Event("GRR", "0" * 32, 500))
    """
    given = (step, event.mechanism, event.spec_id, event.spent)
    if (known.step, known.mechanism, known.spec_id, known.spent) != given:
        raise InvalidValue("ask_id", known.ask_id, "a new id: this one was answered for another step or event")


def _encodes(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True
