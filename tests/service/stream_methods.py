"""The methods of streams that a test of the service sees: in short, every way of deciding and both of dividing."""

from __future__ import annotations

import pytest

from hubbub.protocols.window import METHODS
from hubbub.protocols.window.division import PopulationDivision

SHORT = {name for name, method in METHODS.items() if method.division is PopulationDivision} | {"LBA"}
STREAM_METHODS = [name if name in SHORT else pytest.param(name, marks=pytest.mark.slow) for name in METHODS]
