"""Shares of the items of sets: one file a mechanism."""

MECHANISMS = {
    "PSFO": "psfo",
}
"""Each, and the file that it is in."""
