"""The promise of a collection in plain words."""

import math
from textwrap import fill

from hubbub.authoring.coalitions import coalitions_of
from hubbub.authoring.guarantees import most_in
from hubbub.collection.shuffle_route import ObliviousRoute, Route
from hubbub.collection.time import duration_text, span
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.questions.collection import Collection
from hubbub.questions.spending import cost_of, steps_a_year, worst_of
from hubbub.questions.words import NO_LIMIT, epsilon_text, listed, sure_text
from hubbub.wire.upload import json_size


def promise(collection: Collection, *, width: int | None = None) -> str:
    """The promise's text: what is sent and how often, what it can reveal at most, and what is not covered.

    Each paragraph is one line, or is wrapped to `width` characters.
    """
    paragraphs = [
        f"{collection.name}, version {collection.version}: {collection.title}",
        f"What is sent. {_sent(collection)}",
        *(_question(collection, name) for name in collection.questions),
        f"All together. {_all_limits(collection)}",
        *_linked(collection),
        f"Who learns it. {_who(collection)}",
        *_shuffled(collection),
        f"What is not covered. {_uncovered(collection)}",
    ]
    return "\n\n".join(paragraph if width is None else fill(paragraph, width) for paragraph in paragraphs)


def short_promise(collection: Collection) -> str:
    """The promise in a few sentences, for the person who is asked."""
    budget, day = collection.budget, most_in(collection, max(1, 86400 // collection.step_seconds))
    names = listed(sorted({field for question in collection.questions.values() for field in question.reads()}))
    sure = sure_text(day / UNITS_PER_EPSILON)
    user = math.inf if budget.user is None else budget.user / UNITS_PER_EPSILON
    life = f"In all your life, nobody can become more than {sure_text(user)} sure."
    if user > NO_LIMIT:
        life = "Over a longer time there is no such limit: a habit that lasts can be learned from all that is sent."
    unprotected = sent_unprotected(collection)
    plain = (
        f" What is asked under {listed(unprotected)} includes values that are sent as they are." if unprotected else ""
    )
    return (
        f"This program notes {names} on this device, where it stays. What is sent is changed at random first, so that "
        f"no report shows for certain what you did. Whoever sees all that you send in a day, and thought two "
        f"possibilities equally likely, can be at most {sure} sure of either. {life}{plain} Only numbers about at "
        f"least {collection.minimum_batch:,} people are published, and reports are deleted after "
        f"{duration_text(collection.retention_days * 86400)}. Your taking part and your address are not hidden."
    )


def sent_unprotected(collection: Collection) -> list[str]:
    """The questions that also send values as they are, which nothing protects."""
    return [
        name for name, terms in collection.terms.items() if any(view["kind"] == "withnumbers" for view in terms.views)
    ]


def _sent(collection: Collection) -> str:
    unprotected = sent_unprotected(collection)
    exception = f"Except for the values that are named under {listed(unprotected)}, the" if unprotected else "The"
    names = listed(sorted({field for question in collection.questions.values() for field in question.reads()}))
    size = collection.frame_bytes
    return (
        f"Programs on this device record {names}. What they record stays on the device. {exception} device sends only "
        "randomised reports: it changes each answer at random before sending it, so that no report shows for certain "
        f"what was recorded. Every upload has the same length, whatever it contains: {size:,} bytes, or "
        f"{json_size(size):,} where it is sent as text. Each report carries a random number that is used only once, by "
        "which the server recognises an upload that is repeated. A device that has recorded nothing answers too. "
        f"{_divided(collection)}{_cover(collection)}"
    ).rstrip()


def _divided(collection: Collection) -> str:
    if not collection.divide:
        return ""
    return (
        f"It answers one of the {len(collection.questions)} questions below, always the same: a secret that it keeps "
        "decides which, and never what was recorded. Whoever sees its reports learns which one it is. "
    )


def _cover(collection: Collection) -> str:
    if not collection.cover:
        return ""
    return (
        "A device that is asked and does not answer, because it is not its turn or because a limit is reached, sends "
        "an upload of the same length without a report. Someone who watches the network cannot tell such an upload "
        "from an answer; the server can."
    )


def _question(collection: Collection, name: str) -> str:
    question = collection.questions[name]
    return f"{name}. {question.title or question.default_title()} {question.sentence()}"


def _all_limits(collection: Collection) -> str:
    budget, steps = collection.budget, steps_a_year(collection)
    parts = []
    if budget.event is not None:
        most = min(budget.event, worst_of(collection, 1))
        parts.append(f"from all reports of one step, {_sure(most)}")
    if budget.window is not None:
        most = min(budget.window.limit, worst_of(collection, budget.window.steps))
        parts.append(f"from all reports of any {span(budget.window.steps * collection.step_seconds)}, {_sure(most)}")
    if budget.user is not None:
        parts.append(f"from everything that is ever sent, {_sure(budget.user)}")
    limits = "; ".join(parts)
    year = worst_of(collection, steps) if budget.user is None else min(budget.user, worst_of(collection, steps))
    text = (
        "The device counts what its reports can reveal, and refuses to answer beyond these limits, whatever the server "
        f"asks. An observer who thought two values equally likely before can be at most this sure of either: {limits}. "
        f"In a year the device spends up to epsilon {epsilon_text(year)}."
    )
    if budget.user is None:
        text += (
            " There is no limit for life: whoever collects reports for long enough can learn a habit that lasts, but "
            "no more about a short time than these limits allow."
        )
    if any(cost_of(collection, name).memo for name in collection.questions):
        text += (
            " Of kept answers, these limits cover which values the device had, and not when one value took the place "
            "of another."
        )
    return text


def _sure(units: int) -> str:
    return f"{sure_text(units / UNITS_PER_EPSILON)} (epsilon {epsilon_text(units)})"


def _linked(collection: Collection) -> list[str]:
    shuffled = collection.shuffle is not None  # what can be linked is refused there
    linked = [] if shuffled else [question.linked() for question in collection.questions.values()]
    sentences = [sentence for sentence in linked if sentence is not None]
    if not sentences:
        return []
    most = max(cost_of(collection, name).most for name in collection.questions)
    if most:
        sentences.append(
            "Someone who collects many reports made from kept answers may find out that they come from one device and, "
            "with enough of them, that the device's value changed, and when. About which values the device had, such "
            f"reports reveal at most epsilon {epsilon_text(min(most, collection.budget.user or most))}, however often "
            "the value changes; that it changed has no such limit."
        )
    return [f"Linked reports. {' '.join(sentences)}"]


def _shuffled(collection: Collection) -> list[str]:
    """Who shuffles the reports, and what each group of parties can learn if its members work together."""
    route = collection.shuffle
    if route is None:
        return []
    sentences = [
        f"{_way(route)} The server reads them in "
        f"batches of at least {route.least:,} people's reports, without their random numbers, and in an order that "
        "does not show who sent which. The limits above hold even if the server and all shufflers work together. How "
        "much less a group of them can learn depends on who is in it. An epsilon and a delta mean: what one person's "
        "report says changes the probability of anything that the group could look for in a batch by at most the "
        "factor e^epsilon, plus delta."
    ]
    for name, question in collection.questions.items():
        groups = "; ".join(coalition.text() for coalition in coalitions_of(collection, name))
        if groups and collection.terms[name].state:
            length = duration_text(question.horizon * collection.step_seconds)
            local = epsilon_text(collection.terms[name].limit)
            sentences.append(
                f"For {name}, from all reports of a period of {length}, if at least {route.least:,} devices of each "
                f"level miss none of its batches: {groups}. A device that misses one, or that joins later, has only "
                f"the limit of the device itself for that period: epsilon {local}."
            )
        elif groups:
            sentences.append(f"For {name}, in the smallest batch: {groups}.")
    seen = "every shuffler sees" if isinstance(route, ObliviousRoute) else "the first shuffler sees"
    sentences.append(
        "Shufflers that work with the collector can also hold back the reports of other people and put in their own: "
        "then it is as if everyone else worked with them. What is said of a year is of all batches that can contain "
        "reports of one device. Shufflers can read no report without the server; "
        f"{seen} which devices send, when, and from which address."
    )
    return [f"Shuffled. {' '.join(sentences)}"]


def _way(route: Route) -> str:
    """How reports are encrypted, and whom they pass."""
    addresses, count = listed([shuffler.url for shuffler in route.shufflers]), len(route.shufflers)
    if isinstance(route, ObliviousRoute):
        fakes = f" They add {route.fakes:,} made-up reports to each batch." if route.fakes else ""
        return (
            f"The device divides each report into {count} parts, which tell nothing unless all are put together, "
            f"encrypts one of them to the server, and sends one part to each of {count} shufflers ({addresses}), which "
            f"change the order together.{fakes}"
        )
    shufflers = "one shuffler" if count == 1 else f"{count} shufflers"
    fakes = f", each of which adds {route.fakes:,} made-up reports" if route.fakes else ""
    return f"Reports are encrypted on the device and pass {shufflers} ({addresses}){fakes}."


def _who(collection: Collection) -> str:
    people = collection.smallest_arc
    planned = "" if people is None else f" ({people:,} of the {collection.planned_devices:,} that it is planned for)"
    return (
        "These limits hold against everyone who sees a report: on the network, at the server or in its records. Only "
        "the device and its programs have to be trusted. A statistic is published only if it is made from at least "
        f"{collection.minimum_batch:,} reports, and a device never answers what is asked of less than "
        f"{100 * collection.minimum_arc / (1 << 32):.2g}% of the devices{planned}. {_kept(collection)}"
    )


def _kept(collection: Collection) -> str:
    names = [name for name, question in collection.questions.items() if question.keeps or question.searches]
    kept = "only sums of reports"
    if names:
        kept = f"the single reports of {listed(names)}"
        kept += ", and only sums of the reports of other questions" if len(names) < len(collection.questions) else ""
    lasts = duration_text(collection.retention_days * 86400)
    return f"The server keeps {kept}, and deletes them {lasts} after their step. Published statistics stay."


def _uncovered(collection: Collection) -> str:
    overrides = " ".join(f"Set aside by the author: {key} ({reason})." for key, reason in collection.overrides.items())
    return (
        f"{_seen(collection)} Its network address, and what else a network reveals about it. What the statistics say "
        "about everyone, the owner of the device included. What someone can read who controls the device or can "
        f"change its programs. {overrides}"
    ).rstrip()


def _seen(collection: Collection) -> str:
    """What a device's uploads reveal without being read."""
    if collection.shuffle is not None:
        who = "every shuffler" if isinstance(collection.shuffle, ObliviousRoute) else "the first shuffler"
        return f"That the device takes part, and in which steps it answered, to {who}."
    if collection.cover:
        return "That the device takes part; to the server, in which steps it answered."
    return "That the device takes part, and in which steps it answered."
