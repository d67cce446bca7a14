"""The two ledgers of a device, under the version of the collection that is in force."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hubbub.client.names import STREAM
from hubbub.client.split import split_budget
from hubbub.client.store import Store
from hubbub.collection import Clock, Collection
from hubbub.core.random import Random
from hubbub.privacy.ledger import Budget, DeviceClock, Entry, Ledger, Status

__all__ = ["Accounts", "lifetime_left"]


def lifetime_left(collection: Collection, versions: list[tuple[int, int, int | None]]) -> int | None:
    """What is left of a device's life, in units: the tightest limit it was ever promised, less all that was spent.

    A new version of a collection gives no new life; that takes a new name.

    Example:
        >>> from hubbub.collection.toml import EXAMPLE, load_collection
        >>> second = load_collection(EXAMPLE.replace("event = 1.0", "event = 1.0\\nuser = 90.0"))
        >>> lifetime_left(second, [(1, 7 * 10**12, 50 * 10**12)])
        43000000000000
    """
    limits = [most for _, _, most in versions if most is not None]
    if collection.budget.user is not None:
        limits.append(collection.budget.user)
    spent = sum(spent for _, spent, _ in versions)
    return max(0, min(limits) - spent) if limits else None


class Accounts:
    """Opens the ledgers of a collection: one for asks, one for memos, neither where there is nothing to pay with.

    Parameters
    ----------
    folder, store
        Where they are, and what earlier versions spent.
    collection
        The collection in force.
    clock, monotonic
        The device's time.
    rng
        Where ids come from.

    Example:
        >>> import tempfile
        >>> from hubbub.collection import ManualClock
        >>> from hubbub.collection.toml import EXAMPLE, load_collection
        >>> clock, collection = ManualClock(7200.0), load_collection(EXAMPLE)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(Path(folder), "themes", Random())
        ...     accounts = Accounts(Path(folder), store, collection, clock, clock.now, Random())
        ...     accounts.observe(), accounts.spent(), accounts.memos is None
        ...     accounts.close()
        ...     store.close()
        (2, 0, True)
    """

    def __init__(
        self,
        folder: Path,
        store: Store,
        collection: Collection,
        clock: Clock,
        monotonic: Callable[[], float],
        rng: Random,
    ) -> None:
        with store.transaction():
            versions = [row for row in store.versions() if row[0] < collection.version]
        self.left = lifetime_left(collection, versions)
        self.earlier = sum(spent for _, spent, _ in versions)
        split = split_budget(collection, self.left)
        time = DeviceClock(collection.step_seconds, origin=collection.origin, wall=clock.now, monotonic=monotonic)

        def opened(name: str, budget: Budget | None) -> Ledger | None:
            if budget is None:
                return None
            path = folder / f"{name}-{collection.version}.sqlite"
            return Ledger(path, budget, clock=time, collection=collection.collection_id, rng=rng)

        self.clock = time
        self.asks = opened("asks", split.asks)
        self.memos = opened("memos", split.memos)

    @property
    def any(self) -> Ledger | None:
        """A ledger that freezes values: whichever there is."""
        return self.asks if self.asks is not None else self.memos

    def observe(self) -> int:
        """Let both ledgers read the clock; the step."""
        steps = [ledger.observe() for ledger in self._all()]
        return steps[0] if steps else self.clock.step

    def pending(self) -> list[Entry]:
        """The answers that wait to be sent: not what streams began with, which is never sent."""
        entries = [] if self.asks is None else self.asks.pending()
        return [entry for entry in entries if not entry.ask_id.startswith(STREAM)]

    def status(self) -> list[Status]:
        """Where both stand."""
        return [ledger.status() for ledger in self._all()]

    def spent(self) -> int:
        """All that was spent under this version."""
        return sum(status.lifetime for status in self.status())

    def clear(self) -> bool:
        """Whether nothing is left in the present step or window: only then may another version begin."""
        units = [unit for status in self.status() for unit in (status.event, status.window)]
        return all(unit is None or unit.spent == 0 for unit in units)

    def close(self) -> None:
        """Close them."""
        for ledger in self._all():
            ledger.close()

    def _all(self) -> list[Ledger]:
        return [ledger for ledger in (self.asks, self.memos) if ledger is not None]
