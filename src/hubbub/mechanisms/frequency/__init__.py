"""Frequency oracles: one file a mechanism."""

MECHANISMS = {
    "GRR": "grr",
    "SHE": "she",
    "THE": "the",
    "SUE": "unary",
    "OUE": "unary",
    "BLH": "local_hashing",
    "OLH": "local_hashing",
    "BasicRappor": "basic_rappor",
    "Rappor": "rappor",
    "Hadamard": "hadamard",
    "SubsetSelection": "subset",
    "FLH": "flh",
}
"""Each, and the file that it is in."""
