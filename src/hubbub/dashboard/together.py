"""Several releases as one: what grows sharper as steps go by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from hubbub.dashboard.answer import AnswerCard, Value


def together(answers: Sequence[AnswerCard]) -> AnswerCard | None:
    """The mean of the shares in the steps that are not withheld, as an answer of the last; None with fewer than two.

    Its interval is that of releases with randomness of their own: of a question that asks everyone anew in every step,
    and of no other. The truth that it holds is the mean of these steps'.

    Example:
        >>> answers = [AnswerCard("q", t, 0.0, 9, (Value(0, "a", t / 4, t / 4 - 0.1, t / 4 + 0.1),)) for t in (1, 2)]
        >>> both = together(answers)
        >>> both.n, both.values[0].value, round(both.values[0].reach, 4)
        (18, 0.375, 0.0707)
        >>> together(answers[:1]) is None
        True
    """
    shown = [answer for answer in answers if len(answer.values)]
    if len(shown) < 2:
        return None
    values = tuple(_mean(several) for several in zip(*(answer.values for answer in shown), strict=True))
    return replace(shown[-1], n=sum(answer.n for answer in shown), values=values)


def _mean(several: Sequence[Value]) -> Value:
    known = [value.value for value in several if value.value is not None]
    reaches = [value.reach for value in several if value.reach is not None]
    last = several[-1]
    if len(known) < len(several) or len(reaches) < len(several):
        return Value(last.code, last.label, None, None, None, last.signed)
    mean, reach = sum(known) / len(known), math.hypot(*reaches) / len(reaches)
    return Value(last.code, last.label, mean, mean - reach, mean + reach, last.signed)
