"""Questions run over reports at rest: the same protocols as in the collector, answered by a DataFrame or by sketches.

A protocol is deterministic. So the asks of a round follow from the reports to the rounds before, and releases that were
made once are made again from the same reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hubbub.backends.folding import Folded, FoldPlan, divide, read_plan
from hubbub.backends.report_files import SketchKey
from hubbub.backends.report_rows import RowGroup
from hubbub.collection.names import AnswerName
from hubbub.core.errors import InvalidValue, check_integer, needs
from hubbub.core.reports import Reports, Sketch
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Conversation, Count, CountResult, Release
from hubbub.questions.collection import Collection, Schedule
from hubbub.questions.table_reports import MOST_REPORTS, table_of_reports
from hubbub.spark.batch import (
    BUCKETS,
    COLUMNS,
    AddUp,
    Batches,
    DataFrame,
    added_up,
    checked_plan,
    first_of_each,
    fold,
    plan_of,
    reports_to,
)

if TYPE_CHECKING:
    from hubbub.query.engine import QueryEngine


class RoundAnswers(Protocol):
    """Where a protocol's asks and counts are answered from."""

    def sketches(self, asks: Sequence[tuple[AnswerName, Ask]]) -> list[Sketch]:
        """The sketch of each ask of a round."""
        ...

    def count(self, name: AnswerName, count: Count) -> CountResult:
        """The supports of candidates among the reports that carry this name."""
        ...


def releases(
    reports: DataFrame | Folded, collection: Collection, question: str, *, number: int = 0, steps: int | None = None
) -> list[Release]:
    """Run a question's protocol over reports at rest: one run of a study to its end, or some steps of a stream.

    Estimates from fewer reports than the collection's `minimum_batch` are withheld, as its promise says. A release
    without its main estimate says so in `stopped`.

    Parameters
    ----------
    reports
        Rows of landing files in a DataFrame, or the sketches that they were folded into. A study that searches (`top`)
        needs the rows.
    number
        The run of a study, or the first step of a stream: where it began, as its later asks depend on all before.
    steps
        How many steps of a stream.
    """
    schedule = schedule_of(collection, question, number)
    if schedule.is_study == (steps is not None):
        raise InvalidValue("steps", steps, "nothing for a study, which ends, and a number for a stream")
    if steps is not None:
        check_integer("steps", steps, 1)
    made: list[Release] = []
    for message in messages_of(schedule, _answers(reports, collection, question), number, None):
        assert isinstance(message, Release)
        made.append(_withheld(message, collection.minimum_batch))
        if len(made) == steps:
            break
    return made


def _withheld(release: Release, minimum: int) -> Release:
    """The release without what rests on fewer reports."""
    nodes = () if release.ended is None else release.ended.nodes
    if any(0 < node.came < minimum for node in nodes):
        release = replace(release, ended=None)
    if release.estimates and release.estimate.n < minimum:
        why = f"withheld: {release.estimate.n:,} reports; at least {minimum:,} are needed"
        return replace(release, estimates={}, stopped=why)
    return replace(release, estimates={name: each for name, each in release.estimates.items() if each.n >= minimum})


def next_asks(
    reports: DataFrame | Folded, collection: Collection, question: str, *, number: int = 0, rounds: int = 0
) -> list[tuple[AnswerName, Ask]]:
    """What devices are to be asked after some rounds, with the names that their reports carry; nothing after the end.

    Parameters are those of `releases`; `rounds` is how many rounds were answered since then, in all steps together.
    """
    check_integer("rounds", rounds, 0)
    schedule = schedule_of(collection, question, number)
    for message in messages_of(schedule, _answers(reports, collection, question), number, rounds):
        if isinstance(message, list):
            return message
    return []


def schedule_of(collection: Collection, question: str, number: int) -> Schedule:
    """The schedule of a question of the collection; a question that it has not, and a negative number, are refused."""
    if question not in collection.questions:
        raise InvalidValue("question", question, f"one of {', '.join(collection.questions)}")
    check_integer("number", number, 0)
    return Schedule(collection, question)


def table(
    df: DataFrame, collection: Collection, question: str, *, first: int = 0, last: int | None = None
) -> QueryEngine:
    """The reports to a table question, each once, as a table that answers `table(...).sql("SELECT COUNT(*) ...")`.

    The engine selects and compares the rows; those of the chosen steps come to this process, up to 4 million.

    Parameters
    ----------
    df
        Rows of landing files.
    first, last
        The steps that are asked about.
    """
    schedule_of(collection, question, first)
    plan = plan_of(collection, questions=[question], first=first, last=last)
    checked_plan(df, plan)
    rows = reports_to(df, collection)
    rows = rows.where((rows["question"] == question) & (rows["step"] >= first))
    rows = rows if last is None else rows.where(rows["step"] <= last)
    rows = first_of_each(rows.select(*COLUMNS)).select(*COLUMNS).limit(MOST_REPORTS + 1)

    def reports() -> Iterator[tuple[int, int, Reports]]:
        for batch in rows.toArrow().to_batches():
            groups: list[RowGroup] = []
            divide(plan.read(batch), groups.append)
            yield from ((group.key.step, group.key.part, group.reports) for group in groups)

    with needs("sql"):
        from hubbub.query.engine import QueryEngine
    made = table_of_reports(collection, question, reports())
    return QueryEngine(made, minimum_people=collection.minimum_batch)


def messages_of(
    schedule: Schedule, answers: RoundAnswers, number: int, rounds: int | None
) -> Iterator[Release | list[tuple[AnswerName, Ask]]]:
    """The releases of a protocol; and last, if only some rounds are to be answered, the asks of the next one."""
    terms = schedule.terms
    protocol = schedule.collection.protocol(schedule.question, first=number)
    conversation = Conversation(protocol, rounds=terms.rounds, parts=terms.parts)
    names: dict[str, AnswerName] = {}
    answered = 0
    while (message := conversation.listen()) is not None:
        if isinstance(message, Release):
            yield message if schedule.is_study else replace(message, step=number)
            number += not schedule.is_study
        elif isinstance(message, Count):
            conversation.reply_count(answers.count(names[message.ask.ask_id], message))
        else:
            asks = [
                (schedule.name(number, conversation.round, part), ask) for part, ask in enumerate(conversation.asks)
            ]
            if answered == rounds:
                yield asks
                return
            names |= {ask.ask_id: name for name, ask in asks}
            conversation.reply_all(answers.sketches(asks))
            answered += 1


def _answers(reports: DataFrame | Folded, collection: Collection, question: str) -> RoundAnswers:
    if isinstance(reports, Folded):
        return FoldedAnswers(reports, collection)
    return DataFrameAnswers(reports, collection, question)


class FoldedAnswers:
    """RoundAnswers from sketches that were folded before."""

    def __init__(self, folded: Folded, collection: Collection) -> None:
        self._folded, self._collection = folded, collection
        self._specs: dict[tuple[object, ...], list[str]] = {}
        for key in folded.sketches:
            self._specs.setdefault(key[:-1], []).append(key.spec_id)

    def sketches(self, asks: Sequence[tuple[AnswerName, Ask]]) -> list[Sketch]:
        return [self._sketch(name, ask) for name, ask in asks]

    def _sketch(self, name: AnswerName, ask: Ask) -> Sketch:
        key = _key(self._collection, name, ask)
        sketch = self._folded.sketches.get(key)
        others = self._specs.get(key[:-1], [])
        if sketch is None and others:
            raise _not_asked(name, others[0], [key.spec_id])
        return ask.mechanism.empty() if sketch is None else sketch

    def count(self, name: AnswerName, count: Count) -> CountResult:
        raise InvalidValue("reports", "sketches", f"a DataFrame: {name.question} searches among single reports")


class DataFrameAnswers:
    """RoundAnswers from the rows of a DataFrame; each round and each count is a job of the engine."""

    def __init__(self, df: DataFrame, collection: Collection, question: str) -> None:
        self._rows = reports_to(df, collection)
        self._rows = self._rows.where(self._rows["question"] == question)
        self._collection = collection

    def sketches(self, asks: Sequence[tuple[AnswerName, Ask]]) -> list[Sketch]:
        specs = {ask.mechanism.spec_id: ask.mechanism.spec() for _, ask in asks}
        folded = fold(self._of(asks[0][0]), FoldPlan(specs=specs)).folded
        if "unknown_spec" in folded.left_out and not folded.sketches:
            raise _not_asked(asks[0][0], "reports of other mechanisms", list(specs))
        return FoldedAnswers(folded, self._collection).sketches(asks)

    def count(self, name: AnswerName, count: Count) -> CountResult:
        key = _key(self._collection, name, count.ask)
        rows, plan = self._of(name), FoldPlan(specs={key.spec_id: count.oracle.spec()})
        text, n = checked_plan(rows, plan), 0

        def supports() -> Iterator[np.ndarray]:
            nonlocal n
            for start in count.starts():
                parts = added_up(rows, plan, _supports(text, key, count, start), _summed, buckets=BUCKETS)
                counts = np.frombuffer(_summed([bytes(part["result"]) for part in parts]), dtype="<i8")
                n = int(counts[0])
                yield counts[1:]

        result = count.choose(0, supports())
        return result._replace(n=n)

    def _of(self, name: AnswerName) -> DataFrame:
        """The rows of a round; which part they answer is told when they are read."""
        rows = self._rows
        return rows.where((rows["run"] == name.run) & (rows["step"] == name.step) & (rows["round"] == name.round))


def _not_asked(name: AnswerName, present: str, specs: list[str]) -> InvalidValue:
    allowed = f"reports by {' or '.join(specs)}, for which the protocol asks: reports to an earlier ask are missing"
    return InvalidValue(f"reports to {name}", present, allowed)


def _key(collection: Collection, name: AnswerName, ask: Ask) -> SketchKey:
    return SketchKey(collection.name, collection.version, *name, ask.mechanism.spec_id)


def _supports(text: str, key: SketchKey, count: Count, start: int) -> AddUp:
    """Rows into how many reports there are, and how many support each candidate of a block."""

    def add_up(batches: Batches) -> Iterator[tuple[str, bytes]]:
        plan, n = read_plan(text), 0

        def reports() -> Iterator[Reports]:
            nonlocal n
            for batch in batches:
                groups: list[RowGroup] = []
                divide(plan.read(batch), groups.append)
                for group in groups:
                    if group.key == key:
                        n += len(group.reports)
                        yield group.reports

        counts = count.supports(reports(), start)
        yield "", np.concatenate([[n], counts]).astype("<i8").tobytes()

    return add_up


def _summed(parts: Sequence[bytes]) -> bytes:
    return bytes(np.sum([np.frombuffer(part, dtype="<i8") for part in parts], axis=0, dtype="<i8").tobytes())
