"""Which collections a device refuses by their terms alone, and where a version promises less than the one before.

Where a version of a collection promises people less than the version before.

People agree to a collection once. So no later version may promise less: `hubbub check --against` reports an error, the
collector does not serve such a version, and devices refuse to adopt it (`clients/js/src/weaker.ts` is the browser's
part, and both run `tests/vectors/weaker.json`). The way to promise less is a new collection under a new name, which
people see.

`CLAUSES` has a rule for every field of the signed document.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from hubbub.collection.document import SignedCollection
from hubbub.collection.sealing import open_sealed
from hubbub.collection.shuffle_route import weaker_route
from hubbub.collection.terms import Terms
from hubbub.collection.time import duration_text
from hubbub.core.errors import HubbubError
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.ledger.promise import Promise
from hubbub.protocols.ask import CIRCLE

Level = Literal["error", "warning", "note"]


class Finding(NamedTuple):
    """One finding of a check.

    "error": the collection is refused. "warning": it is allowed, but should be reconsidered. "note": information.
    """

    level: Level
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.level}: {self.where}: {self.text}"


class UnsafeCollection(HubbubError):
    """A collection is refused; `findings` are all its errors."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings
        super().__init__("; ".join(f"{finding.where}: {finding.text}" for finding in findings))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.findings,)


LARGEST_EPSILON = 8
SMALLEST_BATCH = 20
SMALLEST_ARC = 100
_NAMES = {0: "user", 1: "event"}


def privacy_key(promise: Promise) -> str:
    """The key of a promise about the whole collection in a collection file."""
    return f"privacy.{_NAMES.get(promise.steps, 'window')}"


def links(terms: Terms) -> bool:
    """Whether shuffled reports of a question can be recognised as one device's: by its state, or by plain numbers."""
    from hubbub.mechanisms import MECHANISMS

    if any(view["kind"] == "withnumbers" for view in terms.views):
        return True
    return bool(terms.state) and (terms.state not in MECHANISMS or MECHANISMS[terms.state].linkable != "never")


def unsafe_terms(collection: SignedCollection) -> Iterator[Finding]:
    """Every reason for which a device refuses a collection; none if the collection is safe.

    - A question costs more than epsilon 8 at once, or releases rest on fewer than 20 reports, and the author gives no
      reason.
    - The shortest arc has fewer than 100 of the devices that the collection is planned for, and the author gives no
      reason.
    - There is no limit for the whole collection, or none for life where a question costs again for every new value.
    - A question does not fit into its account's part of a limit: it would never be answered.
    - Numbers are sent without randomisation, and the author gives no reason.
    - Reports are shuffled, and a question has devices keep a state by which their reports could be recognised, or send
      numbers as they are: that undoes the shuffle.
    """
    if collection.minimum_batch < SMALLEST_BATCH and "minimum_batch_below_20" not in collection.overrides:
        yield Finding("error", "privacy.minimum_batch", f"at least {SMALLEST_BATCH}, or a reason for fewer")
    least = SMALLEST_BATCH if collection.shuffle is None else collection.shuffle.least
    if least < SMALLEST_BATCH and "minimum_batch_below_20" not in collection.overrides:
        yield Finding("error", "shuffle.least", f"at least {SMALLEST_BATCH}, or a reason for fewer")
    people = collection.smallest_arc
    if people is not None and people < SMALLEST_ARC and "arc_below_100" not in collection.overrides:
        yield Finding("error", "privacy.minimum_arc", f"at least {SMALLEST_ARC} devices, or a reason for fewer")
    if not collection.promises:
        yield Finding("error", "privacy", "no limit of what a device may spend")
    for name, terms in collection.terms.items():
        plain = any(view["kind"] == "withnumbers" for view in terms.views)
        if collection.shuffle is not None and links(terms):
            by = "devices keep a state for it" if terms.state else "it sends numbers as they are"
            text = f"{by}, by which their reports can be linked: that undoes the shuffle"
            yield Finding("error", f"questions.{name}", f'{text}; ask it in a collection of trust "local"')
        if plain and "sent_as_it_is" not in collection.overrides:
            yield Finding("error", f"questions.{name}", "it sends numbers as they are, without a reason for it")
        where, most = f"questions.{name}", LARGEST_EPSILON * UNITS_PER_EPSILON
        large = max([terms.limit, *(promise.limit for promise in terms.promises if promise.steps)])
        if large > most and "epsilon_above_8" not in collection.overrides:
            allowed = f"at most {LARGEST_EPSILON}, or a reason for more"
            yield Finding("error", where, f"epsilon {large / UNITS_PER_EPSILON:g}; {allowed}")
        again = any(promise.steps == 0 and promise.limit > terms.limit for promise in terms.promises)
        if again and all(promise.steps for promise in collection.promises):
            yield Finding("error", "privacy.user", f"{name} costs again for every new value: give a limit for life")
        for promise in collection.promises:
            if promise.parts.get(terms.account, 0) < terms.limit:
                yield Finding("error", privacy_key(promise), f"too little is kept for {name}, which it never answers")


def open_collection(document: object, public: bytes | Any) -> SignedCollection:
    """Open a sealed collection as a device does. It must be signed by a trusted key, well formed and safe."""
    collection = SignedCollection.from_spec(open_sealed(document, public))
    errors = list(unsafe_terms(collection))
    if errors:
        raise UnsafeCollection(errors)
    return collection


AGREED = "people agreed to the older promise: to promise less, begin a new collection under a new name"


class WeakerClause(NamedTuple):
    """A clause that promises less than before: its key in a collection file, and what it was and is now."""

    where: str
    text: str


Rule: TypeAlias = Callable[[SignedCollection, SignedCollection], Iterator[WeakerClause]]
"""Takes the newer and the older version."""


def weaker_clauses(new: SignedCollection, old: SignedCollection) -> list[WeakerClause]:
    """All clauses by which the newer version of a collection promises less than the older one.

    A new question is no weaker promise in itself. It has to keep within the promises about the whole collection, and
    it must neither send in clear, nor link, nor keep single reports of what earlier questions protected from that.
    """
    return [clause for rule in CLAUSES.values() if not isinstance(rule, str) for clause in rule(new, old)]


def _promises(new: SignedCollection, old: SignedCollection) -> Iterator[WeakerClause]:
    for was in old.promises:
        yield from _not_kept(privacy_key(was), was, new.promises)


def _terms(new: SignedCollection, old: SignedCollection) -> Iterator[WeakerClause]:
    for name, terms in old.terms.items():
        for was in terms.promises if name in new.terms else ():
            yield from _not_kept(f"questions.{name}", was, new.terms[name].promises)
    fields_read = {field for terms in old.terms.values() for field in terms.fields}
    clear = {field for terms in old.terms.values() for field in _in_clear(terms)}
    linked = {field for terms in old.terms.values() for field in terms.fields if terms.state}
    for name, terms in new.terms.items():
        for field in sorted(_in_clear(terms) - clear):
            yield WeakerClause(f"questions.{name}.measures", f"{field} is now sent without randomisation")
        for field in sorted(fields_read.intersection(terms.fields) - linked) if terms.state else ():
            yield WeakerClause(f"questions.{name}", f"reports about {field} can now be linked to one device")


def _questions(new: SignedCollection, old: SignedCollection) -> Iterator[WeakerClause]:
    fields_read = {field for terms in old.terms.values() for field in terms.fields}
    kept = {field for name in old.terms if old.keeps_reports(name) for field in old.terms[name].fields}
    for name, terms in new.terms.items():
        for field in sorted(fields_read.intersection(terms.fields) - kept) if new.keeps_reports(name) else ():
            text = f"single reports about {field} are now kept, and before only their sums were"
            yield WeakerClause(f"questions.{name}.keep_reports", text)


def _overrides(new: SignedCollection, old: SignedCollection) -> Iterator[WeakerClause]:
    # The others allow only what another clause compares: a size, or what is sent in clear.
    if "epsilon_above_8" in new.overrides and "epsilon_above_8" not in old.overrides:
        yield WeakerClause("override.epsilon_above_8", "no question cost more than epsilon 8 at once, and now one may")


def _batch(new: SignedCollection, old: SignedCollection) -> Iterator[WeakerClause]:
    if new.minimum_batch < old.minimum_batch:
        text = f"statistics rested on at least {old.minimum_batch:,} reports, and now on {new.minimum_batch:,}"
        yield WeakerClause("privacy.minimum_batch", text)


def _arc(new: SignedCollection, old: SignedCollection) -> Iterator[WeakerClause]:
    if new.minimum_arc < old.minimum_arc:
        was, now = (f"{100 * collection.minimum_arc / CIRCLE:.3g}%" for collection in (old, new))
        yield WeakerClause("privacy.minimum_arc", f"at least {was} of the devices were asked at a time, and now {now}")


def _devices(new: SignedCollection, old: SignedCollection) -> Iterator[WeakerClause]:
    if old.smallest_arc is not None and (new.smallest_arc or 0) < old.smallest_arc:
        now = "an unknown number" if new.smallest_arc is None else f"{new.smallest_arc:,}"
        text = f"at least {old.smallest_arc:,} devices were to be asked at a time, and now {now}"
        yield WeakerClause("privacy.planned_devices", f"{text}: raise privacy.minimum_arc where fewer are planned for")


def _retention(new: SignedCollection, old: SignedCollection) -> Iterator[WeakerClause]:
    if new.retention_days > old.retention_days:
        text = f"reports were kept for {old.retention_days:,} days, and now for {new.retention_days:,}"
        yield WeakerClause("schedule.retention", text)


def _cover(new: SignedCollection, old: SignedCollection) -> Iterator[WeakerClause]:
    if old.cover and not new.cover:
        text = "the network could not tell which devices answer, and now it can"
        yield WeakerClause("privacy.cover", text)


def _divide(new: SignedCollection, old: SignedCollection) -> Iterator[WeakerClause]:
    if old.divide and not new.divide:
        yield WeakerClause(
            "population.divide", "a device answered one of the questions, and now it answers all of them"
        )


def _route(new: SignedCollection, old: SignedCollection) -> Iterator[WeakerClause]:
    for where, text in weaker_route(new.shuffle, old.shuffle):
        yield WeakerClause(where, text)


CLAUSES: Mapping[str, Rule | str] = {
    "format": "how the document is written",
    "name": "another name is another collection",
    "version": "it only grows",
    "title": "a text for people",
    "fields": "what can be recorded: what is asked about it is in the terms",
    "questions": _questions,
    "terms": _terms,
    "promises": _promises,
    "budget": "the promises are compiled from it",
    "step_seconds": "the promises have their own steps",
    "origin": "the promises have their own steps",
    "lateness_seconds": "until when a report is counted; nothing is promised about it",
    "minimum_batch": _batch,
    "minimum_arc": _arc,
    "planned_devices": _devices,
    "retention_days": _retention,
    "overrides": _overrides,
    "cover": _cover,
    "divide": _divide,
    "trust": "the shuffle route is there or not",
    "shuffle": _route,
    "frame_bytes": "one size for all uploads, whatever it is",
}
"""The rule for each field of a signed document; or, where a change of it cannot promise less, the reason."""


def _not_kept(where: str, was: Promise, now: tuple[Promise, ...]) -> Iterator[WeakerClause]:
    """A promise is kept by one whose limit is at most as large and whose time is at least as long."""
    if not any(_keeps_up(promise, was) for promise in now):
        span = "a life" if was.steps == 0 else duration_text(was.steps * was.interval)
        yield WeakerClause(where, f"at most epsilon {was.limit / UNITS_PER_EPSILON:g} in {span} is no longer promised")


def _keeps_up(promise: Promise, was: Promise) -> bool:
    if promise.limit > was.limit:
        return False
    return promise.steps == 0 or (was.steps > 0 and promise.steps * promise.interval >= was.steps * was.interval)


def _in_clear(terms: Terms) -> set[str]:
    """The fields whose numbers an ask may have sent without randomisation."""
    fields: set[str] = set()
    for view in terms.views:
        if view["kind"] == "withnumbers":
            numbers: Any = view.get("numbers")
            listed = isinstance(numbers, list) and all(isinstance(number, Mapping) for number in numbers)
            fields.update([str(number.get("field")) for number in numbers] if listed else terms.fields)
    return fields
