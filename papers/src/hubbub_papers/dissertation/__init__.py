"""The tables and figures of the dissertation, by chapter."""
