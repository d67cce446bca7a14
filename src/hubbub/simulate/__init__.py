"""Simulated populations, whose true values are known.

Only this package, and the packages that import it, hold true values beside their estimates.
"""

from hubbub.simulate.collect import collect
from hubbub.simulate.estimate_file import ColumnResult, collect_column

__all__ = ["ColumnResult", "collect", "collect_column"]
