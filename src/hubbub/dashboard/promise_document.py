"""The promise of a collection as a document: to read, to compare with the version before, to print and to sign."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date

from hubbub import __version__
from hubbub.authoring.answerable import answer, first_asks
from hubbub.authoring.coalitions import coalitions_of
from hubbub.authoring.guarantees import Guarantees, differences, guarantees_of, most_in
from hubbub.authoring.promise import promise, short_promise
from hubbub.collection.time import duration_text, span
from hubbub.core.errors import HubbubError
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.dashboard.markup import Child, Html, el, join
from hubbub.questions.collection import Collection
from hubbub.questions.words import rounded_up, sure_text
from hubbub.random.source import Random

_STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
h1 { line-height: 1.2 } h2 { margin-top: 2.5rem; border-bottom: 1px solid #8886 }
table { border-collapse: collapse; width: 100%; font-size: .9rem }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem .35rem 0; border-bottom: 1px solid #8884 }
td { overflow-wrap: anywhere } code { font-size: .85em }
aside { background: #8881; padding: .5rem 1rem; border-radius: .5rem }
dl { display: grid; grid-template-columns: 1fr 2fr; gap: .4rem 1rem } dd { margin: 0; border-bottom: 1px solid #888 }
@media print {
  body { max-width: none; margin: 0; font-size: 11pt }
  h2 { break-after: avoid } tr, aside { break-inside: avoid }
}
"""
_EXAMPLES = 3


def promise_document(collection: Collection, *, on: date, against: Collection | None = None) -> str:
    """The document as HTML: one file, without programs, that needs nothing else."""
    numbers = guarantees_of(collection)
    parts = [
        el("h1", f"What {collection.name} promises"),
        el("p", collection.title),
        _facts(collection, on),
        el("aside", el("p", el("b", "In short. "), short_promise(collection))),
        *_section("What an observer can learn", _learned(collection, numbers)),
        *_section("What leaves the device", _left(collection)),
        *_coalitions(collection),
        *_section("The promise", [el("p", paragraph) for paragraph in promise(collection).split("\n\n")[1:]]),
        *([] if against is None else _section(f"What version {against.version} said", _compared(collection, against))),
        *_section("Signed", [_signature()]),
    ]
    head = join(
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("title", f"{collection.name} {collection.version}: promise"),
        el("style", Html(_STYLE)),
    )
    return f"<!doctype html>\n{el('html', el('head', head), el('body', el('main', parts)), lang='en')}\n"


def _section(title: str, content: Sequence[Child]) -> list[Html]:
    return [el("h2", title), *(each if isinstance(each, Html) else el("p", each) for each in content)]


def _table(headings: Sequence[str], rows: Sequence[Sequence[Child]]) -> Html:
    head = el("tr", [el("th", heading, scope="col") for heading in headings])
    body = [el("tr", el("th", row[0], scope="row"), [el("td", cell) for cell in row[1:]]) for row in rows]
    return el("table", el("thead", head), el("tbody", body))


def _facts(collection: Collection, on: date) -> Html:
    rows: list[tuple[str, Child]] = [
        ("Collection", f"{collection.name}, version {collection.version}"),
        ("Hash of the signed document", el("code", collection.collection_id)),
        ("Date of this document", on.isoformat()),
        ("Trust", collection.trust),
        ("Made by", f"hubbub {__version__}"),
    ]
    return _table(("Document", ""), rows)


def _learned(collection: Collection, numbers: Guarantees) -> list[Child]:
    """What the worst observer learns, who sees everything that a device sends, in some spans of time."""
    day = most_in(collection, max(1, 86400 // collection.step_seconds)) / UNITS_PER_EPSILON
    window = "" if numbers.window_steps is None else span(numbers.window_steps * collection.step_seconds)
    spans = [
        ("one report", numbers.report),
        (f"one step ({duration_text(collection.step_seconds)})", numbers.step),
        (f"any {window}", numbers.window),
        ("a day", day),
        ("a year", numbers.year),
        ("a life", numbers.life),
    ]
    rows = [(name, rounded_up(epsilon), sure_text(epsilon)) for name, epsilon in spans if epsilon is not None]
    if numbers.life is None:
        rows.append(("a life", "no limit", "no limit"))
    text = (
        "Of someone who sees everything that a device sends, and knows all about everyone else. Sure: how sure such an "
        "observer can be afterwards of one of two values that were equally likely before."
    )
    return [text, _table(("Over", "Epsilon", "Sure of a value, at most"), rows)]


def _left(collection: Collection) -> list[Child]:
    """Reports of some values of the fields, as bytes: nobody can read the value from them."""
    rows: list[tuple[Child, ...]] = []
    for name in collection.questions:
        with suppress(HubbubError):  # a question that cannot be asked is a finding of `check`
            rows += [(name, value, reports) for value, reports in _reports(collection, name)]
    text = (
        "Reports as they are sent, of devices that recorded these values. The same value gives "
        "another report each time, and another value can give the same one."
    )
    return [text, _table(("Question", "Recorded", "Sent (bytes in hexadecimal)"), rows)]


def _reports(collection: Collection, name: str) -> Iterator[tuple[str, Child]]:
    terms, ask = collection.terms[name], first_asks(collection, name)[0]
    domains = {field: collection.fields[field] for field in terms.fields}
    for place in range(2):
        values = {field: domain.examples(2)[place % len(domain.examples(2))] for field, domain in domains.items()}
        codes = {field: domains[field].code(value) for field, value in values.items()}
        held = codes if len(codes) > 1 else next(iter(codes.values()))
        rng = Random(seed=f"{collection.collection_id} {name} {place}")
        reports = [answer(ask, [held], rng).to_bare().hex() for _ in range(_EXAMPLES)]
        shown = [
            el("div", el("code", text if len(text) <= 64 else f"{text[:60]}... ({len(text) // 2:,} bytes)"))
            for text in reports
        ]
        yield ", ".join(f"{field} = {value}" for field, value in values.items()), join(shown)


def _coalitions(collection: Collection) -> list[Html]:
    rows = [
        (
            name,
            group.who,
            rounded_up(group.epsilon),
            f"{group.delta:g}",
            "" if group.year is None else rounded_up(group.year[0]),
        )
        for name in collection.questions
        for group in coalitions_of(collection, name)
    ]
    headings = ("Question", "Who works together", "Epsilon of a batch", "Delta", "Epsilon of a year")
    return _section("Who must work together to see what", [_table(headings, rows)]) if rows else []


def _compared(collection: Collection, against: Collection) -> list[Child]:
    old, new = guarantees_of(against), guarantees_of(collection)
    keys = ("report", "step", "window", "year", "life", "central_year", "least_batch", "retention_days")
    numbers = [(key.replace("_", " "), _shown(getattr(old, key)), _shown(getattr(new, key))) for key in keys]
    changed = [
        (el("code", str(row["key"])), _shown(row["before"]), _shown(row["after"]))
        for row in differences(against.spec(), collection.spec())
    ]
    headings = ("", f"Version {against.version}", f"Version {collection.version}")
    return [_table(headings, numbers), "Every key of the signed document that differs:", _table(headings, changed)]


def _shown(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def _signature() -> Html:
    rows = ("Name", "Role", "Date", "Signature")
    return el("dl", [join(el("dt", row), el("dd", Html("&nbsp;"))) for row in rows])


def registry_record(collection: Collection, *, on: date) -> dict[str, object]:
    """A record for a public registry of deployments of differential privacy, in the registry's words."""
    numbers = guarantees_of(collection)
    central = numbers.central_year is not None
    return {
        "product": collection.name,
        "description": collection.title,
        "year": on.year,
        "flavor": "Approximate DP" if central else "Pure DP",
        "model": {"local": "Local", "shuffle": "Shuffle", "oblivious": "Shuffle"}[collection.trust],
        "privacy_unit": "User-level" if numbers.life is not None else "User-year",
        "epsilon": numbers.life if numbers.life is not None else numbers.year,
        "delta": 0.0,
        "central": {"epsilon_year": numbers.central_year, "delta": numbers.delta} if central else None,
        "event_epsilon": numbers.report,
        "accounting": "basic composition on the device" + (", numerical for shuffled batches" if central else ""),
        "mechanisms": sorted({name for each in numbers.questions.values() for name in each.mechanisms}),
        "implementation": f"hubbub {__version__}",
        "minimum_reports_per_release": numbers.least_batch,
        "retention_days": numbers.retention_days,
        "document": collection.collection_id,
    }
