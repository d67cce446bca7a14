"""English words and how frequent each is, as wordfreq estimates it from many texts."""

from __future__ import annotations

import gzip
import os
from typing import Any

import msgspec
import numpy as np

from hubbub.data.counts import Counts
from hubbub.data.errors import DataError
from hubbub.data.fetch import fetch

_BILLION = 9  # as a power of ten


def words(*, cache: str | os.PathLike[str] | None = None) -> Counts:
    """How often each of 318,587 English words occurs in a billion words of text, most frequent first.

    An occurrence stands for a person: draw a population with `n` from them. Frequencies are known to 1 part in 100 of a
    power of ten, so that words of one frequency stand in alphabetical order. Entries with "00" in them stand for all
    numbers of one shape and are left out.

    Parameters
    ----------
    cache
        As of `fetch`.

    References:
        R. Speer: wordfreq 3.0, 2022, doi 10.5281/zenodo.7199437.
    """
    path = fetch("words", cache=cache) / "large_en.msgpack.gz"
    with gzip.open(path) as file:
        try:
            content: list[Any] = msgspec.msgpack.decode(file.read(), type=list[dict[str, Any] | list[str]])
        except msgspec.DecodeError as error:
            raise DataError(f"words: {path.name} cannot be read: {error}") from None
    if content[0] != {"format": "cB", "version": 1}:
        raise DataError(f"words: {path.name} begins with {content[0]!r}, not with the format that is known")
    # Place i holds the words that make up 10^(-i/100) of all text.
    kept = [(sorted(word for word in group if "00" not in word), place) for place, group in enumerate(content[1:])]
    labels = [word for group, _ in kept for word in group]
    counts = [round(10 ** (_BILLION - place / 100)) for _, place in kept]
    return Counts(np.array(labels), np.repeat(counts, [len(group) for group, _ in kept]))
