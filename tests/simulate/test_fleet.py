"""The fleet answers all that devices are asked, in rounds and over time; what `collect` adds up."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hubbub as hb
from hubbub.authoring.toml import load_collection
from hubbub.core.errors import InvalidValue
from hubbub.core.event import units_of
from hubbub.ledger.promise import Promise
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.ask import CIRCLE, Arc, Ask
from hubbub.protocols.changes.stream import ChangeStream
from hubbub.protocols.driver import MAIN, Count, Protocol, Release, ask_all, ask_count, ask_once, converse
from hubbub.protocols.views.basic import Among
from hubbub.questions.collection import Collection
from hubbub.simulate import fleet as module
from hubbub.simulate.conversation import collect, run_question, run_stream
from hubbub.simulate.devices import ArrayStream, Stream
from hubbub.simulate.fleet import Fleet
from hubbub.simulate.ledgers import ACCOUNT, Ledgers, StudyPayments

EXAMPLES = Path(__file__).parents[2] / "examples"
HALVES = Arc(0, CIRCLE // 2), Arc(CIRCLE // 2, CIRCLE // 2)


def codes(n: int, steps: int = 1, size: int = 4, seed: int = 1) -> ArrayStream:
    return ArrayStream(hb.Random(seed=seed).below(size, n * steps).reshape(steps, n), domain=size)


def everyone(fleet: Fleet) -> slice:
    return slice(0, fleet.stream.n)


# -- fresh reports --------------------------------------------------------------------------------------------


def test_parts_are_answered_by_who_is_on_their_arc_and_by_nobody_twice() -> None:
    fleet = Fleet(codes(1000), hb.Random(seed=1), ledgers=Ledgers.of_window(1000, epsilon=1.0, w=1, strict=True))
    asks = [Ask(mechanism=hb.GRR(epsilon=1.0, domain=4), step=1, cohort=arc) for arc in HALVES]
    sizes = [fleet.answer(ask).n for ask in asks]
    assert sum(sizes) == 1000
    assert sizes == [int(ask.cohort.holds(fleet.places).sum()) for ask in asks]


def test_chunks_and_single_devices_are_asked_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 7)
    read_devices: list[int] = []

    class RecordingStream(ArrayStream):
        def values(self, step: int, start: int, stop: int) -> NDArray[np.int64]:
            read_devices.extend(range(start, stop))
            return super().values(step, start, stop)

    stream = RecordingStream(codes(50).table, domain=4)
    ask = Ask(mechanism=hb.GRR(epsilon=1.0, domain=4), step=1, cohort=Arc(CIRCLE - 10**9, 2 * 10**9))
    fleet = Fleet(stream, hb.Random(seed=1))
    in_cohort = np.flatnonzero(ask.cohort.holds(fleet.places))
    assert fleet.answer(ask).n == in_cohort.size
    assert sorted(read_devices) == in_cohort.tolist()
    rows = np.array([3, 6, 7, 20, 49])
    assert [len(reports) for reports in fleet.reports(ask, rows)] == [2, 1, 1, 1]


def test_who_is_away_does_not_answer_and_does_not_pay() -> None:
    ledgers = Ledgers.of_window(100, epsilon=1.0, w=5)
    fleet = Fleet(
        codes(100, steps=2), hb.Random(seed=1), ledgers=ledgers, present=lambda step: np.arange(100) % 2 == step % 2
    )
    ask = Ask(mechanism=hb.GRR(epsilon=1.0, domain=4), step=1)
    assert [fleet.answer(replace(ask, step=step)).n for step in (1, 2)] == [50, 50]


def test_counts_are_of_the_reports_that_were_kept_of_the_latest_ask_that_is_equal() -> None:
    fleet, olh = Fleet(codes(3000, size=50), hb.Random(seed=1)), hb.OLH(epsilon=4.0, domain=50)
    ask = Ask(mechanism=olh, step=1, kept=True)
    for _ in range(2):
        sketch = fleet.answer(ask)
    result = fleet.count(Count(ask, tuple(range(50))))
    assert result.n == sketch.n == 3000
    assert result.support.tolist() == sketch.counts.tolist()  # a small domain's sketch is the support of all of it
    with pytest.raises(InvalidValue, match="an ask that was answered"):
        fleet.count(Count(replace(ask, step=2), (1,)))


# -- studies --------------------------------------------------------------------------------------------------


def top_two(first: ReportFormat, second: Callable[[int], ReportFormat]) -> Protocol:
    """Three rounds: a half of the people each, kept; then all of them about the two commonest of what was heard."""
    asks = [Ask(mechanism=first, step=0, cohort=arc, kept=True) for arc in HALVES]
    sketches = yield from ask_all(asks)
    shares = np.zeros(20)
    for ask in asks:
        result = yield from ask_count(Count(ask, tuple(range(20))))
        shares += Count(ask, tuple(range(20))).estimate(result).value
    best = tuple(sorted(np.argsort(-shares)[:2].tolist()))
    view = Among(best)
    sketch = yield from ask_once(Ask(mechanism=second(view.size), step=0, view=view))
    estimate = second(view.size).estimate(sketch)
    n = float(sum(sketch.n for sketch in sketches))
    yield Release(step=0, estimates={MAIN: estimate}, published=True, spent=1.0, n=n)


def study(limit: float, allowed: float = 4.0) -> tuple[Fleet, Ledgers]:
    table = np.array([[3] * 3000 + [11] * 2000 + list(range(20)) * 50])
    order = hb.Random(seed=5).permutation(6000)
    ledgers = Ledgers.of_window(6000, epsilon=allowed, w=2)
    payments = StudyPayments(ledgers, limit=units_of(limit), ends=9)
    return Fleet(ArrayStream(table[:, order], domain=20), hb.Random(seed=1), ledgers=ledgers, study=payments), ledgers


def conduct(fleet: Fleet) -> Release:
    protocol = top_two(hb.OLH(epsilon=2.0, domain=20), lambda size: hb.GRR(epsilon=2.0, domain=size))
    (release,) = converse(protocol, fleet.answer, count=fleet.count, rounds=2, parts=2)
    return release


def test_a_study_asks_about_what_the_first_rounds_heard_and_is_paid_once() -> None:
    fleet, ledgers = study(limit=4.0)
    release = conduct(fleet)
    truth = np.array([3050, 2050, 900]) / 6000
    z = (release.estimate.value - truth) / release.estimate.stderr
    assert np.abs(z).max() < 4.5  # three numbers: once in 50,000 seeds
    assert release.estimate.n == release.n == 6000
    assert ledgers.most == units_of(4.0)
    # Dated at its end: it counts until then, and for the window after.
    assert [bool(ledgers.spend(now, 1, slice(0, 1))[0]) for now in (9, 10, 11)] == [False, False, True]


def test_a_study_that_asks_more_than_was_signed_meets_silence() -> None:
    fleet, ledgers = study(limit=3.0)  # two answers of epsilon 2
    sketch = fleet.answer(Ask(mechanism=hb.GRR(epsilon=2.0, domain=20), step=0))
    assert sketch.n == 6000
    assert fleet.answer(Ask(mechanism=hb.GRR(epsilon=2.0, domain=20), step=0)).n == 0
    assert ledgers.most == units_of(3.0)


def test_who_cannot_pay_for_all_of_a_study_does_not_begin_it() -> None:
    fleet, ledgers = study(limit=4.0, allowed=3.0)
    assert fleet.answer(Ask(mechanism=hb.GRR(epsilon=2.0, domain=20), step=0)).n == 0
    assert ledgers.most == 0


# -- what devices remember ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [hb.BasicRappor, hb.Loloha])
def test_memos_are_paid_for_once_a_value_and_go_on_where_they_cannot_be(
    kind: type[hb.BasicRappor | hb.Loloha],
) -> None:
    """Each device holds the values 0, 1, 0, 1, 2, 2 and can pay for two memos of BasicRappor."""
    mechanism = kind(epsilon=1.0, domain=3)
    price = int(mechanism.permanent_event().spent)
    table = np.repeat(np.array([0, 1, 0, 1, 2, 2])[:, None], 40, axis=1)
    ledgers = Ledgers(40, [Promise(2 * price, 0, parts={ACCOUNT: 2 * price})])
    fleet = Fleet(ArrayStream(table, domain=3), hb.Random(seed=1), ledgers=ledgers)
    spent = []
    for step in range(1, 7):
        assert fleet.answer(Ask(mechanism=mechanism, step=step)).n == 40
        spent.append(ledgers.most // price)
    assert spent == [1, 2, 2, 2, 2, 2] if kind is hb.BasicRappor else spent[-1] <= 2


@pytest.mark.parametrize("parts", [1, 3])
def test_a_stream_of_changes_is_the_same_whether_devices_answer_together_or_in_turns(parts: int) -> None:
    """Enrolled once each, a report at the end of each node of their level, in every horizon."""
    changes, n = ChangeStream(epsilon=2.0, dimension=2, steps=4, changes=2, one=True), 600
    fleet = Fleet(codes(n, steps=8, size=2), hb.Random(seed=1))
    levels = np.zeros(len(changes.lengths), dtype=np.int64)
    for step in range(1, 9):
        ask, sketch = Ask(mechanism=changes, step=step, standing=True), changes.empty()
        for part in range(parts):
            for reports in fleet.reports(ask, np.arange(part, n, parts)):
                sketch = sketch + changes.accumulate(reports)
        enrolled, came = sketch.counts[:, 0], sketch.counts[:, 1]
        at = (step - 1) % 4 + 1
        levels = enrolled if at == 1 else levels
        assert enrolled.sum() == (n if at == 1 else 0)
        ending = np.array([at % view.span == 0 for view in changes.views])
        # Who enrols says so even where no node of its level ends.
        assert came.tolist() == (levels if at == 1 else np.where(ending, levels, 0)).tolist()


# -- the service's own generators -----------------------------------------------------------------------------


def test_every_question_of_the_examples_runs_in_a_fleet_as_it_is_deployed() -> None:
    """Signed terms admit what is asked, ledgers pay for it, and the first release is near the truth."""
    n, kinds = 4000, set()
    for path in sorted(EXAMPLES.glob("*.toml")):
        collection = load_collection(path)
        for name, question in collection.questions.items():
            stream = held(collection, name, n)
            if stream is None:
                continue
            release = next(run_question(collection, name, stream, hb.Random(seed=name), steps=1))
            kinds.add(type(question).kind)
            truth = stream.truth(1)
            estimate = release.estimate
            z = np.abs(estimate.value[: truth.size] - truth) / estimate.stderr[: truth.size]
            assert z.max() < 5, (path.name, name, z)  # about a hundred numbers: once in 10,000 seeds
    assert kinds >= {"histogram", "stream", "memo", "changes"}


def held(collection: Collection, name: str, n: int) -> Stream | None:
    """Codes of a question about one field with names, drawn with weights; None of any other field."""
    domain, *others = collection.questions[name].setting.domains.values()
    if others or not hasattr(domain, "names") or hasattr(domain, "keys"):
        return None
    size = len(domain.names)
    weights = np.arange(size, 0, -1) / np.arange(size, 0, -1).sum()
    row = np.random.default_rng(1).choice(size, n, p=weights)
    return ArrayStream(np.tile(row, (3, 1)), domain=size)


def test_an_ask_that_devices_would_refuse_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    collection = load_collection(EXAMPLES / "emoji.toml")

    def other(*_: object, **__: object) -> Protocol:
        yield from ask_once(Ask(mechanism=hb.GRR(epsilon=9.0, domain=5), step=1))

    monkeypatch.setattr(type(collection), "protocol", other)
    with pytest.raises(InvalidValue, match="what the terms of popular admit"):
        next(run_question(collection, "popular", codes(10), hb.Random(seed=1)))


def test_a_protocol_that_ends_is_run_to_its_end() -> None:
    def twice() -> Protocol:
        mechanism = hb.GRR(epsilon=4.0, domain=4)
        for step in (1, 2):
            sketch = yield from ask_once(Ask(mechanism=mechanism, step=step))
            yield Release(
                step=step, estimates={MAIN: mechanism.estimate(sketch)}, published=True, spent=1.0, n=float(sketch.n)
            )

    assert len(run_stream(twice(), codes(100, steps=5), hb.Random(seed=1)).values) == 2


@pytest.mark.parametrize("chunk", [1, 7, 1000, 1 << 18])
def test_chunks_change_nothing_where_a_report_draws_one_block(chunk: int):
    oue = hb.OUE(epsilon=1.0, domain=16)
    values = np.arange(200) % 16
    whole = oue.accumulate(oue.randomize(values, hb.Random(seed=3)))
    assert collect(oue, values, hb.Random(seed=3), chunk=chunk) == whole


@pytest.mark.parametrize("shards", [1, 2, 3, 50])
def test_everyone_is_counted_once_in_any_number_of_shards(shards: int):
    # At epsilon 40 a report is the truth but for a chance of 2e-17 a person.
    grr = hb.GRR(epsilon=40.0, domain=5)
    values = np.arange(41) % 5
    sketch = collect(grr, values, hb.Random(seed=1), chunk=3, shards=shards)
    assert sketch.n == 41
    assert sketch.counts.tolist() == np.bincount(values).tolist()


def test_shards_draw_from_streams_of_their_own_and_differ_from_call_to_call():
    grr = hb.GRR(epsilon=0.1, domain=2)
    rng = hb.Random(seed=1)
    values = np.zeros(4000, dtype=np.int64)
    first, second = (collect(grr, values, rng, shards=2).counts for _ in range(2))
    again = collect(grr, values, hb.Random(seed=1), shards=2).counts
    assert first.tolist() == again.tolist()
    # Two independent binomial counts of variance 1,000 are equal with probability 0.009; this seed's are not.
    assert first.tolist() != second.tolist()


def test_memory_is_bounded_by_the_size_of_reports(monkeypatch: pytest.MonkeyPatch):
    she = hb.SHE(epsilon=1.0, domain=1024)
    largest = 0
    randomize = hb.SHE.randomize

    def watch(self, values, rng):
        nonlocal largest
        largest = max(largest, len(values))
        return randomize(self, values[:1], rng)  # one is enough: what is asked for is what is watched

    monkeypatch.setattr(hb.SHE, "randomize", watch)
    collect(she, np.zeros(100_000, dtype=np.int64), hb.Random(seed=1))
    assert 0 < largest * she.report_bytes <= 1 << 26


def test_nobody_is_an_empty_sketch():
    grr = hb.GRR(epsilon=1.0, domain=2)
    assert collect(grr, [], hb.Random(seed=1)) == grr.empty()
    assert collect(grr, [], hb.Random(seed=1), shards=4) == grr.empty()


@pytest.mark.parametrize("field", ["chunk", "shards"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_bad_sizes_are_refused(field: str, value: Any):
    with pytest.raises(InvalidValue, match=field):
        collect(hb.GRR(epsilon=1.0, domain=2), [0], hb.Random(seed=1), **{field: value})
