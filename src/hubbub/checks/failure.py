"""The error that checks raise, and helpers that raise it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hubbub.core.errors import HubbubError


class CheckFailed(AssertionError):
    """A mechanism broke its contract."""


def require(condition: object, message: str) -> None:
    """Fail unless the condition holds; unlike `assert`, also under `python -O`."""
    if not condition:
        raise CheckFailed(message)


def require_refusal(action: str, error: type[HubbubError], call: Callable[[], Any]) -> None:
    """Fail unless the call raises this kind of error; `action` names the call in the message."""
    try:
        call()
    except error:
        return
    except Exception as other:
        raise CheckFailed(
            f"{action} must be refused with {error.__name__}, not {type(other).__name__}: {other}"
        ) from other
    raise CheckFailed(f"{action} must be refused with {error.__name__}, but was accepted")
