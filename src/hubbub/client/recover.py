"""Recovering a folder whose database was lost: a deliberate act, after which every promise counts as spent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hubbub.client.folder import FILE, collection_in, set_aside
from hubbub.client.store import DeviceStore
from hubbub.collection import Clock
from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.core.random import Random
from hubbub.privacy.device_clock import since_boot


def recover(
    folder: Path, clock: Clock, monotonic: Callable[[], float] = since_boot, collection: str | None = None
) -> None:
    """Rename what is left of the database, and make a new one in which every promise is spent at this moment.

    Promises for life stay spent for good. Promises of a window are spent until it has passed in trusted time.

    Parameters
    ----------
    folder
        A client's folder whose database is missing or cannot be used; any other folder is refused.
    clock, monotonic
        The device's time.
    collection
        The collection's name, where no file in the folder holds it.
    """
    name = collection_in(folder) or collection
    rng = Random()
    if name is not None and (folder / FILE).exists():
        try:
            DeviceStore(folder, name, rng, clock, monotonic).close()
        except HubbubError:
            pass
        else:
            raise InvalidValue("folder", str(folder), "one whose database is lost: this one can be used")
    if name is None:
        raise InvalidValue("folder", str(folder), "the folder of a client")
    set_aside(folder)
    DeviceStore(folder, name, rng, clock, monotonic, lost=True).close()
