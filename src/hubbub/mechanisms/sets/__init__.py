"""Shares of the items of sets: one file per mechanism."""
