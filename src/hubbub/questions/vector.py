"""Training a model together: the mean of devices' updates, round by round. A study."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from hubbub.collection.safety import Finding
from hubbub.collection.terms import Terms
from hubbub.core.domain.vector import Vector
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.event import units_of
from hubbub.mechanisms.ternary.ternary import TernaryMechanism
from hubbub.planning.minimax import entry_floor
from hubbub.protocols.ask import CIRCLE, Arc
from hubbub.protocols.driver import Protocol
from hubbub.protocols.federated import ARITHMETIC, descent, train
from hubbub.protocols.memory import Memory
from hubbub.protocols.views.update import Update
from hubbub.questions.base import Example
from hubbub.questions.keyvalue import best_ternary, ternary_mechanisms
from hubbub.questions.shape import Shape
from hubbub.questions.study import StudyQuestion
from hubbub.questions.words import odds_text
from hubbub.statistics.influence import Influence

MOST_ROUNDS = 1000


@dataclass(frozen=True, kw_only=True)
class VectorQuestion(StudyQuestion):
    """A model that devices train together: in each round some of them send an update of it, which the mean moves.

    Epsilon is what all reports of a device in one run cost. The model begins with zeros.

    Parameters
    ----------
    rounds
        How many rounds a run has.
    most_rounds
        In how many rounds of a run a device takes part, which share epsilon; a divisor of `rounds`.
    sparsity
        How many entries of a report are not 0. A device's update is rounded to so few at random, without bias.
    clip
        The largest entry of an update. A device shrinks an update that has a larger one, or whose entries together
        exceed `sparsity * clip`; its direction is kept.
    mechanism
        The mechanism to use, instead of the one with the smallest error: such as NetSub, CoCo or Collision.
    step_size, momentum
        The model goes `step_size` times the mean update, and of the way before the part `momentum` again.

    Example:
        >>> from hubbub.questions import Setting
        >>> question = VectorQuestion(field="step", epsilon=8.0, start="2026-12-01T00:00Z", rounds=50)
        >>> question = question.bound(Setting("learn", {"step": Vector(40)}, 86400))
        >>> question.mechanism_for().sparsity, question.terms().rounds, question.summary
        (8, 50, 'vector of 40 numbers in 50 rounds')
    """

    kind: ClassVar[str] = "vector"
    in_groups: ClassVar[bool] = True
    rounds: int = 20
    most_rounds: int = 1
    sparsity: int = 8
    clip: float = 1.0
    mechanism: str | None = None
    step_size: float = 1.0
    momentum: float = 0.0

    @classmethod
    def examples(cls) -> Iterator[Example]:
        common: dict[str, Any] = {"field": "step", "epsilon": 4.0, "start": "2026-12-01T00:00Z", "clip": 1.0}
        yield cls(**common, rounds=3, sparsity=1), {"step": Vector(3)}
        yield cls(**common, rounds=4, most_rounds=2, sparsity=2, mechanism="CoCo"), {"step": Vector(5)}

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("rounds", self.rounds, 1, MOST_ROUNDS)
        check_integer("most_rounds", self.most_rounds, 1, self.rounds)
        if self.rounds % self.most_rounds:
            raise InvalidValue("most_rounds", self.most_rounds, f"a divisor of the {self.rounds} rounds")
        for key, most in (("clip", math.inf), ("step_size", math.inf), ("momentum", 1.0)):
            number = getattr(self, key)
            if not (0 <= number < most) or (number == 0 and key != "momentum"):
                raise InvalidValue(key, number, "from 0 up to, and not, 1" if key == "momentum" else "a number above 0")

    @property
    def _groups(self) -> int:
        """How many groups of devices take turns in a run."""
        return self.rounds // self.most_rounds

    def mechanism_for(self) -> TernaryMechanism:
        """The mechanism of the reports."""
        domain = self.setting.domain
        if not isinstance(domain, Vector):
            raise InvalidValue("field", self.field, "a field of kind vector")
        check_integer("sparsity", self.sparsity, 1, domain.dimension)
        if self.mechanism is not None and self.mechanism not in ternary_mechanisms():
            raise InvalidValue("mechanism", self.mechanism, f"one of {', '.join(ternary_mechanisms())}")
        units = units_of(self.epsilon) // self.most_rounds
        return best_ternary(self.mechanism, units, domain.dimension, self.sparsity, False, 1.0, 0.0)

    # -- what it asks of devices ------------------------------------------------------------------------------

    def check(self) -> None:
        self.schedule()
        self.mechanism_for()

    def terms(self) -> Terms:
        mechanism = self.mechanism_for()
        view = Update.of(b"", dimension=mechanism.dimension, sparsity=self.sparsity, clip=self.clip)
        return Terms(
            fields=self.reads(),
            frozen="study",
            views=({**view.spec(), "model": {"hex": 64}},),
            mechanisms=(mechanism.spec_id,),
            rounds=self.rounds,
            limit=units_of(self.epsilon),
            promises=(self.promise(),),
            report_bytes=mechanism.report_bytes,
            study=self.schedule(),
        )

    def protocol(self, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        part = CIRCLE // self.turns
        group, begins = part // self._groups, first % self.turns * part
        arcs = [Arc(begins + number % self._groups * group, group) for number in range(self.rounds)]
        optimiser = descent(step_size=self.step_size, momentum=self.momentum)
        groups = self.setting.groups
        return train(self.mechanism_for(), clip=self.clip, arcs=arcs, optimiser=optimiser, groups=groups)

    @property
    def arithmetic(self) -> int:
        return ARITHMETIC

    def answering(self) -> float:
        return self.smallest_group()

    def smallest_group(self) -> float:
        return 1 / self.turns / self._groups

    def released_group(self) -> float:
        return self.smallest_group()

    # -- what it tells ----------------------------------------------------------------------------------------

    def shape(self) -> Shape:
        return Shape(form="vector", size=self.mechanism_for().dimension, unit=self.field, everyone=False)

    def labels(self) -> None:
        return None

    def forecast(self, n: int) -> float | None:
        """The standard error of an entry of a round's mean update, where every device fills `sparsity` entries."""
        mechanism, group = self.mechanism_for(), n * self.smallest_group()
        rounding = self.sparsity / mechanism.dimension
        error = mechanism.mse() / mechanism.dimension + rounding
        return self.clip * math.sqrt(error / group) if group >= 1 else None

    def least_error(self, n: int) -> float | None:
        mechanism, group = self.mechanism_for(), math.floor(n * self.smallest_group())
        return self.clip * entry_floor(mechanism, group) if group >= 1 else None

    def assumes(self) -> str:
        return f"an entry of a round's mean update, if all fill {self.sparsity} entries with ± {self.clip:g}"

    def influence(self) -> Influence | str:
        return (
            "forged reports move the model, and with it what later rounds ask; in one round, a forged report moves an "
            f"entry at most {self._forged():.3g} times as far as a person with the largest update"
        )

    def _forged(self) -> float:
        influence = self.mechanism_for().influence()
        assert influence is not None
        return max(abs(float(influence.low)), float(influence.high))

    # -- words ------------------------------------------------------------------------------------------------

    @property
    def summary(self) -> str:
        return f"vector of {self.mechanism_for().dimension:,} numbers in {self.rounds} rounds"

    def made_by(self) -> str:
        return type(self.mechanism_for()).__name__

    def default_title(self) -> str:
        return f"What does a model learn from {self.field}?"

    def sentence(self) -> str:
        reports = "One report" if self.most_rounds == 1 else f"{self.most_rounds} reports"
        return (
            f"{reports}, {self.unit_of_time}, about how a public model should change to fit what is on the device. "
            f"Together it is {odds_text(self.epsilon)}."
        )

    def findings(self) -> Iterator[Finding]:
        yield Finding(
            "note",
            "",
            "devices need a program that computes the update of a model (`Client.on_model`); without one they answer "
            "with zeros",
        )
