"""Collections: what is asked of devices, as both sides share it; sealed documents and the wire between them."""

from hubbub.collection.clock import Clock, ManualClock, SystemClock
from hubbub.collection.sealing import Keys, open_sealed, seal
from hubbub.collection.spec import Collection, QuestionSpec
from hubbub.collection.toml import load_collection

__all__ = [
    "Clock",
    "Collection",
    "Keys",
    "ManualClock",
    "QuestionSpec",
    "SystemClock",
    "load_collection",
    "open_sealed",
    "seal",
]
