from __future__ import annotations

import numpy as np
import pytest

from hubbub.consistency import METHODS, answer, base_cut, consistent, norm, norm_sub, post_pos, power_ns
from hubbub.core.errors import InvalidValue

VALUE = [0.7, 0.4, 0.1, -0.1, -0.2]


@pytest.mark.parametrize(("purpose", "method"), [("single", base_cut), ("frequent", norm), ("set", power_ns)])
def test_the_guideline(purpose, method, shares):
    estimate = shares(VALUE)
    assert consistent(estimate, for_=purpose).value.tolist() == method(estimate).value.tolist()


@pytest.mark.parametrize("name", [name for name in METHODS if name != "post-pos"])
def test_by_name(name, shares):
    estimate = shares(VALUE)
    assert consistent(estimate, method=name).value.tolist() == METHODS[name].apply(estimate).value.tolist()


def test_post_pos_is_for_results(shares):
    with pytest.raises(InvalidValue, match="results of `answer`"):
        consistent(shares(VALUE), method="post-pos")


@pytest.mark.parametrize(
    "options", [{}, {"for_": "set", "method": "norm"}, {"for_": "all"}, {"method": "norm_sub"}, {"method": ""}]
)
def test_anything_else_is_refused(options, shares):
    with pytest.raises(InvalidValue, match="allowed: one of"):
        consistent(shares(VALUE), **options)


def test_answers_are_sums_of_processed_shares(shares):
    estimate, rows = shares(VALUE), [[1, 0, 0, 1, 1], [0, 0, 0, 1, 1]]
    result = answer(estimate, rows, "norm-sub")
    np.testing.assert_allclose(result.value, np.array(rows) @ norm_sub(estimate).value)
    assert result.bias == "consistent"
    assert answer(estimate, rows).value.tolist() == power_ns(estimate).linear(rows).value.tolist()
    assert answer(estimate, rows, "base").value.tolist() == estimate.linear(rows).value.tolist()


def test_post_pos_applies_after_the_sum(shares):
    estimate, rows = shares(VALUE), [[1, 0, 0, 1, 1], [0, 0, 0, 1, 1]]
    result = answer(estimate, rows, "post-pos")
    np.testing.assert_allclose(result.value, [0.4, 0.0])  # before the sum it would be 0.7
    assert result.value.tolist() == post_pos(estimate.linear(rows)).value.tolist()


def test_post_pos_refuses_differences(shares):
    with pytest.raises(InvalidValue, match="weights: got"):
        answer(shares(VALUE), [1, -1, 0, 0, 0], "post-pos")
    assert answer(shares(VALUE), [0, 1, -1, 0, 0], "base").value[0] == pytest.approx(0.3)


def test_unknown_methods_and_bad_weights_are_refused(shares):
    with pytest.raises(InvalidValue, match="method: got 'best'"):
        answer(shares(VALUE), [1] * 5, "best")
    with pytest.raises(InvalidValue, match="5 finite weights"):
        answer(shares(VALUE), [1] * 4, "norm")
