"""The privacy page: the promise, the limits that devices keep, what the questions spend, and forged reports."""

from collections.abc import Sequence

from hubbub.authoring import promise
from hubbub.authoring.coalitions import Coalition
from hubbub.authoring.forecast import poisoning
from hubbub.collection.time import duration_text, span
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.dashboard.layout import table
from hubbub.dashboard.markup import Child, Html, count, el, join
from hubbub.dashboard.reader import Reader
from hubbub.questions.collection import Collection
from hubbub.questions.spending import cost_of, steps_a_year, worst_of
from hubbub.questions.words import epsilon_text, rounded_up, sure_text
from hubbub.service.base.api import ShuffledQuestion


def shuffled_section(reader: Reader, collection: Collection) -> Html:
    """The part of the privacy page that is about shufflers."""
    questions = reader.shuffled(collection.name).questions
    rows = [row for name, question in questions.items() for row in _coalitions(name, question)]
    batches = [row for name, question in questions.items() for row in _batches(name, question)]
    text = (
        "Reports pass shufflers before they are read here. What one person's report says changes the probability of "
        "anything that those who work together could look for in a batch by at most the factor e^epsilon, plus delta. "
        "Shufflers that work with the collector can also hold back the reports of other people and put in their own: "
        "then it is as if everyone else worked with them."
    )
    headings = (
        "Question",
        "Who works together",
        "#Epsilon, smallest batch",
        "#Epsilon, latest batch",
        "Protection left",
    )
    parts = [el("p", text), table("Epsilon by who works together", headings, rows)]
    if batches:
        columns = ("Question", "#Step", "#People", "#Fakes", "#Unreadable", "#Repeated", "#Own reports lost")
        parts.append(table("The latest batches", columns, batches))
    else:
        parts.append(el("p", "No batch has come yet.", class_="note"))
    return el("section", el("h2", "Who must work together to see what", id="shuffle-title"), join(*parts))


def _coalitions(name: str, question: ShuffledQuestion) -> list[tuple[Child, ...]]:
    latest: Sequence[Coalition | None] = question.latest or [None] * len(question.smallest)
    return [
        (el("code", name), smallest.who, _epsilon(smallest), "" if now is None else _epsilon(now), smallest.left)
        for smallest, now in zip(question.smallest, latest, strict=True)
    ]


def _epsilon(coalition: Coalition) -> str:
    text = rounded_up(coalition.epsilon) + (f" (delta {coalition.delta:g})" if coalition.delta else "")
    return text if coalition.year is None else f"{text}; in a year {rounded_up(coalition.year[0])}"


def _batches(name: str, question: ShuffledQuestion) -> list[tuple[Child, ...]]:
    return [
        (
            el("code", name),
            *map(count, (batch.step, batch.people, batch.fakes, batch.unreadable, batch.repeated)),
            f"{batch.lost_checks} of {batch.checks}" if batch.checks else "none sent",
        )
        for batch in question.batches
    ]


def privacy_page(reader: Reader, collection: Collection) -> Html:
    """The promise, the limits, what the questions spend, and what forged devices can do."""
    shuffled = () if collection.shuffle is None else (shuffled_section(reader, collection),)
    rest = _limits(collection), *shuffled, _questions(reader, collection), _forged(collection)
    return join(_promise(collection), *rest)


def _promise(collection: Collection) -> Html:
    """The promise's paragraphs, each under its own first words."""
    paragraphs = promise(collection).split("\n\n")[1:]
    parts = []
    for paragraph in paragraphs:
        lead, _, text = paragraph.partition(". ")
        known = lead in collection.questions
        parts.append(el("div", el("h3", el("code", lead) if known else lead), el("p", text)))
    return el(
        "section",
        el("h2", "The promise to everyone who takes part", id="promise-title"),
        el("div", parts, class_="promise"),
        aria_labelledby="promise-title",
    )


def _limits(collection: Collection) -> Html:
    budget, rows = collection.budget, []
    if budget.event is not None:
        rows.append(
            _limit(f"one step ({duration_text(collection.step_seconds)})", budget.event, worst_of(collection, 1))
        )
    if budget.window is not None:
        steps = budget.window.steps
        most = worst_of(collection, steps)
        rows.append(_limit(f"any {span(steps * collection.step_seconds)}", budget.window.limit, most))
    if budget.user is not None:
        rows.append(_limit("a lifetime", budget.user, None))
    headings = ("Over", "#Limit (epsilon)", "#The questions take at most", "Of the limit", "#Certainty at the limit")
    text = "Every device keeps these limits by itself: it refuses to answer beyond them, whatever the server asks."
    sure = "Certainty: how sure an observer can become of one of two values that were equally likely before."
    return el(
        "section",
        el("h2", "The limits", id="limits-title"),
        el("p", text),
        table("Limits", headings, rows),
        el("p", sure, class_="note"),
        aria_labelledby="limits-title",
    )


def _limit(over: str, limit: int, most: int | None) -> tuple[Child, ...]:
    sure = sure_text(limit / UNITS_PER_EPSILON)
    if most is None:
        return over, epsilon_text(limit), "until it is used up", "", sure
    part = min(most / limit, 1.0)
    text = epsilon_text(most) if most <= limit else f"{epsilon_text(most)}, cut off at the limit"
    meter = el("meter", f"{part:.0%}", value=round(part, 4), min=0, max=1, aria_label=f"{part:.0%} of the limit")
    return over, epsilon_text(limit), text, meter, sure


def _questions(reader: Reader, collection: Collection) -> Html:
    rows = []
    for name in collection.questions:
        cost = cost_of(collection, name)
        if cost.memo:
            most = f"{epsilon_text(cost.each)} for every new value, {epsilon_text(cost.most)} for life"
        elif cost.per == 1:
            most = f"{epsilon_text(cost.each)} a step"
        else:
            steps = f"{cost.per} steps"
            most = f"{epsilon_text(cost.each)} {'once for' if cost.once else 'in any'} {steps}"
        year = epsilon_text(cost.worst(steps_a_year(collection)))
        asked: Child = "everyone, every step"
        window = collection.questions[name].shape().window
        if window:
            asked = _taken(reader, collection, name, window)
        rows.append((el("code", name), most, year, asked))
    headings = ("Question", "Costs a device at most", "#In a year", "Asked lately")
    note = "Only the device itself knows what it has spent. These numbers are the most that it can have spent."
    return el(
        "section",
        el("h2", "What the questions spend", id="spend-title"),
        table("Spending by question", headings, rows),
        el("p", note, class_="note"),
        aria_labelledby="spend-title",
    )


def _forged(collection: Collection) -> Html:
    """How far forged reports can move each answer, one sentence a question."""
    rows = [(el("code", name), poisoning(question).text()) for name, question in collection.questions.items()]
    note = (
        "A server that cannot read what a device recorded cannot recognise a forged report either. These bounds are "
        "exact: they are computed from the integers of each mechanism. Nothing here detects forged reports."
    )
    return el(
        "section",
        el("h2", "What forged devices can do", id="forged-title"),
        table("Forged reports by question", ("Question", "At most"), rows),
        el("p", note, class_="note"),
        aria_labelledby="forged-title",
    )


def _taken(reader: Reader, collection: Collection, name: str, w: int) -> Child:
    """How much of a window's budget the releases of the last window took."""
    latest = reader.releases(collection, name, w)
    spent = sum(answer.spent or 0.0 for answer in latest)
    if not latest:
        return "nothing yet"
    meter = el(
        "meter", f"{spent:.0%}", value=round(min(spent, 1.0), 4), min=0, max=1, aria_label=f"{spent:.0%} of a window"
    )
    return join(meter, f" {spent:.0%} of what {w} steps may take")
