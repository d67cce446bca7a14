"""How large an upload is: the same for every device and every answer, so that its size tells nothing."""

from __future__ import annotations

from collections.abc import Mapping

from hubbub.collection.names import LONGEST_NAME
from hubbub.collection.terms import Terms

BLOCK = 1024
HEAD_BYTES = 1 + 1 + (2 + LONGEST_NAME) + 5 + 5 + 5
"""Of a frame: the array, its kind, the collection's name, the version, the heads of the list and of the padding."""
ENTRY_BYTES = 80
"""Of an entry, at most, beside its question's name and its report. In binary: the array (1), the heads of the three
texts (2 + 2 + 5), run, step, round and part (5 + 9 + 5 + 5), the report's id (16). Twice as much, which is what a
readable frame has, holds the readable form too: keys and punctuation (70), numbers (42), id (32), and a report whose
length is not a multiple of three (4)."""


def entry_bytes(question: str, report: int) -> int:
    """The bytes of one entry of an upload, at most: the name of the answer, report id, report.

    Example:
        >>> entry_bytes("popular", 100)
        187
    """
    return ENTRY_BYTES + len(question) + report


def frame_bytes(entries: int) -> int:
    """The size of a frame with so many bytes of entries: whole blocks of 1024.

    Example:
        >>> frame_bytes(187), frame_bytes(1000)
        (1024, 2048)
    """
    return -(-(HEAD_BYTES + entries) // BLOCK) * BLOCK


def frame_for(terms: Mapping[str, Terms], layers: int = 0) -> int:
    """The size of every upload of a collection: room for one answer to each round of each question.

    Layers of encryption add so many bytes to a report.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> frame_for(load_collection(EXAMPLE).terms)
        1024
    """
    return frame_bytes(sum(entry_bytes(name, each.report_bytes + layers) * each.rounds for name, each in terms.items()))
