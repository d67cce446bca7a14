"""The mean of several releases, whose error falls with every step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from hubbub.dashboard.answer import AnswerCard, Value


def together(answers: Sequence[AnswerCard]) -> AnswerCard | None:
    """The mean over the steps that are not withheld, as an answer of the last step; None with fewer than two steps.

    Its interval assumes that the errors of steps are independent, as they are for a question that asks everyone anew in
    every step. It is an interval for the mean of the truths of these steps.
    """
    shown = [answer for answer in answers if len(answer.values)]
    if len(shown) < 2:
        return None
    values = tuple(_mean(steps) for steps in zip(*(answer.values for answer in shown), strict=True))
    return replace(shown[-1], n=sum(answer.n for answer in shown), values=values)


def _mean(steps: Sequence[Value]) -> Value:
    known = [value.value for value in steps if value.value is not None]
    reaches = [value.reach for value in steps if value.reach is not None]
    last = steps[-1]
    if len(known) < len(steps) or len(reaches) < len(steps):
        return Value(last.code, last.label, None, None, None, last.signed)
    mean, reach = sum(known) / len(known), math.hypot(*reaches) / len(reaches)
    return Value(last.code, last.label, mean, mean - reach, mean + reach, last.signed)
