"""Counting the support of candidates among the reports kept of an earlier ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.spec import Json
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ask import Ask

if TYPE_CHECKING:
    from hubbub.core.estimate import Estimate
    from hubbub.core.reports import Reports


@dataclass(frozen=True)
class Count:
    """A request to count how many of the reports kept of an earlier ask support each of some candidates.

    It is evaluated where the reports are stored.

    Parameters
    ----------
    ask
        The earlier ask, of a frequency oracle and with `kept`. If it was asked several times, the last time counts.
    candidates
        Different values of the oracle's domain.
    """

    ask: Ask
    candidates: tuple[int | str, ...]

    def __post_init__(self) -> None:
        if not self.ask.kept:
            raise InvalidValue("ask", self.ask, "an ask whose reports are kept")
        if not self.candidates:
            raise InvalidValue("candidates", self.candidates, "at least one")
        self.oracle._codes(self.candidates)

    @property
    def step(self) -> int:
        """The step whose reports are counted."""
        return self.ask.step

    @property
    def oracle(self) -> FrequencyOracle:
        """The mechanism that made the reports."""
        if not isinstance(self.ask.mechanism, FrequencyOracle):
            raise InvalidValue("ask", type(self.ask.mechanism).__name__, "an ask of a frequency oracle")
        return self.ask.mechanism

    def among(self, batches: Callable[[], Iterable[Reports]]) -> CountResult:
        """Count among the reports of these batches; `batches` is called once for each pass over them."""
        from hubbub.backends import LOCAL

        sketch = LOCAL.support(batches(), self.oracle, self.candidates)
        return CountResult(sketch.n, sketch.counts)

    def work(self, n: int) -> int:
        """How many times a report is tested against a candidate, if there are n reports."""
        return n * len(self.candidates)

    def candidates_json(self) -> Json:
        """The candidates as JSON. The result depends on them and on the ask alone."""
        return list(self.candidates)

    def check(self, result: CountResult) -> None:
        """Refuse a result whose shape is not that of the candidates."""
        support = np.asarray(result.support)
        if support.shape != (len(self.candidates),) or support.dtype != np.int64:
            raise InvalidValue("support", support, f"{len(self.candidates)} integers, one a candidate")

    def estimate(self, result: CountResult) -> Estimate:
        """The estimated shares of the candidates."""
        sketch = self.oracle.support_sketch(self.candidates, result.n, result.support)
        return self.oracle.estimate(sketch, self.candidates)


class CountResult(NamedTuple):
    """The answer to a `Count`: of n reports, how many support each candidate.

    A search has many candidates and returns only the best. It adds their `places` in the list of all candidates, and
    how many candidates were `tested`.
    """

    n: int
    support: NDArray[np.int64]
    places: tuple[int, ...] = ()
    tested: int = 0
