"""Every mechanism, by name."""

from collections.abc import Iterator

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
        "BloomRappor": "bloom_rappor",
        "BitFlips": "bit_flips",
        "Hadamard": "hadamard",
        "RHR": "recursive_hadamard",
        "SubsetSelection": "subset",
        "PGR": "projective",
        "FLH": "function_list",
        "CMS": "count_mean",
        "HCMS": "count_mean",
        "Loloha": "loloha",
    },
    "numeric": {
        **dict.fromkeys(("StochasticRounding", "Piecewise", "Hybrid"), "hybrid"),
        "Staircase": "staircase",
        "SquareWave": "square_wave",
    },
    "ternary": {
        "Collision": "collision",
        "CoCo": "coco",
        "ExSub": "exsub",
        "NetSub": "net_sub",
        "NetSeed": "net_seed",
        "SQKR": "sampled_signs",
        **dict.fromkeys(("FastCollision", "FastCoCo"), "fast_buckets"),
    },
    "sets": {"PSFO": "psfo", "SplitUnary": "split_unary", "PrivSet": "priv_set", "Wheel": "wheel"},
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
    # Two more from a layer above, loaded when they are named.
    | {"ChangeStream": "hubbub.protocols.changes.stream", "NetStream": "hubbub.protocols.changes.net_stream"}
    # Not listed with the oracles: they have no estimator of their own, but wrap any of them.
    | {"Bundle": "hubbub.mechanisms.frequency.bundle", "Measured": "hubbub.mechanisms.frequency.measured"},
)
"""The registry: the mechanisms that `from_spec` can build, and that `hubbub.checks` is applied to."""


def randomizers() -> dict[str, type[Mechanism]]:
    """The mechanisms that make every report afresh, by name; those whose reports need a device's state are left out.

    Nor are those of packages that fail to load: `MECHANISMS.broken` names them.
    """
    return {name: kind for name, kind in MECHANISMS.usable().items() if issubclass(kind, Mechanism)}


BROWSERS_HAVE = frozenset(
    (
        *("GRR", "BLH", "OLH", "SOLH", "SUE", "OUE", "Rappor", "BasicRappor", "BloomRappor", "Loloha", "Measured"),
        *("StochasticRounding", "Piecewise", "Hybrid", "SquareWave", "PSFO", "SplitUnary", "PrivSet", "Bundle"),
        *("ExSub", "NetSub", "NetSeed", "ChangeStream", "NetStream"),
    )
)
"""The mechanisms of the browser's client, as in `clients/js/src/mechanisms.ts`; the Python client has all."""


def browsers_lack(mechanism: ReportFormat) -> Iterator[str]:
    """The names of the mechanism, and of the oracle inside of it, that browsers do not have."""
    if type(mechanism).__name__ not in BROWSERS_HAVE:
        yield type(mechanism).__name__
    oracle = getattr(mechanism, "oracle", None)
    for inner in (oracle, *getattr(mechanism, "oracles", ())):
        if isinstance(inner, ReportFormat):
            yield from browsers_lack(inner)
