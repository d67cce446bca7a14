"""Alarms on the pages: a banner while one is raised, and a list of all with what they promise."""

from collections.abc import Mapping
from typing import Any

from hubbub.dashboard.layout import facts, numbered, path_to, table
from hubbub.dashboard.markup import Child, Html, Scale, count, el, join, step_time
from hubbub.questions.collection import Collection
from hubbub.service.alarms import AlarmBody, AlarmEvent, AlarmsBody, WatchedBody

Definition = Mapping[str, Any]


class AlarmHistory:
    """Which alarms of a question are raised, and in which steps they were, as far back as its events go.

    `category`: Leaves out the other categories, where an alarm watches each category by itself.
    """

    def __init__(self, answer: AlarmsBody, question: str, category: str | None = None) -> None:
        self._watched = [
            (alarm.definition, watched)
            for alarm in answer.alarms
            for watched in alarm.watched
            if watched.question == question and (category is None or watched.category in ("", category))
        ]
        self._events = [event for event in answer.events if event.question == question]

    def __len__(self) -> int:
        return len(self._watched)

    @property
    def raised(self) -> list[str]:
        """What is raised now, in words."""
        return [_words(watched) for _, watched in self._watched if watched.state == "raised"]

    def raised_at(self, step: int) -> bool:
        """Whether an alarm was raised at a step. For steps before the first known event, that event shows it."""
        return any(self._was_raised(watched, step) for _, watched in self._watched)

    def thresholds(self, category: str | None) -> tuple[float, ...]:
        """Where the alarms of one category of the answer, or of its one number, are raised."""
        thresholds = {
            watched.threshold
            for definition, watched in self._watched
            if watched.threshold is not None and not definition.get("forged")
            if watched.category == category or _only(definition, category)
        }
        return tuple(sorted(thresholds))

    def _was_raised(self, watched: WatchedBody, step: int) -> bool:
        own = [event for event in self._events if _key(event) == _key(watched)]
        before = [event for event in own if event.step <= step]
        if before:
            return before[-1].state == "raised"
        return own[0].state == "cleared" if own else watched.state == "raised"


def _key(watched: WatchedBody | AlarmEvent) -> tuple[str, str]:
    return watched.alarm, watched.category


def _only(definition: Definition, category: str | None) -> bool:
    """Whether an alarm watches this one number and nothing else."""
    weights = definition.get("weights")
    return not definition.get("each") and (not weights or list(weights.items()) == [(category, 1)])


def _words(watched: WatchedBody) -> str:
    bound = "its baseline" if watched.threshold is None else f"{watched.threshold:g}"
    return f"{watched.title}, {watched.direction} {bound}"


_MOST_RAISED = 5
_MOST_WATCHED = 12
_STATES = {"raised": "Raised", "quiet": "Quiet", "learning": "Learning its baseline"}

NO_ALARMS = AlarmsBody(false_alarms_a_day=0.0, guarantee=None, alarms=[], events=[], webhooks=[])


def alarm_banner(collection: Collection, answer: AlarmsBody, question: str | None = None) -> Html | None:
    """The alarms that are raised now, of one question or of all; None if none is."""
    raised = [
        (alarm.definition, watched)
        for alarm in answer.alarms
        for watched in alarm.watched
        if watched.state == "raised" and question in (None, watched.question)
    ]
    if not raised:
        return None
    items = [el("li", _raised(collection, watched, of)) for of, watched in raised[:_MOST_RAISED]]
    more = len(raised) - _MOST_RAISED
    return el(
        "div",
        el("p", el("strong", "Alarm" if len(raised) == 1 else f"{count(len(raised))} alarms")),
        el("ul", items, el("li", f"and {count(more)} more") if more > 0 else None),
        class_="alarm",
        role="alert",
    )


def alarm_section(collection: Collection, answer: AlarmsBody, question: str | None = None) -> Html | None:
    """Every alarm, of one question or of all, with its state and what it promises; then the latest events."""
    alarms = [alarm for alarm in answer.alarms if question in (None, alarm.definition["question"])]
    if not alarms:
        return None
    names = {alarm.alarm for alarm in alarms}  # an alarm may be gone, and its events are not
    events = [event for event in reversed(answer.events) if event.alarm in names]
    promise = answer.guarantee if question is None and len(alarms) > 1 else None
    return el(
        "section",
        el("h2", "Alarms", id="alarms-title"),
        el("p", f"All together: {promise}.") if promise else None,
        el("div", [_card(collection, alarm) for alarm in alarms], class_="cards"),
        _events(collection, events, {alarm.alarm: alarm.definition for alarm in alarms})
        if events
        else el("p", "No alarm was ever raised.", class_="note"),
        id="alarms",
        aria_labelledby="alarms-title",
    )


def _raised(collection: Collection, watched: WatchedBody, definition: Definition) -> Html:
    scale = _scale(collection, watched, definition)
    baseline = "" if watched.threshold is not None else "its baseline, "
    link = el("a", el("bdi", watched.title), href=path_to("results", collection.name, watched.question))
    since = watched.since
    return join(
        link,
        f": {watched.direction} {baseline}{_bound(scale, watched)}",
        None if since is None else (", since ", step_time(collection, since)),
        f". The last step alone: {_estimate(scale, watched, definition)}.",
    )


def _card(collection: Collection, alarm: AlarmBody) -> Html:
    watched = alarm.watched
    raised = [quantity for quantity in watched if quantity.state == "raised"]
    first = raised[0] if raised else watched[0]
    scale, state = _scale(collection, first, alarm.definition), _STATES[first.state]
    several = f", {count(len(raised))} of {count(len(watched))} watched" if len(watched) > 1 else ""
    shown = [quantity for quantity in raised or watched if quantity.value is not None][:_MOST_WATCHED]
    values: list[Child] = [
        el(
            "li",
            (el("bdi", quantity.category), ": ") if quantity.category else None,
            _estimate(scale, quantity, alarm.definition),
        )
        for quantity in shown
    ]
    return el(
        "section",
        el("h3", el("bdi", alarm.definition.get("title") or alarm.alarm)),
        facts(
            [
                ("State", el("b", state + several, class_="raised" if raised else None)),
                ("Question", el("a", first.question, href=path_to("results", collection.name, first.question))),
                (_rule(alarm.definition), None if several else _bound(scale, first)),
                (
                    "Step",
                    None if first.step is None else numbered(step_time(collection, first.step), first.step),
                ),
                ("That step alone", el("ul", values, class_="names") if values else None),
            ]
        ),
        el("p", f"{_capital(alarm.guarantee)}. It finds {alarm.delays}.", class_="note"),
    )


def _events(collection: Collection, events: list[AlarmEvent], definitions: Mapping[str, Definition]) -> Html:
    rows = [
        (
            numbered(step_time(collection, event.step), event.step),
            el("b" if event.state == "raised" else "span", event.state),
            el("bdi", event.title),
            _estimate(_scale(collection, event, definitions[event.alarm]), event, definitions[event.alarm]),
            step_time(collection, event.since),
        )
        for event in events
    ]
    return table("Latest events", ["Step", "Event", "Alarm", "That step alone", "Likely since"], rows)


def _estimate(scale: Scale | None, watched: WatchedBody | AlarmEvent, definition: Definition) -> str:
    """A step's own estimate and interval, cut to what is possible; the API has them uncut."""
    if watched.value is None or watched.low is None or watched.high is None:
        return "nothing"
    if scale is None:
        return f"{_chance(watched.value)}, if all reports were genuine"
    numbers = [watched.value, watched.low, watched.high]
    if scale.kind == "share":
        weights = (definition.get("weights") or {"": 1.0}).values()
        least, most = min(0.0, *weights), max(0.0, *weights)
        numbers = [min(max(number, least), most) for number in numbers]
    value, low, high = map(scale.text, numbers)
    return f"{value} ({low} to {high})"


def _rule(definition: Definition) -> str:
    if definition.get("forged"):
        return "Raised below a chance of"
    named = [name for name in ("above", "below") if definition.get(name) is not None]
    return f"Raised {named[0]}" if named else "Raised on a change from"


def _bound(scale: Scale | None, watched: WatchedBody) -> str | None:
    bound = watched.threshold if watched.threshold is not None else watched.baseline
    if bound is not None and scale is None:
        return _chance(bound)
    return None if bound is None or scale is None else scale.text(bound)


def _chance(chance: float) -> str:
    return f"{chance:.2g}" if chance >= 1e-12 else "less than 1e-12"


def _scale(collection: Collection, watched: WatchedBody | AlarmEvent, definition: Definition) -> Scale | None:
    """The scale of the watched numbers; None where reports are watched, and the numbers are chances."""
    if definition.get("forged"):
        return None
    shape = collection.questions[watched.question].shape()
    reaches = [watched.high - watched.value] if watched.value is not None and watched.high is not None else []
    return Scale.of("share" if shape.unit == "share" else "mean", reaches=reaches)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
