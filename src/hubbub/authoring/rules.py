"""The rules of a safe collection: each reads a collection and says what it finds."""

import math
from collections.abc import Callable, Iterable, Iterator

from hubbub.authoring.answerable import browsers_answer, every_value_has_an_answer, first_asks
from hubbub.authoring.forecast import groups_need, moved_far, people_or_epsilon
from hubbub.authoring.promise import sent_unprotected
from hubbub.authoring.shuffle_rules import reports_are_numbers, shuffled_questions, who_shuffles
from hubbub.collection.safety import LARGEST_EPSILON, SMALLEST_ARC, SMALLEST_BATCH, Finding, Level, privacy_key
from hubbub.collection.time import duration_text, every
from hubbub.core.errors import HubbubError
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.core.plugins import PluginFailed
from hubbub.protocols.ask import CIRCLE
from hubbub.questions.collection import Collection
from hubbub.questions.spending import cost_of, steps_a_year, total_of
from hubbub.questions.words import epsilon_text, listed, sure_text

_FINE_SECONDS = 60
_LONG_DAYS = 365
_LARGE_YEAR = 365 * LARGEST_EPSILON
UNUSED = "not needed: remove it"
"""What is said of an override that nothing in the collection needs."""


def _unless_allowed(
    collection: Collection, override: str, breaches: Iterable[tuple[str, str, str]]
) -> Iterator[Finding]:
    """An error for each breach (its place, its effect, what is allowed), or a warning if the author gave a reason."""
    reason, needed = collection.overrides.get(override), False
    for where, effect, allowed in breaches:
        needed = True
        if reason is None:
            yield Finding("error", where, f"{effect}{allowed}, or give a reason as {override} in [override]")
        else:
            yield Finding("warning", where, f"{effect}; allowed because: {reason}")
    if reason is not None and not needed:
        yield Finding("warning", f"override.{override}", UNUSED)


def large_epsilon(collection: Collection) -> Iterator[Finding]:
    """No question spends more than 8, unless the author says why."""
    breaches = (
        (
            f"questions.{name}.{key}",
            f"epsilon {epsilon:g} can make an observer {sure_text(epsilon)} sure of a value",
            f"; at most {LARGEST_EPSILON:g}",
        )
        for name, question in collection.questions.items()
        for key, epsilon in question.limits().items()
        if epsilon > LARGEST_EPSILON
    )
    return _unless_allowed(collection, "epsilon_above_8", breaches)


def small_batch(collection: Collection) -> Iterator[Finding]:
    """No release rests on fewer than 20 reports, unless the author says why."""
    effect = f"releases of {collection.minimum_batch} reports are nearly all noise"
    breach = ("privacy.minimum_batch", effect, f", and close to the single person; at least {SMALLEST_BATCH}")
    breaches = [breach] if collection.minimum_batch < SMALLEST_BATCH else []
    return _unless_allowed(collection, "minimum_batch_below_20", breaches)


def sent_as_it_is(collection: Collection) -> Iterator[Finding]:
    """No number is sent as it is, unless the author says why."""
    reason = collection.overrides.get("sent_as_it_is")
    unprotected = sent_unprotected(collection)
    for name in unprotected:
        if reason is None:
            text = "its measures are sent as they are: leave them out, or give a reason as sent_as_it_is in [override]"
            yield Finding("error", f"questions.{name}.measures", text)
        else:
            yield Finding("warning", f"questions.{name}.measures", f"sent as they are, allowed because: {reason}")
    if reason is not None and not unprotected:
        yield Finding("warning", "override.sent_as_it_is", UNUSED)


def fits_the_budget(collection: Collection) -> Iterator[Finding]:
    """The questions together cost no more than devices may spend: else devices would leave some unanswered."""
    budget = collection.budget
    limits = [("privacy.event", 1, "one step", budget.event), ("privacy.user", 1, "one step", budget.user)]
    if budget.window is not None:
        steps = budget.window.steps
        limits.append(("privacy.window", steps, f"{steps:,} consecutive steps", budget.window.limit))
    for where, steps, span, limit in limits:
        if limit is not None and total_of(collection, steps) > limit:
            total, parts = epsilon_text(total_of(collection, steps)), _parts(collection, steps)
            yield Finding(
                "error",
                where,
                f"the questions of {span} can cost a device epsilon {total} ({parts}), and it may spend "
                f"{epsilon_text(limit)}: lower their epsilon or raise the limit",
            )


def never_answered(collection: Collection) -> Iterator[Finding]:
    """Every question costs no more than the part of each limit reserved for it: else devices would never answer it."""
    for name, terms in collection.terms.items():
        for promise in collection.promises:
            part = promise.parts.get(terms.account, 0)
            # Where even all of the limit is too little, `fits_the_budget` says so.
            if part < terms.limit <= promise.limit and total_of(collection, promise.steps or 1) <= promise.limit:
                yield Finding(
                    "error",
                    privacy_key(promise),
                    f"of this limit of epsilon {epsilon_text(promise.limit)}, {epsilon_text(part)} is reserved for "
                    f"{name}, which costs {epsilon_text(terms.limit)}: devices would never answer it; raise the limit",
                )


def lifetime(collection: Collection) -> Iterator[Finding]:
    """How long the lifetime limit lasts, or what a year costs without one."""
    costs = {name: cost_of(collection, name) for name in collection.questions}
    memos = [name for name, cost in costs.items() if cost.memo]
    year = total_of(collection, steps_a_year(collection))
    user = collection.budget.user
    if user is None:
        level: Level = "warning" if year > _LARGE_YEAR * UNITS_PER_EPSILON else "note"
        yield Finding(
            level,
            "privacy.user",
            f"no limit for life: in a year a device may spend up to epsilon {epsilon_text(year)}, which protects "
            "single reports, and not all reports of a year together",
        )
        if memos:
            yield Finding(
                "error",
                "privacy.user",
                f"{listed(memos)} costs its permanent epsilon again for every new value: set a limit for life",
            )
        return
    if year <= user:
        yield Finding("note", "privacy.user", f"a year costs a device at most epsilon {epsilon_text(year)}")
        return
    if total_of(collection, 1) > user:
        return  # an error already
    low, high = 1, steps_a_year(collection)
    while low < high:  # the last step at which the limit still holds
        middle = (low + high + 1) // 2
        low, high = (middle, high) if total_of(collection, middle) <= user else (low, middle - 1)
    lasts = duration_text(low * collection.step_seconds)
    yield Finding(
        "warning",
        "privacy.user",
        f"a device that answers everything has spent its limit after {lasts} and is silent from then on"
        + (f"; it still answers {listed(memos)}, from the answers that it keeps" if memos else ""),
    )


def small_arcs(collection: Collection) -> Iterator[Finding]:
    """Every question can be asked, devices accept its arcs, and shufflers hand its batches on."""
    for name, question in collection.questions.items():
        try:
            asks = first_asks(collection, name)
        except PluginFailed:
            raise  # no fault of the collection: the command names the plug-in
        except HubbubError as error:
            yield Finding("error", f"questions.{name}", f"cannot be asked: {error}")
            continue
        share = min([question.smallest_group(), *(ask.cohort.share for ask in asks)])
        share /= question.setting.groups
        if share * CIRCLE < collection.minimum_arc:
            yield Finding(
                "error",
                f"questions.{name}",
                f"asks {100 * share:.3g}% of the devices at a time, and devices refuse to be asked in groups of less "
                f"than {100 * collection.minimum_arc / CIRCLE:.3g}%: ask more at once (a stream by a shorter window, "
                "a study in fewer turns), or lower privacy.minimum_arc",
            )
        route, planned = collection.shuffle, collection.planned_devices
        if route is not None and planned and share * planned < route.least:
            text = f"the smallest batch of {name} has {int(share * planned):,} of the planned devices, and is dropped"
            yield Finding("warning", "shuffle.least", f"{text} below {route.least:,}: plan for more, or lower it")


def people_of_arcs(collection: Collection) -> Iterator[Finding]:
    """The shortest arc has at least 100 of the planned devices, unless the author says why."""
    share, people, where = collection.minimum_arc / CIRCLE, collection.smallest_arc, "privacy.minimum_arc"
    if people is None:
        text = (
            f"{100 * share:.3g}% of the devices are {SMALLEST_ARC} people only from {SMALLEST_ARC / share:,.0f} devices"
        )
        yield Finding("warning", "privacy.planned_devices", f"not stated: {text} on; state how many are planned for")
        return
    size = f"{people:,} {'person' if people == 1 else 'people'}"
    text = f"the smallest group that devices answer in, {100 * share:.3g}% of {collection.planned_devices:,}, is {size}"
    if people >= SMALLEST_ARC:
        yield Finding("note", where, text)
    breaches = [(where, text, f"; at least {SMALLEST_ARC}: raise it")] if people < SMALLEST_ARC else []
    yield from _unless_allowed(collection, "arc_below_100", breaches)


_TYPICAL_DEVICES = 100_000


def divided_people(collection: Collection) -> Iterator[Finding]:
    """Whether errors are smaller if devices answer one question each, or if all of them answer all questions."""
    n, where = collection.planned_devices or _TYPICAL_DEVICES, "population.divide"
    if collection.divide and len(collection.questions) < 2:
        yield Finding("warning", where, "there is one question, and nothing to divide")
    rows = [(row, row.better(n)) for row in people_or_epsilon(collection, (n,))]
    ratios = [ratio for _, ratio in rows if ratio is not None]
    if not ratios:
        return
    parts = listed([f"{row.question} {100 * ratio:.3g}%" for row, ratio in rows if ratio is not None])
    text = (
        f"with {n:,} devices, the standard errors if each answers one question, as parts of those if each answers all "
        f"with a part of epsilon, at the same cost: {parts}"
    )
    better = math.prod(ratios) < 1
    if better == collection.divide:
        yield Finding("note", where, text)
    else:
        level: Level = "warning" if collection.divide else "note"
        yield Finding(level, where, f"{text}; divide = {str(better).lower()} errs less")


def withheld_groups(collection: Collection) -> Iterator[Finding]:
    """How many devices must answer a study, so that the group that a number rests on is large enough."""
    for name in collection.questions:
        if text := groups_need(collection, name):
            yield Finding("note", f"questions.{name}", text)


def unread_fields(collection: Collection) -> Iterator[Finding]:
    """A field that no question reads is recorded for nothing."""
    read = {field for question in collection.questions.values() for field in question.reads()}
    for name in collection.fields:
        if name not in read:
            yield Finding("warning", f"fields.{name}", "no question reads it: it never leaves the device")


def one_field_twice(collection: Collection) -> Iterator[Finding]:
    """What several questions reveal about one field adds up, where a device answers more than one."""
    if collection.divide:
        return
    for field in collection.fields:
        names = [name for name, question in collection.questions.items() if field in question.reads()]
        if len(names) > 1:
            text = f"read by {listed(names)}: what their reports reveal about it adds up, and the limits count the sum"
            yield Finding("note", f"fields.{field}", text)


def timing(collection: Collection) -> Iterator[Finding]:
    """Steps too fine, reports kept too long or awaited too long."""
    if collection.step_seconds < _FINE_SECONDS:
        yield Finding(
            "warning", "schedule.step", f"a step {every(collection.step_seconds)} shows closely when a device is on"
        )
    length, name = min((collection.round_seconds(name), name) for name in collection.questions)
    if collection.lateness_seconds >= length:
        text = f"at least as long as a round of {name} ({length:g} seconds): the next round waits for late reports"
        yield Finding("error", "schedule.lateness", text)
    if collection.retention_days > _LONG_DAYS:
        yield Finding("warning", "schedule.retention", "reports are kept for more than a year: is it needed?")


def of_the_kinds(collection: Collection) -> Iterator[Finding]:
    """What each question itself finds."""
    for name, question in collection.questions.items():
        for finding in question.findings():
            yield finding._replace(where=f"questions.{name}.{finding.where}".rstrip("."))


def cover(collection: Collection) -> Iterator[Finding]:
    """Whether a network can tell who answers."""
    turns = [name for name in collection.questions if not collection.questions[name].shape().everyone]
    if collection.cover:
        size = f"every device sends {collection.frame_bytes:,} bytes for every ask, whether it answers or not"
        yield Finding("note", "privacy.cover", size)
    elif turns:
        yield Finding(
            "note",
            "privacy.cover",
            f"devices take turns to answer {listed(turns)}: someone who watches the network sees whose turn it is; "
            "cover = true hides this, and makes every device send as much as a device that answers",
        )


def _parts(collection: Collection, steps: int) -> str:
    return ", ".join(f"{name} {epsilon_text(cost_of(collection, name).of(steps))}" for name in collection.questions)


RULES: tuple[Callable[[Collection], Iterator[Finding]], ...] = (
    large_epsilon,
    small_batch,
    sent_as_it_is,
    fits_the_budget,
    never_answered,
    lifetime,
    small_arcs,
    people_of_arcs,
    withheld_groups,
    divided_people,
    unread_fields,
    one_field_twice,
    timing,
    of_the_kinds,
    cover,
    moved_far,
    shuffled_questions,
    reports_are_numbers,
    who_shuffles,
    every_value_has_an_answer,
    browsers_answer,
)
