"""Views that only a collection's fields need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.protocols.view import View

__all__ = ["Size"]


@dataclass(frozen=True)
class Size(View):
    """How many items a set holds, at most `most`.

    Example:
        >>> Size(most=3)([(2, 7), ()]).tolist()
        [2, 0]
    """

    most: int

    def __call__(self, values: Any) -> NDArray[np.int64]:
        return np.array([min(len(members), self.most) for members in values], dtype=np.int64)
