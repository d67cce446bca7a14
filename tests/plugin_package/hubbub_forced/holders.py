"""A question of another package: how many hold one value of a field. A device tells that bit and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hubbub.core.domain import Categorical
from hubbub.core.errors import InvalidValue
from hubbub.protocols.statistic import Frequencies
from hubbub.protocols.views.basic import Among
from hubbub.questions import Shape, StatisticQuestion


@dataclass(frozen=True, kw_only=True)
class HoldersQuestion(StatisticQuestion):
    """The share of devices that hold `value`, and that of all others: every step costs epsilon."""

    value: str
    kind: ClassVar[str] = "holders"

    @classmethod
    def examples(cls):
        yield cls(field="theme", value="dark", epsilon=1.0), {"theme": Categorical(["light", "dark", "sepia"])}

    def statistic(self):
        domain = self.setting.domain
        if not isinstance(domain, Categorical) or self.value not in domain.names:
            raise InvalidValue("value", self.value, f"a name that {self.field} has")
        return Frequencies(2, view=Among((domain.code(self.value),)))

    def labels(self):
        return self.value, "any other"

    def shape(self):
        return Shape(form="shares", size=2, adds_up=True)

    def default_title(self):
        return f"Who has {self.value}?"
