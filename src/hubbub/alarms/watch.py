"""One watched quantity: a weighted sum of a question's answer, and how it is judged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from hubbub.alarms.limits import median_delay
from hubbub.alarms.sequential import SequentialTest
from hubbub.core.spec import Json, spec_id


@dataclass(frozen=True, kw_only=True)
class WatchedQuantity:
    """What one sequential test is about.

    Parameters
    ----------
    alarm, category, question, title
        The names of the alarm, of the category (empty where the alarm watches one quantity only) and of the question;
        what is watched, in words.
    weights
        A weight for each number of an answer.
    test
        How steps are judged.
    false_alarms
        How many a step, on average.
    means
        What the numbers of an answer are, so that what was learnt of others is not gone on with.
    """

    alarm: str
    category: str
    question: str
    title: str
    weights: tuple[float, ...]
    test: SequentialTest
    false_alarms: float
    means: Mapping[str, Json]

    @property
    def key(self) -> str:
        """The name of its state.

        A category may be called anything: between the two stands what no alarm's name has.
        """
        return f"{self.alarm}:{self.category}" if self.category else self.alarm

    @property
    def fingerprint(self) -> str:
        """What its state is of: not the limits, which may change while it goes on."""
        test = self.test
        return spec_id(
            {
                "question": self.question,
                "weights": list(self.weights),
                "sides": list(test.sides),
                "threshold": test.threshold,
                "ends": test.ends,
                "baseline": test.baseline,
                "means": dict(self.means),
            }
        )

    def delay(self, jump: float) -> int | None:
        """In how many steps half of the jumps of so many standard errors of a step are found."""
        return median_delay(self.test.raises, jump, baseline=self.test.baseline if self.test.pools else 0)

    def stderr(self, stderr: float) -> float:
        """The standard error of the weighted sum, if each number has this one and errors are independent."""
        return stderr * math.sqrt(sum(weight**2 for weight in self.weights))
