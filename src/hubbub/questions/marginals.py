"""Marginals: the joint distribution of any few of several fields, from reports on some marginals of them (CALM)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from typing import ClassVar, Self, get_args

import numpy as np

from hubbub.collection.safety import Finding
from hubbub.collection.terms import Family, Terms
from hubbub.collection.time import every
from hubbub.consistency.marginals import Attributes
from hubbub.core.domain import Categorical, Domain, Ordinal
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.estimate import Estimate
from hubbub.core.event import epsilon_of, units_of
from hubbub.ledger.promise import MOST_UNITS, Promise, of_question
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.frequency.subset import SubsetSelection
from hubbub.protocols.driver import Protocol
from hubbub.protocols.marginals.calm import OracleChoice
from hubbub.protocols.marginals.field_marginals import FieldMarginals, cell_names
from hubbub.protocols.marginals.plan import THETA, MarginalPlan, plan_marginals, plan_named
from hubbub.protocols.memory import Memory
from hubbub.protocols.steady import ARITHMETIC, steady_parts
from hubbub.protocols.views.records import Axis
from hubbub.questions.base import Example, Question
from hubbub.questions.breakdown import group_axis, group_names
from hubbub.questions.marginal_shares import MarginalShares
from hubbub.questions.shape import Shape
from hubbub.questions.spending import Cost
from hubbub.questions.table import column_values
from hubbub.questions.words import listed, odds_text
from hubbub.statistics.influence import Influence

ALL_OF_SIZE = {"pairs": 2, "triples": 3}
"""The words for all marginals of a number of fields."""
MOST_FIELDS = 32
"""The choice of marginals takes seconds for as many."""
MOST_VIEWS = 256
"""Devices are divided into as many parts as there are marginals to report on."""
MOST_CELLS = 1 << 12
"""How many cells a marginal that devices report on may have."""


@dataclass(frozen=True, kw_only=True)
class MarginalsQuestion(Question):
    """The joint distribution of any few of several fields: every step costs epsilon.

    CALM chooses the marginals that devices report on, when the collection is written. The device's place on the circle
    decides which of them it reports on, with all of epsilon. The server makes them agree, and any other marginal is
    reconstructed from them.

    Parameters
    ----------
    fields
        2 to 32 fields that have values with names: categorical, ordinal or numeric (seen as its cells).
    marginals
        Which marginals to answer best: "pairs", "triples", or names of fields, such as ["theme, size", "size, plan"].
        All others can be asked for too.
    people
        About how many devices take part: the more, the larger are the marginals that they report on.
    theta
        The error that a reconstructed marginal is assumed to have: the sum of the squared errors of its shares.
    oracle
        How devices report: "adaptive" (GRR, or OUE where it has the smaller variance), "best" (subset selection, too),
        or a frequency oracle by name.

    Example:
        >>> from hubbub.questions import Setting
        >>> fields = {name: Categorical(["yes", "no"]) for name in ("car", "bike", "dog")}
        >>> question = MarginalsQuestion(fields=tuple(fields), epsilon=1.0).bound(Setting("homes", fields, 86400))
        >>> question.terms().parts, question.parts()[0].name, question.labels()[:2]
        (3, 'car, bike', ('yes, yes', 'yes, no'))
    """

    kind: ClassVar[str] = "marginals"
    in_groups: ClassVar[bool] = True
    fields: tuple[str, ...]
    marginals: tuple[str, ...] = ("pairs",)
    people: int = 100_000
    theta: float = THETA
    oracle: str = "adaptive"

    def __post_init__(self) -> None:
        marginals: object = self.marginals
        if isinstance(marginals, str):
            object.__setattr__(self, "marginals", (marginals,))
        super().__post_init__()
        if not 2 <= len(self.fields) <= MOST_FIELDS or not all(isinstance(name, str) for name in self.fields):
            raise InvalidValue("fields", self.fields, f"the names of 2 to {MOST_FIELDS} fields")
        if len({name.casefold() for name in self.fields}) < len(self.fields):
            raise InvalidValue("fields", self.fields, "names that differ in more than upper and lower case")
        check_integer("people", self.people, 1, 1 << 40)
        if not 0 < self.theta <= 1:
            raise InvalidValue("theta", self.theta, "a number above 0, and at most 1")
        self.named()

    @classmethod
    def examples(cls) -> Iterator[Example]:
        fields: dict[str, Domain] = {"theme": Categorical(["light", "dark"]), "level": Ordinal(3), "sound": Ordinal(2)}
        yield cls(fields=tuple(fields), epsilon=2.0), fields
        yield cls(fields=tuple(fields), epsilon=4.0, marginals=("theme, level", "sound"), oracle="best"), fields

    def named(self) -> tuple[Attributes, ...]:
        """The marginals to answer, by the places of their fields."""
        if len(self.marginals) == 1 and self.marginals[0] in ALL_OF_SIZE:
            size = ALL_OF_SIZE[self.marginals[0]]
            if size > len(self.fields):
                raise InvalidValue("marginals", self.marginals[0], f"at most {len(self.fields)} fields together")
            return tuple(combinations(range(len(self.fields)), size))
        allowed = f"pairs, triples, or different fields as {', '.join(self.fields[:2])}"
        named = []
        for text in self.marginals:
            names = [name.strip() for name in text.split(",")] if isinstance(text, str) else []
            if not set(names) <= set(self.fields) or len(set(names)) < len(names) or not names:
                raise InvalidValue("marginals", text, allowed)
            named.append(tuple(sorted(map(self.fields.index, names))))
        if not named or len(set(named)) < len(named):
            raise InvalidValue("marginals", self.marginals, f"{allowed}, each marginal once")
        left = [name for place, name in enumerate(self.fields) if not any(place in view for view in named)]
        if left:
            raise InvalidValue("marginals", self.marginals, f"marginals of all fields, also of {listed(left)}")
        return tuple(named)

    # -- what it asks of devices ------------------------------------------------------------------------------

    def reads(self) -> tuple[str, ...]:
        return self.fields

    def check(self) -> None:
        self.mechanisms()

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many values each field has, with the one of those who recorded nothing."""
        return tuple(axis.size for axis in self.axes)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """How each field is read."""
        return tuple(group_axis(self.setting.domains[name], name, "fields") for name in self.fields)

    def field_labels(self) -> dict[str, tuple[str, ...]]:
        """The names of the values of each field."""
        return {name: group_names(self.setting.domains[name], "fields") for name in self.fields}

    def plan(self) -> MarginalPlan:
        """The marginals that devices report on."""
        named = self.named()
        whole = len(self.marginals) == 1 and self.marginals[0] in ALL_OF_SIZE
        people = max(1, self.people // self.setting.groups)
        return _planned(people, self.sizes, epsilon_of(units_of(self.epsilon)), named, whole, self.theta)

    def parts(self) -> tuple[MarginalShares, ...]:
        """What each part of the devices is asked."""
        labels, views = self.field_labels(), self.plan().marginals
        parts = []
        for view in views:
            names = [self.fields[place] for place in view]
            cells = math.prod(self.sizes[place] for place in view)
            if cells > MOST_CELLS:
                allowed = f"fields of which {len(view)} have at most {MOST_CELLS:,} combinations of values"
                raise InvalidValue("fields", f"{cells:,} combinations of {listed(names)}", allowed)
            axes = tuple(self.axes[place] for place in view)
            parts.append(MarginalShares(axes, cell_names([labels[name] for name in names]), self.oracle, len(views)))
        return tuple(parts)

    def mechanisms(self) -> tuple[FrequencyOracle, ...]:
        """How each part of the devices reports."""
        return tuple(part.mechanism(units_of(self.epsilon)) for part in self.parts())

    def terms(self) -> Terms:
        parts, mechanisms = self.parts(), self.mechanisms()
        units = units_of(self.epsilon)
        name, _, step_seconds, origin, _ = self.setting
        return Terms(
            fields=self.reads(),
            views=tuple(part.view.spec() for part in parts),
            # Families, because each mechanism fits views of its size alone: no value may be answered by an error.
            families=tuple(
                Family(family, (units_of(epsilon_of(units)),))
                for family in sorted({type(mechanism).__name__ for mechanism in mechanisms})
            ),
            parts=len(parts),
            limit=self.cost().each,
            promises=(Promise(min(units, MOST_UNITS), 1, step_seconds, origin, scope=of_question(name)),),
            report_bytes=max(mechanism.report_bytes for mechanism in mechanisms),
        )

    def cost(self) -> Cost:
        return Cost(max(mechanism.event().spent for mechanism in self.mechanisms()), 1)

    # -- the server's half ------------------------------------------------------------------------------------

    def protocol(self, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        return steady_parts(self.parts(), epsilon=self.epsilon, groups=self.setting.groups, memory=memory)

    @property
    def arithmetic(self) -> int:
        return ARITHMETIC

    def takes_fakes(self) -> bool:
        from hubbub.shuffle.report_numbers import has_uniform_reports

        return all(map(has_uniform_reports, self.mechanisms()))

    def released_marginals(self, estimates: Mapping[str, Estimate]) -> FieldMarginals:
        views = {part.name: view for part, view in zip(self.parts(), self.plan().marginals, strict=True)}
        known = {views[name]: estimate for name, estimate in estimates.items() if name in views and estimate.n}
        return FieldMarginals(self.field_labels(), known)

    # -- what it tells ----------------------------------------------------------------------------------------

    def shape(self) -> Shape:
        columns = {name: column_values(self.setting.domains[name]) for name in self.fields}
        return Shape(form="marginals", size=self.parts()[0].size, columns=columns)

    def labels(self) -> tuple[str, ...]:
        return self.parts()[0].labels

    def unbiased_steps(self) -> bool:
        return all(mechanism.bias == "none" for mechanism in self.mechanisms())

    def independent_steps(self) -> bool:
        return False  # the same part of the devices reports on the same marginal in every step

    def forecast(self, n: int) -> float | None:
        part = self.parts()[0]
        like = np.full(part.size, 1 / part.size)
        return math.sqrt(part.error(units_of(self.epsilon), n / part.parts, like)) if n >= part.parts else None

    def sampled_spread(self) -> float:
        part = self.parts()[0]
        return part.spread(np.full(part.size, 1 / part.size))

    def assumes(self) -> str:
        return f"a share of {self.parts()[0].name} together, if all are equally common"

    def influence(self) -> Influence | str:
        bounds = [mechanism.influence() for mechanism in self.mechanisms()]
        known = [bound for bound in bounds if isinstance(bound, Influence)]
        if len(known) < len(bounds):
            return "the estimate is not a mean over reports"
        return max(known, key=lambda bound: bound.weight)

    def moved_answer(self) -> tuple[str, str]:
        return "any share of a marginal that devices report on", "share"

    def answering(self) -> float:
        return 1 / len(self.parts())

    def released_group(self) -> float:
        return self.answering()

    # -- words ------------------------------------------------------------------------------------------------

    @property
    def summary(self) -> str:
        return f"{self.kind} of {listed(list(self.fields))}"

    def made_by(self) -> str:
        return " and ".join(dict.fromkeys(type(mechanism).__name__ for mechanism in self.mechanisms()))

    def default_title(self) -> str:
        return f"Of {listed(list(self.fields))}: what goes together?"

    def sentence(self) -> str:
        parts = self.parts()
        epsilon = max(mechanism.effective_epsilon for mechanism in self.mechanisms())
        sizes = sorted({len(part.axes) for part in parts})
        some = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        choice = f"one of {len(parts)} choices, which the device's group decides" if len(parts) > 1 else "all at once"
        return (
            f"One report {every(self.setting.step_seconds)}. It covers {some} of {listed(list(self.fields))} together, "
            f"{choice}. It is {odds_text(epsilon)}."
        )

    def chosen_freely(self) -> Self | None:
        return None if self.oracle in get_args(OracleChoice) else replace(self, oracle="best").bound(self.setting)

    def findings(self) -> Iterator[Finding]:
        plan, named = self.plan(), self.named()
        text = f"devices report on {plan.t} marginals of up to {plan.s} fields, planned for {self.people:,} devices"
        yield Finding("note", "people", text)
        left = [view for view in named if not any(set(view) <= set(other) for other in plan.marginals)]
        if left:
            yield Finding(
                "warning",
                "marginals",
                f"{len(left):,} of {len(named):,} are reported on by nobody, as their noise would exceed theta: they "
                "are reconstructed, and their errors are not known; a larger epsilon or more people change that",
            )
        others = replace(self, oracle="best").bound(self.setting).forecast(self.people)
        own = self.forecast(self.people)
        if self.oracle == "adaptive" and own and others and others < 0.95 * own:
            less = f"{1 - others / own:.0%} smaller, by subset selection, which browsers do not have"
            yield Finding("note", "oracle", f"with best the standard error of {self.parts()[0].name} is {less}")
        if any(isinstance(mechanism, SubsetSelection) for mechanism in self.mechanisms()):
            text = "browsers do not have SubsetSelection, and answer nothing: with adaptive they do"
            yield Finding("warning", "oracle", text)


@lru_cache(maxsize=64)
def _planned(
    people: int, sizes: tuple[int, ...], epsilon: float, named: tuple[Attributes, ...], whole: bool, theta: float
) -> MarginalPlan:
    if whole:
        return plan_marginals(people, sizes, epsilon, k=len(named[0]), theta=theta, most=MOST_VIEWS)
    return plan_named(people, sizes, epsilon, named, theta=theta, most=MOST_VIEWS)
