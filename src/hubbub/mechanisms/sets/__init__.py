"""Shares of the items of sets: one file a mechanism."""
