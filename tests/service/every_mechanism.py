"""Every registered mechanism, as a parameter."""

from __future__ import annotations

import pytest

from hubbub.mechanisms import randomizers

all_mechanisms = pytest.mark.parametrize(
    "mechanism",
    [
        pytest.param(mechanism, id=f"{name}-{number}")
        for name, kind in randomizers().items()
        for number, mechanism in enumerate(kind.examples())
    ],
)
