"""The collections of tests/collection, for pytest to find here too."""

from tests.collection.conftest import everything

__all__ = ["everything"]
