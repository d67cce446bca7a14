"""Collections: what is asked of devices, as both sides share it; sealed documents and the wire between them."""

from hubbub.collection.check import UnsafeCollection, check, open_collection
from hubbub.collection.clock import Clock, ManualClock, SystemClock
from hubbub.collection.finding import Finding
from hubbub.collection.forecast import forecast
from hubbub.collection.promise import promise
from hubbub.collection.sealing import Keys, open_sealed, seal
from hubbub.collection.spec import Collection, QuestionSpec
from hubbub.collection.toml import load_collection, read_collection

__all__ = [
    "Clock",
    "Collection",
    "Finding",
    "Keys",
    "ManualClock",
    "QuestionSpec",
    "SystemClock",
    "UnsafeCollection",
    "check",
    "forecast",
    "load_collection",
    "open_collection",
    "open_sealed",
    "promise",
    "read_collection",
    "seal",
]
