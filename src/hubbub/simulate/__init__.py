"""Simulated populations, whose truth is known: collecting from them, and reproducing the papers' tables and figures.

This is the only part of hubbub that holds a true value beside its estimate.

Example:
    >>> list(REPRODUCTIONS)[:2]
    ['dissertation-table-3.1', 'dissertation-table-3.2']
"""

from hubbub.simulate import averaging as _averaging  # noqa: F401  # fills the registry
from hubbub.simulate import coco as _coco  # noqa: F401  # fills the registry
from hubbub.simulate import dissertation as _dissertation  # noqa: F401  # fills the registry
from hubbub.simulate import ldp_ids as _ldp_ids  # noqa: F401  # fills the registry
from hubbub.simulate import sao2_exsub as _sao2_exsub  # noqa: F401  # fills the registry
from hubbub.simulate.collect import collect
from hubbub.simulate.estimate_file import ColumnResult, collect_column
from hubbub.simulate.reproduce import REPRODUCTIONS, Reproduction, reproduce
from hubbub.simulate.result import Cell, Result

__all__ = [
    "REPRODUCTIONS",
    "Cell",
    "ColumnResult",
    "Reproduction",
    "Result",
    "collect",
    "collect_column",
    "reproduce",
]
