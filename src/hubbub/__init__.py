"""Private analytics: hear the crowd, never the person.

Names resolve on first use, so that a device loads nothing it does not need.

Example:
    >>> import hubbub as hb
    >>> grr = hb.GRR(epsilon=1.0, domain=3)
    >>> reports = grr.randomize([0, 1, 2, 2], hb.Random(seed=1))
    >>> len(grr.estimate(grr.accumulate(reports)))
    3
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hubbub.core.domain import Categorical as Categorical
    from hubbub.core.random import Random as Random
    from hubbub.mechanisms.frequency.grr import GRR as GRR

__version__ = "0.1.0"

_HOMES = {
    "Categorical": "hubbub.core.domain",
    "Random": "hubbub.core.random",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is not None:
        return getattr(import_module(home), name)
    from hubbub.mechanisms import MECHANISMS

    if name in MECHANISMS:
        return MECHANISMS[name]
    raise AttributeError(f"module 'hubbub' has no attribute {name!r}")
