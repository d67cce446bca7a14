"""Distributions: the histogram, quantiles and mean of a number, asked of everyone at every step."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from hubbub.core.domain import Numeric
from hubbub.core.errors import InvalidValue
from hubbub.core.event import units_of
from hubbub.planning.predict import FORGED, part_text
from hubbub.protocols.statistic import MEAN, SPREAD_ARITHMETIC, Spread
from hubbub.questions.base import Example
from hubbub.questions.shape import Shape
from hubbub.questions.statistic import StatisticQuestion
from hubbub.questions.words import rounded_up
from hubbub.statistics.influence import Influence

_PEOPLE = 100_000  # of whom it is told how far forged reports move a share: with more, shares are less blurred


@dataclass(frozen=True, kw_only=True)
class DistributionQuestion(StatisticQuestion):
    """How a numeric field is distributed: every step costs epsilon.

    A release has the shares of the field's cells, and next to them the quantiles and the mean, each with an interval.

    Parameters
    ----------
    quantiles
        The shares of people whose upper ends are told: 0.5 is the median.

    Example:
        >>> from hubbub.questions import Setting
        >>> setting = Setting("fares", {"fare": Numeric(0, 100, cells=20)}, 3600)
        >>> question = DistributionQuestion(field="fare", epsilon=1.0).bound(setting)
        >>> question.made_by(), len(question.labels()), round(question.forecast(100_000), 3)
        ('SquareWave', 20, 0.013)
    """

    kind: ClassVar[str] = "distribution"
    in_groups: ClassVar[bool] = True
    skip_checks: ClassVar[Mapping[str, str]] = {
        "check_forecast": "it is the noise of an unbiased share: the likeliest distribution errs less"
    }
    quantiles: tuple[float, ...] = (0.25, 0.5, 0.75, 0.95)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield cls(field="seconds", epsilon=2.0), {"seconds": Numeric(0, 20, cells=4)}

    def statistic(self) -> Spread:
        domain = self.setting.domain
        if not isinstance(domain, Numeric):
            raise InvalidValue("field", self.field, "a numeric field: only numbers have a distribution")
        if self.mechanism not in (None, "SquareWave"):
            raise InvalidValue("mechanism", self.mechanism, "SquareWave")
        return Spread(domain.low, domain.high, domain.cells, self.quantiles)

    def shape(self) -> Shape:
        statistic = self.statistic()
        return Shape(form="distribution", size=statistic.size, low=statistic.low, high=statistic.high)

    @property
    def arithmetic(self) -> int:
        return SPREAD_ARITHMETIC

    def assumes(self) -> str:
        return (
            "the noise of the share of one cell, every step, if all numbers are equally common; intervals of a release "
            "are wider, as many people may have one number"
        )

    def influence(self) -> Influence | str:
        return self.statistic().mechanism(units_of(self.epsilon)).influence()

    def bounded(self, name: str) -> bool:
        return name == MEAN

    def moved_answer(self) -> tuple[str, str]:
        return f"the mean of {self.field}", self.field

    def influence_of(self) -> str:
        wave = self.statistic().mechanism(units_of(self.epsilon))
        blur = float(wave.resolution(_PEOPLE))
        half = wave.share_influence(wave.low, (wave.low + wave.high) / 2, blur=blur).shift(FORGED).largest
        moved = f"{part_text(FORGED)} of {_PEOPLE:,} reports, if forged, move it by up to {rounded_up(100 * half)}"
        return f"in every step; as for the share of people in half of the range, {moved} percentage points"

    def default_title(self) -> str:
        return f"Of {self.field}: how is it distributed?"
