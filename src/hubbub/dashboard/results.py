"""Results: what the crowd answered, question by question."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from msgspec import structs

from hubbub.dashboard.alarms import NO_ALARMS, alarm_banner, alarm_section
from hubbub.dashboard.answers import (
    Value,
    bias_text,
    chosen_code,
    consistency_note,
    forged_table,
    headline,
    latest,
    mean_figure,
    other_numbers,
    pooled,
    possible,
    values_of,
    why_withheld,
)
from hubbub.dashboard.bars import MOST_ROWS, BarTable, ordered_bars, ranked_bars
from hubbub.dashboard.groups import ChosenPair, group_tables
from hubbub.dashboard.horizon_range import AskedRange, range_section
from hubbub.dashboard.layout import facts, numbered, path_to
from hubbub.dashboard.marginals import marginals_figure, marginals_headline
from hubbub.dashboard.markup import Child, Html, count, el, join, moment, nearly, part, step_time
from hubbub.dashboard.over_time import at_a_glance, over_time
from hubbub.dashboard.query_box import BoxQuery, query_section
from hubbub.dashboard.reader import OpenAskCount, Reader
from hubbub.dashboard.vectors import vector_figure, vector_headline
from hubbub.questions import Shape
from hubbub.questions.collection import Collection
from hubbub.service.alarms import AlarmsBody
from hubbub.service.base.api import LostReports, ReleaseBody

HISTORY = 120
"""How many steps a chart goes back, at most."""

_MOST_READ = 250_000
"""How many numbers are read for a chart over time: each step has one for every value."""

_MOST_ADDED = 20_000
"""How many numbers are read to be added up."""

_FEW = 8


def results_page(reader: Reader, collection: Collection) -> Html:
    """All questions of a collection, each with its latest answer."""
    asks, alarms = reader.open_asks(collection.name), reader.alarms(collection.name)
    return join(
        alarm_banner(collection, alarms),
        (_section(reader, collection, name, asks, alarms) for name in collection.questions),
        _no_longer_asked(reader, collection),
        alarm_section(collection, alarms),
    )


def _section(
    reader: Reader, collection: Collection, name: str, asks: Sequence[OpenAskCount], alarms: AlarmsBody
) -> Html:
    question = collection.questions[name]
    moves, vector = _shape(collection, name).over_time, _shape(collection, name).form == "vector"
    uncut = reader.releases(
        collection, name, _history(collection, name, _MOST_READ if moves or vector else _MOST_ADDED)
    )
    answers = as_possible(collection, name, uncut)
    charts = (
        over_time(collection, name, answers, chosen_code(answers, None), alarms) if moves else None,
        vector_figure(name, answers) if vector else _values(collection, name, latest(answers), most=_FEW),
        _together(collection, name, uncut),
    )
    return el(
        "section",
        el("p", name, class_="above"),
        el("h2", el("a", question.title or name, href=path_to("results", collection.name, name)), id=f"q-{name}-title"),
        _headline(collection, name, answers),
        _side_by_side(charts, (_facts(collection, answers), _asking(name, asks, reader.now())), f"About {name}"),
        id=f"q-{name}",
        class_="question",
        aria_labelledby=f"q-{name}-title",
    )


def question_page(
    reader: Reader,
    collection: Collection,
    name: str,
    wanted: int | None = None,
    pair: ChosenPair | None = None,
    query: BoxQuery | None = None,
    fields: Sequence[str] = (),
    steps: AskedRange = AskedRange(None, None),
) -> Html:
    """One question: every value, and one of them over time; two groups, the query box, a marginal, a range of steps.

    Of an earlier version, which nobody asks now, there are only the releases.
    """
    ended = collection.version in reader.ended(collection.name).get(name, ())
    version = {"version": collection.version} if ended else {}
    answers = as_possible(collection, name, reader.releases(collection, name, _history(collection, name)))
    code = chosen_code(answers, wanted)
    alarms = NO_ALARMS if ended else reader.alarms(collection.name)
    form = _shape(collection, name).form
    ranks = form in ("ranking", "vector", "marginals")  # every run finds other values; entries have no names
    charts = (
        None if ended else _query_box(reader, collection, name, query),
        None if ranks else over_time(collection, name, answers, code, alarms),
        vector_figure(name, answers)
        if form == "vector"
        else marginals_figure(collection, latest(answers), fields)
        if form == "marginals"
        else _values(collection, name, latest(answers), most=MOST_ROWS, chosen=code, pair=pair, version=version),
        _forged(latest(answers), _shape(collection, name)),
        _range(reader, collection, name, steps),
    )
    api = ("v1", "collections", collection.name, "questions", name, "releases")
    about = (
        _facts(collection, answers),
        None if ended else _asking(name, reader.open_asks(collection.name), reader.now()),
        el("p", el("a", "All releases as JSON", href=path_to(*api, **version))),
        el("p", links) if (links := _earlier(reader, collection, name)) else None,
        el("p", el("a", "All questions", href=path_to("results", collection.name))),
    )
    return join(
        None if ended else alarm_banner(collection, alarms, name),
        _headline(collection, name, answers),
        _side_by_side(charts, about, f"About {name}"),
        None if ranks else at_a_glance(collection, name, answers, code, _link(collection, name, version)),
        None if ended else alarm_section(collection, alarms, name),
    )


def _forged(answer: ReleaseBody | None, shape: Shape) -> Html | None:
    return None if answer is None else forged_table(answer, shape.low, shape.high)


def _range(reader: Reader, collection: Collection, name: str, asked: AskedRange) -> Html | None:
    """The form for a range of steps, and its answer; of a large horizon only if somebody asks."""
    shape = _shape(collection, name)
    if not shape.horizon:
        return None
    wanted = asked != AskedRange(None, None) or shape.horizon * shape.size <= _MOST_ADDED
    return range_section(collection, name, asked, reader.range(collection, name, asked) if wanted else None)


def _no_longer_asked(reader: Reader, collection: Collection) -> Html | None:
    """Where to find the releases of questions that only earlier versions asked."""
    ended = [name for name in reader.ended(collection.name) if name not in collection.questions]
    links = [el("p", name, ": ", _earlier(reader, collection, name)) for name in ended]
    title = el("h2", "No longer asked", id="no-longer-asked")
    return el("section", title, links, aria_labelledby="no-longer-asked") if ended else None


def _earlier(reader: Reader, collection: Collection, name: str) -> Html | None:
    """Links to the releases of earlier versions that asked another question under this name."""
    versions = [version for version in reader.ended(collection.name).get(name, ()) if version != collection.version]
    links = [
        el("a", f"Releases of version {version}", href=path_to("results", collection.name, name, version=version))
        for version in versions
    ]
    return el("span", [[link, " "] for link in links], class_="earlier") if links else None


def _query_box(reader: Reader, collection: Collection, name: str, query: BoxQuery | None) -> Html | None:
    shape = _shape(collection, name)
    if not shape.columns:
        return None
    answer = None if query is None else reader.query(collection.name, name, query)
    return query_section(collection, name, shape, query, answer)


def as_possible(collection: Collection, name: str, answers: Sequence[ReleaseBody]) -> list[ReleaseBody]:
    """The answers to a question, with values and intervals cut to what is possible."""
    shape = _shape(collection, name)
    return [possible(answer, shape.low, shape.high) for answer in answers]


def _history(collection: Collection, name: str, most: int = _MOST_READ) -> int:
    return min(HISTORY, max(2, most // _shape(collection, name).size))


def _shape(collection: Collection, name: str) -> Shape:
    shape: Shape = collection.questions[name].shape()
    return shape


def _side_by_side(charts: Child, about: Child, label: str) -> Html:
    return el("div", el("div", charts, class_="charts"), el("aside", about, aria_label=label), class_="with-aside")


def _headline(collection: Collection, name: str, answers: Sequence[ReleaseBody]) -> Html:
    """The headline of the latest release."""
    if not answers:
        return el("p", "Nothing is released yet.", class_="said")
    form, rounds = _shape(collection, name).form, collection.terms[name].rounds
    if form == "marginals":
        text = marginals_headline(collection, answers[-1])
    else:
        text = vector_headline(answers[-1], rounds) if form == "vector" else headline(answers[-1])
    sentences: list[Child] = [text]
    if why_withheld(answers[-1]) is not None and latest(answers) is not None:
        sentences.append(" An earlier release is shown below.")
    return el("p", sentences, class_="said")


def _link(collection: Collection, name: str, version: Mapping[str, int]) -> Callable[[Value], str]:
    return lambda value: path_to("results", collection.name, name, value=value.code, **version)


def _values(
    collection: Collection,
    name: str,
    answer: ReleaseBody | None,
    *,
    most: int,
    chosen: int | None = None,
    place: str = "q",
    pair: ChosenPair | None = None,
    version: Mapping[str, int] = MappingProxyType({}),
) -> Html | None:
    shape = _shape(collection, name)
    if answer is None:
        return None
    if shape.form == "marginals":
        return marginals_figure(collection, answer, most=1)
    if shape.form == "groups":
        return join(group_tables(collection, answer, shape, pair), consistency_note(answer))
    if shape.form == "mean" and shape.low is not None and shape.high is not None:
        return join(mean_figure(answer, shape.low, shape.high), other_numbers(answer))
    values = values_of(answer)
    if shape.form == "ranking":
        return join(ranked_bars(BarTable(values, answer.kind, f"{place}-{name}"), most=most), other_numbers(answer))
    bars = BarTable(values, answer.kind, f"{place}-{name}", _link(collection, name, version), chosen)
    note = consistency_note(answer)
    if shape.form == "table":
        return join(ranked_bars(bars, most=most), note, other_numbers(answer))
    if shape.form != "distribution":
        return join(ranked_bars(bars, most=most), note)
    return join(ordered_bars(bars), note, other_numbers(answer))


def _together(collection: Collection, name: str, answers: Sequence[ReleaseBody]) -> Html | None:
    """The mean over the last steps, for a question that asks everyone anew in every step."""
    mean = pooled(answers) if _shape(collection, name).adds_up else None
    if mean is None:
        return None
    (answer,) = as_possible(collection, name, [mean])
    noun = "shares" if answer.kind == "share" else "numbers"
    title, steps = f"together-{name}-title", count(sum(1 for answer in answers if answer.value))
    return el(
        "section",
        el("h3", f"The last {steps} steps together", id=title),
        el("p", headline(answer)),
        _values(collection, name, answer, most=_FEW, place="together"),
        el(
            "p",
            f"The mean of their {noun}, from {count(answer.n, 'report')}. Its error falls with every step.",
            class_="note",
        ),
        aria_labelledby=title,
    )


def _facts(collection: Collection, answers: Sequence[ReleaseBody]) -> Html | None:
    answer = latest(answers) or (answers[-1] if answers else None)
    if answer is None:
        return None
    if _shape(collection, answer.question).form == "marginals":  # made to agree, from all that were reported on
        answer = structs.replace(answer, n=round(answer.population or answer.n), bias="consistent")
    everyone, study = _shape(collection, answer.question).everyone, collection.terms[answer.question].study
    withheld = why_withheld(answer) is not None
    lost = answer.lost if isinstance(answer.lost, LostReports) else None
    return facts(
        [
            ("Step" if study is None else "Run", numbered(_time(collection, answer), answer.step)),
            ("Reports" if lost is None else "Devices enrolled", count(answer.n)),
            ("Came in time", None if lost is None else _came(lost)),
            ("Devices", f"about {count(answer.population)}" if answer.population and not everyone else None),
            ("Stopped early", answer.stopped),
            ("Made from", None if answer.published or withheld else "earlier estimates, carried on"),
            ("Bias", None if withheld else bias_text(answer)),
        ]
    )


def _time(collection: Collection, answer: ReleaseBody) -> Html:
    """When the step of an answer began; of a study, its run."""
    if collection.terms[answer.question].study is None:
        return step_time(collection, answer.step)
    return moment(collection.round_times(answer.question, answer.step, 0, 1)[0])


def _came(lost: LostReports) -> str:
    """How many of the reports that were due came, and how far the lost ones may have biased the shares."""
    due, came = lost.due, lost.came
    text = f"{count(came)} of {count(due)} reports"
    biases = [abs(bias) for bias in lost.bias if bias is not None]
    if came >= due or not biases:
        return text
    return f"{text}: the lost ones may have biased shares by up to {part(max(biases))} toward their earlier values"


def _by_round(asks: Sequence[OpenAskCount]) -> list[OpenAskCount]:
    """The parts of one round as one ask."""
    rounds: dict[tuple[int, float, float], OpenAskCount] = {}
    for ask in asks:
        key = ask.step, ask.opens, ask.closes
        before = rounds.get(key)
        share, reports = (0.0, 0) if before is None else (before.share, before.reports)
        rounds[key] = replace(ask, share=min(share + ask.share, 1.0), reports=reports + ask.reports)
    return list(rounds.values())


def _asking(name: str, asks: Sequence[OpenAskCount], now: float) -> Html:
    """What is asked at this moment."""
    cards = []
    for ask in _by_round([ask for ask in asks if ask.question == name]):
        done = min(max((now - ask.opens) / max(ask.closes - ask.opens, 1e-9), 0.0), 1.0)
        who = "everyone" if ask.share >= 1 else f"{part(ask.share)} of all devices"
        cards.append(
            el(
                "div",
                el("p", el("b", count(ask.reports, "report")), f" so far for step {ask.step:,}, from {who}."),
                el("progress", value=round(done, 4), max=1, aria_label="Part of the step that is over"),
                el("p", f"Closes in {nearly(ask.closes - now)}.", class_="note"),
                class_="asking",
            )
        )
    return join(cards)
