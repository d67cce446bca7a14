"""Writing a collection: its file, what is checked, forecast and promised, and what a change of it breaks."""

from hubbub.authoring.check import UnsafeCollection, check, open_collection
from hubbub.authoring.finding import Finding
from hubbub.authoring.forecast import forecast
from hubbub.authoring.promise import promise
from hubbub.authoring.toml import load_collection, read_collection

__all__ = [
    "Finding",
    "UnsafeCollection",
    "check",
    "forecast",
    "load_collection",
    "open_collection",
    "promise",
    "read_collection",
]
