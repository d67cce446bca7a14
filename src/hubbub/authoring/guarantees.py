"""What a collection guarantees, in numbers: what a device spends, centrally too, and what is kept for how long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

import msgspec

from hubbub.authoring.answerable import first_asks
from hubbub.authoring.coalitions import coalitions_of
from hubbub.core.errors import HubbubError
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.core.spec import Json
from hubbub.questions.collection import Collection
from hubbub.questions.spending import cost_of, steps_a_year, worst_of


class QuestionGuarantees(msgspec.Struct, frozen=True, kw_only=True):
    """What one question can cost a device at most, each an epsilon."""

    kind: str
    mechanisms: list[str]
    report: float
    step: float
    year: float
    life: float | None
    """None where there is no limit."""
    central_batch: float | None
    """Of one shuffled batch, for someone who sees it alone, at the delta of the collection; None without a shuffle."""
    central_year: float | None


class Guarantees(msgspec.Struct, frozen=True, kw_only=True):
    """What a collection can cost a device at most, each an epsilon; whose reports a number rests on; what is kept."""

    trust: str
    report: float
    step: float
    window: float | None
    window_steps: int | None
    year: float
    life: float | None
    delta: float
    central_year: float | None
    """Of all questions together."""
    least_batch: int
    least_shuffled: int | None
    retention_days: int
    questions: dict[str, QuestionGuarantees]


def guarantees_of(collection: Collection) -> Guarantees:
    """The numbers of a collection. Epsilons are upper bounds, whatever the server asks and however values change."""
    budget, route = collection.budget, collection.shuffle
    questions = {name: _of_question(collection, name) for name in collection.questions}
    year = most_in(collection, steps_a_year(collection))
    central = [each.central_year for each in questions.values() if each.central_year is not None]
    window = budget.window
    return Guarantees(
        trust=collection.trust,
        report=max(each.report for each in questions.values()),
        step=_epsilon(most_in(collection, 1)),
        window=None if window is None else _epsilon(most_in(collection, window.steps)),
        window_steps=None if window is None else window.steps,
        year=_epsilon(year),
        life=None if budget.user is None else _epsilon(budget.user),
        delta=0.0 if route is None else route.delta * len(central),
        central_year=min(sum(central), _epsilon(year)) if route is not None and central else None,
        least_batch=collection.minimum_batch,
        least_shuffled=None if route is None else route.least,
        retention_days=collection.retention_days,
        questions=questions,
    )


def most_in(collection: Collection, steps: int) -> int:
    """The most units that a device spends in any consecutive steps: what the questions cost, and no limit exceeded."""
    budget = collection.budget
    limits = [worst_of(collection, steps)]
    if budget.event is not None:
        limits.append(budget.event * steps)
    if budget.window is not None:
        limits.append(budget.window.limit * -(-steps // budget.window.steps))
    if budget.user is not None:
        limits.append(budget.user)
    return min(limits)


def _of_question(collection: Collection, name: str) -> QuestionGuarantees:
    terms, question, cost = collection.terms[name], collection.questions[name], cost_of(collection, name)
    steps, user = steps_a_year(collection), collection.budget.user
    year = cost.worst(steps) if user is None else min(cost.worst(steps), user)
    lasts = [limit for limit in (cost.most or None, user) if limit is not None]
    alone = next((group for group in coalitions_of(collection, name) if group.who == "the collector"), None)
    single = alone is not None and alone.year is None
    names = {family.mechanism for family in terms.families}
    with suppress(HubbubError):  # a question that cannot be asked: a finding already
        names |= {type(ask.mechanism).__name__ for ask in first_asks(collection, name)}
    return QuestionGuarantees(
        kind=question.kind,
        mechanisms=sorted(names),
        report=_epsilon(terms.limit),
        step=_epsilon(cost.step),
        year=_epsilon(year),
        life=_epsilon(min(lasts)) if lasts else None,
        central_batch=None if alone is None else alone.epsilon,
        central_year=None if alone is None else alone.epsilon if single or alone.year is None else alone.year[0],
    )


def _epsilon(units: int) -> float:
    return units / UNITS_PER_EPSILON


def differences(old: Json, new: Json, place: str = "") -> Iterator[dict[str, Json]]:
    """Where two documents differ: the key, and its value before and after; None where there is none.

    Example:
        >>> [*differences({"version": 1, "privacy": {"event": 1.0}}, {"version": 2, "privacy": {"event": 1.0}})]
        [{'key': 'version', 'before': 1, 'after': 2}]
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted(old.keys() | new.keys()):
            yield from differences(old.get(key), new.get(key), f"{place}.{key}" if place else key)
    elif old != new:
        yield {"key": place, "before": old, "after": new}
