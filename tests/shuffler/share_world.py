"""A collection whose reports are divided into shares: the same world, with three shufflers and a homomorphic key."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hubbub.shuffler.hop import ShufflerHop
from hubbub.wire.upload import Entry
from tests.shared.dgk_keys import private_key
from tests.shuffler.shuffle_world import HOUR, ShuffleWorld

PEOPLE = ["dark" if person % 4 else "light" for person in range(24)]
PATH = "/v1/shuffling"
_TICKS = 80


class ShareWorld(ShuffleWorld):
    """Everyone who takes part in an oblivious shuffle."""

    def __init__(self, folder: Path | None = None, *, shufflers: int = 3, **options: Any) -> None:
        super().__init__(folder, shufflers=shufflers, homomorphic_key=private_key(), **options)

    def shuffle(self) -> list[str]:
        """Close the batch and let everyone do what is due; returns how it ended at each shuffler."""
        self.close()
        for _ in range(_TICKS):
            if all(state in ("handed", "dropped", "") for state in self.latest_states()):
                break
            self.tick()
        return self.latest_states()

    def next_step(self) -> None:
        """Go to the beginning of the next step."""
        self.clock.set((self.clock.now() // HOUR + 1) * HOUR + 60)
        self.collector.tick()

    def latest_states(self, number: int = -1) -> list[str]:
        """The state of the latest batch at each shuffler."""
        return [next((row.state for row in store.batches()[number:]), "") for store in self.stores]

    def notes(self) -> list[str]:
        """What each shuffler says of the latest batch."""
        return [store.batches()[-1].note for store in self.stores]

    def batch(self) -> Any:
        """The latest batch that the collector took."""
        rows = self.store.shuffled_batches(self.collection.collection_id, "popular", 9)
        return rows[0][1] if rows else None

    def pieces(self, entry: Entry) -> list[bytes]:
        """What each shuffler gets of an entry."""
        size = len(entry.report) // len(self.hops)
        return [entry.report[at : at + size] for at in range(0, len(entry.report), size)]


def cheating(hop: ShufflerHop, change: Callable[[int, str, bytes], bytes]) -> None:
    """Let a shuffler change what it sends: from the receiver, the topic and the content to the content."""
    shares = hop._shares
    assert shares is not None
    honest = shares._message

    def message(batch: Any, receiver: int, topic: str, content: bytes) -> bytes:
        return honest(batch, receiver, topic, change(receiver, topic, content))

    shares._message = message  # type: ignore[method-assign]
