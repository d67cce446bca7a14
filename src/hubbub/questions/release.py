"""Releases: running means and sums of a number of which few are large, clipped where that is best (ToPL)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hubbub.collection.safety import Finding
from hubbub.collection.terms import Family, Terms
from hubbub.core.domain import Numeric
from hubbub.core.errors import InvalidValue
from hubbub.core.event import epsilon_of, units_of
from hubbub.core.reports import Floats
from hubbub.core.spec import Json
from hubbub.mechanisms.numeric.square_wave import SquareWave
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.statistic import Means
from hubbub.questions.base import Example
from hubbub.questions.shape import Shape
from hubbub.questions.statistic import StatisticQuestion
from hubbub.statistics.influence import Influence


@dataclass(frozen=True, kw_only=True)
class ReleaseQuestion(StatisticQuestion):
    """Means and sums of a numeric field from 0 on, step by step and over the last r steps: every step costs epsilon.

    In the first step devices report the number's magnitude by a square wave, from which the server finds where to clip.
    From then on devices clip their numbers there and report them by the hybrid mechanism.

    Parameters
    ----------
    r
        The steps of the longest range that is summed.
    every
        After how many steps the threshold is found anew, from a tenth of the devices; 0: never.

    Example:
        >>> from hubbub.questions import Setting
        >>> setting = Setting("fares", {"fare": Numeric(0, 1000, cells=20)}, 3600)
        >>> question = ReleaseQuestion(field="fare", epsilon=1.0, r=24)
        >>> question.bound(setting).terms().views[1]["high"], question.summary
        ({'from': 0.00095367431640625, 'to': 1000.0}, 'release, 24 steps')
    """

    kind: ClassVar[str] = "release"
    in_groups: ClassVar[bool] = True
    skip_checks: ClassVar[Mapping[str, str]] = {"check_forecast": "it assumes that nothing is clipped"}
    r: int
    every: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("r", 1), ("every", 0)):
            if not least <= getattr(self, name) <= 10**6:
                raise InvalidValue(name, getattr(self, name), f"a whole number from {least} to a million")

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield cls(field="fare", epsilon=2.0, r=4), {"fare": Numeric(0, 20, cells=4)}
        yield cls(field="fare", epsilon=2.0, r=4, every=2), {"fare": Numeric(0, 20, cells=4)}

    def statistic(self) -> Means:
        domain = self.setting.domain
        if not isinstance(domain, Numeric) or domain.low != 0:
            raise InvalidValue("field", self.field, "a numeric field from 0 on")
        if self.mechanism is not None:
            raise InvalidValue("mechanism", self.mechanism, "nothing: a release has two mechanisms")
        return Means(0.0, domain.high)

    def mechanisms(self) -> tuple[SquareWave, ...]:
        from hubbub.protocols.topl.threshold import search_wave

        self.statistic()  # refuse what it refuses
        return (search_wave(units_of(self.epsilon)),)

    def terms(self) -> Terms:
        from hubbub.protocols.topl.threshold import magnitudes

        (wave,), means, units = self.mechanisms(), self.statistic(), units_of(self.epsilon)
        hybrid, searched = means.mechanism(units), magnitudes(means.high)
        clipped: dict[str, Json] = {"kind": "clipped", "low": 0.0, "high": {"from": searched.first, "to": means.high}}
        # Families, because each mechanism fits one of the views alone: no value may be answered by an error.
        spends = (units_of(epsilon_of(units)),)
        return replace(
            super().terms(),
            views=(searched.spec(), clipped),
            mechanisms=(),
            families=tuple(Family(type(mechanism).__name__, spends) for mechanism in (hybrid, wave)),
            parts=2 if self.every else 1,
            report_bytes=max(wave.report_bytes, hybrid.report_bytes),
        )

    def protocol(self, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        from hubbub.protocols.topl.stream import topl

        most, groups = self.statistic().high, self.setting.groups
        return topl(epsilon=self.epsilon, most=most, r=self.r, every=self.every, groups=groups, memory=memory)

    @property
    def arithmetic(self) -> int:
        from hubbub.protocols.topl.stream import ARITHMETIC

        return ARITHMETIC

    @property
    def lasts(self) -> int:
        return self.r

    def labels(self) -> tuple[str, ...]:
        return (self.field,)

    def shape(self) -> Shape:
        return Shape(form="mean", size=1, unit=self.field, low=0.0, high=self.statistic().high, over_time=True)

    def typical(self) -> Floats:
        return np.array([self.statistic().high / 2])

    def unbiased_steps(self) -> bool:
        return False  # a clipped mean is not the mean

    def assumes(self) -> str:
        return "a step's mean if nothing is clipped; less, the lower the threshold that is found"

    def influence(self) -> Influence | str:
        return "forged reports also influence where numbers are clipped"

    def made_by(self) -> str:
        return type(self.statistic().mechanism(units_of(self.epsilon))).__name__

    @property
    def summary(self) -> str:
        return f"release, {self.r} steps"

    def default_title(self) -> str:
        return f"Of {self.field}: what are its mean and its sum?"

    def findings(self) -> Iterator[Finding]:
        text = "the first step finds where to clip; its mean is estimated from square-wave reports, which err more"
        yield Finding("note", "", text)
        text = "means are of clipped numbers: a release also says what share is above the clip and what that could hide"
        yield Finding("note", "", text)
