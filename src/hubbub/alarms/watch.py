"""A watched quantity: a weighted sum of a question's answer, and its sequential test."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from hubbub.alarms.limits import median_delay
from hubbub.alarms.sequential import SequentialTest
from hubbub.core.spec import Json, spec_id


@dataclass(frozen=True, kw_only=True)
class WatchedQuantity:
    """A quantity that one sequential test watches.

    Parameters
    ----------
    alarm, category, question, title
        The names of the alarm, of the category (empty if the alarm watches one quantity only) and of the question, and
        a description.
    weights
        A weight for each number of an answer.
    test
        The sequential test.
    false_alarms
        The average number of false alarms a step.
    meaning
        What the numbers of an answer mean. If it changes, the state of the test begins anew.
    """

    alarm: str
    category: str
    question: str
    title: str
    weights: tuple[float, ...]
    test: SequentialTest
    false_alarms: float
    meaning: Mapping[str, Json]

    @property
    def key(self) -> str:
        """The key of its state in the store. Names of alarms have no colon; names of categories may."""
        return f"{self.alarm}:{self.category}" if self.category else self.alarm

    @property
    def fingerprint(self) -> str:
        """A hash of what the state depends on; not of the limits, which may change while the test goes on."""
        test = self.test
        return spec_id(
            {
                "question": self.question,
                "weights": list(self.weights),
                "sides": list(test.sides),
                "threshold": test.threshold,
                "ends": test.ends,
                "baseline": test.baseline,
                "means": dict(self.meaning),
            }
        )

    def delay(self, jump: float) -> int | None:
        """The median number of steps until a jump of `jump` standard errors of a step is found."""
        return median_delay(self.test.raises, jump, baseline=self.test.baseline if self.test.independent else 0)

    def stderr(self, stderr: float) -> float:
        """The standard error of the weighted sum, if each number has the given one and errors are independent."""
        return stderr * math.sqrt(sum(weight**2 for weight in self.weights))
