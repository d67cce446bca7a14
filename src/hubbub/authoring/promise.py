"""What a collection promises, in plain words, to whoever owns a device."""

from __future__ import annotations

from textwrap import fill

from hubbub.authoring.coalitions import coalitions_of
from hubbub.collection.document import Collection
from hubbub.collection.duration import shown, span
from hubbub.collection.spending import cost_of, steps_a_year, worst_of
from hubbub.collection.upload import json_size
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.questions.words import epsilon_text, listed, sure_text


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
        *_shuffled(collection),
        f"What is not covered. {_uncovered(collection)}",
    ]
    return "\n\n".join(paragraph if width is None else fill(paragraph, width) for paragraph in paragraphs)


def _sent(collection: Collection) -> str:
    names = listed(sorted({field for question in collection.questions.values() for field in question.reads()}))
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
    question, setting = collection.questions[name], collection.setting(name)
    return f"{name}. {question.title or question.default_title(setting)} {question.sentence(setting)}"


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
    if any(cost_of(collection, name).memo for name in collection.questions):
        text += " Of kept answers this counts which values they are of, not when one took the place of another."
    return text


def _sure(units: int) -> str:
    return f"{sure_text(units / UNITS_PER_EPSILON)} (epsilon {epsilon_text(units)})"


def _linked(collection: Collection) -> list[str]:
    told = [question.linked(collection.setting(name)) for name, question in collection.questions.items()]
    sentences = [sentence for sentence in told if sentence is not None]
    if not sentences:
        return []
    most = max(cost_of(collection, name).most for name in collection.questions)
    if most:
        sentences.append(
            "Someone who collects many reports made from kept answers can tell that they may come from one device, and "
            "with enough of them that its value changed, and when. Which values those are, they tell by at most "
            f"epsilon {epsilon_text(min(most, collection.budget.user or most))}, however often it changes; that it "
            "changed has no such limit."
        )
    return [f"Linked reports. {' '.join(sentences)}"]


def _shuffled(collection: Collection) -> list[str]:
    """Who stands between, and who of them must work together to see what."""
    route = collection.shuffle
    if route is None:
        return []
    several = "one shuffler" if len(route.shufflers) == 1 else f"{len(route.shufflers)} shufflers"
    fakes = f", each of which adds {route.fakes:,} made-up reports" if route.fakes else ""
    addresses = listed([each.url for each in route.shufflers])
    told = [
        f"Reports are encrypted on the device and pass {several} ({addresses}){fakes}. The server reads them in "
        f"batches of at least {route.least:,} people's reports, in an order that says nothing of who sent which, "
        "without their random numbers. What is said above holds even if all of them work together; how much less some "
        "of them learn depends on who works together. An epsilon and a delta mean: whatever they look for in a batch, "
        "what one person's report says changes its probability by at most the factor e^epsilon, and delta more."
    ]
    for name in collection.questions:
        parties = "; ".join(each.text() for each in coalitions_of(collection, name))
        told.append(f"Of {name}, in the smallest batch: {parties}.")
    told.append(
        "Shufflers that work with the collector can also keep reports of others back and put in their own: then it is "
        "as if everyone else worked with them. Of several batches with reports of one device, the epsilons and the "
        "deltas add up. The shufflers without the server can read no report; the first of them sees which devices "
        "send, when, and from which address."
    )
    return [f"Shuffled. {' '.join(told)}"]


def _who(collection: Collection) -> str:
    return (
        "This holds against everyone who sees a report: on the network, at the server, in its records; nobody but the "
        "device and its programs has to be trusted. Statistics are published of at least "
        f"{collection.minimum_batch:,} reports, and no group below {100 * collection.minimum_arc / (1 << 32):.2g}% of "
        f"the devices is ever asked. {_kept(collection)}"
    )


def _kept(collection: Collection) -> str:
    names = [name for name, question in collection.questions.items() if question.keeps or question.searches]
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
    if collection.shuffle is not None:
        return "That the device takes part, and in which steps it answered, to the first shuffler."
    if collection.cover:
        return "That the device takes part; to the server, in which steps it answered."
    return "That the device takes part, and in which steps it answered."
