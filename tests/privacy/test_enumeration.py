from fractions import Fraction

import numpy as np
import pytest

from hubbub import GRR, OLH, OUE, Random, Rappor
from hubbub.core.errors import InvalidValue
from hubbub.privacy.audit import audit
from hubbub.privacy.enumeration import enumerate_reports


class Understated(OUE):
    """Says that a report spends half of what it does."""

    def ratio(self):
        p, q = self.rates
        return p / q


class Forgetful(GRR):
    """Leaves out a report."""

    def outputs(self, public=None):
        return super().outputs(public)[1:]


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
