"""Where a question of tests stands."""

from typing import TypeVar

from hubbub.core.domain import Domain
from hubbub.questions import Question, Setting

Kind = TypeVar("Kind", bound=Question)


def placed(question: Kind, *domains: Domain) -> Kind:
    """The question with hourly steps, and a domain for each field that it reads."""
    return question.bound(Setting("q", dict(zip(question.reads(), domains, strict=True)), 3600))
