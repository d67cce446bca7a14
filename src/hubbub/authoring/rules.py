"""The rules of a safe collection: each reads a collection and says what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlsplit

from hubbub.authoring.answerable import unanswered
from hubbub.authoring.forecast import groups_need, moved_far
from hubbub.authoring.promise import sent_unprotected
from hubbub.collection.admits import admits
from hubbub.collection.document import Collection
from hubbub.collection.safety import LARGEST_EPSILON, SMALLEST_ARC, SMALLEST_BATCH, privacy_key
from hubbub.collection.setting import Finding
from hubbub.collection.shuffle_route import MOST_BATCH_BYTES
from hubbub.collection.spending import cost_of, steps_a_year, total_of
from hubbub.collection.time import duration_text, every
from hubbub.core.errors import HubbubError
from hubbub.core.plugins import PluginFailed
from hubbub.protocols.ask import CIRCLE, Ask
from hubbub.protocols.driver import Conversation
from hubbub.questions.words import epsilon_text, listed, sure_text

_HERE = ("localhost", "127.0.0.1", "::1")


def shuffled_questions(collection: Collection) -> Iterator[Finding]:
    """The questions can be shuffled: no two reports can be linked to one device, and fakes can be subtracted."""
    route = collection.shuffle
    if route is None:
        return
    linked = [name for name, question in collection.questions.items() if question.linked(collection.setting(name))]
    for name in linked:
        yield Finding(
            "error",
            f"questions.{name}",
            "its reports in several steps can be linked to one device, which undoes the shuffle; ask it in a "
            'collection of trust "local"',
        )
    uncorrected = [
        name
        for name, question in collection.questions.items()
        if route.fakes and name not in linked and not question.takes_fakes(collection.setting(name))
    ]
    if uncorrected:
        yield Finding(
            "error",
            "shuffle.fakes",
            f"the estimates of {listed(uncorrected)} cannot be corrected for fake reports, which only histograms by "
            "GRR or local hashing can whose reports are not kept: set fakes to 0, or choose another mechanism",
        )
    for name, terms in collection.terms.items():
        room = MOST_BATCH_BYTES // (terms.report_bytes + route.layer_bytes) - route.all_fakes
        if room < route.least:
            text = f"a batch of {name} has room for {max(room, 0):,} people's reports in addition to the fakes: too few"
            yield Finding("error", "shuffle.least", text)


def who_shuffles(collection: Collection) -> Iterator[Finding]:
    """How many have to be trusted, and whether their addresses are safe."""
    route = collection.shuffle
    if route is None:
        return
    if len(route.shufflers) == 1:
        text = "a single shuffler: if it works with the collector, only the local epsilon is left; two are better"
        yield Finding("warning", "shuffle.shufflers", text)
    hosts = [urlsplit(shuffler.url) for shuffler in route.shufflers]
    if len({host.netloc for host in hosts}) < len(hosts):
        text = "two shufflers have the same address, so that probably one party runs both"
        yield Finding("warning", "shuffle.shufflers", text)
    if hosts[0].scheme == "http" and hosts[0].hostname not in _HERE:
        text = f"{hosts[0].netloc} is reached without TLS: anyone on the network sees the ids of reports"
        yield Finding("warning", "shuffle.shufflers", text)
    if route.delta * route.least >= 1:
        text = (
            f"a delta of {route.delta:g} allows that one person's report is revealed in every batch of "
            f"{route.least:,}: choose a far smaller one"
        )
        yield Finding("error", "shuffle.delta", text)
    if not route.fakes:
        text = "no fakes: if everyone else works with the collector, only the local epsilon is left"
        yield Finding("note", "shuffle.fakes", text)


_FINE_SECONDS = 60
_LONG_DAYS = 365
UNUSED = "not needed: remove it"
"""What is said of an override that nothing in the collection needs."""


def large_epsilon(collection: Collection) -> Iterator[Finding]:
    """No question spends more than 8, unless the author says why."""
    reason = collection.overrides.get("epsilon_above_8")
    above = False
    for name, question in collection.questions.items():
        for key, epsilon in question.limits().items():
            if epsilon <= LARGEST_EPSILON:
                continue
            above = True
            where = f"questions.{name}.{key}"
            effect = f"epsilon {epsilon:g} can make an observer {sure_text(epsilon)} sure of a value"
            if reason is None:
                allowed = f"at most {LARGEST_EPSILON:g}, or give a reason as epsilon_above_8 in [override]"
                yield Finding("error", where, f"{effect}; {allowed}")
            else:
                yield Finding("warning", where, f"{effect}; allowed because: {reason}")
    if reason is not None and not above:
        yield Finding("warning", "override.epsilon_above_8", UNUSED)


def small_batch(collection: Collection) -> Iterator[Finding]:
    """No release rests on fewer than 20 reports, unless the author says why."""
    reason = collection.overrides.get("minimum_batch_below_20")
    below = collection.minimum_batch < SMALLEST_BATCH
    where, effect = "privacy.minimum_batch", f"releases of {collection.minimum_batch} reports are nearly all noise"
    if below and reason is None:
        allowed = f"at least {SMALLEST_BATCH}, or give a reason as minimum_batch_below_20 in [override]"
        yield Finding("error", where, f"{effect}, and close to the single person; {allowed}")
    elif below:
        yield Finding("warning", where, f"{effect}; allowed because: {reason}")
    elif reason is not None:
        yield Finding("warning", "override.minimum_batch_below_20", UNUSED)


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
        yield Finding(
            "note",
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
    """Every question can be asked, and devices accept its arcs: none is below the collection's minimum."""
    for name, question in collection.questions.items():
        try:
            asks = _first_asks(collection, name)
        except PluginFailed:
            raise  # no fault of the collection: the command names the plug-in
        except HubbubError as error:
            yield Finding("error", f"questions.{name}", f"cannot be asked: {error}")
            continue
        share = min([question.smallest_group(collection.setting(name)), *(ask.cohort.share for ask in asks)])
        if share * CIRCLE < collection.minimum_arc:
            yield Finding(
                "error",
                f"questions.{name}",
                f"asks {100 * share:.3g}% of the devices at a time, and devices refuse to be asked in groups of less "
                f"than {100 * collection.minimum_arc / CIRCLE:.3g}%: ask more at once (a stream by a shorter window, "
                "a study in fewer turns), or lower privacy.minimum_arc",
            )


def people_of_arcs(collection: Collection) -> Iterator[Finding]:
    """The shortest arc has at least 100 of the planned devices, unless the author says why."""
    share, people = collection.minimum_arc / CIRCLE, collection.smallest_arc
    reason, where = collection.overrides.get("arc_below_100"), "privacy.minimum_arc"
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
        if reason is not None:
            yield Finding("warning", "override.arc_below_100", UNUSED)
    elif reason is None:
        allowed = f"at least {SMALLEST_ARC}: raise it, or give a reason as arc_below_100 in [override]"
        yield Finding("error", where, f"{text}; {allowed}")
    else:
        yield Finding("warning", where, f"{text}; allowed because: {reason}")


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
    """What several questions reveal about one field adds up."""
    for field in collection.fields:
        names = [name for name, question in collection.questions.items() if field in question.reads()]
        if len(names) > 1:
            text = f"read by {listed(names)}: what their reports reveal about it adds up, and the limits count the sum"
            yield Finding("note", f"fields.{field}", text)


def timing(collection: Collection) -> Iterator[Finding]:
    """Steps too fine, reports kept too long or awaited too long."""
    if collection.step_seconds < _FINE_SECONDS:
        yield Finding(
            "warning",
            "schedule.step",
            f"a step {every(collection.step_seconds)} shows closely when a device is on",
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
        for finding in question.findings(collection.setting(name)):
            yield finding._replace(where=f"questions.{name}.{finding.where}".rstrip("."))


def cover(collection: Collection) -> Iterator[Finding]:
    """Whether a network can tell who answers."""
    turns = [name for name in collection.questions if not collection.shape(name).everyone]
    if collection.cover:
        size = f"{collection.frame_bytes:,}"
        yield Finding(
            "note", "privacy.cover", f"every device sends {size} bytes for every ask, whether it answers or not"
        )
    elif turns:
        yield Finding(
            "note",
            "privacy.cover",
            f"devices take turns to answer {listed(turns)}: someone who watches the network sees whose turn it is; "
            "cover = true hides this, and makes every device send as much as a device that answers",
        )


def _first_asks(collection: Collection, name: str) -> Sequence[Ask]:
    """The first asks of a question, as the collector begins."""
    terms = collection.terms[name]
    return Conversation(collection.protocol(name), rounds=terms.rounds, parts=terms.parts).asks


def _parts(collection: Collection, steps: int) -> str:
    return ", ".join(f"{name} {epsilon_text(cost_of(collection, name).of(steps))}" for name in collection.questions)


def every_value_has_an_answer(collection: Collection) -> Iterator[Finding]:
    """The first asks of each question are admitted, and answered whatever is recorded: silence would tell the value."""
    for name, terms in collection.terms.items():
        try:
            asks = _first_asks(collection, name)
        except HubbubError:
            continue  # an error already
        for ask in asks:
            reason = admits(terms, ask, fields=collection.fields)
            if reason is not None:
                text = f"devices refuse what it asks ({reason}): its terms, its view and its mechanism do not fit"
                yield Finding("error", f"questions.{name}", text)
                break
            value = unanswered(collection, terms, ask)
            if value is not None:
                text = f"{type(ask.mechanism).__name__} does not take what its view gives of {value}"
                yield Finding("error", f"questions.{name}", f"{text}: a device that holds it would fall silent")
                break


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
    unread_fields,
    one_field_twice,
    timing,
    of_the_kinds,
    cover,
    moved_far,
    shuffled_questions,
    who_shuffles,
    every_value_has_an_answer,
)
