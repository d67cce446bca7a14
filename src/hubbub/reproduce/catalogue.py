"""All that can be reproduced: importing this loads every paper.

Example:
    >>> list(REPRODUCTIONS)[:2]
    ['dissertation-table-3.1', 'dissertation-table-3.2']
"""

from hubbub.reproduce import averaging as _averaging  # noqa: F401  # fills the registry
from hubbub.reproduce import coco as _coco  # noqa: F401  # fills the registry
from hubbub.reproduce import dissertation as _dissertation  # noqa: F401  # fills the registry
from hubbub.reproduce import ldp_ids as _ldp_ids  # noqa: F401  # fills the registry
from hubbub.reproduce import sao2_exsub as _sao2_exsub  # noqa: F401  # fills the registry
from hubbub.reproduce import tops_topl as _tops_topl  # noqa: F401  # fills the registry
from hubbub.reproduce.harness import REPRODUCTIONS, Reproduction, reproduce
from hubbub.reproduce.result import Cell, Result

__all__ = ["REPRODUCTIONS", "Cell", "Reproduction", "Result", "reproduce"]
