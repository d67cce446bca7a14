"""Reports as numbers: nobody can tell a true one from a fake one by its size, and all come back as they were."""

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.shuffle.report_numbers import from_numbers, to_numbers


@pytest.mark.parametrize(
    "mechanism", [hb.GRR(epsilon=1.0, domain=10), hb.GRR(epsilon=3.0, domain=60_000), hb.SOLH(epsilon=2.0, domain=99)]
)
def test_numbers_come_back_as_they_were_and_cover_all_sizes(mechanism):
    reports = mechanism.randomize(np.zeros(4000, dtype=np.int64), hb.Random(seed=1))
    numbers = to_numbers(mechanism, reports, hb.Random(seed=2))
    assert mechanism.accumulate(from_numbers(mechanism, numbers)) == mechanism.accumulate(reports)
    # The highest four bits are uniform, as of any number: chi2 of 15 degrees of freedom, p = 1e-4 at 44.3.
    counts = np.bincount(numbers >> np.uint64(60), minlength=16)
    assert ((counts - 250) ** 2 / 250).sum() < 44.3
    every = hb.Random(seed=3).uint64(1000)
    mechanism.check(from_numbers(mechanism, every))


def test_what_has_no_numbers():
    oue = hb.OUE(epsilon=1.0, domain=3)
    with pytest.raises(InvalidValue, match="SOLH or GRR"):
        to_numbers(oue, oue.randomize([1], hb.Random(seed=1)), hb.Random(seed=2))
    with pytest.raises(DecodeError, match="numbers"):
        from_numbers(hb.GRR(epsilon=1.0, domain=3), np.arange(3))
