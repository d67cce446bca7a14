"""Collections: the signed document, its terms, and the wire: what devices and servers share."""

from hubbub.collection.clock import Clock, ManualClock, SystemClock
from hubbub.collection.document import Collection
from hubbub.collection.sealing import Keys, open_sealed, seal

__all__ = ["Clock", "Collection", "Keys", "ManualClock", "SystemClock", "open_sealed", "seal"]
