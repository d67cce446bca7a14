"""Errors of classes that other packages define: each is reported with the name of the class and of the method."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import cached_property, wraps
from inspect import isfunction, isgenerator
from typing import Any

from hubbub.core.errors import HubbubError


class PluginFailed(HubbubError, RuntimeError):
    """A method of a class that another package defines raised an error: the class, the method, and the error."""


def is_foreign(cls: type) -> bool:
    """Whether another package defines a class."""
    return cls.__module__.partition(".")[0] != "hubbub"


def guard(cls: type) -> None:
    """Make the methods and properties of a class of another package raise nothing but `HubbubError`.

    This holds for the public ones, and for those that replace one of a class of hubbub. Any other exception becomes a
    `PluginFailed` that names the class and the method. A generator that a method returns is guarded as well. Classes of
    hubbub itself are left as they are.
    """
    if not is_foreign(cls):
        return
    inherited = {name for base in cls.__mro__ if not is_foreign(base) for name in vars(base) if name[:2] != "__"}
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name not in inherited and name != "__post_init__":
            continue
        method = f"{cls.__module__}.{cls.__qualname__}.{name}"
        if isfunction(member):
            setattr(cls, name, _guarded(member, method))
        elif isinstance(member, classmethod | staticmethod):
            setattr(cls, name, type(member)(_guarded(member.__func__, method)))
        elif isinstance(member, property) and member.fget is not None:
            setattr(cls, name, property(_guarded(member.fget, method), doc=member.__doc__))
        elif isinstance(member, cached_property):
            member.func = _guarded(member.func, method)


def _guarded(function: Callable[..., Any], method: str) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        with _reported(method):
            result = function(*args, **options)
        return _guarded_generator(result, method) if isgenerator(result) else result

    return call


def _guarded_generator(generator: Generator[Any, Any, Any], method: str) -> Generator[Any, Any, Any]:
    with _reported(method):
        return (yield from generator)


@contextmanager
def _reported(method: str) -> Iterator[None]:
    try:
        yield
    except HubbubError:
        raise
    except Exception as error:
        raise PluginFailed(f"{method} raised {type(error).__name__}: {error}") from error
