"""Checking a collection before anyone is asked, and what a change of it breaks."""

from collections.abc import Iterator
from typing import Any

from hubbub.alarms.plan import AlarmPlan
from hubbub.authoring.alarms import alarm_findings
from hubbub.authoring.rules import RULES
from hubbub.collection.safety import AGREED, Finding, UnsafeCollection, unsafe_terms, weaker_clauses
from hubbub.collection.sealing import open_sealed
from hubbub.collection.time import duration_text
from hubbub.core.domain import Domain
from hubbub.ledger.promise import Budget
from hubbub.questions import read_collection
from hubbub.questions.base import Question
from hubbub.questions.collection import Collection
from hubbub.questions.spending import cost_of, total_of
from hubbub.questions.words import epsilon_text, listed


def changes(new: Collection, old: Collection) -> Iterator[Finding]:
    """What becomes of devices and results when `new` takes the place of `old`."""
    if new.name != old.name:
        yield Finding(
            "error",
            "name",
            f"{old.name} became {new.name}: to devices this is another collection, for which what they spent so far "
            "does not count; keep the name",
        )
        return
    findings = [
        *(Finding("error", where, f"{text}; {AGREED}") for where, text in weaker_clauses(new, old)),
        *_fields(new, old),
        *_questions(new, old),
        *_population(new, old),
        *_states(new, old),
        *_privacy(new, old),
        *_schedule(new, old),
        *_texts(new, old),
        *_route(new, old),
    ]
    yield from _version(new, old, bool(findings))
    yield from findings


def _version(new: Collection, old: Collection, changed: bool) -> Iterator[Finding]:
    if new.version < old.version:
        yield Finding("error", "version", f"{new.version} is before {old.version}: versions only grow")
    elif changed and new.version == old.version:
        yield Finding(
            "error",
            "version",
            f"still {old.version}, although something changed: devices and stored results rely on version "
            f"{old.version} as it was; make it {old.version + 1}",
        )
    elif changed:
        yield Finding(
            "note",
            "version",
            f"devices change to {new.version} as soon as they see it; reports for {old.version} that come later are "
            "refused as outdated. What a device has spent still counts, every earlier promise still holds, and fields "
            "that stay keep what was recorded",
        )
    elif new.version > old.version:
        text = f"{new.version} says the same as {old.version}: a new version only makes streams start again"
        yield Finding("warning", "version", text)
    else:
        yield Finding("note", "version", "nothing changed")


def _fields(new: Collection, old: Collection) -> Iterator[Finding]:
    for name in sorted(new.fields.keys() | old.fields.keys()):
        where, before, after = f"fields.{name}", old.fields.get(name), new.fields.get(name)
        if before is None:
            yield Finding("note", where, "new: programs that do not record it yet answer as if nothing was recorded")
        elif after is None:
            yield Finding("warning", where, "removed: programs that still record it get an error")
        elif before != after:
            yield Finding("warning", where, _domain(before, after))


def _domain(before: Domain, after: Domain) -> str:
    breaks = "the releases of its questions cannot be joined with the earlier ones"
    was, now = before.listed, after.listed
    if was and now and was != now:
        removed = [name for name in was if name not in now]
        more = [name for name in now if name not in was]
        parts = [f"no longer {listed(removed[:5])}"] if removed else []
        parts += [f"now also {listed(more[:5])}"] if more else []
        lost = "; programs that still record what is gone get an error" if removed else ""
        return f"{', '.join(parts) or 'the names in another order'}: {breaks}{lost}"
    return f"from {_shown(before)} to {_shown(after)}: {breaks}"


def _shown(domain: Domain) -> str:
    spec = domain.spec()
    plain = {key: value for key, value in spec.items() if key != "kind" and not isinstance(value, dict | list)}
    rest = " ".join(f"{key}={value}" for key, value in plain.items())
    return f"{spec['kind']} {rest}"


def _questions(new: Collection, old: Collection) -> Iterator[Finding]:
    for name in sorted(new.questions.keys() | old.questions.keys()):
        where, before, after = f"questions.{name}", old.questions.get(name), new.questions.get(name)
        if after is None:
            yield Finding("note", where, "removed: devices spend less, its releases end, and nothing else breaks")
        elif before is None:
            cost, total = epsilon_text(cost_of(new, name).of(1)), epsilon_text(total_of(new, 1))
            earlier = epsilon_text(total_of(old, 1))
            text = f"a device spends up to epsilon {cost} more in a step, {total} in all instead of {earlier}"
            if new.divide:
                text = "each device answers one question, so that fewer answer each of the others"
            yield Finding("warning", where, f"new: {text}")
        elif before != after:
            yield from _question(where, before, after)


def _population(new: Collection, old: Collection) -> Iterator[Finding]:
    if new.divide and (not old.divide or new.questions.keys() != old.questions.keys()):
        text = "devices are divided anew between the questions: most answer another one than before"
        yield Finding("warning", "population.divide", text)


def _question(where: str, before: Question, after: Question) -> Iterator[Finding]:
    earlier, later = before.spec(), after.spec()
    for key in sorted(earlier.keys() | later.keys()):
        was, now = earlier.get(key), later.get(key)
        if was == now:
            continue
        if key == "title":
            yield Finding("note", f"{where}.title", "another text: nothing else breaks")
        elif key == "consistency":
            yield Finding("note", f"{where}.consistency", "releases are told another way: nothing else breaks")
        elif key in before.limits() and isinstance(was, float) and isinstance(now, float) and now < was:
            text = f"from {was:g} to {now:g}: reports reveal less, and errors grow"
            yield Finding("note", f"{where}.{key}", text)
        else:
            yield Finding(
                "warning",
                f"{where}.{key}",
                f"from {_value(was)} to {_value(now)}: another question under the same name; its releases cannot be "
                "joined with the earlier ones",
            )


def _states(new: Collection, old: Collection) -> Iterator[Finding]:
    """Which kept states are lost: a stream's depends on mechanism and grid, a permanent answer on its account."""
    same_grid = (new.step_seconds, new.origin) == (old.step_seconds, old.origin)
    accounts = {terms.account for terms in old.terms.values()}
    for name, terms in new.terms.items():
        if not terms.state or name not in old.terms:
            continue
        if cost_of(new, name).memo:
            if terms.account not in accounts:
                yield Finding(
                    "warning",
                    f"questions.{name}",
                    f"needs new permanent answers, of epsilon {epsilon_text(terms.limit)} each, for which the older "
                    "version reserved nothing: only new devices answer it",
                )
        elif not same_grid or terms.mechanisms != old.terms[name].mechanisms:
            yield Finding(
                "warning",
                f"questions.{name}",
                "enrolled devices stay silent until their horizon of the older version is over, and then enrol again",
            )


def _privacy(new: Collection, old: Collection) -> Iterator[Finding]:
    """What becomes stricter; what becomes weaker is an error, which `weaker_clauses` finds."""
    for (key, was), (_, now) in zip(_limits(old.budget), _limits(new.budget), strict=True):
        if now is not None and (was is None or now < was):
            effect = "a stricter promise"
            if key == "user":
                effect += "; a device that has already spent that much answers only from the permanent answers it keeps"
            yield Finding("note", f"privacy.{key}", f"from {_limit(was)} to {_limit(now)}: {effect}")
    steps = [None if budget.window is None else budget.window.steps for budget in (old.budget, new.budget)]
    if None not in steps and steps[0] != steps[1]:
        yield Finding("warning", "privacy.window.steps", f"from {steps[0]} to {steps[1]}: another promise")
    for key in ("minimum_batch", "minimum_arc"):
        was, now = getattr(old, key), getattr(new, key)
        if now > was:
            yield Finding("note", f"privacy.{key}", f"from {was:,} to {now:,}: stricter than before")
    if new.planned_devices != old.planned_devices:
        text = (
            f"from {_value(old.planned_devices)} to {_value(new.planned_devices)}: the smallest group is counted by it"
        )
        yield Finding("note", "privacy.planned_devices", text)
    if new.cover and not old.cover:
        yield Finding("note", "privacy.cover", "every device sends as much as a device that answers")
    for key in sorted(new.overrides.keys() | old.overrides.keys()):
        if new.overrides.get(key) != old.overrides.get(key):
            yield Finding(
                "warning" if key in new.overrides else "note",
                f"override.{key}",
                "a safety rule is set aside, or for another reason" if key in new.overrides else "no longer set aside",
            )


def _limits(budget: Budget) -> list[tuple[str, int | None]]:
    window = None if budget.window is None else budget.window.limit
    return [("event", budget.event), ("window", window), ("user", budget.user)]


def _limit(units: int | None) -> str:
    return "no limit" if units is None else f"epsilon {epsilon_text(units)}"


def _schedule(new: Collection, old: Collection) -> Iterator[Finding]:
    if new.step_seconds != old.step_seconds:
        was, now = duration_text(old.step_seconds), duration_text(new.step_seconds)
        yield Finding(
            "warning",
            "schedule.step",
            f"from {was} to {now}: steps are numbered anew, and earlier releases are of another length",
        )
    if new.origin != old.origin:
        yield Finding(
            "warning",
            "schedule.origin",
            "steps are numbered anew: streams start again; what devices have spent still counts",
        )
    if new.lateness_seconds != old.lateness_seconds:
        yield Finding("note", "schedule.lateness", "releases come at another time after their step")
    if new.retention_days < old.retention_days:
        text = f"from {old.retention_days:,} to {new.retention_days:,} days: reports are deleted sooner"
        yield Finding("note", "schedule.retention", text)


def _route(new: Collection, old: Collection) -> Iterator[Finding]:
    if old.shuffle is None and new.shuffle is not None:
        yield Finding("note", "trust", "reports now pass shufflers, and devices send to the first of them")
    elif new.shuffle is not None and new.shuffle != old.shuffle:
        text = "reports for the older version that still wait at a shuffler are dropped there, and never opened"
        yield Finding("note", "shuffle", text)


def _texts(new: Collection, old: Collection) -> Iterator[Finding]:
    if new.title != old.title:
        yield Finding("note", "title", "another text: nothing else breaks")


def _value(value: object) -> str:
    return "nothing" if value is None else str(value)


_ORDER = ("error", "warning", "note")


def check(collection: Collection, against: Collection | None = None, alarms: AlarmPlan | None = None) -> list[Finding]:
    """All that is wrong with a collection, or worth knowing: errors first. With an older version, what would break.

    The alarms, which are no part of it, are looked at if they are given.
    """
    findings = [finding for rule in RULES for finding in rule(collection)]
    known = [finding.where for finding in findings if finding.level == "error"]
    # What devices refuse, where no rule said it better.
    findings += [
        finding for finding in unsafe_terms(collection) if not any(where.startswith(finding.where) for where in known)
    ]
    if against is not None:
        findings += changes(collection, against)
    if alarms is not None:
        findings += alarm_findings(collection, alarms)
    return sorted(findings, key=lambda finding: _ORDER.index(finding.level))


def refuse_unsafe(collection: Collection) -> Collection:
    """The same collection, if no rule calls it an error."""
    errors = [finding for finding in check(collection) if finding.level == "error"]
    if errors:
        raise UnsafeCollection(errors)
    return collection


def open_collection(document: object, public: bytes | Any) -> Collection:
    """The collection of a sealed document with the kinds of its questions: signed, what they compile to, and safe.

    A device opens it by `hubbub.collection.safety.open_collection`, which knows no kinds.
    """
    return refuse_unsafe(read_collection(open_sealed(document, public)))
