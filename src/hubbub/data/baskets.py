"""Sets of items, one a person: shopping baskets."""

from __future__ import annotations

import os

import numpy as np

from hubbub.core.item_sets import ItemSets
from hubbub.data.fetch import fetch

__all__ = ["Baskets", "retail"]


class Baskets(ItemSets):
    """Shopping baskets: what each customer bought.

    Example:
        >>> Baskets([0, 2, 2, 3], [4, 0, 4], domain=5).sizes.tolist()
        [2, 0, 1]
    """


def retail(*, cache: str | os.PathLike[str] | None = None) -> Baskets:
    """Purchases in a Belgian supermarket: 88,162 baskets over 16,470 items, 1 to 76 of them in each.

    Parameters
    ----------
    cache
        As of `fetch`.
    """
    text = (fetch("retail", cache=cache) / "belgian_retail_baskets.dat").read_text(encoding="ascii")
    sizes = [len(line.split()) for line in text.splitlines()]
    items = np.fromstring(text, dtype=np.int64, sep=" ")
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Baskets(offsets, items, domain=int(items.max()) + 1)
