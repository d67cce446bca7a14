"""Checking a collection before anyone is asked."""

from __future__ import annotations

from typing import Any

from hubbub.authoring.diff import changes
from hubbub.authoring.finding import Finding
from hubbub.authoring.rules import RULES
from hubbub.collection.sealing import open_sealed
from hubbub.collection.spec import Collection
from hubbub.core.errors import HubbubError

__all__ = ["UnsafeCollection", "check", "open_collection", "refuse_unsafe"]

_ORDER = ("error", "warning", "note")


class UnsafeCollection(HubbubError):
    """A collection that is refused, with everything that is wrong with it."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings
        super().__init__("; ".join(f"{found.where}: {found.text}" for found in findings))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.findings,)


def check(collection: Collection, against: Collection | None = None) -> list[Finding]:
    """All that is wrong with a collection, or worth knowing: errors first. With an older version, what would break.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, read_collection
        >>> for found in check(read_collection(EXAMPLE)):
        ...     print(found)
        note: privacy.user: no limit for life: in a year a device may spend up to epsilon 8,760, which hides single
        reports and not a year of them
    """
    found = [finding for rule in RULES for finding in rule(collection)]
    if against is not None:
        found += changes(collection, against)
    return sorted(found, key=lambda finding: _ORDER.index(finding.level))


def refuse_unsafe(collection: Collection) -> Collection:
    """The same collection, if no rule calls it an error.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, read_collection
        >>> refuse_unsafe(read_collection(EXAMPLE.replace("= 1.0", "= 9.0")))
        Traceback (most recent call last):
            ...
        hubbub.authoring.check.UnsafeCollection: questions.popular.epsilon: epsilon 9 can make an observer 99.99% ...
    """
    errors = [finding for finding in check(collection) if finding.level == "error"]
    if errors:
        raise UnsafeCollection(errors)
    return collection


def open_collection(document: object, public: bytes | Any) -> Collection:
    """The collection of a sealed document, as a device takes it: signed by a trusted key, well formed and safe.

    Example:
        >>> from hubbub.collection.sealing import Keys, seal
        >>> from hubbub.authoring.toml import EXAMPLE, read_collection
        >>> keys = Keys.new()
        >>> open_collection(seal(read_collection(EXAMPLE).spec(), keys.private), keys.public).name
        'themes'
    """
    return refuse_unsafe(Collection.from_spec(open_sealed(document, public)))
