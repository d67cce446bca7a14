"""Every mechanism, by name."""

from hubbub.core.registry import Registry
from hubbub.mechanisms.base import Mechanism, ReportFormat

FAMILIES = {
    "frequency": {
        "GRR": "grr",
        "SHE": "she",
        "THE": "the",
        "SUE": "unary",
        "OUE": "unary",
        "BLH": "local_hashing",
        "OLH": "local_hashing",
        "SOLH": "solh",
        "BasicRappor": "basic_rappor",
        "Rappor": "rappor",
        "Hadamard": "hadamard",
        "SubsetSelection": "subset",
        "FLH": "flh",
    },
    "memo": {"Loloha": "loloha"},
    "numeric": {
        "StochasticRounding": "rounding",
        "Piecewise": "piecewise",
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

TERNARY_BASELINES = {
    "PrivKV": "priv_kv",
    "KVUE": "kvue",
    "PCKVGRR": "pckv_grr",
    "PCKVAGRR": "pckv_agrr",
    "PCKVUE": "pckv_ue",
    "DDRM": "ddrm",
    "EFMRTT": "efmrtt",
    "ToPLClipped": "topl",
    "FutureRand": "future_rand",
    "Succinct": "succinct",
}
"""Mechanisms that only papers compare with, and the files of `hubbub.reproduce.baselines` that hold them."""

MECHANISMS: Registry[ReportFormat] = Registry(
    "hubbub.mechanisms",
    "hubbub.mechanisms.base:ReportFormat",
    {
        name: f"hubbub.mechanisms.{folder}.{module}"
        for folder, modules in FAMILIES.items()
        for name, module in modules.items()
    }
    # Two more from layers above, loaded when they are named.
    | {name: f"hubbub.reproduce.baselines.{module}" for name, module in TERNARY_BASELINES.items()}
    | {"ChangeStream": "hubbub.protocols.change_stream"}
    # Not listed with the oracles: it has no estimator of its own, but wraps any of them.
    | {"Measured": "hubbub.mechanisms.frequency.measured"},
)
"""The registry: the mechanisms that `from_spec` can build, and that `hubbub.checks` is applied to."""


def randomizers() -> dict[str, type[Mechanism]]:
    """The mechanisms that make every report afresh, by name; those whose reports need a device's state are left out.

    Nor are those of packages that fail to load: `MECHANISMS.broken` names them.
    """
    return {name: kind for name, kind in MECHANISMS.usable().items() if issubclass(kind, Mechanism)}
