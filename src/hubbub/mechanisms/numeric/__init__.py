"""Mechanisms for numbers, means and distributions: one file per mechanism."""
