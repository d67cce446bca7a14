"""Classes by name, of this package and of others; an error in a class of another package names the class."""

from collections.abc import Callable, Generator, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import cached_property, wraps
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import isabstract, isfunction, isgenerator
from typing import Any, Generic, TypeVar

from hubbub.core.errors import HubbubError

Kind = TypeVar("Kind")


class PluginRefused(HubbubError):
    """A class that another package registered cannot be used: the entry point, and why."""


class Registry(MutableMapping[str, type[Kind]], Generic[Kind]):
    """A mapping from names to classes. Looking up a name loads its module and no other.

    A class of another package is named by an entry point of the registry's group. It is looked for only where the name
    is none of ours, so that a device that meets only ours never searches what is installed. One that takes a name of
    ours, fails to load, or is no class of the right base is refused with the name of its package. A program may also
    set a class of its own under its name, for as long as it runs.

    Parameters
    ----------
    group
        The entry points' group, such as "hubbub.mechanisms".
    base
        Where the class that all of them extend is defined: "module:name".
    homes
        Of each of our own, the module that defines it; with ":" and the class's name where that is another.
    named_by
        The attribute of a class that is its name.
    """

    def __init__(self, group: str, base: str, homes: Mapping[str, str], *, named_by: str = "__name__") -> None:
        self._group, self._base, self._homes, self._named_by = group, base, dict(homes), named_by
        self._loaded: dict[str, type[Kind]] = {}
        self._own: dict[str, type[Kind]] = {}

    def __getitem__(self, name: str) -> type[Kind]:
        if name in self._own:
            return self._own[name]
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def __setitem__(self, name: str, kind: type[Kind]) -> None:
        if name in self._homes or name in self._plugins:
            raise PluginRefused(f"{name}: the name is taken")
        if self._own.get(name, kind) is not kind:
            raise PluginRefused(f"{name}: the name is taken by {self._own[name]!r}")
        self._own[name] = self._checked(name, kind, f"{kind!r}")

    def __delitem__(self, name: str) -> None:
        del self._own[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._homes, *self._plugins, *self._own])

    def __len__(self) -> int:
        return len(self._homes) + len(self._plugins) + len(self._own)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._homes or name in self._own or name in self._plugins)

    def _load(self, name: str) -> type[Kind]:
        if name in self._homes:
            module, _, class_name = self._homes[name].partition(":")
            kind: type[Kind] = getattr(import_module(module), class_name or name)
            return kind
        if not isinstance(name, str) or name not in self._plugins:
            raise KeyError(name)
        return self._from_plugin(self._plugins[name])

    def usable(self) -> dict[str, type[Kind]]:
        """All classes but those of `broken` packages."""
        return self._usable_and_broken[0] | self._own

    def broken(self) -> dict[str, str]:
        """The names of entry points that cannot be used, and why."""
        return dict(self._usable_and_broken[1])

    @cached_property
    def _usable_and_broken(self) -> tuple[dict[str, type[Kind]], dict[str, str]]:
        plugins, refused = self._entry_points
        usable, broken = {name: self[name] for name in self._homes}, dict(refused)
        for name, plugin in plugins.items():
            try:
                usable[name] = self._from_plugin(plugin)
            except PluginRefused as error:
                broken[name] = str(error)
        return usable, broken

    @property
    def _plugins(self) -> dict[str, EntryPoint]:
        """The entry points of other packages; none may take a name that is taken."""
        plugins, refused = self._entry_points
        for reason in refused.values():
            raise PluginRefused(reason)
        return plugins

    @cached_property
    def _entry_points(self) -> tuple[dict[str, EntryPoint], dict[str, str]]:
        """The entry points of other packages by name, and why names that are taken are refused."""
        plugins: dict[str, EntryPoint] = {}
        refused: dict[str, str] = {}
        for plugin in entry_points(group=self._group):
            if plugin.name in self._homes:
                refused[plugin.name] = f"{_shown(plugin)}: {plugin.name} is one of hubbub's own"
            elif plugin.name in plugins and plugins[plugin.name].value != plugin.value:
                taken = _shown(plugins[plugin.name])
                refused[plugin.name] = f"{_shown(plugin)}: {plugin.name} is registered by {taken}"
            else:
                plugins[plugin.name] = plugin
        return plugins, refused

    def _from_plugin(self, plugin: EntryPoint) -> type[Kind]:
        try:
            kind = plugin.load()
        except (Exception, SystemExit) as error:  # a plug-in must not end the program either
            raise PluginRefused(f"{_shown(plugin)}: {type(error).__name__}: {error}") from error
        return self._checked(plugin.name, kind, _shown(plugin))

    def _checked(self, name: str, kind: object, shown: str) -> type[Kind]:
        module, _, base_name = self._base.partition(":")
        base: type[Kind] = getattr(import_module(module), base_name)
        if not isinstance(kind, type) or not issubclass(kind, base) or getattr(kind, self._named_by, None) != name:
            raise PluginRefused(f"{shown}: not a {base_name} called {name}")
        if isabstract(kind):
            lacking: frozenset[str] = kind.__abstractmethods__  # type: ignore[attr-defined]
            raise PluginRefused(f"{shown}: it lacks {', '.join(sorted(lacking))}")
        return kind


def _shown(plugin: EntryPoint) -> str:
    package = "an unknown package" if plugin.dist is None else plugin.dist.name
    return f"{plugin.group} entry point {plugin.value} of {package}"


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
