"""Whoever adds reports up, and in whatever pieces, has the same integers."""

import numpy as np
import pytest

import hubbub as hb
from hubbub.backends import LOCAL, LocalBackend
from hubbub.core.errors import InvalidValue, SpecMismatch

RNG = hb.Random(seed=3)
ORACLES = [hb.GRR(epsilon=1.0, domain=50), hb.OUE(epsilon=1.0, domain=50), hb.OLH(epsilon=1.0, domain=50)]


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_chunks_and_batches_change_nothing(oracle: hb.OLH, chunk: int) -> None:
    batches = [oracle.randomize(np.arange(n) % 50, RNG) for n in (100, 0, 33)]
    whole = hb.Reports.concat(batches)
    backend = LocalBackend(chunk=chunk)
    assert backend.fold(iter(batches), oracle) == oracle.accumulate(whole)
    candidates = [3, 49, 0]
    assert backend.support(iter(batches), oracle, candidates) == oracle.support(whole, candidates)
    weights = [np.arange(len(batch)) - 5 for batch in batches]
    weighed = backend.support(iter(batches), oracle, candidates, iter(weights))
    assert weighed == oracle.support(whole, candidates, np.concatenate(weights))


def test_nothing_is_a_sketch_too() -> None:
    oracle = ORACLES[2]
    assert LOCAL.fold([], oracle) == oracle.empty()
    reports = oracle.randomize([1], RNG)
    for nothing, some in (
        (LOCAL.support([], oracle, [1, 2]), oracle.support(reports, [1, 2])),
        (LOCAL.support([], oracle, [1, 2], []), oracle.support(reports, [1, 2], [4])),
    ):
        assert nothing + some == some


def test_what_does_not_belong_is_refused() -> None:
    grr, _, olh = ORACLES
    reports = grr.randomize([1, 2, 3], RNG)
    with pytest.raises(SpecMismatch):
        LOCAL.fold([reports], olh)
    with pytest.raises(SpecMismatch):
        LOCAL.support([reports], olh, [1])
    with pytest.raises(ValueError, match="shorter"):
        LOCAL.support([reports, reports], grr, [1], [[1, 1, 1]])
    with pytest.raises(InvalidValue, match="weights"):
        LOCAL.support([reports], grr, [1], [[1, 1]])
    with pytest.raises(InvalidValue, match="chunk"):
        LocalBackend(chunk=0)
    with pytest.raises(InvalidValue, match="counts"):
        olh.support_sketch([1, 2], 3, [1])
