"""`hubbub amplify`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import Result

SETTING = ("amplify", "--mechanism", "olh", "--epsilon", 2, "--n", 100_000, "--delta", 1e-6)


def test_json_says_the_guarantee_and_nothing_else(answer: Callable[..., Any]) -> None:
    result = answer(*SETTING)
    assert set(result) == {"epsilon", "delta", "method", "valid", "one_batch", "spec"}
    assert result["spec"]["domain"] == {"kind": "ordinal", "size": 1024}
    assert (result["delta"], result["method"], result["valid"]) == (1e-6, "blanket", True)
    assert 0.0247 < result["epsilon"] < 0.0249


def test_in_words(hubbub: Callable[..., Result]) -> None:
    text = " ".join(hubbub(*SETTING).stdout.split())
    for part in ("blanket", "stronger clones", "FMT21", "BBGN19", "plus a delta of 1e-06", "local epsilon of 2"):
        assert part in text
    alone = " ".join(hubbub("amplify", "-m", "grr", "-e", 30, "-n", 5).stdout.split())
    assert "by more than a factor of e^30. Before" in alone  # and no delta, where nothing was gained


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("-m", "ohl", "-e", 2, "-n", 100), "did you mean OLH?"),
        (("-m", "olh", "-e", "nan", "-n", 100), "epsilon: got nan"),
        (("-m", "olh", "-e", 2, "-n", 0), "n: got 0; allowed: an integer from 1"),
        (("-m", "olh", "-e", 2, "-n", 100, "--delta", 1), "delta: got 1.0"),
        (("-m", "olh", "-e", 2, "-n", 100, "--domain", 1), "domain: got 1"),
        (("-m", "oue", "-e", 2, "-n", 100, "--fakes", 3), "fakes are drawn uniformly"),
    ],
)
def test_refusals_name_field_value_and_what_is_allowed(
    refused: Callable[..., str], options: tuple[Any, ...], reason: str
) -> None:
    assert reason in refused("amplify", *options)


SPARSE = ("amplify", "-m", "exsub", "-e", 2, "-n", 100_000)


def test_a_mechanism_whose_parameters_are_missing_is_refused_and_the_spec_is_printed(
    answer: Callable[..., Any], hubbub: Callable[..., Result], refused: Callable[..., str]
) -> None:
    assert "dimension: got nothing" in refused(*SPARSE)
    assert "sparsity: got nothing" in refused(*SPARSE, "--set", "dimension=128")
    given = (*SPARSE, "--set", "dimension=128", "--set", "sparsity=8")
    spec = answer(*given)["spec"]
    assert (spec["mechanism"], spec["dimension"], spec["sparsity"]) == ("ExSub", 128, 8)
    shown = "".join(hubbub(*given).stdout.split())
    assert '"dimension":128' in shown
    assert "domain: got nothing" in refused("amplify", "-m", "psfo", "-e", 2, "-n", 100)
    assert answer("amplify", "-m", "psfo", "-e", 2, "-n", 100, "-d", 16)["spec"]["domain"]["kind"] == "sets"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--set", "dimension"), "NAME=VALUE"),
        (("--set", "dimensoin=8"), "did you mean dimension?"),
        (("--set", "dimension=8", "--set", "dimension=9"), "each name once"),
        (("--set", "dimension=eight", "--set", "sparsity=2"), "dimension: got 'eight'"),
        (("--domain", 9), "has no list of values"),
    ],
)
def test_parameters_that_are_none(refused: Callable[..., str], options: tuple[Any, ...], reason: str) -> None:
    assert reason in refused(*SPARSE, *options)


def test_public_numbers_are_refused(refused: Callable[..., str]) -> None:
    assert "public part" in refused("amplify", "-m", "measured", "-e", 2, "-n", 100_000)


@pytest.mark.parametrize("name", ["BasicRappor", "Loloha"])
def test_memoised_reports_say_one_batch_only(
    answer: Callable[..., Any], hubbub: Callable[..., Result], name: str
) -> None:
    options = ("amplify", "-m", name, "-e", 2, "-n", 1000, "-d", 8)
    assert answer(*options)["one_batch"] is True
    assert "one batch only" in " ".join(hubbub(*options).stdout.split())
    assert "one batch only" not in hubbub(*SETTING).stdout
