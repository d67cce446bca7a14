"""Which mechanisms the browser's client has; devices with the Python client have all."""

from collections.abc import Iterator

from hubbub.mechanisms.base import ReportFormat

BROWSERS_HAVE = frozenset(
    {
        *("GRR", "BLH", "OLH", "SOLH", "SUE", "OUE", "Rappor", "BasicRappor", "BloomRappor", "Loloha"),
        *("StochasticRounding", "Piecewise", "Hybrid", "SquareWave"),
        *(
            "Measured",
            "Bundle",
            "ExSub",
            "NetSub",
            "NetSeed",
            "PSFO",
            "SplitUnary",
            "PrivSet",
            "ChangeStream",
            "NetStream",
        ),
    }
)
"""Their names, as in `clients/js/src/mechanisms.ts`; a test compares them."""


def browsers_lack(mechanism: ReportFormat) -> Iterator[str]:
    """The names of the mechanism, and of the oracle inside of it, that browsers do not have."""
    if type(mechanism).__name__ not in BROWSERS_HAVE:
        yield type(mechanism).__name__
    oracle = getattr(mechanism, "oracle", None)
    for inner in (oracle, *getattr(mechanism, "oracles", ())):
        if isinstance(inner, ReportFormat):
            yield from browsers_lack(inner)
