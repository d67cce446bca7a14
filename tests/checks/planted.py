"""The table of planted bugs: a class with a bug names the check that finds it."""

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

PLANTED: list[Any] = []
"""Cases of a test: a mechanism with a bug, the name of the check that finds it, and what that check says."""

AnyClass = TypeVar("AnyClass", bound=type[Any])


def found_by(*checks: str, says: str | None = None, **settings: Any) -> Callable[[AnyClass], AnyClass]:
    """Plant a class, with the settings of its constructor: each of the checks must find its bug."""

    def plant(kind: AnyClass) -> AnyClass:
        mechanism = kind(**settings)
        size = getattr(mechanism, "size", 1)
        PLANTED.extend(pytest.param(mechanism, check, says, id=f"{kind.__name__}-{size}-{check}") for check in checks)
        return kind

    return plant
