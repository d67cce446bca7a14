"""A new kind of question in one file: how many different values of a field were in use in the last steps.

Every device is asked at every step, as for a histogram. The server adds up the reports of the last `steps` steps and
counts the values whose estimated share is above the threshold that randomisation alone would hardly reach.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from hubbub.collection.safety import Finding
from hubbub.core.domain import Categorical, Ordinal
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Sketch
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import MAIN, Protocol, Release
from hubbub.protocols.memory import Memory
from hubbub.questions import Example, Shape, StatisticQuestion
from hubbub.questions.histogram import shares_read
from hubbub.questions.value_shares import Shares
from hubbub.statistics.influence import Influence

NORMAL = NormalDist()


@dataclass
class RecentSteps:
    """What the protocol remembers: the reports of each of the last steps, as a number and counts, and the next step."""

    sketches: deque[Any]
    next_step: int = 1


@dataclass(frozen=True, kw_only=True)
class DistinctQuestion(StatisticQuestion):
    """How many different values of a field were in use in the last `steps` steps. Every step costs epsilon."""

    kind: ClassVar[str] = "distinct"
    steps: int = field(default=7)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield cls(field="theme", epsilon=4.0, steps=2), {"theme": Categorical(["light", "dark", "sepia"])}

    def statistic(self) -> Shares:
        if not isinstance(self.setting.domain, Categorical | Ordinal):
            raise InvalidValue("field", self.field, "a categorical or ordinal field")
        if not 1 <= self.steps <= 1000:
            raise InvalidValue("steps", self.steps, "an integer from 1 to 1000")
        codes, view = shares_read(self.setting.domain, self.kind, None)
        return Shares(codes, oracle=self.mechanism, view=view)

    def protocol(self, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        mechanism = self.mechanism_for()
        recent = (memory or Memory()).keep("recent", RecentSteps(deque(maxlen=self.steps)))
        while True:
            step = recent.next_step
            sketch = yield Ask(mechanism=mechanism, step=step, view=self.statistic().view, standing=True)
            assert isinstance(sketch, Sketch)
            recent.sketches.append([sketch.n, *sketch.counts.ravel().tolist()])
            n, *counts = np.sum(list(recent.sketches), axis=0).tolist()
            summed = Sketch(mechanism.spec_id, n, np.array(counts, dtype=np.int64).reshape(mechanism.sketch_shape))
            recent.next_step += 1
            estimates = {MAIN: values_in_use(mechanism, summed)}
            yield Release(step=step, estimates=estimates, published=sketch.n > 0, spent=1.0, n=float(n))

    @property
    def lasts(self) -> int:
        return self.steps

    @property
    def summary(self) -> str:
        return f"distinct, {self.steps} steps"

    def labels(self) -> tuple[str, ...]:
        return ("values in use",)

    def shape(self) -> Shape:
        size = self.statistic().size - 1
        return Shape(form="mean", size=1, unit="values in use", low=0.0, high=float(size), over_time=True)

    def forecast(self, n: int) -> float | None:
        return None

    def assumes(self) -> str:
        return "no formula: it depends on how rare the rarest values are"

    def unbiased_steps(self) -> bool:
        return False  # a number of values above a threshold

    def influence(self) -> Influence | str:
        return "a number of values is no mean over reports"

    def default_title(self) -> str:
        return f"Of {self.field}: how many different values are in use?"

    def findings(self) -> Iterator[Finding]:
        yield Finding("note", "steps", f"values that hardly anyone had in the last {self.steps} steps are not counted")


def values_in_use(mechanism: Any, sketch: Sketch) -> Estimate:
    """The number of values whose share is above the threshold.

    Its variance is that of a sum of independent coins, one per value, with the probability that the share is above it.
    """
    if sketch.n == 0:
        return Estimate(np.zeros(1), np.full(1, np.inf), 0, bias="heuristic", kind="quantity")
    estimate = mechanism.estimate(sketch)
    z_scores = (estimate.value[:-1] - mechanism.threshold(sketch.n)) / estimate.stderr[:-1]  # without "(none)"
    chances = np.array([NORMAL.cdf(float(z)) for z in z_scores])
    number, variance = float(np.count_nonzero(z_scores > 0)), float(np.sum(chances * (1 - chances)))
    return Estimate(np.array([number]), np.array([variance]), sketch.n, bias="heuristic", kind="quantity")
