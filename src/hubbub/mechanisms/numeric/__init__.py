"""Mechanisms for numbers, means and distributions: one file a mechanism."""
