"""Why a report is not counted: stable names, in answers, counters and metrics."""

from __future__ import annotations

from typing import Literal, get_args

Reason = Literal[
    "unknown_collection",
    "unknown_ask",
    "outdated_version",
    "replay",
    "too_early",
    "late",
    "malformed",
    "too_large",
    "over_quota",
    "over_sender_quota",
    "over_ceiling",
    "not_shuffled",
    "under_minimum",
]
"""A duplicate (the same id with the same bytes) is not refused: it was counted before."""

REASONS: tuple[Reason, ...] = get_args(Reason)
