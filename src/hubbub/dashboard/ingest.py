"""The ingest page: how many reports came in, how many were turned away and why, and what is asked now."""

from collections.abc import Mapping, Sequence

from hubbub.dashboard.layout import facts, numbered, table
from hubbub.dashboard.markup import Child, Html, Scale, count, el, join, moment, nearly, part, step_time
from hubbub.dashboard.meter import Interval
from hubbub.dashboard.over_time import Point, band
from hubbub.dashboard.reader import Ingest, OpenAskCount, Reader
from hubbub.questions.collection import Collection

EXPLAINED = {
    "accepted": "Counted, exactly once, and on the disk.",
    "duplicate": "Sent again and recognised: it was counted before. A lost answer makes a device repeat itself.",
    "cover": "Sent without a report by a device that was asked and did not answer: it hides which ones answered.",
    "unknown_collection": "Names a collection that is not served here. An old program, or a wrong address.",
    "unknown_ask": "Answers something that was never asked. A broken program, or one that guesses.",
    "outdated_version": "Made for an earlier version of the collection. The device has not fetched the new one yet.",
    "replay": "Carries the number of another report with other bytes. Devices never do this; someone may be trying.",
    "too_early": "Answers an ask that is not open yet. A device whose clock is ahead.",
    "late": "Came after the time for late reports of its step was over. A device that was off or offline.",
    "malformed": "Not a report at all, or not of the size that every upload has. A broken program, or someone trying.",
    "too_large": "Larger than any upload may be.",
    "over_quota": "More at once than the collection takes. Devices wait and try again.",
    "over_sender_quota": "More at once than is taken from one sender. A relay that needs a higher limit, or a flood.",
    "over_ceiling": "More reports to one ask than the collector takes. A flood, or a ceiling that is too low.",
    "not_shuffled": "Sent to the collector directly, and not to the first shuffler. An old program, or someone trying.",
    "under_minimum": "In a shuffled batch with fewer people's reports than the signed minimum: none is counted.",
}
"""What each outcome means, and what usually causes it."""

NO_FAULT = ("accepted", "duplicate", "cover")
_NOW = 60.0
_HEADINGS = ("Outcome", "#Reports", "What it means")


def ingest_page(reader: Reader, collection: Collection) -> Html:
    """The whole page."""
    ingest, asks, now = reader.ingest(collection.name), reader.open_asks(collection.name), reader.now()
    return join(_headline(ingest, asks), _rates(ingest, now), _outcomes(ingest), _asks(collection, asks, now))


def rate_now(rates: list[Interval]) -> float:
    """Accepted reports per second, over the last minute or as much of it as there is."""
    seconds, accepted = 0.0, 0
    for interval in reversed(rates):
        if seconds >= _NOW:
            break
        seconds, accepted = seconds + interval.seconds, accepted + interval.accepted
    return accepted / seconds if seconds else 0.0


def _headline(ingest: Ingest, asks: Sequence[OpenAskCount]) -> Html:
    accepted = ingest.outcomes.get("accepted", 0)
    turned_away = sum(number for name, number in ingest.outcomes.items() if name not in NO_FAULT)
    total = accepted + turned_away
    share = f"{part(turned_away / total)} of all" if total else None
    pairs: list[tuple[str, Child]] = [
        ("Reports per second", _rate_text(rate_now(list(ingest.rates)))),
        ("Accepted", count(accepted)),
        ("Turned away", join(count(turned_away), el("span", f" {share}", class_="aside") if share else None)),
        ("Asks open", count(len(asks))),
    ]
    return facts(pairs, class_="tiles")


def _rate_text(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 or rate == 0 else f"{rate:.2g}"


def _rates(ingest: Ingest, now: float) -> Html:
    points = [
        Point(
            interval.start,
            moment(interval.start),
            interval.accepted / interval.seconds,
            note=count(interval.rejected) if interval.rejected else "",
        )
        for interval in ingest.rates
        if interval.start + interval.seconds <= now  # one that is not over yet would look like a fall
    ]
    if len(points) < 2:
        content = el("p", "The chart begins with the first report.", class_="note")
    else:
        numbers = [point.value or 0.0 for point in points]
        scale = Scale("quantity", 0 if max(numbers) >= 10 else 2)
        content = band(
            points,
            name="rate",
            title="Accepted reports per second",
            summary=f"Accepted reports per second over the last {nearly(now - points[0].time)}: "
            f"{scale.text(numbers[-1])} now, at most {scale.text(max(numbers))}.",
            scale=scale,
            headings=("Time", "A second", "", "Turned away"),
        )
    return el("section", el("h2", "How fast they come", id="rate-title"), content, aria_labelledby="rate-title")


def _outcomes(ingest: Ingest) -> Html:
    rows = _rows(ingest.outcomes, always=("accepted", "duplicate"))
    content: list[Child] = [table("Reports by outcome", _HEADINGS, rows)]
    if not any(number for name, number in ingest.outcomes.items() if name not in NO_FAULT):
        content.append(el("p", "Nothing was turned away.", class_="note"))
    if any(ingest.nobodys.values()):
        text = "Turned away before it was clear which collection they are for:"
        content += [el("p", text), table("Reports of no collection", _HEADINGS, _rows(ingest.nobodys))]
    title = el("h2", "What became of them", id="outcomes-title")
    return el("section", title, content, aria_labelledby="outcomes-title")


def _rows(outcomes: Mapping[str, int], *, always: Sequence[str] = ()) -> list[tuple[Child, ...]]:
    names = [*EXPLAINED, *(name for name in outcomes if name not in EXPLAINED)]
    return [
        (el("code", name), count(outcomes.get(name, 0)), EXPLAINED.get(name, ""))
        for name in names
        if outcomes.get(name, 0) or name in always
    ]


def _asks(collection: Collection, asks: Sequence[OpenAskCount], now: float) -> Html:
    rows = [
        (
            ask.question,
            numbered(step_time(collection, ask.step), ask.step),
            "everyone" if ask.share >= 1 else part(ask.share),
            count(ask.reports),
            nearly(ask.closes - now),
        )
        for ask in asks
    ]
    if rows:
        headings = ("Question", "Step", "#Asked of", "#Reports so far", "#Closes in")
        content = table("Open asks", headings, rows)
    else:
        content = el("p", "Nothing is asked at this moment.", class_="note")
    return el("section", el("h2", "What is asked now", id="asks-title"), content, aria_labelledby="asks-title")
