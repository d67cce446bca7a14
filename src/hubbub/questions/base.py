"""Questions: one class for each kind, which holds everything that is known of that kind; and the shapes of answers.

To write a kind, make a frozen dataclass whose fields are its keys, with `kind` and the methods below. Most kinds extend
`StatisticQuestion`, which asks for one statistic at every step (see `histogram.py`). Register the class with
`QUESTIONS["name"] = Class`, or as an entry point of the group "hubbub.questions". Devices need nothing new as long as
the terms name views and mechanisms that devices have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from hubbub.collection.setting import Finding, Setting
from hubbub.collection.spending import Cost
from hubbub.collection.terms import Terms
from hubbub.core.domain import Domain
from hubbub.core.errors import InvalidValue
from hubbub.core.plugins import Registry, guard
from hubbub.core.spec import Json
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.questions.keys import check_epsilon, check_keys, keys_spec, read_keys
from hubbub.statistics.influence import Influence

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema

Form = Literal["shares", "distribution", "mean", "means", "groups", "ranking", "table"]
"""Shares of names; of values in an order; a mean; one for each name; numbers by group; the most common; a table."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a page has to know to draw the answers to a question.

    Parameters
    ----------
    form
        Which drawing.
    size
        How many numbers an answer has.
    unit
        What they are in: "share", or the name of what was measured.
    low, high
        The range of a mean.
    over_time
        Whether what matters is how the answers move, so that they are drawn over time.
    adds_up
        Whether the answers of several steps can be taken together: everyone is asked anew in each.
    everyone
        Whether every device answers every ask; otherwise they take turns.
    window
        Over how many steps the `spent` of releases adds up to a whole; 0 where every step spends the same.
    groups, values
        Of numbers by group: the groups of each field that makes some, the main one first, and the names of the numbers
        that are told of each group. An answer has all numbers of the first group, then all of the second.
    columns
        Of a table: what can be asked of it by SQL, each column with its values in words.
    """

    form: Form
    size: int
    unit: str = "share"
    low: float | None = None
    high: float | None = None
    over_time: bool = False
    adds_up: bool = False
    everyone: bool = True
    window: int = 0
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    values: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)

    def spec(self) -> dict[str, Json]:
        """The shape as JSON."""
        groups: dict[str, Json] = {name: list(labels) for name, labels in self.groups.items()}
        return {**asdict(self), "groups": groups, "values": list(self.values), "columns": dict(self.columns)}


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
    epsilon: float
    title: str = ""

    def __init_subclass__(cls) -> None:
        guard(cls)

    def __post_init__(self) -> None:
        check_keys(self)
        check_epsilon("epsilon", self.epsilon)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        """Small questions of this kind, and the domains of their fields, to which the contract suite is applied."""
        yield from ()

    # -- what it asks of devices ------------------------------------------------------------------------------

    @abstractmethod
    def reads(self) -> tuple[str, ...]:
        """The fields that it reads. They are frozen together."""

    @abstractmethod
    def check(self, setting: Setting) -> None:
        """Refuse fields that this kind cannot ask about, with the name of the key that is wrong."""

    @abstractmethod
    def terms(self, setting: Setting) -> Terms:
        """What a device has to know of the question: everything that it may ever be asked."""

    @abstractmethod
    def cost(self, setting: Setting) -> Cost:
        """The most that it can cost a device."""

    def limits(self) -> Mapping[str, float]:
        """The keys that are an epsilon: `check` refuses a large one without a reason."""
        return {"epsilon": self.epsilon}

    # -- the server's half ------------------------------------------------------------------------------------

    @abstractmethod
    def protocol(self, setting: Setting, memory: Memory | None = None, *, first: int = 0) -> Protocol:
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

    def takes_fakes(self, setting: Setting) -> bool:
        """Whether its estimates subtract the fake reports that shufflers add."""
        return False

    def table(self, setting: Setting) -> TableSchema | None:
        """The table that SQL can query, if the reports make one: part k of an ask is level k of the table."""
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
    def shape(self, setting: Setting) -> Shape:
        """What its answers look like."""

    @abstractmethod
    def labels(self, setting: Setting) -> tuple[str, ...] | None:
        """A name for each number of an answer; None where there are too many."""

    def unbiased_steps(self, setting: Setting) -> bool:
        """Whether each step has an unbiased estimate of its own, so that alarms can be about it."""
        return False

    def independent_steps(self, setting: Setting) -> bool:
        """Whether the errors of different steps are independent: several steps then tell more than one."""
        return False

    @abstractmethod
    def forecast(self, setting: Setting, n: int) -> float | None:
        """The expected standard error of an answer if n devices take part; None where there is no formula."""

    @abstractmethod
    def assumes(self, setting: Setting) -> str:
        """What the forecast is the error of, and what it assumes, in words."""

    @abstractmethod
    def influence(self, setting: Setting) -> Influence | str:
        """How far one forged report can move any answer; or, in words, why that is not known."""

    def influence_of(self, setting: Setting) -> str:
        """Where the bound on forged reports holds, in words."""
        return "in every step"

    def moved_answer(self, setting: Setting) -> tuple[str, str]:
        """The answer that the bound on forged reports is about, in words, and its unit: "share", or the field's own."""
        shape = self.shape(setting)
        if shape.unit == "share":
            return "any share", shape.unit
        return f"{'the' if shape.size == 1 else 'any'} mean of {shape.unit}", shape.unit

    def answering(self, setting: Setting) -> float:
        """The part of the honest devices that answers one ask. Forged devices answer every ask."""
        return 1.0

    def smallest_group(self, setting: Setting) -> float:
        """The smallest part of the devices that a later round asks; the protocol shows what its first round asks."""
        return 1.0

    def released_group(self, setting: Setting) -> float:
        """The part of the devices whose reports a released number rests on."""
        return 1.0

    # -- words ------------------------------------------------------------------------------------------------

    @property
    def summary(self) -> str:
        """Its kind, with the keys that matter most."""
        return self.kind

    @abstractmethod
    def made_by(self, setting: Setting) -> str:
        """The name of the mechanism that makes its reports."""

    @abstractmethod
    def default_title(self, setting: Setting) -> str:
        """The question in words, where the author gave none."""

    @abstractmethod
    def sentence(self, setting: Setting) -> str:
        """What is sent, how often, and what it can reveal at most, in plain words."""

    def linked(self, setting: Setting) -> str | None:
        """How several of its reports can be linked to one device, as a sentence; None where they cannot."""
        return None

    def findings(self, setting: Setting) -> Iterator[Finding]:
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
    },
    named_by="kind",
)
"""Every kind of question, by name."""
