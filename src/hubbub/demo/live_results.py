"""The results of a live demonstration: the collector's releases, beside the truth that only a simulation knows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.estimate import Estimate
from hubbub.core.selected import Selected
from hubbub.demo.alarm_receiver import DeliveredAlarm
from hubbub.demo.scene import Scene

_NO_FAULT = ("accepted", "duplicate", "cover")


@dataclass(frozen=True, eq=False)
class SceneResult:
    """What the collector has released for one scene so far.

    Parameters
    ----------
    scene
        The scene.
    outcomes
        The number of reports by outcome: "accepted", "duplicate", or why they were rejected.
    steps
        How many steps were released.
    estimate, truth
        The estimate of all steps together, or of the latest step, and the truth; no estimate before the first release.
    when
        The time of the latest step in the data, in words.
    """

    scene: Scene
    outcomes: Mapping[str, int]
    steps: int
    estimate: Estimate | None
    truth: NDArray[np.float64]
    when: str


@dataclass(frozen=True, eq=False)
class LiveResults:
    """The results of all scenes at one moment."""

    scenes: tuple[SceneResult, ...]
    alarms: tuple[DeliveredAlarm, ...] = ()
    """The alarms that the webhook has received so far."""

    @property
    def complete(self) -> bool:
        """Whether every scene has an estimate."""
        return all(scene.estimate is not None for scene in self.scenes)

    @property
    def outcomes(self) -> dict[str, int]:
        """The number of reports by outcome, over all scenes."""
        total: Counter[str] = Counter()
        for scene in self.scenes:
            total.update(scene.outcomes)
        return dict(total)

    @property
    def accepted(self) -> int:
        """Reports that were counted."""
        return self.outcomes.get("accepted", 0)

    @property
    def rejected(self) -> int:
        """Reports that were refused, for any reason."""
        return sum(count for outcome, count in self.outcomes.items() if outcome not in _NO_FAULT)


def covered(estimate: Estimate, truth: NDArray[np.float64]) -> int:
    """How many 95% intervals hold the truth.

    Example:
        >>> covered(Estimate([0.5, 0.5], [0.01, 0.01], 10), np.array([0.4, 0.9]))
        1
    """
    low, high = estimate.interval(0.95)
    return int(((low <= truth) & (truth <= high)).sum())


def true_shares(truth: NDArray[np.float64], labels: Sequence[str], texts: Sequence[str]) -> NDArray[np.float64]:
    """The true share of each label: in the order of the codes, or, of texts that were found, by the text.

    Example:
        >>> true_shares(np.array([0.7, 0.3]), ["of"], ["the", "of"]).tolist()
        [0.3]
    """
    if not texts:
        return truth[: len(labels)]
    places = {text: place for place, text in enumerate(texts)}
    return np.array([truth[places[label]] if label in places else 0.0 for label in labels])


def mean_of_releases(releases: Sequence[dict[str, Any]]) -> Estimate:
    """The mean estimate of releases whose errors are independent.

    Example:
        >>> row = {"value": [0.5], "variance": [0.02], "n": 10, "labels": ["a"]}
        >>> mean_of_releases([row, row]).variance.tolist()
        [0.01]
    """
    value = np.mean([row["value"] for row in releases], axis=0)
    variance = np.sum([row["variance"] for row in releases], axis=0) / len(releases) ** 2
    around = [row["centre"] for row in releases if row.get("centre") is not None]
    centre = np.mean(around, axis=0) if len(around) == len(releases) else None
    n = sum(row["n"] for row in releases)
    labels = tuple(releases[0]["labels"])
    if len(releases) == 1 and "cut" in releases[0]:
        cut = releases[0]["cut"]
        return Selected(value, variance, n, labels=labels, centre=centre, cut=-math.inf if cut is None else cut)
    return Estimate(value, variance, n, labels=labels, centre=centre)
