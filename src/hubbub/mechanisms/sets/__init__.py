"""Shares of the items of sets: one file a mechanism."""

MECHANISMS = {
    "PSFO": "psfo",
    "SplitUnary": "split_unary",
    "PrivSet": "priv_set",
}
"""Each, and the file that it is in."""
