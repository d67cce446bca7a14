"""Collections: the signed document, its terms, and the wire: what devices and servers share."""

from hubbub.collection.document import SignedCollection
from hubbub.collection.sealing import Keys, open_sealed, seal
from hubbub.collection.time import Clock, ManualClock, SystemClock

__all__ = ["Clock", "Keys", "ManualClock", "SignedCollection", "SystemClock", "open_sealed", "seal"]
