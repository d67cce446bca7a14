"""Real names of much visited sites, with synthetic visits."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter

import numpy as np

from hubbub.core.errors import check_integer
from hubbub.data.catalog import CATALOG
from hubbub.data.counts import Counts
from hubbub.data.fetch import fetch
from hubbub.data.synthetic import zipf_weights


def domains(n: int = 1_200_000, *, exponent: float = 1.0, cache: str | os.PathLike[str] | None = None) -> Counts:
    """Visits to 16,616 real domain names, most visited first; the order and the visits are synthetic.

    The package has three lists of the most visited sites, in alphabetical order and without visits. Names that are in
    more of the lists come first; names in equally many lists are ordered by their SHA-256. The k-th name has visits in
    proportion to 1 / k^exponent, n in all. The default n is that of the dissertation's "Frequent URL" data.

    Parameters
    ----------
    n
        The number of visits. A visit stands for a person.
    exponent
        The exponent of the Zipf distribution of the visits.
    cache
        As in `fetch`.
    """
    check_integer("n", n, 1)
    folder = fetch("domains", cache=cache)
    lists: Counter[str] = Counter()
    for file in CATALOG["domains"].files:
        lists.update(json.loads((folder / file).read_text(encoding="utf-8"))["list"])
    names = sorted(lists, key=lambda name: (-lists[name], hashlib.sha256(name.encode()).digest()))
    visits = np.diff(np.rint(n * np.cumsum(zipf_weights(len(names), exponent))), prepend=0.0)
    return Counts(np.array(names), np.sort(visits.astype(np.int64))[::-1])
