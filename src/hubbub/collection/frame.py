"""How large an upload is: the same for every device and every answer, so that its size tells nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.collection.slug import LONGEST_NAME
from hubbub.core.domain import Domain
from hubbub.core.errors import InvalidValue
from hubbub.core.event import units_of
from hubbub.protocols.window import BudgetDivision

if TYPE_CHECKING:
    from hubbub.collection.question import QuestionSpec

__all__ = ["ENTRY_BYTES", "HEAD_BYTES", "entry_bytes", "frame_bytes", "largest_report"]

BLOCK = 1024
HEAD_BYTES = 1 + 1 + (2 + LONGEST_NAME) + 5 + 5 + 5
"""Of a frame: the array, its kind, the collection's name, the version, the heads of the list and of the padding."""
ENTRY_BYTES = 80
"""Of an entry, at most, beside its question's name and its report. In binary: the array (1), the heads of the three
texts (2 + 2 + 5), run, step, round and part (5 + 9 + 5 + 5), the report's id (16). Twice as much, which is what a
readable frame has, holds the readable form too: keys and punctuation (70), numbers (42), id (32), and a report whose
length is not a multiple of three (4)."""


def largest_report(question: QuestionSpec, domain: Domain) -> int:
    """The largest report that a question may ask for; a stream that divides epsilon changes mechanisms as it does.

    Example:
        >>> from hubbub import Ordinal
        >>> from hubbub.collection.question import QuestionSpec
        >>> largest_report(QuestionSpec(kind="histogram", field="age", epsilon=1.0), Ordinal(99))
        13
    """
    asked, whole = question.question(domain), units_of(question.epsilon)
    tried = [whole]
    if question.kind == "stream" and question.everyone:
        tried += [max(whole // (2 * (question.w or 1)), BudgetDivision.FEWEST), BudgetDivision.FEWEST]
    sizes = []
    for units in tried:
        try:
            sizes.append(asked.mechanism(units).report_bytes)
        except InvalidValue:  # too small an epsilon for any report
            continue
    return max(sizes)


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
