"""Frequency oracles: one file per mechanism."""
