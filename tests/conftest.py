"""For all tests."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes says more about the machine than about the code; and a failure comes again.
settings.register_profile("hubbub", deadline=None, derandomize=True)
settings.load_profile("hubbub")
