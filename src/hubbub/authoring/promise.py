"""What a collection promises, in plain words, to whoever owns a device."""

from __future__ import annotations

from textwrap import fill

from hubbub.authoring.words import epsilon_text, listed, odds_text, sure_text
from hubbub.collection.duration import every, shown, span
from hubbub.collection.question import QuestionSpec
from hubbub.collection.spec import Collection
from hubbub.collection.spending import cost_of, steps_a_year, worst_of
from hubbub.collection.wire import json_size
from hubbub.core.domain import Numeric, Sets, Strings
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.core.keyvalue import KeyValue
from hubbub.mechanisms.memo.loloha import Loloha
from hubbub.mechanisms.memo.memo import Memoised
from hubbub.protocols.change_stream import ChangeStream

__all__ = ["promise"]


def promise(collection: Collection, *, width: int | None = None) -> str:
    """What is sent and how often, what it can reveal at most, and what is not covered.

    Paragraphs, each on one line; or in lines of at most so many characters.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> print(promise(load_collection(EXAMPLE)).splitlines()[0])
        themes, version 1: Light or dark?
    """
    paragraphs = [
        f"{collection.name}, version {collection.version}: {collection.title}",
        f"What is sent. {_sent(collection)}",
        *(_question(collection, name) for name in collection.questions),
        f"All together. {_together(collection)}",
        *_linked(collection),
        f"Who learns it. {_who(collection)}",
        f"What is not covered. {_uncovered(collection)}",
    ]
    return "\n\n".join(paragraph if width is None else fill(paragraph, width) for paragraph in paragraphs)


def _sent(collection: Collection) -> str:
    names = listed(sorted({question.field for question in collection.questions.values()}))
    size = collection.frame_bytes
    return (
        f"Programs on this device record {names}. What they record stays on the device. What is sent are randomised "
        "reports: the device throws dice first, and whatever a report says, it may be the dice. How long an upload is "
        f"does not depend on what it says: {size:,} bytes, or up to {json_size(size):,} "
        "where it is sent as text. Each report carries a random number, used once, by which a repeated upload is "
        f"recognised. A device that recorded nothing answers all the same. {_cover(collection)}"
    ).rstrip()


def _cover(collection: Collection) -> str:
    if not collection.cover:
        return ""
    return (
        "One that is asked and does not answer, because it is not its turn or a limit is reached, sends an upload of "
        "the same length without a report: someone who watches the network cannot tell which it is, the server can."
    )


def _question(collection: Collection, name: str) -> str:
    question = collection.questions[name]
    domain = collection.fields[question.field]
    mechanism = question.mechanism_for(domain)
    asks = f"{name}. {question.title or _default_title(question, domain)}"
    step = every(collection.step_seconds)
    if isinstance(mechanism, Memoised):
        one, all_of_one = odds_text(mechanism.effective_epsilon), sure_text(mechanism.permanent_epsilon)
        return (
            f"{asks} One report {step}. The device draws a random answer for each value once, keeps it for good, and "
            f"makes every report from it. One report is {one}. All reports of a value that does not change, together, "
            f"over any time: {all_of_one} at most. Every new value costs as much again, until the limit for life; then "
            "the device goes on with the last answer it has, because silence would tell that something changed. That a "
            "value changed, and when, is not hidden: reports made from one answer can in time be told from those made "
            "from another."
        )
    if isinstance(mechanism, ChangeStream):
        return f"{asks} {_horizon(collection, mechanism)}"
    if question.kind != "stream":
        keyed = " It covers all keys together: which are held, and with what numbers."
        covers = keyed if question.kind == "keyvalue" else ""
        return f"{asks} One report {step}.{covers} It is {odds_text(mechanism.effective_epsilon)}."
    assert question.w is not None
    odds, window = odds_text(question.epsilon), span(question.w * collection.step_seconds)
    if question.everyone:
        return f"{asks} Reports {step}, each of which tells a part. Those of any {window}, together, are {odds}."
    return (
        f"{asks} At most one report in any {window}: devices take turns. When a device's turn comes follows from a "
        f"secret of its own; whoever sees it answer knows that it was its turn. The report is {odds}."
    )


def _horizon(collection: Collection, symbols: ChangeStream) -> str:
    steps, levels = symbols.steps, len(symbols.lengths)
    lasts = span(steps * collection.step_seconds)
    return (
        f"For each {lasts} the device draws one of {levels} rhythms, without looking at its value, and reports in it, "
        f"at most once {every(collection.step_seconds)}. What it tells are changes, at most {symbols.changes} of them; "
        f"a value that changes more often is told as if it stayed where it was. All reports of one {lasts} together, "
        f"on all that happened in it taken as one value, are {odds_text(symbols.effective_epsilon)}. After that it "
        "begins anew, and spends as much again."
    )


_KEYED = {
    "mean": "how much of each key have people on average",
    "frequency": "how many have each key",
    "conditional": "what is the mean of each key among those who have it",
}


def _default_title(question: QuestionSpec, domain: object) -> str:
    what = {Numeric: "what is its mean", Sets: "how many items has it", Strings: "which texts are common"}
    if question.kind in ("histogram", "memo") and isinstance(domain, Numeric):
        return f"Of {question.field}: how is it spread?"
    if isinstance(domain, KeyValue):
        return f"Of {question.field}: {_KEYED[question.of or 'mean']}?"
    return f"Of {question.field}: {what.get(type(domain), 'how common is each value')}?"


def _together(collection: Collection) -> str:
    budget, steps = collection.budget, steps_a_year(collection)
    parts = []
    if budget.event is not None:
        most = min(budget.event, worst_of(collection, 1))
        parts.append(f"all reports of one step: {_sure(most)}")
    if budget.window is not None:
        most = min(budget.window.limit, worst_of(collection, budget.window.steps))
        parts.append(f"those of any {span(budget.window.steps * collection.step_seconds)}: {_sure(most)}")
    if budget.user is not None:
        parts.append(f"all that is ever sent: {_sure(budget.user)}")
    limits = "; ".join(parts)
    year = worst_of(collection, steps) if budget.user is None else min(budget.user, worst_of(collection, steps))
    text = (
        f"The device keeps an account and refuses to answer beyond these limits, whatever the server asks. How sure an "
        f"observer can become who held two values equally likely, from {limits}. In a year it spends up to epsilon "
        f"{epsilon_text(year)}."
    )
    if budget.user is None:
        text += " There is no limit for life: a habit that lasts can be learned, of a single moment no more than this."
    if any(question.kind == "memo" for question in collection.questions.values()):
        text += " Of kept answers this counts which values they are of, not when one took the place of another."
    return text


def _sure(units: int) -> str:
    return f"{sure_text(units / UNITS_PER_EPSILON)} (epsilon {epsilon_text(units)})"


def _linked(collection: Collection) -> list[str]:
    said: list[str] = []
    rhythms: list[str] = []
    for name, question in collection.questions.items():
        mechanism = question.mechanism_for(collection.fields[question.field])
        if isinstance(mechanism, Loloha):
            said.append(
                f"The reports of {name} carry the number of the device's hash function, one of "
                f"{mechanism.functions:,}, which stays the same"
            )
        elif isinstance(mechanism, ChangeStream):
            rhythms.append(
                f"The reports of {name} carry their rhythm, one of {len(mechanism.lengths)}, the same for a whole "
                "horizon: it was drawn without looking at any value, and tells of none."
            )
        elif isinstance(mechanism, Memoised):
            said.append(f"The reports of {name} are made from one kept answer, and look alike under their noise")
    rhythm = [f"Rhythms. {' '.join(rhythms)}"] if rhythms else []
    if not said:
        return rhythm
    most = max(cost_of(collection, name).most for name in collection.questions)
    return [
        *rhythm,
        f"Linked reports. {'. '.join(said)}: someone who collects many of them can tell that they may come from one "
        f"device, and with enough of them that its value changed, and when. Which values those are, they tell by at "
        f"most epsilon {epsilon_text(min(most, collection.budget.user or most))}, however often it changes; that it "
        "changed has no such limit.",
    ]


def _who(collection: Collection) -> str:
    return (
        "This holds against everyone who sees a report: on the network, at the server, in its records; nobody but the "
        "device and its programs has to be trusted. Statistics are published of at least "
        f"{collection.minimum_batch:,} reports, and no group below {100 * collection.minimum_arc / (1 << 32):.2g}% of "
        f"the devices is ever asked. {_kept(collection)}"
    )


def _kept(collection: Collection) -> str:
    names = [name for name, question in collection.questions.items() if question.keep_reports]
    single = f"Reports of {listed(names)} are kept one by one, of other questions" if names else "Of reports"
    lasts = shown(collection.retention_days * 86400)
    return f"{single} only sums are kept; all of it is deleted {lasts} after its step. Published statistics stay."


def _uncovered(collection: Collection) -> str:
    overrides = " ".join(f"Set aside by the author: {key} ({reason})." for key, reason in collection.overrides.items())
    return (
        f"{_seen(collection)} Its network address, and whatever else a network tells. What the statistics say about "
        f"everyone, its owner included. Someone who owns the device, or can change its programs. {overrides}"
    ).rstrip()


def _seen(collection: Collection) -> str:
    """What a device's uploads tell without being read."""
    if collection.cover:
        return "That the device takes part; to the server, in which steps it answered."
    return "That the device takes part, and in which steps it answered."
