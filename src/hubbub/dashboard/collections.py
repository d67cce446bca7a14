"""The pages about collections: an overview of all, and for each its questions, fields and signed document."""

import json
from collections.abc import Sequence
from functools import lru_cache

from hubbub.authoring import Finding, check, forecast
from hubbub.authoring.forecast import Forecast
from hubbub.collection.time import duration_text, every
from hubbub.core.domain import Domain
from hubbub.dashboard.answers import headline
from hubbub.dashboard.layout import facts, path_to, table
from hubbub.dashboard.markup import Child, Html, Scale, count, el, join, moment, part
from hubbub.dashboard.reader import Reader
from hubbub.dashboard.results import as_possible
from hubbub.protocols.ask import CIRCLE
from hubbub.questions.collection import Collection

_DEVICES = (10_000, 100_000, 1_000_000)


def overview_page(reader: Reader, collections: Sequence[Collection]) -> Html:
    """All collections, each with the headlines of its latest releases."""
    return el("div", [_card(reader, collection) for collection in collections], class_="cards")


def _card(reader: Reader, collection: Collection) -> Html:
    lines = []
    for name, question in collection.questions.items():
        answers = as_possible(collection, name, reader.releases(collection, name, 1))
        text = headline(answers[-1]) if answers else "Nothing is released yet."
        here = path_to("results", collection.name, name)
        lines.append(el("li", el("a", question.title or name, href=here), el("p", text)))
    accepted = reader.ingest(collection.name).outcomes.get("accepted", 0)
    return el(
        "section",
        el("p", f"{collection.name}, version {collection.version}", class_="above"),
        el("h2", el("a", collection.title, href=path_to("results", collection.name)), id=f"c-{collection.name}"),
        el("ul", lines, class_="answers"),
        el(
            "p",
            f"{count(accepted, 'report')} so far. ",
            el("a", "What is promised", href=path_to("privacy", collection.name)),
            class_="note",
        ),
        aria_labelledby=f"c-{collection.name}",
    )


def collection_page(collection: Collection) -> Html:
    """What one collection asks, what its check finds, and the document that devices receive."""
    return join(
        _about(collection), _questions(collection), _fields(collection), _findings(collection), _spec(collection)
    )


def _about(collection: Collection) -> Html:
    return facts(
        [
            ("Name", el("code", collection.name)),
            ("Version", str(collection.version)),
            ("Id", el("code", collection.collection_id, class_="id")),
            ("A step begins", every(collection.step_seconds)),
            ("Step 0 began", moment(collection.origin, precision=60)),
            (
                "Late reports count for",
                duration_text(collection.lateness_seconds) if collection.lateness_seconds else "no time",
            ),
            ("Fewest reports of a release", count(collection.minimum_batch)),
            ("Fewest devices asked at a time", f"{part(collection.minimum_arc / CIRCLE)} of all"),
            *([("Each device answers", f"one of {len(collection.questions)} questions")] if collection.divide else []),
            (
                "Planned for",
                count(collection.planned_devices, "device") if collection.planned_devices else "not stated",
            ),
            ("Sums of reports are kept for", duration_text(collection.retention_days * 86400)),
            ("Size of every upload", count(collection.frame_bytes, "byte")),
        ],
        class_="facts wide-facts",
    )


def _questions(collection: Collection) -> Html:
    rows = []
    for row in _forecasts(collection):
        question = collection.questions[row.question]
        link = el("a", question.title or row.question, href=path_to("results", collection.name, row.question))
        errors = [_error(row.errors[n], row.unit) for n in _DEVICES]
        rows.append(
            (
                el("code", row.question),
                link,
                row.kind,
                ", ".join(question.reads()),
                f"{question.epsilon:g}",
                row.mechanism,
                *errors,
            )
        )
        if any(row.least.values()):
            least = [_error(row.least[n], row.unit) for n in _DEVICES]
            rows.append(("", "no mechanism has less than", "", "", "", "", *least))
    headings = ("Name", "Question", "Kind", "Field", "#Epsilon", "Mechanism", *(f"#{n:,} devices" for n in _DEVICES))
    note = "The last columns are the standard error to expect with that number of devices."
    return el(
        "section",
        el("h2", "Questions", id="questions-title"),
        table("Questions", headings, rows),
        el("p", note, class_="note"),
        aria_labelledby="questions-title",
    )


def _error(error: float | None, unit: str) -> str:
    if error is None:
        return "no formula"
    return Scale.of("share" if unit == "share" else "quantity", reaches=[error]).text(error)


def _fields(collection: Collection) -> Html:
    rows = [
        (el("code", name), type(domain).__name__.lower(), _domain(domain)) for name, domain in collection.fields.items()
    ]
    return el(
        "section",
        el("h2", "Fields", id="fields-title"),
        table("Fields", ("Name", "Kind", "Values"), rows),
        aria_labelledby="fields-title",
    )


def _domain(domain: Domain) -> Child:
    if not domain.listed:
        return domain.describe()
    return join(
        f"{domain.describe()}: ", el("ul", [el("li", el("bdi", name)) for name in domain.listed], class_="names")
    )


def _findings(collection: Collection) -> Html | None:
    findings = _own_findings(collection)
    if not findings:
        return None
    items = [
        el("li", el("strong", finding.level), " ", el("code", finding.where), f" {finding.text}")
        for finding in findings
    ]
    return el(
        "section",
        el("h2", "What the check says", id="findings-title"),
        el("ul", items, class_="findings"),
        aria_labelledby="findings-title",
    )


def _spec(collection: Collection) -> Html:
    text = json.dumps(collection.spec(), indent=2, ensure_ascii=False)
    return el(
        "section",
        el("h2", "As devices get it", id="spec-title"),
        el("p", "The id is the hash of this document. A served document never changes: a change is a new version."),
        el("details", el("summary", "The whole spec"), el("pre", text, tabindex=0), id="spec"),
        aria_labelledby="spec-title",
    )


@lru_cache(maxsize=64)
def _forecasts(collection: Collection) -> tuple[Forecast, ...]:
    return tuple(forecast(collection))


@lru_cache(maxsize=64)
def _own_findings(collection: Collection) -> tuple[Finding, ...]:
    return tuple(check(collection))
