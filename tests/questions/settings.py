"""Where a question of tests stands."""

from __future__ import annotations

from hubbub.core.domain import Domain
from hubbub.questions import Question, Setting


def setting(question: Question, *domains: Domain) -> Setting:
    """Hourly steps, and a domain for each field that the question reads."""
    return Setting("q", dict(zip(question.reads(), domains, strict=True)), 3600)
