"""Plans: the dissertation's numbers, its rule, solving for n and epsilon, and a simulation."""

import io
import json
import math
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from hubbub import FLH, GRR, OLH, PGR, RHR, Categorical, Numeric, Random, Strings
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.planning.plan import plan
from hubbub.planning.predict import LEAST_EPSILON, PlanRequest, needed_epsilon

# Dissertation, Table 3.2: Var/n at epsilon 0.5, 1, 2, 4.
TABLE = {
    ("GRR", 2): (3.92, 0.92, 0.18, 0.02),
    ("GRR", 32): (75.20, 11.08, 0.92, 0.03),
    ("GRR", 1024): (2432.40, 347.07, 25.22, 0.37),
    ("SUE", 32): (15.92, 3.92, 0.92, 0.18),
    ("OUE", 32): (15.67, 3.68, 0.72, 0.08),
    ("BLH", 32): (16.67, 4.68, 1.72, 1.08),
    ("OLH", 32): (15.67, 3.68, 0.72, 0.08),
    ("THE", 32): (17.83, 4.807, 1.284, 0.285),  # at its best theta, as the corrections to the table say
    ("SHE", 32): (32.00, 8.00, 2.00, 0.50),
}


def row(planned, name):
    return next(prediction for prediction in planned.rows if prediction.mechanism == name)


@pytest.mark.parametrize(("name", "domain"), TABLE)
def test_the_chapters_table(name, domain):
    # 1.5%: SHE's noise is on a grid, OLH's buckets are whole, thresholds are integers. And half of the last digit.
    for epsilon, printed in zip((0.5, 1.0, 2.0, 4.0), TABLE[name, domain], strict=True):
        planned = plan(domain=domain, n=10_000, epsilon=epsilon)
        assert row(planned, name).stderr ** 2 * 10_000 == pytest.approx(printed, rel=0.015, abs=0.006)


def test_direct_encoding_by_hand():
    e = math.e
    prediction = row(plan(domain=32, n=10_000, epsilon=1.0), "GRR")
    assert prediction.stderr == pytest.approx(math.sqrt((30 + e) / (e - 1) ** 2 / 10_000), rel=1e-12)
    # Eq 3.13 at alpha/d = 0.05/32: the normal quantile is 2.9552.
    assert prediction.detectable == pytest.approx(2.9552 * prediction.stderr, rel=1e-4)
    # Eq 3.2 summed over 32 values whose shares sum to 1.
    p, q = e / (e + 31), 1 / (e + 31)
    total = (32 * q * (1 - q) + (p - q) * (1 - p - q)) / (10_000 * (p - q) ** 2)
    assert prediction.total_variance == pytest.approx(total, rel=1e-12)


def test_every_registered_way_is_listed_once_and_sorted():
    planned = plan(domain=64, n=10_000, epsilon=1.0)
    oracles = {name for name, kind in MECHANISMS.items() if issubclass(kind, FrequencyOracle)}
    assert sorted(prediction.mechanism for prediction in planned.rows) == sorted(oracles | {"Rappor", "BloomRappor"})
    errors = [prediction.stderr for prediction in planned.rows if prediction.stderr is not None]
    assert errors == sorted(errors)
    assert [prediction.mechanism for prediction in planned.rows if prediction.picked] == [planned.picked]
    assert all(prediction.why for prediction in planned.rows)


def test_without_a_formula_there_is_a_reason_and_no_number():
    rappor = row(plan(domain=64, n=10_000, epsilon=1.0), "Rappor")
    assert rappor.stderr is None
    assert "no formula" in rappor.why
    assert rappor.bytes == 17


class TestPicked:
    @pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
    def test_direct_encoding_while_the_domain_is_small(self, epsilon):
        limit = 3 * math.exp(epsilon) + 2
        planned = plan(domain=2, n=1000, epsilon=epsilon)
        assert planned.picked == "GRR"
        assert "is below 3 e^eps + 2" in planned.why
        beyond = plan(domain=math.ceil(1.5 * limit), n=1000, epsilon=epsilon)
        assert beyond.picked != "GRR"
        assert "is not below 3 e^eps + 2" in beyond.why

    @pytest.mark.parametrize(("domain", "name"), [(1024, "PGR"), (1 << 25, "RHR")])
    def test_small_reports_are_of_a_geometry_or_of_rows_where_the_domain_is_too_large(self, domain, name):
        planned = plan(domain=domain, n=100_000, epsilon=1.0, most_bytes=20)
        assert planned.picked == name
        assert "within 20 bytes" in planned.why
        assert "above 20" in row(planned, "OUE").why

    def test_a_tie_goes_to_the_cheaper_server(self):
        planned = plan(domain=4096, n=1_000_000, epsilon=0.1)
        best = planned.rows[0]
        assert planned.picked == "Hadamard" != best.mechanism
        assert best.stderr is not None
        assert planned.stderr <= 1.01 * best.stderr
        assert "costs the server least" in planned.why

    def test_a_heuristic_is_never_picked(self):
        planned = plan(domain=1 << 25, n=1000, epsilon=4.0, most_bytes=4)
        flh = row(planned, "FLH")
        assert flh.bytes <= 4
        assert flh.stderr < row(planned, planned.picked).stderr
        assert not flh.picked
        assert "never picked" in flh.why

    def test_the_picked_oracle_can_be_had(self):
        oracle = plan(domain=["tea", "coffee"], n=500, epsilon=1.0).mechanism()
        assert isinstance(oracle, GRR)
        assert oracle.domain == Categorical(["tea", "coffee"])

    def test_an_oracle_may_state_its_own_server_cost(self, monkeypatch):
        monkeypatch.setattr(GRR, "server_operations", lambda self, n: 2.5)
        assert row(plan(domain=16, n=100, epsilon=1.0), "GRR").server == 2.5


class TestForged:
    def test_every_row_says_how_far_forged_reports_move_it(self):
        planned = plan(domain=128, n=1000, epsilon=1.0)
        assert row(planned, "GRR").shift == pytest.approx(0.01 * (math.e + 126) / (math.e - 1), rel=1e-9)
        assert row(planned, "OUE").shift == pytest.approx(0.0316, rel=0.01)
        assert row(planned, "Rappor").shift is None
        tenth = plan(domain=128, n=1000, epsilon=1.0, forged=0.001)
        assert row(tenth, "OLH").shift == pytest.approx(row(planned, "OLH").shift / 10)
        assert planned.picked == "SubsetSelection"  # the ranking is what it was
        # From a share of 1: estimates are not cut at 1.
        there = row(plan(domain=128, n=1000, epsilon=1.0, share=1.0), "GRR")
        assert there.shift == pytest.approx(0.01 * (float(GRR(epsilon=1.0, domain=128).influence().most) - 1), rel=1e-9)

    def test_a_limit_is_kept(self):
        planned = plan(domain=128, n=1000, epsilon=1.0, most_shift=0.03)
        assert planned.picked == "SUE"
        assert "move by at most 0.03" in planned.why
        assert row(planned, "OUE").why == "1% forged reports move a share by 0.0316, above 0.03"
        assert planned.to_dict()["most_shift"] == 0.03

    def test_a_limit_may_take_more_epsilon(self):
        free = plan(domain=128, n=1_000_000, stderr=0.01)
        limited = plan(domain=128, n=1_000_000, stderr=0.01, most_shift=0.03)
        assert limited.epsilon > free.epsilon
        assert row(limited, limited.picked).shift <= 0.03 < row(free, free.picked).shift
        less = plan(domain=128, n=1_000_000, epsilon=limited.epsilon * (1 - 1e-6))
        shifts = [prediction.shift for prediction in less.rows if prediction.bias == "none"]
        assert all(shift is None or shift > 0.03 for shift in shifts)

    def test_reports_that_move_far_over_many_values_warn(self):
        (she, bits, grr) = plan(domain=128, n=1000, epsilon=1.0).warnings
        assert bits.startswith("BitFlips: ")
        assert she.startswith("SHE: ")
        assert grr.startswith("GRR: if 1% of the reports are forged, they can move a share by 74.9 percentage points")
        assert not any("GRR" in warning for warning in plan(domain=10, n=1000, epsilon=1.0).warnings)

    @pytest.mark.parametrize("limit", [0.001, 1e-9])
    def test_a_limit_that_nothing_keeps_says_what_can_be_had(self, limit):
        with pytest.raises(InvalidValue, match=r"most_shift: .* at least 0.0216"):
            plan(domain=128, n=1000, epsilon=1.0, most_shift=limit)
        with pytest.raises(InvalidValue, match="most_shift"):
            plan(domain=128, n=1000, stderr=0.1, most_shift=limit)


class TestInverse:
    @pytest.mark.parametrize("most_bytes", [None, 12])
    @pytest.mark.parametrize("share", [0.0, 0.3])
    @pytest.mark.parametrize("domain", [2, 16, 1024])
    def test_the_reports_found_are_the_fewest(self, domain, share, most_bytes):
        setting: dict[str, Any] = {"domain": domain, "epsilon": 1.0, "share": share, "most_bytes": most_bytes}
        planned = plan(**setting, stderr=0.01)
        assert planned.stderr <= 0.01
        assert plan(**setting, n=planned.n).stderr == planned.stderr
        fewer = plan(**setting, n=planned.n - 1)
        assert row(fewer, planned.picked).stderr > 0.01

    @pytest.mark.parametrize("most_bytes", [None, 12])
    @pytest.mark.parametrize("share", [0.0, 0.3])
    @pytest.mark.parametrize(("domain", "stderr"), [(2, 0.02), (2, 0.003), (16, 0.01), (1024, 0.01), (1024, 0.001)])
    def test_the_epsilon_found_gives_the_error_asked_for(self, domain, stderr, share, most_bytes):
        setting: dict[str, Any] = {"domain": domain, "n": 50_000 if stderr > 0.005 else 1_000_000, "share": share}
        planned = plan(**setting, stderr=stderr, most_bytes=most_bytes)
        again = plan(**setting, epsilon=planned.epsilon, most_bytes=most_bytes)
        assert (again.picked, again.stderr) == (planned.picked, planned.stderr)
        assert stderr - 1e-6 < planned.stderr <= stderr  # never above what was asked
        less = plan(**setting, epsilon=planned.epsilon * (1 - 1e-9), most_bytes=most_bytes)
        assert row(less, planned.picked).stderr > stderr

    def test_the_three_questions_agree(self):
        there = plan(domain=100, n=20_000, epsilon=1.5)
        assert plan(domain=100, epsilon=1.5, stderr=there.stderr).n == 20_000
        assert plan(domain=100, n=20_000, stderr=there.stderr).epsilon == pytest.approx(1.5, rel=1e-9)
        assert [plan(domain=2, **two).request.unknown for two in QUESTIONS] == ["stderr", "n", "epsilon"]

    def test_an_error_anyone_reaches_takes_the_least_epsilon(self):
        request = PlanRequest(domain=2, n=10**9, stderr=0.5)
        assert needed_epsilon(GRR, request, 10**9, 0.5) == LEAST_EPSILON


QUESTIONS: tuple[dict[str, Any], ...] = (
    {"n": 10_000, "epsilon": 1.0},
    {"epsilon": 1.0, "stderr": 0.01},
    {"n": 10_000, "stderr": 0.01},
)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"n": 100, "stderr": 1e-9}, "stderr"),
        ({"epsilon": 1.0, "stderr": 1e-12}, "stderr"),
        ({"n": 100, "epsilon": 1.0, "most_bytes": 1}, "most_bytes"),
        ({"n": 100, "stderr": 0.1, "most_bytes": 1}, "most_bytes"),
        ({"n": 100}, "n, epsilon, stderr"),
        ({"n": 100, "epsilon": 1.0, "stderr": 0.1}, "n, epsilon, stderr"),
        ({"n": 0, "epsilon": 1.0}, "n"),
        ({"n": 10.5, "epsilon": 1.0}, "n"),
        ({"n": 100, "epsilon": 0.0}, "epsilon"),
        ({"n": 100, "epsilon": 5000.0}, "epsilon"),
        ({"n": 100, "epsilon": math.nan}, "epsilon"),
        ({"n": 100, "stderr": -0.1}, "stderr"),
        ({"n": 100, "epsilon": 1.0, "share": 1.5}, "share"),
        ({"n": 100, "epsilon": 1.0, "alpha": 0}, "alpha"),
        ({"n": 100, "epsilon": 1.0, "forged": 0.0}, "forged"),
        ({"n": 100, "epsilon": 1.0, "forged": 1.0}, "forged"),
        ({"n": 100, "epsilon": 1.0, "most_shift": 0.0}, "most_shift"),
        ({"n": 100, "epsilon": 1.0, "most_shift": math.nan}, "most_shift"),
        ({"n": 100, "epsilon": 1.0, "domain": Strings(longest=9)}, "domain"),
        ({"n": 100, "epsilon": 1.0, "domain": 1}, "domain"),
    ],
)
def test_what_cannot_be_planned_is_refused_with_the_field(arguments, field):
    with pytest.raises(InvalidValue) as refused:
        plan(**{"domain": 1024, **arguments})
    assert refused.value.field == field


def test_an_unreachable_error_says_what_can_be_reached():
    with pytest.raises(InvalidValue, match=r"at least .* n = 100 reach no less at any epsilon up to 20"):
        plan(domain=16, n=100, stderr=1e-7, share=0.5)


@pytest.mark.parametrize("domain", [5, ["a", "b", "c", "d", "e"], Numeric(0, 1, cells=5), np.int64(5)])
def test_domains_of_every_kind(domain):
    assert plan(domain=domain, n=1000, epsilon=1.0).to_dict() == plan(domain=5, n=1000, epsilon=1.0).to_dict()


def test_the_dictionary_is_json_with_stable_keys():
    document: Any = plan(domain=1024, n=1000, epsilon=1.0).to_dict()
    assert json.loads(json.dumps(document)) == document
    assert {"picked", "why", "n", "epsilon", "stderr", "rows"} <= set(document)
    for prediction in document["rows"]:
        assert {"mechanism", "stderr", "bytes", "picked", "detectable", "server", "why"} <= set(prediction)


def test_the_error_predicted_is_the_error_seen():
    # 1,500 collections of 400 reports: the sample variance is within 20% of the true one but for a chance of 1e-6 (5.5
    # standard errors), and a prediction 30% off is refused.
    share, n, runs = 0.3, 400, 1500
    oracle = OLH(epsilon=1.0, domain=6)
    predicted = row(plan(domain=6, n=n, epsilon=1.0, share=share), "OLH").stderr ** 2
    values = np.tile(np.repeat([0, 1, 2], [120, 180, 100]), runs)
    reports = oracle.randomize(values, Random(seed=4))
    sketches = (oracle.accumulate(reports[start : start + n]) for start in range(0, n * runs, n))
    measured = float(np.var([oracle.estimate(sketch).value[0] for sketch in sketches]))

    def agrees(variance):
        return 0.8 < measured / variance < 1.2

    assert agrees(predicted)
    assert not agrees(predicted * 1.3)
    assert not agrees(predicted / 1.3)


class TestShown:
    def test_the_table_marks_the_pick(self):
        page = io.StringIO()
        Console(width=160, file=page).print(plan(domain=1024, n=100_000, epsilon=1.0, most_bytes=20))
        for text in ("1,024 values, 100,000 reports, epsilon 1", "picked", "never picked", "1% forged"):
            assert text in page.getvalue()

    @pytest.mark.parametrize(("against", "label"), [("epsilon", "epsilon"), ("n", "reports")])
    def test_the_chart_has_a_line_an_oracle(self, against, label):
        planned = plan(domain=16, n=1000, epsilon=1.0)
        axes = planned.plot(against=against)
        assert axes.get_xlabel() == label
        legend = axes.get_legend()
        assert legend is not None
        names = [text.get_text() for text in legend.get_texts()]
        assert set(names) == {prediction.mechanism for prediction in planned.rows if prediction.stderr is not None}
        picked = axes.get_lines()[names.index(planned.picked)]
        here = planned.epsilon if against == "epsilon" else planned.n
        line = np.exp(np.interp(math.log(here), np.log(picked.get_xdata()), np.log(picked.get_ydata())))
        assert line == pytest.approx(planned.stderr, rel=0.01)

    def test_no_other_axis_is_offered(self):
        with pytest.raises(InvalidValue, match="against"):
            plan(domain=16, n=1000, epsilon=1.0).plot(against="domain")  # type: ignore[arg-type]


@pytest.mark.parametrize("registered", [0, 1, 2])
def test_the_plan_does_not_depend_on_how_many_oracles_are_registered(monkeypatch, registered) -> None:
    """Here the epsilon that OLH needs has SOLH picked, and that of SOLH has OLH picked: the smaller one is planned."""
    for kind in (PGR, RHR):  # they would be picked
        monkeypatch.setattr(kind, "report_bytes", 99)
    for name in ("Large", "Larger")[:registered]:
        monkeypatch.setitem(MECHANISMS, name, type(name, (GRR,), {"report_bytes": 99}))
    planned = plan(domain=1024, n=1_000_000, stderr=0.001, share=0.3, most_bytes=12)
    assert planned.picked == "OLH"
    assert planned.stderr <= 0.001
    assert planned.epsilon == pytest.approx(2.00285, abs=1e-5)


def test_what_few_hash_functions_confuse_for_good_is_predicted() -> None:
    """Everyone holds one value: the errors of 16,383 others, of which each confuses it with other chances.

    Their mean square has a relative standard error of 1.1%: for another seed it is 5% off with probability 1e-5.
    """
    n, d = 100_000, 1 << 14
    flh = FLH(epsilon=1.0, domain=d)
    estimated = flh.estimate(flh.accumulate(flh.randomize([7] * n, Random(seed=3)))).value
    measured = np.mean(np.square(np.delete(estimated, 7)))
    planned = plan(domain=d, n=n, epsilon=1.0)
    flh_row, olh_row = (row(planned, name) for name in ("FLH", "OLH"))
    assert measured == pytest.approx(flh_row.stderr**2, rel=0.05)
    assert measured > 5 * olh_row.stderr**2  # which is what was predicted without
    assert flh_row.total_variance == pytest.approx(d * measured, rel=0.05)
