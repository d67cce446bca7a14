"""Frequency oracles: one file a mechanism."""
