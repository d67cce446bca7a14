"""`hubbub amplify`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import Result

SETTING = ("amplify", "--mechanism", "olh", "--epsilon", 2, "--n", 100_000, "--delta", 1e-6)


def test_json_says_the_guarantee_and_nothing_else(answer: Callable[..., Any]) -> None:
    result = answer(*SETTING)
    assert set(result) == {"epsilon", "delta", "method", "valid"}
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
