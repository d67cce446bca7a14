"""Numbered migrations: data of an older hubbub is brought to the present format, one version at a time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from hubbub.core.errors import InvalidValue

Step = TypeVar("Step")

Run: TypeAlias = Callable[..., list[object]]
"""Runs one SQL statement with its values, and returns its rows."""
Migration: TypeAlias = "tuple[str, ...] | Callable[[Run], None]"
"""Migrates a database to the next version: statements, or a function that runs them."""


class UnknownFormat(InvalidValue):
    """Stored data has a format that this hubbub cannot read; the data is left unchanged."""


@dataclass(frozen=True)
class Versions(Generic[Step]):
    """The versions of one kind of stored data, and the migration from each older version to the next.

    `version`: the version that this hubbub writes. `migrations`: the migrations by the version that they begin with,
    without a gap up to the present version.
    """

    name: str
    version: int
    migrations: Mapping[int, Step] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if sorted(self.migrations) != list(range(self.oldest, self.version)):
            raise InvalidValue("migrations", sorted(self.migrations), f"one for each version up to {self.version}")

    @property
    def oldest(self) -> int:
        """The oldest version that can be read."""
        return min(self.migrations, default=self.version)

    def check(self, version: object) -> int:
        """The version of stored data; refused if it cannot be read."""
        if isinstance(version, bool) or not isinstance(version, int):
            raise UnknownFormat(self.name, f"format {version!r}", f"a number, such as {self.version}")
        if version > self.version:
            allowed = f"at most format {self.version}, which is all that this version of hubbub knows"
            raise UnknownFormat(
                self.name, f"format {version}", f"{allowed}: a newer one wrote it, and is needed to read it"
            )
        if version < self.oldest:
            allowed = f"format {self.oldest} or newer: an older hubbub that reads this one has to migrate it first"
            raise UnknownFormat(self.name, f"format {version}", allowed)
        return version

    def since(self, version: object) -> list[Step]:
        """The migrations from a version to the present one, in order."""
        return [self.migrations[number] for number in range(self.check(version), self.version)]


@dataclass(frozen=True)
class Format(Versions[Migration]):
    """The versions of one kind of database."""

    def migrate(self, version: object, run: Run) -> bool:
        """Migrate a database from a version to the present one; whether there was anything to do.

        It is called inside a transaction, in which the caller also writes the new version. If it raises, nothing is
        changed.
        """
        migrations = self.since(version)
        for migration in migrations:
            if callable(migration):
                migration(run)
            else:
                for statement in migration:
                    run(statement)
        return bool(migrations)
