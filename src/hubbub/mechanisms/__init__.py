"""Every mechanism, by name."""

from hubbub.core.plugins import Registry
from hubbub.mechanisms.base import Mechanism, ReportFormat

FAMILIES = {
    "frequency": {
        "GRR": "grr",
        "SHE": "she",
        "THE": "unary",
        "SUE": "unary",
        "OUE": "unary",
        "BLH": "local_hashing",
        "OLH": "local_hashing",
        "SOLH": "local_hashing",
        "BasicRappor": "basic_rappor",
        "Rappor": "rappor",
        "Hadamard": "hadamard",
        "SubsetSelection": "subset",
        "FLH": "flh",
        "Loloha": "loloha",
    },
    "numeric": {
        "StochasticRounding": "hybrid",
        "Piecewise": "hybrid",
        "Hybrid": "hybrid",
        "SquareWave": "square_wave",
    },
    "ternary": {
        "Collision": "collision",
        "CoCo": "coco",
        "ExSub": "exsub",
        "NetSub": "net_sub",
        "NetSeed": "net_seed",
    },
    "sets": {"PSFO": "psfo", "SplitUnary": "split_unary", "PrivSet": "priv_set"},
}
"""The mechanisms of each folder, and the files that hold them: listed here, so that naming one loads no other."""

MECHANISMS: Registry[ReportFormat] = Registry(
    "hubbub.mechanisms",
    "hubbub.mechanisms.base:ReportFormat",
    {
        name: f"hubbub.mechanisms.{folder}.{module}"
        for folder, modules in FAMILIES.items()
        for name, module in modules.items()
    }
    # One more from a layer above, loaded when it is named.
    | {"ChangeStream": "hubbub.protocols.changes.stream"}
    # Not listed with the oracles: it has no estimator of its own, but wraps any of them.
    | {"Measured": "hubbub.mechanisms.frequency.measured"},
)
"""The registry: the mechanisms that `from_spec` can build, and that `hubbub.checks` is applied to."""


def randomizers() -> dict[str, type[Mechanism]]:
    """The mechanisms that make every report afresh, by name; those whose reports need a device's state are left out.

    Nor are those of packages that fail to load: `MECHANISMS.broken` names them.
    """
    return {name: kind for name, kind in MECHANISMS.usable().items() if issubclass(kind, Mechanism)}
