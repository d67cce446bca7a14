"""Asks, counts and releases: what the server says, and what it hears."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.event import Event
from hubbub.core.sketch import Sketch
from hubbub.core.spec import Json, integer, spec_id
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.cohort import EVERYONE, Arc
from hubbub.protocols.view import View, Whole

if TYPE_CHECKING:
    from hubbub.core.estimate import Estimate
    from hubbub.core.reports import Reports
    from hubbub.mechanisms.frequency.oracle import FrequencyOracle

MAIN = "estimate"
"""The name of an estimate that is alone in its release."""
OWN = "own"
"""The name of what a step itself heard, beside a main estimate that is smoothed over time."""


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What the server publishes: the same for everyone.

    A device on the arc, whose ledger allows it, answers `mechanism.randomize(view(value))` for its value of that step.

    Parameters
    ----------
    mechanism
        How to answer.
    step
        Which step's value is meant.
    view
        What of it.
    cohort
        Who is asked.
    standing
        Whether everyone answers it at every step, so that it is published once and devices need no further word.
    following
        The first ask of the next step, where it is known whatever the answer to this one. Nobody is told: it lets a
        server ask on time while it still waits for late answers.
    kept
        Whether single reports are kept, beside their sketch, so that a `Count` can ask about them later.

    Example:
        >>> from hubbub import GRR
        >>> ask = Ask(mechanism=GRR(epsilon=1.0, domain=2), step=3, cohort=Arc(0, 100))
        >>> Ask.from_spec(ask.spec()) == ask
        True
    """

    mechanism: ReportFormat
    step: int
    view: View = Whole()  # noqa: RUF009 - frozen
    cohort: Arc = EVERYONE
    standing: bool = False
    following: Ask | None = field(default=None, compare=False, repr=False)
    kept: bool = False

    def __post_init__(self) -> None:
        check_integer("step", self.step, 0)

    @cached_property
    def ask_id(self) -> str:
        """The hash of the whole ask: an answer names it."""
        return spec_id({**self.spec(), "mechanism": self.mechanism.spec_id})

    def event(self) -> Event:
        """What answering spends.

        Example:
            >>> from hubbub import GRR
            >>> Ask(mechanism=GRR(epsilon=1.0, domain=2), step=3).event().step
            3
        """
        spent = self.mechanism.event()
        return Event(spent.mechanism, spent.spec_id, spent.spent, self.step)

    def spec(self) -> dict[str, Json]:
        """The ask as JSON."""
        return {
            "mechanism": self.mechanism.spec(),
            "step": self.step,
            "view": self.view.spec(),
            "cohort": self.cohort.spec(),
            "standing": self.standing,
            **({"kept": True} if self.kept else {}),
        }

    @staticmethod
    def from_spec(spec: Mapping[str, Any]) -> Ask:
        """Read an ask back; its mechanism recomputes what it spends."""
        wanted = {"mechanism", "step", "view", "cohort", "standing"}
        if not isinstance(spec, Mapping) or set(spec) - {"kept"} != wanted:
            raise InvalidValue("ask", spec, f"exactly the fields {sorted(wanted)}")
        arc = spec["cohort"]
        if not isinstance(arc, Mapping) or set(arc) != {"start", "length"}:
            raise InvalidValue("cohort", arc, "a start and a length")
        if not isinstance(spec["standing"], bool):
            raise InvalidValue("standing", spec["standing"], "true or false")
        if spec.get("kept", True) is not True:
            raise InvalidValue("kept", spec["kept"], "true, or left out")
        return Ask(
            mechanism=ReportFormat.from_spec(spec["mechanism"]),
            step=integer("step", spec["step"]),
            view=View.from_spec(spec["view"]),
            cohort=Arc(integer("start", arc["start"]), integer("length", arc["length"])),
            standing=spec["standing"],
            kept="kept" in spec,
        )


@dataclass(frozen=True)
class Count:
    """How many of the reports that were kept of an earlier ask support each of some candidates.

    It is evaluated where the reports are. The earlier ask is the latest that equals `of`.

    Parameters
    ----------
    of
        An ask of a frequency oracle, with `kept`.
    candidates
        Values of the oracle's domain, all different.

    Example:
        >>> from hubbub import OLH, Random
        >>> ask = Ask(mechanism=OLH(epsilon=3.0, domain=1000), step=1, kept=True)
        >>> reports = ask.mechanism.randomize([7] * 600 + [8] * 400, Random(seed=1))
        >>> count = Count(ask, (7, 8))
        >>> counted = Counted(len(reports), ask.mechanism.support(reports, count.candidates).counts)
        >>> [round(float(share), 1) for share in count.estimate(counted).value]
        [0.6, 0.4]
    """

    of: Ask
    candidates: tuple[int | str, ...]

    def __post_init__(self) -> None:
        if not self.of.kept:
            raise InvalidValue("of", self.of, "an ask whose reports are kept")
        if not self.candidates:
            raise InvalidValue("candidates", self.candidates, "at least one")
        self.oracle._codes(self.candidates)

    @property
    def step(self) -> int:
        """Which step's reports are counted."""
        return self.of.step

    @property
    def oracle(self) -> FrequencyOracle:
        """The mechanism of the reports."""
        from hubbub.mechanisms.frequency.oracle import FrequencyOracle  # a device, which counts nothing, loads none

        if not isinstance(self.of.mechanism, FrequencyOracle):
            raise InvalidValue("of", type(self.of.mechanism).__name__, "an ask of a frequency oracle")
        return self.of.mechanism

    def among(self, batches: Callable[[], Iterable[Reports]]) -> Counted:
        """Count among these reports, which are read as often as that needs."""
        from hubbub.backends import LOCAL  # a device, which counts nothing, loads none

        sketch = LOCAL.support(batches(), self.oracle, self.candidates)
        return Counted(sketch.n, sketch.counts)

    def work(self, n: int) -> int:
        """How many tests of a report against a candidate it takes, of n reports.

        Example:
            >>> from hubbub import OLH
            >>> Count(Ask(mechanism=OLH(epsilon=3.0, domain=1000), step=1, kept=True), (7, 8)).work(10)
            20
        """
        return n * len(self.candidates)

    def named(self) -> Json:
        """What is counted, as JSON: with the ask, all that the answer depends on."""
        return list(self.candidates)

    def check(self, counted: Counted) -> None:
        """Refuse what cannot be the answer."""
        support = np.asarray(counted.support)
        if support.shape != (len(self.candidates),) or support.dtype != np.int64:
            raise InvalidValue("support", support, f"{len(self.candidates)} integers, one a candidate")

    def estimate(self, counted: Counted) -> Estimate:
        """The shares of the candidates."""
        return self.oracle.estimate(
            self.oracle.support_sketch(self.candidates, counted.n, counted.support), self.candidates
        )


class Counted(NamedTuple):
    """The answer to a count: of n reports, how many support each candidate.

    A search, which has many candidates and tells the best alone, also says their `places` and how many were `tested`.

    Example:
        >>> Counted(10, np.int64([3, 7])).n
        10
    """

    n: int
    support: NDArray[np.int64]
    places: tuple[int, ...] = ()
    tested: int = 0


class Lost(NamedTuple):
    """Reports of a standing stream that were due at a step, and how many of them came in time.

    `bias` is how far those that did not come, over all steps so far, are thought to draw each number of the release: as
    if what they would have said were like what others said; NaN where none came.
    """

    due: int
    came: int
    bias: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Release:
    """What the server says of a step, or at some point of a study.

    Parameters
    ----------
    step
        Which step it describes; 0 in a study.
    estimates
        Any number of named estimates, of any size, the main one first: of the population at that step, with their
        variance: of the randomisation, and of having asked a part of the population. The main one's values may be
        smoothed over time: its intervals are still those of what the step itself heard, and infinite where that was
        nothing. Only a release that says `stopped` may have none.
    published
        Whether fresh reports were asked for it; otherwise an earlier release stands in (approximation).
    spent
        The part of what a window may spend that the asks of this step took.
    n
        The estimated size of the population.
    lost
        What did not come, where devices that enrolled are awaited.
    stopped
        Why a study ended before its last round.

    Example:
        >>> from hubbub.core.estimate import Estimate
        >>> shares, top = Estimate([0.5, 0.5], [0.01, 0.01], 10), Estimate([0.5], [0.01], 10)
        >>> release = Release(step=1, estimates={"shares": shares, "top": top}, published=True, spent=0.05, n=100.0)
        >>> release.main, release.estimate is shares
        ('shares', True)
    """

    step: int
    estimates: Mapping[str, Estimate]
    published: bool
    spent: float
    n: float
    lost: Lost | None = None
    stopped: str | None = None

    def __post_init__(self) -> None:
        if not self.estimates and self.stopped is None:
            raise InvalidValue("estimates", {}, "at least one")
        object.__setattr__(self, "estimates", MappingProxyType(dict(self.estimates)))

    @property
    def main(self) -> str:
        """The name of the main estimate."""
        return next(iter(self.estimates), MAIN)

    @property
    def estimate(self) -> Estimate:
        """The main estimate, which is the first; an empty one where there is none."""
        from hubbub.core.estimate import Estimate  # a device, which releases nothing, loads none

        return next(iter(self.estimates.values()), Estimate(np.zeros(0), np.zeros(0), 0))

    @property
    def own(self) -> Estimate | None:
        """What the step itself heard, all of it pooled, unbiased and not smoothed; None if that was nothing."""
        own = self.estimates.get(OWN, self.estimate)
        return own if len(own) and np.isfinite(own.variance).all() else None


Said: TypeAlias = Ask | list[Ask] | Count | Release
"""What a protocol says: an ask, several of disjoint arcs (parts), a count, or a release."""
Heard: TypeAlias = Sketch | list[Sketch] | Counted | None
"""What it hears: the sketch of an ask, those of several, what was counted, or nothing after a release."""
