"""Forged reports raise an alarm; genuine ones hardly ever do, whatever people's values are."""

import math

import numpy as np
import pytest

import hubbub as hb
from hubbub.alarms.forged import ForgedTest, Suspicion, log_tail, round_suspicion, size_chances, suspicion
from hubbub.alarms.plan import AlarmPlan
from hubbub.alarms.sequential import WatchState
from hubbub.attacks.forging import Style, forge
from hubbub.authoring.alarms import alarm_findings, alarm_forecasts
from hubbub.authoring.toml import read_collection
from hubbub.core.errors import DecodeError, InvalidValue, SpecMismatch
from hubbub.core.reports import Reports, Sketch
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.frequency.screen import MOST_PAIRS, can_screen, independent_pairs, screen, with_screen
from tests.shared.small_collections import collection_text

N = 100_000
FORGED = N // 100


def screened(oracle: FrequencyOracle, reports: Reports) -> Sketch:
    return with_screen(oracle, reports, oracle.accumulate(reports))


def looks(oracle: FrequencyOracle, reports: Reports) -> Suspicion:
    found = suspicion(oracle, screened(oracle, reports))
    assert found is not None
    return found


def skewed(n: int, size: int, rng: hb.Random) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Values of which the first half is at 0."""
    values = rng.below(size, n).astype(np.int64)
    values[: n // 2] = 0
    return values


@pytest.mark.parametrize("name", ["OUE", "OLH"])
@pytest.mark.parametrize("targets", [1, 10])
def test_one_per_cent_of_unpadded_fakes_is_found_in_one_window(name: str, targets: int) -> None:
    oracle: FrequencyOracle = getattr(hb, name)(epsilon=1.0, domain=128)
    rng = hb.Random(seed=f"{name} {targets}")
    genuine = oracle.randomize(skewed(N - FORGED, 128, rng), rng)
    assert looks(oracle, genuine).p_value > 1e-3
    mixed = Reports.concat([genuine, forge(oracle, range(3, 3 + targets), FORGED, rng, "plain")])
    found = looks(oracle, mixed)
    assert found.p_value < 1e-9, found
    assert found.test in ("sizes", "pairs")


@pytest.mark.parametrize("name", ["OUE", "OLH"])
def test_one_target_padded_looks_genuine(name: str) -> None:
    oracle: FrequencyOracle = getattr(hb, name)(epsilon=1.0, domain=32)
    rng = hb.Random(seed=2)
    style: Style = "padded"
    reports = [oracle.randomize(skewed(20_000, 32, rng), rng), forge(oracle, [3], 200, rng, style)]
    assert looks(oracle, Reports.concat(reports)).p_value > 1e-3


@pytest.mark.parametrize("name", ["OUE", "SUE", "THE", "OLH", "BLH"])
def test_genuine_reports_rarely_look_forged_at_any_shares(name: str) -> None:
    # 200 windows below a level of .1 with at most that chance: 40 of them with less than 1e-5. (Seen: 0 to 9.)
    oracle: FrequencyOracle = getattr(hb, name)(epsilon=1.0, domain=12)
    small = 0
    for run in range(200):
        rng = hb.Random(seed=f"{name} {run}")
        values = skewed(2000, 12, rng) if run % 2 else np.full(2000, run % 12)
        small += looks(oracle, oracle.randomize(values, rng)).p_value < 0.1
    assert small < 40


def test_three_values_that_do_not_hash_independently_raise_nothing() -> None:
    # Whoever holds 0 supports 5 and 10 together more often than by chance: h(0) + h(10) is nearly 2 h(5).
    oracle, rng = hb.OLH(epsilon=1.0, domain=16), hb.Random(seed=8)
    reports = oracle.randomize([0] * N, rng)
    rows, columns = np.triu_indices(16, 1)
    left_out = ~independent_pairs(16)
    assert [*zip(rows[left_out].tolist(), columns[left_out].tolist(), strict=True)] == [(0, 5), (0, 10), (5, 10)]
    together = screen(oracle, reports)[(rows == 5) & (columns == 10)]
    assert together[0] > N * 0.0625 + 1000  # expected: a sixteenth, within 80
    assert looks(oracle, reports).p_value > 1e-3


def test_another_mechanism_looks_forged() -> None:
    """The planted fault: reports of a slightly larger epsilon, read as those of the spec."""
    oracle, other, rng = hb.OUE(epsilon=1.0, domain=32), hb.OUE(epsilon=1.05, domain=32), hb.Random(seed=4)
    reports = other.randomize([0] * 50_000, rng)
    assert looks(oracle, Reports(oracle.spec_id, private=reports.private)).p_value < 1e-6


def test_sizes_have_the_stated_chances() -> None:
    oracle, n = hb.OUE(epsilon=1.0, domain=20), 200_000
    p, q = map(float, oracle.rates)
    chances = size_chances(20, p, q)
    assert chances.sum() == pytest.approx(1.0, abs=1e-12)
    counts = screen(oracle, oracle.randomize([7] * n, hb.Random(seed=5)))[:21]
    common = n * chances > 20
    square = float((((counts - n * chances) ** 2) / (n * chances))[common].sum())
    assert square < common.sum() + 6 * math.sqrt(2 * common.sum())  # failure probability below 1e-6


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("holder", [False, True])
def test_the_bound_on_pairs_is_above_the_exact_tail(sign: float, holder: bool) -> None:
    p, q, n = 0.5, 0.27, 30
    own = p if holder else q
    chances = {
        (1 - q) ** 2: own * q,
        -q * (1 - q): own * (1 - q) + (1 - own) * q,
        q * q: (1 - own) * (1 - q),
    }
    (a, pa), (b, pb), (c, pc) = ((sign * value, chance) for value, chance in chances.items())
    assert a * pa + b * pb + c * pc == pytest.approx(0.0, abs=1e-15)
    sums, weights = [], []
    for first in range(n + 1):
        for second in range(n + 1 - first):
            third = n - first - second
            ways = math.comb(n, first) * math.comb(n - first, second)
            sums.append(a * first + b * second + c * third)
            weights.append(ways * pa**first * pb**second * pc**third)
    for distance in (0.5, 1.5, 3.0, 4.5):
        exact = sum(weight for total, weight in zip(sums, weights, strict=True) if total >= distance - 1e-12)
        assert math.exp(log_tail(distance, n, p, q, sign)) >= exact


def test_screens_add_up_like_sketches() -> None:
    oracle, rng = hb.OLH(epsilon=1.0, domain=10), hb.Random(seed=6)
    reports = oracle.randomize([1, 2, 3] * 4000, rng)
    whole = screened(oracle, reports)
    parts = [screened(oracle, reports[rows]) for rows in (slice(0, 5), slice(5, 9000), slice(9000, None))]
    first, second, third = parts
    assert whole == (first + second) + third == third + (second + first)
    assert whole.to_bytes() == (oracle.empty() + third + first + second).to_bytes()
    assert Sketch.from_bytes(whole.to_bytes()) == whole
    plain = first + oracle.accumulate(reports[5:])
    assert plain.screen is None
    assert plain == oracle.accumulate(reports)
    assert (plain + third).screen is None
    unseen = suspicion(oracle, plain)
    assert unseen is not None
    assert unseen.test == "total"
    with pytest.raises(SpecMismatch, match="screen"):
        suspicion(oracle, Sketch(whole.spec_id, whole.n, whole.counts, screen=np.zeros(3, dtype=np.int64)))
    bad = Sketch(whole.spec_id, whole.n, whole.counts, screen=np.array([-1, 0])).to_bytes()
    with pytest.raises(DecodeError, match="screen"):
        Sketch.from_bytes(bad)


def test_what_cannot_be_told() -> None:
    rng = hb.Random(seed=7)
    for oracle in (hb.GRR(epsilon=1.0, domain=8), hb.FLH(epsilon=1.0, domain=8), hb.OLH(epsilon=1.0, domain=129)):
        assert not can_screen(oracle)
        reports = oracle.randomize([1, 2], rng)
        assert suspicion(oracle, oracle.accumulate(reports)) is None
        assert screened(oracle, reports).screen is None
    assert MOST_PAIRS == 128
    olh = hb.OLH(epsilon=1.0, domain=8)
    fakes = olh.accumulate(olh.randomize([1, 2], rng)).with_fakes(1)
    assert suspicion(olh, fakes) is None
    assert suspicion(olh, olh.empty()) is None
    assert round_suspicion([(olh, olh.empty())]) is None
    large = hb.OUE(epsilon=1.0, domain=300)
    assert looks(large, large.randomize([1] * 2000, rng)).p_value > 1e-3


def test_the_alarm_is_raised_once_and_cleared() -> None:
    test, state = ForgedTest(1e-3), WatchState()
    state, verdict = test.update(state, 4, 1e-4)
    assert verdict is not None
    assert (verdict.state, verdict.since) == ("raised", 4)
    state, verdict = test.update(state, 5, 1e-9)
    assert verdict is None
    state, verdict = test.update(state, 6, 1e-3)
    assert verdict is not None
    assert verdict.state == "cleared"
    assert test.update(state, 7, 0.5)[1] is None


PLACES = {"kind": "ordinal", "size": 20}


def survey(mechanism: str = "OUE", **alarm: object) -> str:
    return collection_text(
        fields={"place": PLACES},
        questions={"all": {"kind": "histogram", "field": "place", "epsilon": 1.0, "mechanism": mechanism}},
        privacy={"event": 1.0, "minimum_batch": 100, "planned_devices": 10_000},
        alarms={"forged": {"question": "all", "forged": True, **alarm}},
    )


def plan_of(text: str) -> AlarmPlan:
    from hubbub.authoring.toml import load_alarms

    return load_alarms(text)


def test_the_rate_is_divided_and_told() -> None:
    text = survey(false_alarms="1 in 30d")
    collection, plan = read_collection(text), plan_of(text)
    (watch,) = plan.watches(collection)
    assert watch.threshold == pytest.approx(1 / 720)
    (row,) = alarm_forecasts(collection, plan)
    assert row.guarantee == (
        "at most one false alarm in 30 days on average, whatever the true shares are, while all reports are genuine"
    )
    assert set(row.errors.values()) == set(row.steps.values()) == {None}
    assert not list(alarm_findings(collection, plan))
    assert plan.spec()["forged"] == {"question": "all", "forged": True, "false_alarms": "1 in 30d"}


@pytest.mark.parametrize("key", ["above = 0.5", "each = true", "clears = 0.1", 'change = "up"', "baseline = 9"])
def test_no_number_is_watched(key: str) -> None:
    with pytest.raises(InvalidValue, match=rf"alarms.forged.{key.split()[0]}.*forged watches reports"):
        plan_of(survey() + key + "\n")


@pytest.mark.parametrize("mechanism", ["GRR", "Hadamard", "FLH"])
def test_mechanisms_whose_forged_reports_look_genuine_are_refused(mechanism: str) -> None:
    with pytest.raises(InvalidValue, match=r"alarms\.forged\.question.*a single report of GRR looks genuine"):
        plan_of(survey(mechanism))
