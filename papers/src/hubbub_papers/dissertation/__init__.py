"""The tables and figures of T. Wang, 2021, by chapter."""
