"""Real events as streams: their facts, counted a second way from the source; SaO2 and its rivals on one of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.data import flights, flights3m, taxi
from hubbub.data.packages import cached_table
from hubbub.protocols.sao2 import Sao2
from hubbub.random.source import Random
from hubbub.simulate.devices import EventStream
from hubbub_papers.change_runs import true_means
from hubbub_papers.real_streams import (
    fares_stream,
    flights3m_delays,
    flights3m_stream,
    flights_stream,
    last_destinations,
    taxi_stream,
)
from hubbub_papers.sao2_exsub.online import as_printed, expected_means, run_plan


def test_aircraft():
    stream = flights_stream()
    assert (stream.n, stream.steps, stream.domain, stream.dropped, stream.repeated) == (4043, 798, 17, 2512, 338)
    assert stream.labels[:3] == ("none", "9E", "AA")
    assert round(float((stream.table == 0).mean()), 6) == 0.98888
    assert stream.table.dtype == np.uint8
    assert isinstance(stream.table, np.memmap)
    assert "4,043 aircraft" in stream.data
    truth = stream.truth(1)
    assert truth.sum() == pytest.approx(1.0)
    assert truth[0] == np.mean(stream.values(1, 0, stream.n) == 0)


def test_aircraft_against_the_source():
    raw = flights()
    known = raw["tailnum"] != "NA"
    year = flights_stream(days=365)
    assert year.steps == 365 * 19
    assert int((year.table != 0).sum()) == raw.n - 2512 - 338
    for month, day, at in ((1, 1, 0), (12, 31, 364), (7, 4, 184)):
        rows = known & (raw["month"] == month) & (raw["day"] == day)
        pairs = set(zip(raw["tailnum"][rows].tolist(), raw["hour"][rows].tolist(), strict=True))
        assert int((year.table[19 * at : 19 * at + 19] != 0).sum()) == len(pairs)
    # The first flight of the year: United's N14228, planned for 5:15, to Houston.
    aircraft = np.unique(raw["tailnum"][known])
    column = int(np.searchsorted(aircraft, "N14228"))
    places = flights_stream("dest")
    assert year.labels[year.table[0, column]] == "UA"
    assert places.labels[places.table[0, column]] == "IAH"
    assert places.domain == 105
    assert (np.asarray(places.table) != 0).tolist() == (np.asarray(year.table[:798]) != 0).tolist()


def test_neighbours_are_not_alike():
    # A cohort is a run of neighbours. In the order of tail numbers they often fly for the same carrier; in the
    # stream's, as often as any two do. The bound is five standard errors: a right order fails for fewer than one seed
    # in a million.
    table = np.asarray(flights_stream(days=365).table)
    carrier = np.array([np.bincount(column[column > 0], minlength=17).argmax() for column in table.T])
    alike = float((np.bincount(carrier) / carrier.size) @ (np.bincount(carrier) / carrier.size))
    bound = 5 * np.sqrt(alike * (1 - alike) / carrier.size)
    ordered = carrier[flights_stream().index]
    assert abs(np.mean(ordered[1:] == ordered[:-1]) - alike) < bound
    assert abs(np.mean(carrier[1:] == carrier[:-1]) - alike) > bound


def test_taxi():
    stream, fares = taxi_stream(), fares_stream()
    assert (stream.n, stream.steps, stream.domain) == (2000, 744, 5)
    assert "2,000 synthetic devices" in stream.data
    assert (int((stream.table != 0).sum()), stream.repeated) == (50_000 - 1073, 1073)
    assert stream.truth(1)[0] < 1
    trips = taxi()
    first = trips["tpep_pickup_datetime"] < np.datetime64("2015-01-01T01:00:00")
    assert 0 < first.sum() - (stream.table[0] != 0).sum() <= 8  # 111 trips dealt to 2,000: a few share a device
    assert (fares.domain, fares.n, int(fares.table.max()), fares.table.dtype.name) == (None, 2000, 40_000, "uint16")
    # A device without a trip has no fare; a few trips have none either.
    assert ((fares.table != 0) <= (stream.table != 0)).all()
    assert taxi_stream(500).n == 500


def test_flights_of_2001():
    stream, late = flights3m_stream(), flights3m_delays()
    assert (stream.n, stream.steps, stream.domain) == (20_000, 792, 22)
    assert (stream.labels[1], stream.labels[-1]) == ("ORD", "other")
    assert "20,000 synthetic devices" in stream.data
    flown = flights3m()
    now = flown["date"] < np.datetime64("2001-02-03T00:00")
    assert int((stream.table != 0).sum()) + stream.repeated == now.sum()
    assert (late.domain, late.table.dtype.name, late.steps) == (None, "uint16", 792)
    assert int(late.table.max()) == flown["delay"][now].max()
    assert late.truth(12)[0] == pytest.approx(np.asarray(late.table[11]).mean())
    kept_on = np.asarray(flights3m_delays(latest=True).table)
    flew = np.asarray(stream.table) != 0
    assert (kept_on[flew] == late.table[flew]).all()
    assert (kept_on[1:][~flew[1:]] == kept_on[:-1][~flew[1:]]).all()
    assert not kept_on[0][~flew[0]].any()


def test_resampled_and_shuffled():
    stream = taxi_stream()
    many = stream.resampled()
    assert many.n == 100_000
    assert "resampled to 100,000 devices" in many.data
    assert many.index.tolist() == stream.resampled().index.tolist()
    # Each device is drawn 50 times on average, with a deviation of 7: fails for fewer than one seed in a million.
    drawn = np.bincount(many.index, minlength=2000)
    assert drawn.min() > 8
    assert drawn.max() < 100
    other = stream.shuffled(Random(seed=1))
    assert sorted(other.index.tolist()) == list(range(2000))
    assert other.index.tolist() != stream.index.tolist()
    assert other.truth(5).tolist() == stream.truth(5).tolist()
    assert stream.shuffled(Random(seed=1), 300).n == 300
    assert stream.first(10).steps == 10
    later = stream.first(10, after=700)
    assert (later.steps, later.truth(1).tolist()) == (10, stream.truth(701).tolist())
    assert "from step 701" in later.data
    busy = stream.busy()
    assert busy.truth(5)[0] == stream.truth(5)[0]
    assert busy.domain == 2


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: flights_stream("tailnum"), "by"),  # type: ignore[arg-type]
        (lambda: flights_stream(days=366), "days"),
        (lambda: taxi_stream(0), "n_devices"),
        (lambda: flights3m_stream(days=True), "days"),
        (lambda: flights3m_stream(1.5), "n_devices"),  # type: ignore[arg-type]
        (lambda: taxi_stream().values(745, 0, 1), "step"),
        (lambda: taxi_stream().resampled(0), "n"),
        (lambda: taxi_stream().shuffled(Random(seed=1), 2001), "n"),
        (lambda: taxi_stream().first(0), "steps"),
        (lambda: taxi_stream().first(1, after=744), "after"),
    ],
)
def test_what_is_refused(make, field):
    with pytest.raises(InvalidValue, match=field):
        make()


def test_a_table_is_made_once(tmp_path: Path):
    calls = []

    def make():
        calls.append(1)
        return np.arange(6, dtype=np.uint16).reshape(2, 3), {"dropped": 4}

    for _ in range(2):
        table, facts = cached_table("toy-1", make, cache=tmp_path)
        assert (table.tolist(), facts) == ([[0, 1, 2], [3, 4, 5]], {"dropped": 4})
        assert isinstance(table, np.memmap)
    assert len(calls) == 1
    assert sorted(path.name for path in (tmp_path / "streams").iterdir()) == ["toy-1.json", "toy-1.npy"]
    stored = tmp_path / "streams" / "toy-1.npy"
    harms: list[Callable[[], object]] = [
        lambda: stored.write_bytes(stored.read_bytes()[:-1] + b"\x07"),
        lambda: stored.write_bytes(stored.read_bytes()[:-3]),
        stored.unlink,
        lambda: stored.with_suffix(".json").write_text("{}"),
        lambda: stored.with_suffix(".json").write_text(json.dumps({"sha256": "0", "facts": {}})),
    ]
    for count, harm in enumerate(harms, start=2):
        del table
        harm()
        table, _ = cached_table("toy-1", make, cache=tmp_path)
        assert (table.tolist(), len(calls)) == ([[0, 1, 2], [3, 4, 5]], count)


def test_a_cache_that_cannot_be_written(tmp_path: Path):
    blocked = tmp_path / "streams"
    blocked.write_text("not a folder")
    table, facts = cached_table("toy-1", lambda: (np.eye(2), {"a": 1}), cache=tmp_path)
    assert (table.tolist(), facts) == ([[1.0, 0.0], [0.0, 1.0]], {"a": 1})


def test_a_stream_of_numbers():
    stream = EventStream(np.array([[0, 30, 60]], dtype=np.uint16), (), "a toy")
    assert (stream.domain, stream.truth(1).tolist()) == (None, [30.0])
    assert sorted(stream.values(1, 0, 3).tolist()) == [0, 30, 60]


SETTING: dict[str, Any] = {"epsilon": 1.0, "dimension": 16, "steps": 32, "changes": 8}


def test_destinations_against_the_source() -> None:
    raw = flights()
    known = raw["tailnum"] != "NA"
    stream = last_destinations(days=32)
    assert (stream.n, stream.steps, len(stream.labels), stream.labels[-1]) == (4043, 32, 16, "other")
    names, counts = np.unique(raw["dest"][known], return_counts=True)
    assert set(stream.labels[:-1]) <= set(names[np.argsort(-counts)][:17].tolist())  # a few flights share an hour
    aircraft = np.unique(raw["tailnum"][known]).tolist()
    day = np.where(raw["month"] == 1, raw["day"], np.where((raw["month"] == 2) & (raw["day"] == 1), 32, 99))
    order = np.lexsort((raw["minute"], raw["hour"], day))
    order = order[known[order] & (day[order] <= 32)]
    for tail in ("N14228", "N725MQ", "N15574", aircraft[7], aircraft[1000]):
        column, own = aircraft.index(tail), order[raw["tailnum"][order] == tail]
        for today in (1, 15, 32):
            flown = raw["dest"][own[day[own] <= today]]
            code = int(stream.table[today - 1, column])
            if not flown.size:
                assert code == -1
            else:
                assert stream.labels[code] == (flown[-1] if flown[-1] in stream.labels else "other")
    assert true_means(stream, 32, 16)[31].sum() == pytest.approx(np.mean(stream.table[31] >= 0))


def test_moves_and_resampling() -> None:
    stream = last_destinations()
    moves = stream.moves()
    assert 0.24 < np.mean(moves > 4) < 0.25  # these devices are clipped at s = 8
    large = stream.resampled(100_000)
    assert large.n == 100_000
    assert np.abs(large.truth(32) - stream.truth(32)).max() < 0.01
    for bad in (0, 366):
        with pytest.raises(InvalidValue):
            last_destinations(days=bad)
    with pytest.raises(InvalidValue):
        last_destinations(busiest=200)
    with pytest.raises(InvalidValue):
        stream.values(33, 0, 1)


def test_clipping_by_level_costs_less_than_to_hold_still() -> None:
    """What clipping at s = 8 costs, without any noise: told level by level, and as printed, frozen after s changes."""
    stream = last_destinations()
    truth = true_means(stream, 32, 16)
    ours = np.abs(expected_means(Sao2(**SETTING, one=True), stream) - truth).sum()
    reported, used = np.full(stream.n, -1), np.zeros(stream.n, dtype=int)
    frozen = np.zeros_like(truth)
    for step, new in enumerate(stream.table):
        cost = np.where(new == reported, 0, np.where(reported < 0, 1, 2))
        moved = used + cost <= SETTING["changes"]
        reported, used = np.where(moved, new, reported), used + np.where(moved, cost, 0)
        frozen[step] = np.bincount(reported[reported >= 0], minlength=16) / stream.n
    cost_of_freezing = np.abs(frozen - truth).sum()
    print(f"total variation error of clipping: {ours:.3f} by level, {cost_of_freezing:.3f} frozen")
    assert ours < 0.4 < 0.9 < cost_of_freezing


@pytest.mark.slow
def test_sao2_errs_at_least_40_percent_less_than_its_best_rival() -> None:
    """15 busiest destinations or other, T = 32 days, s = 8, n = 100,000 resampled, eps = 1: total variation error."""
    stream = last_destinations().resampled(100_000)
    names = ("EFMRTT", "DDRM", "PCKV-GRR", "PCKV-AGRR", "PCKV-UE")

    def error(plan: Sao2) -> float:
        mean_error = float(np.mean([run_plan(plan, stream, hb.Random(seed=seed)).tve for seed in range(4)]))
        print(f"{plan.mechanism:10s} pooled {plan.pooled!s:5s} {plan.choice:8s} one {plan.one!s:5s} {mean_error:8.2f}")
        return mean_error

    ours = error(Sao2(**SETTING, one=True))
    paper = error(Sao2(**SETTING, choice="uniform", pooled=False))
    rivals = [as_printed(name, **SETTING) for name in names]
    best = min(error(plan) for plan in rivals)
    # The same tree, portions, bounds and reading for all of them.
    alike = min(error(Sao2(**SETTING, one=True, mechanism=name)) for name in ("EFMRTT", "DDRM", "PCKVAGRR", "PCKVUE"))
    print(
        f"less by {1 - ours / best:.2f}; in the paper's form {1 - paper / best:.2f}; all in ours {1 - ours / alike:.2f}"
    )
    assert ours < 0.4 * best
    assert paper < 0.6 * best
    assert ours < 0.6 * alike
