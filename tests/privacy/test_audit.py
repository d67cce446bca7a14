"""The exact audit, over every registered mechanism, and the enumeration of reports that it rests on."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest

from hubbub import GRR, OLH, OUE, SHE, BasicRappor, Random, Rappor, Strings
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms import randomizers
from hubbub.privacy.audit import audit, audit_all
from hubbub.privacy.enumeration import enumerate_reports

EPSILONS = (0.1, 0.5, 1, 2, 4, 8)
DOMAINS = (2, 3, 16, 1024)
EXAMPLES = [
    pytest.param(example, id=f"{name}-{number}")
    for name, kind in randomizers().items()
    for number, example in enumerate(kind.examples())
]


@pytest.fixture(scope="module", params=[(4,), pytest.param(EPSILONS, marks=pytest.mark.slow)])
def epsilons(request):
    return request.param


@pytest.fixture(scope="module")
def everything(epsilons):
    return audit_all(epsilons, DOMAINS)


def test_every_mechanism_is_audited_at_every_setting(everything, epsilons):
    assert {result.mechanism for result in everything} | {result.mechanism for result in everything.refused} == set(
        randomizers()
    )
    settings = {(result.mechanism, result.epsilon, result.domain) for result in everything}
    refused = {(result.mechanism, result.epsilon, result.domain) for result in everything.refused}
    for name in ("GRR", "OUE", "SUE", "THE", "SHE", "BLH", "OLH", "Hadamard", "SubsetSelection", "Rappor"):
        wanted = {(name, float(epsilon), domain) for epsilon in epsilons for domain in DOMAINS}
        assert wanted <= settings | refused


def test_every_epsilon_is_exact_and_at_most_the_declared(everything):
    assert [result.to_dict() for result in everything if not (result.ok and result.exact)] == []
    for result in everything:
        assert result.effective_epsilon <= result.epsilon
        assert result.effective_epsilon == pytest.approx(math.log(result.ratio), rel=1e-12)


def test_small_domains_are_enumerated_and_equal(everything):
    # Too large at these domains: SHE's histograms of 3 values, 128 bits of RAPPOR, 256 of CMS, the circle of Wheel.
    large = ("SHE", "Rappor", "BloomRappor", "CMS", "Wheel")
    small = [result for result in everything if result.domain in (2, 3) and result.mechanism not in large]
    assert small
    for result in small:
        assert result.how == "structure and enumeration"
        assert result.enumeration.every_value
        assert result.enumeration.ratio == result.ratio


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_holds(example):
    result = audit(example)
    assert result.ok
    assert result.exact
    assert result.effective_epsilon == example.effective_epsilon


def test_noise_on_a_histogram_is_enumerated_where_it_fits():
    result = audit(SHE(epsilon=2.0, domain=2))
    assert result.enumeration is not None
    assert result.enumeration.ratio == result.ratio


def registered_too(monkeypatch, kind):
    """All that there is to audit is this class and another."""
    module = import_module("hubbub.privacy.audit")
    monkeypatch.setattr(module, "randomizers", lambda: {"OUE": OUE, kind.__name__: kind})


def test_progress_and_refusals_are_reported(monkeypatch):
    class Shy(GRR):
        def _resolve(self):
            super()._resolve()
            if self.size == 3:
                raise InvalidValue("domain", 3, "anything but 3")

    registered_too(monkeypatch, Shy)
    calls = []
    results = audit_all([1.0], [2, 3], progress=lambda finished, total: calls.append((finished, total)))
    assert calls[-1] == (len(calls), len(calls))
    (refused,) = results.refused
    assert (refused.mechanism, refused.epsilon, refused.domain) == ("Shy", 1.0, 3)
    assert "anything but 3" in refused.reason


def test_mechanisms_without_a_size_are_built_from_their_examples(monkeypatch):
    class Words(Rappor):
        @classmethod
        def examples(cls):
            yield cls(epsilon=4.0, domain=Strings(longest=8))

    registered_too(monkeypatch, Words)
    results = [result for result in audit_all([1.0, 2.0], [2]) if result.mechanism == "Words"]
    assert [(result.epsilon, result.domain, result.ok) for result in results] == [(1.0, None, True), (2.0, None, True)]


def test_a_mechanism_that_spends_more_than_it_declares_is_violated():
    class Overspent(OUE):
        """Understates its ratio to get past the constructor."""

        def ratio(self):
            return super().ratio() / 2

    result = audit(Overspent(epsilon=1.0, domain=3))
    assert not result.ok
    assert not result.exact
    assert "FAILED: not within" in result.statement()


def test_a_declared_epsilon_below_what_is_spent_is_violated():
    result = replace(audit(GRR(epsilon=2.0, domain=3)), epsilon=1.0)
    assert not result.ok
    assert "FAILED: that is more than the declared 1." in result.statement()


def test_the_dictionary_is_json_with_stable_keys():
    stated = audit(OLH(epsilon=1.0, domain=3), montecarlo=2000).to_dict()
    document = json.loads(json.dumps(stated))
    assert document == stated
    assert {"mechanism", "epsilon", "effective_epsilon", "exact", "ok", "how", "public", "spec_id"} <= set(document)
    assert document["public"] == ["seed"]
    assert document["enumeration"]["equal"] is True


def test_an_audit_without_rng_is_reproducible():
    mechanism = OLH(epsilon=1.0, domain=30)
    assert audit(mechanism, montecarlo=2000) == audit(mechanism, montecarlo=2000)
    assert audit(mechanism, montecarlo=2000, rng=Random(seed=2)) != audit(mechanism, montecarlo=2000)


def test_only_mechanisms_are_audited():
    with pytest.raises(InvalidValue, match="a mechanism"):
        audit("GRR")  # type: ignore[arg-type]


class TestStatement:
    def test_the_numbers_are_those_of_the_guarantee(self):
        text = audit(GRR(epsilon=math.log(3), domain=2)).statement()
        assert "= 3 times more likely" in text
        assert "at most 75% sure" in text
        assert "at least 25%" in text
        assert "two to epsilon 2.198, ten to 10.99" in text

    def test_what_is_not_covered_is_said(self):
        text = audit(OLH(epsilon=1.0, domain=16)).statement()
        for words in ("The public part (seed)", "answered at all", "Network addresses", "the ledger"):
            assert words in text
        assert "public part" not in audit(GRR(epsilon=1.0, domain=2)).statement()

    def test_how_it_was_checked_is_said(self):
        sampled = audit(OLH(epsilon=1.0, domain=16), montecarlo=2000).statement()
        assert "Every possible report (4) was enumerated under all 16 answers" in sampled
        assert "with each of 32 public parts" in sampled
        assert "consistent with the computed epsilon" in sampled
        assert "too many to enumerate" in audit(OUE(epsilon=1.0, domain=100)).statement()

    def test_a_permanent_answer_bounds_a_lifetime(self):
        text = audit(BasicRappor(epsilon=2.0, domain=8)).statement()
        assert "below what it declares (2)" in text
        assert "together, spend at most epsilon 2 while" in text

    @pytest.mark.parametrize("epsilon", [6.0, 40.0, 900.0])
    def test_a_large_epsilon_is_called_one(self, epsilon):
        kind = GRR if epsilon < 30 else SHE
        assert "all but give its answer away" in audit(kind(epsilon=epsilon, domain=2)).statement()
        assert "all but give" not in audit(GRR(epsilon=4.0, domain=2)).statement()


class Understated(OUE):
    """Says that a report spends half of what it does."""

    def ratio(self):
        p, q = self.rates
        return p / q


class Forgetful(GRR):
    """Leaves out a report."""

    def outputs(self, public=None):
        reports = super().outputs(public)
        assert reports is not None
        return reports[1:]


class Impossible(GRR):
    """A report that one value can never send."""

    def prob(self, reports, values):
        chances = super().prob(reports, values).copy()
        p, q = self.rates
        chances[0, 1], chances[1, 1] = Fraction(0), p + q
        return chances


class Rounded(GRR):
    """Floats where fractions belong."""

    def prob(self, reports, values):
        return super().prob(reports, values).astype(float).astype(object)


class Lopsided(OLH):
    """Spends more with one public part than with the others."""

    def prob(self, reports, values):
        chances = super().prob(reports, values)
        odd = (reports.public["seed"] & np.uint64(1)).astype(bool)
        truth, other = max(chances.ravel()), min(chances.ravel())
        moved = chances.copy()
        moved[odd] = np.where(chances[odd] == truth, truth + other / 2, chances[odd])
        return moved


def enumerated(mechanism):
    return enumerate_reports(mechanism, Random(seed=1))


def test_a_ratio_that_is_understated_is_found():
    mechanism = Understated(epsilon=1.0, domain=3)
    enumeration = enumerated(mechanism)
    assert enumeration.ratio == OUE(epsilon=1.0, domain=3).ratio()
    assert not enumeration.within(mechanism.ratio())


def test_a_report_left_out_is_found():
    mechanism = Forgetful(epsilon=1.0, domain=4)
    assert enumerated(mechanism).normalised is False
    assert not enumerated(mechanism).within(mechanism.ratio())


def test_a_report_that_excludes_a_value_is_unbounded():
    enumeration = enumerated(Impossible(epsilon=1.0, domain=3))
    assert enumeration.ratio is None
    assert enumeration.epsilon == float("inf")
    assert not enumeration.within(Fraction(10**9))
    assert enumeration.to_dict(Fraction(3))["epsilon"] == "unbounded"


def test_rounded_probabilities_are_refused():
    with pytest.raises(InvalidValue, match="exact Fractions"):
        enumerated(Rounded(epsilon=1.0, domain=3))


def test_a_ratio_in_floats_is_refused():
    class Approximate(GRR):
        def ratio(self):
            return float(super().ratio())

        effective_epsilon = 1.0

    with pytest.raises(InvalidValue, match="an exact Fraction"):
        audit(Approximate(epsilon=1.0, domain=3))


def test_an_open_domain_is_enumerated_on_a_sample():
    enumeration = enumerated(Rappor(epsilon=2.0, bits=8, cohorts=4))
    assert (enumeration.values, enumeration.every_value, enumeration.reports) == (24, False, 256)
    assert enumeration.ratio == Rappor(epsilon=2.0, bits=8, cohorts=4).ratio()


def test_every_public_part_is_looked_at_on_its_own():
    mechanism = Lopsided(epsilon=1.0, domain=3)
    assert not enumerated(mechanism).within(mechanism.ratio())


def test_public_parts_and_values_are_counted():
    enumeration = enumerated(OLH(epsilon=1.0, domain=16))
    assert (enumeration.values, enumeration.every_value, enumeration.reports, enumeration.publics) == (16, True, 4, 32)
    assert enumerated(GRR(epsilon=1.0, domain=3)).publics == 1


def test_too_many_reports_are_left_to_the_structure():
    assert enumerated(OUE(epsilon=1.0, domain=100)) is None
    assert enumerated(GRR(epsilon=1.0, domain=1024)) is None
