"""Every mechanism, by name."""

from hubbub.core.registry import Registry
from hubbub.mechanisms import frequency, memo, numeric, ternary
from hubbub.mechanisms.base import Mechanism

MECHANISMS: Registry[Mechanism] = Registry(
    "hubbub.mechanisms",
    "hubbub.mechanisms.base:Mechanism",
    {
        name: f"{folder.__name__}.{module}"
        for folder in (frequency, memo, numeric, ternary)
        for name, module in folder.MECHANISMS.items()
    },
)
"""The registry: what `from_spec` can build and `hubbub.checks` is applied to."""
