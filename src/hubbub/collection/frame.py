"""How large an upload is: the same for every device and every answer, so that its size tells nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.domain import Domain
from hubbub.core.errors import InvalidValue
from hubbub.core.event import units_of
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.window import BudgetDivision

if TYPE_CHECKING:
    from hubbub.collection.question import QuestionSpec

__all__ = ["HEAD_BYTES", "entry_bytes", "frame_bytes", "largest_report", "report_size"]

BLOCK = 1024
HEAD_BYTES = 1 + 1 + 34 + 5 + 5
"""Of a frame: the array, version, collection id, the list's own head, and the head of the padding."""


def report_size(mechanism: Mechanism) -> int:
    """The bytes of one report on the wire, which do not depend on what it says.

    Example:
        >>> from hubbub import GRR, Random
        >>> grr = GRR(epsilon=1.0, domain=4)
        >>> report_size(grr) == len(grr.randomize([3], Random()).to_bytes())
        True
    """
    parts: dict[str, dict[str, np.ndarray]] = {"public": {}, "private": {}}
    for column in mechanism.columns:
        parts[column.part][column.name] = np.zeros((1, *column.shape), dtype=column.dtype)
    return len(Reports(mechanism.spec_id, public=parts["public"], private=parts["private"]).to_bytes())


def largest_report(question: QuestionSpec, domain: Domain) -> int:
    """The largest report that a question may ask for; a stream that divides epsilon changes mechanisms as it does.

    Example:
        >>> from hubbub import Ordinal
        >>> from hubbub.collection.question import QuestionSpec
        >>> largest_report(QuestionSpec(kind="histogram", field="age", epsilon=1.0), Ordinal(99)) < 128
        True
    """
    asked, whole = question.question(domain), units_of(question.epsilon)
    tried = [whole]
    if question.kind == "stream" and question.everyone:
        tried += [max(whole // (2 * (question.w or 1)), BudgetDivision.FEWEST), BudgetDivision.FEWEST]
    sizes = []
    for units in tried:
        try:
            sizes.append(report_size(asked.mechanism(units)))
        except InvalidValue:  # too small an epsilon for any report
            continue
    return max(sizes)


def entry_bytes(report: int) -> int:
    """The bytes of one entry of an upload, at most: array, ask id, report id, report.

    Example:
        >>> entry_bytes(100)
        158
    """
    return 1 + 34 + 18 + 5 + report


def frame_bytes(entries: int) -> int:
    """The size of a frame with so many bytes of entries: whole blocks of 1024.

    Example:
        >>> frame_bytes(158), frame_bytes(1000)
        (1024, 2048)
    """
    return -(-(HEAD_BYTES + entries) // BLOCK) * BLOCK
