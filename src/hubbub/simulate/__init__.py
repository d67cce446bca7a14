"""Simulated populations, whose truth is known.

This is the only part of hubbub, with what stands on it, that holds a true value beside its estimate.
"""

from hubbub.simulate.collect import collect
from hubbub.simulate.estimate_file import ColumnResult, collect_column

__all__ = ["ColumnResult", "collect", "collect_column"]
