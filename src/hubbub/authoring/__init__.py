"""Writing a collection: its file, what is checked, forecast and promised, and what a change of it breaks."""

from hubbub.authoring.check import check, open_collection
from hubbub.authoring.forecast import forecast
from hubbub.authoring.promise import promise
from hubbub.authoring.toml import load_alarms, load_collection, read_collection
from hubbub.collection.safety import Finding, UnsafeCollection

__all__ = [
    "Finding",
    "UnsafeCollection",
    "check",
    "forecast",
    "load_alarms",
    "load_collection",
    "open_collection",
    "promise",
    "read_collection",
]
