"""Releases: the named estimates that a protocol publishes of a step or a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate

MAIN = "estimate"
"""The name of the only estimate of a release, or of the first where the protocol gives no other name."""
OWN = "own"
"""The name of the estimate from the step's own reports, beside a main estimate that is smoothed over time."""


class MissingReports(NamedTuple):
    """How many reports of a standing stream were due at a step, and how many of them came in time.

    `bias` is the expected bias of each number of the release from all reports that did not come so far, if they would
    have been like the reports that came. It is NaN where no report came.
    """

    due: int
    came: int
    bias: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Release:
    """What a protocol publishes of a step, or at some point of a study.

    Parameters
    ----------
    step
        The step that it describes; 0 in a study.
    estimates
        Any number of named estimates of the population at that step, of any size, the main one first. Variances include
        the randomisation and the sampling of a part of the population. The values of the main estimate may be smoothed
        over time; its intervals are still those of the step's own reports, and infinite if there were none. Only a
        release with `stopped` may have no estimates.
    published
        Whether fresh reports were asked for this release; otherwise it repeats or predicts (approximation).
    spent
        The part of the window's budget that the asks of this step took.
    n
        The estimated size of the population.
    lost
        The reports that did not come, in a stream in which devices enrol and are then awaited.
    stopped
        Why a study ended before its last round.
    """

    step: int
    estimates: Mapping[str, Estimate]
    published: bool
    spent: float
    n: float
    lost: MissingReports | None = None
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
        """The main estimate, which is the first; an empty estimate where there is none."""
        return next(iter(self.estimates.values()), Estimate(np.zeros(0), np.zeros(0), 0))

    @property
    def own(self) -> Estimate | None:
        """The estimate from all of the step's own reports, unbiased and not smoothed; None if there were no reports."""
        own = self.estimates.get(OWN, self.estimate)
        return own if len(own) and np.isfinite(own.variance).all() else None
