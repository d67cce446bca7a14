"""Errors that name the field, the value and what is allowed."""

from collections.abc import Iterator
from contextlib import contextmanager


class HubbubError(Exception):
    """The base of all errors that hubbub raises on purpose."""


class InvalidValue(HubbubError, ValueError):
    """A field holds a value that is not allowed."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field = field
        self.value = value
        self.allowed = allowed
        shown = repr(value)
        if len(shown) > 80:
            shown = shown[:77] + "..."
        super().__init__(f"{field}: got {shown}; allowed: {allowed}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.field, self.value, self.allowed)


class SpecMismatch(InvalidValue):
    """Reports or a sketch were made under another spec."""


class DecodeError(InvalidValue):
    """Bytes that cannot be read: truncated, hostile, or of another kind."""


class RandomnessError(HubbubError, RuntimeError):
    """Random numbers would repeat, or the system gives none: nothing is sent."""


class MissingDependency(HubbubError, ImportError):
    """An optional dependency is not installed: the package, and the extra that brings it ("" if none does)."""

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        install = f"'hubbub-ldp[{extra}]'" if extra else package
        super().__init__(f"{package} is not installed: pip install {install}", name=package)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.package, self.extra)


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Around imports of optional packages: one that is not installed is a `MissingDependency` with the extra's name."""
    try:
        yield
    except MissingDependency:
        raise
    except ModuleNotFoundError as error:
        raise MissingDependency((error.name or "").partition(".")[0], extra) from None


def check_integer(field: str, value: object, low: int, high: int | None = None) -> None:
    """Refuse a value that is not an integer between two bounds; True and False are not integers here."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low or (high is not None and value > high):
        allowed = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
        raise InvalidValue(field, value, allowed)


@contextmanager
def at(place: str, **renamed: str) -> Iterator[None]:
    """Add the place to the field of every `InvalidValue` raised inside; `renamed` gives the names of fields there."""
    try:
        yield
    except InvalidValue as error:
        field = renamed.get(error.field, error.field)
        where = f"{place}.{field}" if field else place
        raise InvalidValue(where, error.value, error.allowed) from None
