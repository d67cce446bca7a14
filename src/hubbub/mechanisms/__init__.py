"""Every mechanism, by name."""

from hubbub.core.registry import Registry
from hubbub.mechanisms import frequency, memo, numeric, sets, ternary
from hubbub.mechanisms.base import Mechanism, Reporting

MECHANISMS: Registry[Reporting] = Registry(
    "hubbub.mechanisms",
    "hubbub.mechanisms.base:Reporting",
    {
        name: f"{folder.__name__}.{module}"
        for folder in (frequency, memo, numeric, ternary, sets)
        for name, module in folder.MECHANISMS.items()
    }
    # Of layers above, and loaded when they are named: what only papers compare with; and what tells of a view.
    | {name: f"hubbub.reproduce.baselines.{module}" for name, module in ternary.BASELINES.items()}
    | {"ChangeStream": "hubbub.protocols.change_stream"},
)
"""The registry: what `from_spec` can build and `hubbub.checks` is applied to."""


def randomizers() -> dict[str, type[Mechanism]]:
    """Those that make every report afresh, by name: all but the ones that are nothing without a device's state.

    Example:
        >>> "GRR" in randomizers(), "BasicRappor" in randomizers(), "ChangeStream" in randomizers()
        (True, True, False)
    """
    return {name: kind for name, kind in MECHANISMS.items() if issubclass(kind, Mechanism)}
