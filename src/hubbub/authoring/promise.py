"""The promise of a collection in plain words, and what each coalition can learn of a shuffled report."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from textwrap import fill

import msgspec

from hubbub.collection.document import Collection
from hubbub.collection.shuffle_route import ShuffleRoute
from hubbub.collection.spending import cost_of, steps_a_year, worst_of
from hubbub.collection.time import duration_text, span
from hubbub.core.errors import InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import LocalHashing
from hubbub.protocols.ask import Ask
from hubbub.questions.words import epsilon_text, listed, rounded_up, sure_text
from hubbub.wire.upload import json_size

ALL_OTHERS = "the collector and everyone else who takes part"


class Coalition(msgspec.Struct, frozen=True):
    """Parties that work together, and a bound (epsilon, delta) on what they can learn of one person's report."""

    who: str
    epsilon: float
    delta: float
    left: str
    """What protects a person from them."""

    def text(self) -> str:
        """The coalition and its bound, in words."""
        delta = f", delta {self.delta:g}" if self.delta else ""
        return f"{self.who}: epsilon {rounded_up(self.epsilon)}{delta}"


def coalitions(mechanism: Mechanism | float, route: ShuffleRoute, n: int) -> list[Coalition]:
    """What each coalition can learn from a batch of n people's reports: from the collector alone to everyone.

    Only fakes of shufflers outside the coalition protect a person. Forged reports do not: someone who can forge all
    other reports knows as much as a coalition with everyone else who takes part.

    Parameters
    ----------
    mechanism
        What reports are made by; or an epsilon, where all that is known is that they spend no more. A mechanism whose
        reports can be linked, to each other or to what is publicly known, is refused.
    route
        Who shuffles.
    n
        How many people's reports the batch has.
    """
    all_fakes, fakes_of_one, shufflers = route.all_fakes, route.fakes, len(route.shufflers)
    groups = [("the collector", n, all_fakes, f"{n:,} reports in an order that nobody knows")]
    if shufflers > 1:
        groups.append(
            (
                "the collector and all shufflers but one",
                n,
                fakes_of_one,
                "the order of the one that is left, if they hand on every report",
            )
        )
    left = f"{all_fakes:,} fakes" if all_fakes else "nothing but the report's own randomness"
    groups.append((ALL_OTHERS, 1, all_fakes, left))
    if shufflers > 1 and fakes_of_one:
        who = "the collector, everyone else and all shufflers but one"
        groups.append((who, 1, fakes_of_one, f"{fakes_of_one:,} fakes"))
    bounded = [
        Coalition(who, *_bound(mechanism, people, route.delta, fakes), left) for who, people, fakes, left in groups
    ]
    local = mechanism if isinstance(mechanism, float) else mechanism.effective_epsilon
    together = "the collector and the shuffler" if shufflers == 1 else "the collector and all shufflers"
    return [*bounded, Coalition(together, local, 0.0, "the report's own randomness: the local epsilon")]


def coalitions_of(collection: Collection, question: str, n: int | None = None) -> list[Coalition]:
    """The coalitions of a question, for the smallest batch that is handed on, or for one of n people's reports.

    There are none where reports can be linked to a device: `check` refuses such a question in a shuffled collection.
    """
    route = collection.shuffle
    if route is None or collection.questions[question].linked(collection.setting(question)):
        return []
    return coalitions(reported_by(collection, question), route, route.least if n is None else n)


def reported_by(collection: Collection, question: str) -> Mechanism | float:
    """The one mechanism that a question is asked by; where there are several, the most that one report can spend."""
    terms = collection.terms[question]
    if len(terms.mechanisms) == 1 and not terms.families:
        message = next(collection.protocol(question))
        asks = (message,) if isinstance(message, Ask) else message
        first = asks[0] if isinstance(asks, tuple | list) else None
        if isinstance(first, Ask) and isinstance(first.mechanism, Mechanism):
            return first.mechanism
    return terms.limit / UNITS_PER_EPSILON


def _bound(mechanism: Mechanism | float, n: int, delta: float, fakes: int) -> tuple[float, float]:
    epsilon = _epsilon(mechanism, n, delta, fakes)
    local = mechanism if isinstance(mechanism, float) else mechanism.effective_epsilon
    return (epsilon, delta) if epsilon < local else (local, 0.0)


@lru_cache(maxsize=1024)
def _epsilon(mechanism: Mechanism | float, n: int, delta: float, fakes: int) -> float:
    from hubbub.privacy.amplify import amplify

    if isinstance(mechanism, Mechanism) and mechanism.linkable != "never":
        allowed = "one whose reports cannot be linked: a shuffled collection has a batch in every step"
        raise InvalidValue("mechanism", type(mechanism).__name__, allowed)
    # Fakes that hide nothing for sure take nothing away either.
    if isinstance(mechanism, GRR | LocalHashing):
        return amplify(mechanism, n=n, delta=delta, fakes=fakes).epsilon
    if isinstance(mechanism, Mechanism):
        return amplify(mechanism, n=n, delta=delta).epsilon
    return _clones(mechanism, n, delta)


def _clones(local: float, n: int, delta: float) -> float:
    """The bound that holds for anything with a local epsilon: clones (Feldman et al., 2021 and 2023)."""
    from hubbub.privacy.binomial_tails import smallest_epsilon
    from hubbub.privacy.shuffle_bounds import clone_chance, clone_delta, stronger_clone_chance

    epsilons = [local]
    for chance in (clone_chance(math.exp(local)), stronger_clone_chance(math.exp(local))):
        bound = partial(clone_delta, math.exp(local), n, chance=chance, tail=delta * 1e-7)
        epsilons.append(smallest_epsilon(bound, bound, delta, local) or local)
    return min(epsilons)


def promise(collection: Collection, *, width: int | None = None) -> str:
    """The promise's text: what is sent and how often, what it can reveal at most, and what is not covered.

    Each paragraph is one line, or is wrapped to `width` characters.
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
        f"{_cover(collection)}"
    ).rstrip()


def _cover(collection: Collection) -> str:
    if not collection.cover:
        return ""
    return (
        "A device that is asked and does not answer, because it is not its turn or because a limit is reached, sends "
        "an upload of the same length without a report. Someone who watches the network cannot tell such an upload "
        "from an answer; the server can."
    )


def _question(collection: Collection, name: str) -> str:
    question, setting = collection.questions[name], collection.setting(name)
    return f"{name}. {question.title or question.default_title(setting)} {question.sentence(setting)}"


def _together(collection: Collection) -> str:
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
    linked = [question.linked(collection.setting(name)) for name, question in collection.questions.items()]
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
    shufflers = "one shuffler" if len(route.shufflers) == 1 else f"{len(route.shufflers)} shufflers"
    fakes = f", each of which adds {route.fakes:,} made-up reports" if route.fakes else ""
    addresses = listed([shuffler.url for shuffler in route.shufflers])
    sentences = [
        f"Reports are encrypted on the device and pass {shufflers} ({addresses}){fakes}. The server reads them in "
        f"batches of at least {route.least:,} people's reports, without their random numbers, and in an order that "
        "does not show who sent which. The limits above hold even if the server and all shufflers work together. How "
        "much less a group of them can learn depends on who is in it. An epsilon and a delta mean: what one person's "
        "report says changes the probability of anything that the group could look for in a batch by at most the "
        "factor e^epsilon, plus delta."
    ]
    for name in collection.questions:
        groups = "; ".join(coalition.text() for coalition in coalitions_of(collection, name))
        if groups:
            sentences.append(f"For {name}, in the smallest batch: {groups}.")
    sentences.append(
        "Shufflers that work with the collector can also hold back the reports of other people and put in their own: "
        "then it is as if everyone else worked with them. If several batches contain reports of one device, the "
        "epsilons and the deltas of these batches add up. Shufflers can read no report without the server; the first "
        "shuffler sees which devices send, when, and from which address."
    )
    return [f"Shuffled. {' '.join(sentences)}"]


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
        return "That the device takes part, and in which steps it answered, to the first shuffler."
    if collection.cover:
        return "That the device takes part; to the server, in which steps it answered."
    return "That the device takes part, and in which steps it answered."
