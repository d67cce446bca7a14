"""Questions: one class for each kind, which holds everything that is known of that kind.

To write a kind, make a frozen dataclass whose fields are its keys, with `kind` and the methods below. Most kinds extend
`StatisticQuestion`, which asks for one statistic at every step (see `histogram.py`). Register the class with
`QUESTIONS["name"] = Class`, or as an entry point of the group "hubbub.questions". Devices need nothing new as long as
the terms name views and mechanisms that devices have.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from hubbub.collection.safety import Finding
from hubbub.collection.terms import Terms
from hubbub.core.domain import Domain
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.plugins import Registry, guard
from hubbub.core.reports import Floats
from hubbub.core.spec import Json
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.questions.keys import check_epsilon, check_keys, keys_spec, read_keys
from hubbub.questions.shape import Shape
from hubbub.questions.spending import Cost
from hubbub.statistics.influence import Influence

if TYPE_CHECKING:
    from hubbub.protocols.changes.protocol import Horizon
    from hubbub.protocols.marginals.field_marginals import FieldMarginals
    from hubbub.query.schema import TableSchema


class Setting(NamedTuple):
    """What a question knows of its collection.

    Parameters
    ----------
    name
        The question's name in the collection.
    domains
        The domains of the fields that it reads, by name.
    step_seconds, origin
        The grid of steps.
    groups
        How many equal groups the devices are in, of which one is asked; 1 where everyone answers every question.
    """

    name: str
    domains: Mapping[str, Domain]
    step_seconds: int
    origin: int = 0
    groups: int = 1

    @property
    def domain(self) -> Domain:
        """The domain of the first field, which for most questions is the only one."""
        return next(iter(self.domains.values()))


def shares_shape(domain: Domain, size: int, **more: Any) -> Shape:
    """Shares of a field's values: in their order where they have one, else by size."""
    return Shape(form="distribution" if domain.in_order else "shares", size=size, **more)


@dataclass(frozen=True, kw_only=True)
class Question(ABC):
    """What a collection asks of some of its fields.

    Parameters
    ----------
    epsilon
        The most that it may cost a device; each kind says in how many steps.
    title
        The question in words.

    Example:
        >>> question = Question.make("histogram", field="theme", epsilon=1.0)
        >>> Question.from_spec(question.spec()) == question
        True
    """

    kind: ClassVar[str]
    skip_checks: ClassVar[Mapping[str, str]] = {}
    """The checks of `hubbub.checks.kind_tests` that cannot apply to it, by name, and why."""
    in_groups: ClassVar[bool] = False
    """Whether it can be asked of one group of devices (`groups` of its setting), with errors of all people."""
    not_in_groups: ClassVar[str] = "their class does not say that its errors are those of all people"
    """Why it cannot, of a kind that cannot."""
    epsilon: float
    title: str = ""
    setting: Setting = field(init=False, repr=False, compare=False)
    """What it knows of its collection. Only a question of a collection has one; most methods need it."""

    def __init_subclass__(cls) -> None:
        guard(cls)

    def __post_init__(self) -> None:
        check_keys(self)
        check_epsilon("epsilon", self.epsilon)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        """Small questions of this kind, and the domains of their fields, to which the contract suite is applied."""
        yield from ()

    def bound(self, setting: Setting) -> Self:
        """The same question in a collection."""
        bound = replace(self)
        object.__setattr__(bound, "setting", setting)
        return bound

    # -- what it asks of devices ------------------------------------------------------------------------------

    @abstractmethod
    def reads(self) -> tuple[str, ...]:
        """The fields that it reads. They are frozen together."""

    @abstractmethod
    def check(self) -> None:
        """Refuse fields that this kind cannot ask about, with the name of the key that is wrong."""

    def check_consistency(self) -> None:  # noqa: B027 - only some kinds tell consistent shares
        """Refuse a method of `hubbub.consistency` that its answers cannot take."""

    @abstractmethod
    def terms(self) -> Terms:
        """What a device has to know of the question: everything that it may ever be asked."""

    @abstractmethod
    def cost(self) -> Cost:
        """The most that it can cost a device."""

    def limits(self) -> Mapping[str, float]:
        """The keys that are an epsilon: `check` refuses a large one without a reason."""
        return {"epsilon": self.epsilon}

    # -- the server's half ------------------------------------------------------------------------------------

    @abstractmethod
    def protocol(self, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        """The generator of its asks and releases; step 1 of it is the collection's step `first`."""

    @property
    def arithmetic(self) -> int:
        """The version of the protocol's arithmetic: a server does not continue what another version has stored."""
        return 1

    @property
    def keeps(self) -> bool:
        """Whether the server keeps single reports, for later queries."""
        return False

    @property
    def searches(self) -> bool:
        """Whether the server keeps single reports because the question's own protocol searches among them."""
        return False

    def takes_fakes(self) -> bool:
        """Whether its estimates subtract the fake reports that shufflers add."""
        return False

    def table(self) -> TableSchema | None:
        """The table that SQL can query, if the reports make one: part k of an ask is part k of the schema."""
        return None

    def released_marginals(self, estimates: Mapping[str, Estimate]) -> FieldMarginals | None:
        """Any marginal of its fields, from the estimates of a release by name; None where the answers are not joint."""
        return None

    def released_horizon(self) -> Horizon | None:
        """What gathers the releases of a horizon, to answer ranges of its steps; None where no device enrols."""
        return None

    @property
    def lasts(self) -> int:
        """How many steps back an answer may depend on: a server that was away for longer starts again."""
        return self.horizon

    @property
    def horizon(self) -> int:
        """After how many steps enrolled devices enrol again, which a server must not interrupt; 0 if none enrols."""
        return 0

    # -- what it tells ----------------------------------------------------------------------------------------

    @abstractmethod
    def shape(self) -> Shape:
        """What its answers look like."""

    @abstractmethod
    def labels(self) -> tuple[str, ...] | None:
        """A name for each number of an answer; None where there are too many."""

    def consistent(self, name: str, estimate: Estimate) -> tuple[str, Estimate] | None:
        """A released estimate made consistent, with the name of the method; None where only the raw one is told."""
        return None

    def forged_part(self, forged: float) -> float:
        """The part of the reports of one answer that is forged, if that part of all devices is."""
        answering = self.answering() / self.setting.groups
        return forged if answering == 1 else forged / (forged + (1 - forged) * answering)

    def bounded(self, name: str) -> bool:
        """Whether `influence` is about the estimate of this name, which is not smoothed, in a release."""
        return False

    def honest(self, name: str, estimate: Estimate, forged: float, level: float) -> tuple[Floats, Floats] | None:
        """Intervals that hold even if up to that part of all devices is forged; None where nothing is known."""
        if not self.bounded(name) or estimate.centre is not None or estimate.kind != self._kind_of_forged:
            return None
        influence = self._stated_influence
        if not isinstance(influence, Influence):
            return None
        return influence.honest(estimate, self.forged_part(forged), level)

    @cached_property
    def _stated_influence(self) -> Influence | str:
        return self.influence()

    @property
    def _kind_of_forged(self) -> str:
        return "share" if self.moved_answer()[1] == "share" else "quantity"

    def told_by(self, consistency: str) -> Self:
        """The same question, told by another method of `hubbub.consistency`."""
        raise InvalidValue("consistency", consistency, f"nothing: answers of kind {self.kind} have no consistent form")

    def unbiased_steps(self) -> bool:
        """Whether each step has an unbiased estimate of its own, so that alarms can be about it."""
        return False

    def independent_steps(self) -> bool:
        """Whether the errors of different steps are independent: several steps then tell more than one."""
        return False

    @abstractmethod
    def forecast(self, n: int) -> float | None:
        """The expected standard error of an answer if n devices take part; None where there is no formula."""

    def least_error(self, n: int) -> float | None:
        """A standard error below which no mechanism of this epsilon is for every crowd, the drawing of people included;
        None where none is proved (`planning/minimax.py`).
        """
        return None

    def sampled_spread(self) -> float:
        """The mean variance of what people have, divided by n the variance of a sample of n: for forecasts."""
        return 0.0

    def expected_error(self, n: int) -> float | None:
        """The forecast if n devices take part in all, of which one group is asked: with the sample's variance."""
        groups = self.setting.groups
        error = None if n < groups else self.forecast(n // groups)
        return error if error is None else math.sqrt(error**2 + self.sampled_spread() * (groups - 1) / n)

    @abstractmethod
    def assumes(self) -> str:
        """What the forecast is the error of, and what it assumes, in words."""

    @abstractmethod
    def influence(self) -> Influence | str:
        """How far one forged report can move any answer; or, in words, why that is not known."""

    def influence_of(self) -> str:
        """Where the bound on forged reports holds, in words."""
        return "in every step"

    def moved_answer(self) -> tuple[str, str]:
        """The answer that the bound on forged reports is about, in words, and its unit: "share", or the field's own."""
        shape = self.shape()
        if shape.unit == "share":
            return "any share", shape.unit
        return f"{'the' if shape.size == 1 else 'any'} mean of {shape.unit}", shape.unit

    def answering(self) -> float:
        """The part of the honest devices that answers one ask. Forged devices answer every ask."""
        return 1.0

    def smallest_group(self) -> float:
        """The smallest part of the devices that a later round asks; the protocol shows what its first round asks."""
        return 1.0

    def released_group(self) -> float:
        """The part of the devices whose reports a released number rests on."""
        return 1.0

    # -- words ------------------------------------------------------------------------------------------------

    @property
    def summary(self) -> str:
        """Its kind, with the keys that matter most."""
        return self.kind

    @abstractmethod
    def made_by(self) -> str:
        """The name of the mechanism that makes its reports."""

    @abstractmethod
    def default_title(self) -> str:
        """The question in words, where the author gave none."""

    @abstractmethod
    def sentence(self) -> str:
        """What is sent, how often, and what it can reveal at most, in plain words."""

    def linked(self) -> str | None:
        """How several of its reports can be linked to one device, as a sentence; None where they cannot."""
        return None

    def findings(self) -> Iterator[Finding]:
        """What an author should know. `where` is the key that a finding is about, or empty."""
        yield from ()

    def chosen_freely(self) -> Question | None:
        """The same question without the mechanism that its author named; None where none was named."""
        return None

    # -- JSON and TOML ----------------------------------------------------------------------------------------

    def spec(self) -> dict[str, Json]:
        """The question as JSON, without keys whose value is the default."""
        return {"kind": self.kind, **keys_spec(self)}

    @staticmethod
    def from_spec(spec: Any) -> Question:
        """Read a question back."""
        if not isinstance(spec, Mapping) or "kind" not in spec:
            raise InvalidValue("question", spec, "an object with a kind")
        return Question.make(**spec)

    @staticmethod
    def make(kind: str, **keys: Any) -> Question:
        """The question of a kind, by name, with these keys."""
        if not isinstance(kind, str) or kind not in QUESTIONS:
            raise InvalidValue("kind", kind, f"one of {', '.join(QUESTIONS)}")
        question: Question = read_keys(QUESTIONS[kind].reading(keys), keys)
        return question

    @classmethod
    def reading(cls, keys: Mapping[str, Any]) -> type[Question]:
        """The class for these keys: a kind may have another class for some of its keys."""
        return cls


Example = tuple[Question, Mapping[str, Domain]]
"""A question, and the domains of the fields that it reads."""

QUESTIONS: Registry[Question] = Registry(
    "hubbub.questions",
    "hubbub.questions.base:Question",
    {
        "histogram": "hubbub.questions.histogram:HistogramQuestion",
        "mean": "hubbub.questions.mean:MeanQuestion",
        "stream": "hubbub.questions.stream:StreamQuestion",
        "memo": "hubbub.questions.memo:MemoQuestion",
        "keyvalue": "hubbub.questions.keyvalue:KeyValueQuestion",
        "changes": "hubbub.questions.changes:ChangesQuestion",
        "distribution": "hubbub.questions.distribution:DistributionQuestion",
        "release": "hubbub.questions.release:ReleaseQuestion",
        "top": "hubbub.questions.top:TopQuestion",
        "itemsets": "hubbub.questions.itemsets:ItemsetsQuestion",
        "table": "hubbub.questions.table:TableQuestion",
        "vector": "hubbub.questions.vector:VectorQuestion",
        "marginals": "hubbub.questions.marginals:MarginalsQuestion",
    },
    named_by="kind",
)
"""Every kind of question, by name."""
