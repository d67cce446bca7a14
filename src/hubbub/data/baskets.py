"""Shopping baskets: a set of items for each person."""

from __future__ import annotations

import csv
import io
import os
import tarfile
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.item_sets import ItemSets
from hubbub.data.fetch import fetch


@dataclass(frozen=True, eq=False)
class Baskets(ItemSets):
    """Shopping baskets: the items that each customer bought.

    Parameters
    ----------
    offsets, items, domain
        As in `ItemSets`.
    labels
        The name of each item, if the items have names.

    Example:
        >>> Baskets([0, 2, 2, 3], [4, 0, 4], domain=5).sizes.tolist()
        [2, 0, 1]
    """

    labels: NDArray[np.str_] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.labels is not None:
            labels = np.array(self.labels)
            if labels.shape != (self.domain,) or labels.dtype.kind != "U":
                raise InvalidValue("labels", self.labels, f"{self.domain} strings, one an item")
            labels.flags.writeable = False
            object.__setattr__(self, "labels", labels)


def retail(*, cache: str | os.PathLike[str] | None = None) -> Baskets:
    """Purchases in a Belgian supermarket: 88,162 baskets over 16,470 items, 1 to 76 of them in each.

    Parameters
    ----------
    cache
        As in `fetch`.
    """
    text = (fetch("retail", cache=cache) / "belgian_retail_baskets.dat").read_text(encoding="ascii")
    sizes = [len(line.split()) for line in text.splitlines()]
    items = np.fromstring(text, dtype=np.int64, sep=" ")
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Baskets(offsets, items, domain=int(items.max()) + 1)


def online_retail(*, cache: str | os.PathLike[str] | None = None) -> Baskets:
    """Purchases of 4,372 customers of a British gift shop in a year: 1 to 1,823 of 3,885 articles each.

    A basket is a customer's whole history, so that the longest are very long. Articles are in alphabetical order.
    Names that differ only in spaces at their ends are the same article.

    Parameters
    ----------
    cache
        As in `fetch`.
    """
    with tarfile.open(fetch("online_retail", cache=cache) / "Online_Retail_Grouped.tar.xz", "r:xz") as archive:
        content = archive.extractfile("Online_Retail_Grouped.csv")
        assert content is not None
        rows = list(csv.reader(io.TextIOWrapper(content, encoding="utf-8", newline="")))
    baskets = [sorted({name.strip() for name in row} - {""}) for row in rows]
    labels, items = np.unique([name for basket in baskets for name in basket], return_inverse=True)
    offsets = np.concatenate([[0], np.cumsum([len(basket) for basket in baskets])])
    return Baskets(offsets, items, domain=labels.size, labels=labels)
