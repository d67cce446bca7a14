"""English words and how frequent each is, as wordfreq estimates it from many texts."""

from __future__ import annotations

import gzip
import os
from typing import Any

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
        content, _ = _unpacked(file.read(), 0)
    if content[0] != {"format": "cB", "version": 1}:
        raise DataError(f"words: {path.name} begins with {content[0]!r}, not with the format that is known")
    # Place i holds the words that make up 10^(-i/100) of all text.
    kept = [(sorted(word for word in group if "00" not in word), place) for place, group in enumerate(content[1:])]
    labels = [word for group, _ in kept for word in group]
    counts = [round(10 ** (_BILLION - place / 100)) for group, place in kept for _ in group]
    return Counts(np.array(labels), np.array(counts, dtype=np.int64))


def _unpacked(data: bytes, start: int) -> tuple[Any, int]:
    """The MessagePack value that begins at a place, of the few kinds that a word list is made of, and where it ends."""
    kind = data[start]
    if kind < 0x80:  # an integer of 7 bits
        return kind, start + 1
    if 0xA0 <= kind < 0xC0:  # a string of up to 31 bytes
        stop = start + 1 + (kind & 31)
        return data[start + 1 : stop].decode(), stop
    if kind == 0xD9:  # a string of up to 255 bytes
        stop = start + 2 + data[start + 1]
        return data[start + 2 : stop].decode(), stop
    if kind < 0xA0:  # a map or a list of up to 15
        length, place = kind & 15, start + 1
    elif kind == 0xDC:  # a list of up to 65,535
        length, place = int.from_bytes(data[start + 1 : start + 3]), start + 3
    else:
        raise DataError(f"words: a value of kind {kind:#x}, which no word list has")
    values = []
    for _ in range(2 * length if kind < 0x90 else length):
        value, place = _unpacked(data, place)
        values.append(value)
    return (dict(zip(values[::2], values[1::2], strict=True)) if kind < 0x90 else values), place
