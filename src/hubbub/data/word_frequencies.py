"""English words and their frequencies, which wordfreq estimates from many texts."""

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
    """The occurrences of 318,587 English words in a billion words of text, most frequent first.

    An occurrence stands for a person: draw a population with `n` from them. Frequencies are known to a hundredth of a
    power of ten; words of equal frequency are in alphabetical order. Entries with "00", which stand for all numbers of
    one shape, are left out.

    Parameters
    ----------
    cache
        As in `fetch`.

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
    # Element i holds the words with the frequency 10^(-i/100).
    groups = [sorted(word for word in group if "00" not in word) for group in content[1:]]
    counts = [round(10 ** (_BILLION - place / 100)) for place in range(len(groups))]
    labels = [word for group in groups for word in group]
    return Counts(np.array(labels), np.repeat(counts, [len(group) for group in groups]))
