"""A spec names its hash function where it is not the first that its mechanism had; ids of kept specs stay."""

from __future__ import annotations

import dataclasses
import inspect
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hubbub.checks.values import truth_of
from hubbub.core.errors import InvalidValue
from hubbub.core.hashing import BEST_HASH, FIRST_HASH, HASHES
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.first_hash import with_first_hash
from hubbub.random.source import Random

FIRST = {
    "BLH": "mix32",
    "SOLH": "mix32",
    "OLH": "mix32",
    "FLH": "mix32",
    "Rappor": "mix32",
    "Collision": "mix32",
    "CoCo": "mix32",
    "Succinct": "mix32",
    "Loloha": "toeplitz",
    "NetSeed": "bch",
}
"""The function of each mechanism whose reports can be read only by whoever knows the function."""


def _example(name: str) -> Mechanism:
    return next(iter(MECHANISMS[name].examples()))


def _uses_a_hash(kind: type[Any]) -> bool:
    """Whether the module of a class, or of what it extends, reads reports through a function of a seed."""
    modules = {inspect.getmodule(base) for base in kind.__mro__ if base.__module__.startswith("hubbub")}
    imports = r"from hubbub\.(core\.hashing|kernels\.(support|ternary)) import|import [^)]*\bseed_bits|def toeplitz"
    return any(re.search(imports, inspect.getsource(module)) for module in modules if module is not None)


def test_every_mechanism_that_hashes_names_its_function():
    assert {name for name, kind in MECHANISMS.items() if _uses_a_hash(kind)} == set(FIRST)
    for name, kind in MECHANISMS.items():
        assert ("hash" in {field.name for field in dataclasses.fields(kind)}) == (name in FIRST)


@pytest.mark.parametrize("name", FIRST)
def test_the_first_function_is_meant_where_none_is_named(name: str):
    unnamed = {key: value for key, value in _example(name).spec().items() if key != "hash"}
    mechanism = Mechanism.from_spec(unnamed)
    assert mechanism.hash == FIRST[name]
    assert "hash" not in mechanism.spec()
    spelt = Mechanism.from_spec({**mechanism.spec(), "hash": FIRST[name]})
    assert spelt == mechanism == with_first_hash(_example(name))
    assert spelt.spec_id == mechanism.spec_id


@pytest.mark.parametrize("name", [name for name, first in FIRST.items() if first == FIRST_HASH])
def test_what_is_built_today_names_the_better_function(name: str):
    mechanism = _example(name)
    assert mechanism.hash == mechanism.spec()["hash"] == BEST_HASH
    assert mechanism.spec_id != with_first_hash(mechanism).spec_id
    assert Mechanism.from_spec(mechanism.spec()) == mechanism


@pytest.mark.parametrize("hash_name", HASHES)
@pytest.mark.parametrize("name", [name for name, first in FIRST.items() if first == FIRST_HASH])
def test_either_function_serves_from_report_to_estimate(name: str, hash_name: str):
    mechanism = replace(_example(name), hash=hash_name)
    values = mechanism.example_values(1) * 4_000
    sketch = mechanism.accumulate(mechanism.randomize(values, Random(seed=1)))
    estimate = mechanism.estimate(sketch, mechanism.example_values(4) if name == "Rappor" else None)
    truth = truth_of(mechanism, values)
    truth = np.append(1.0, np.zeros(len(estimate) - 1)) if truth is None else truth
    assert np.abs((estimate.value - truth) / estimate.stderr).max() < 5.5


@pytest.mark.parametrize("name", FIRST)
@pytest.mark.parametrize("unknown", ["sha256", "", None, 5, ["mix32"]])
def test_an_unknown_function_is_refused_by_name(name: str, unknown: object):
    with pytest.raises(InvalidValue, match="hash"):
        Mechanism.from_spec({**_example(name).spec(), "hash": unknown})


def test_a_mechanism_without_a_hash_takes_no_such_key():
    with pytest.raises(InvalidValue, match="spec"):
        Mechanism.from_spec({**_example("GRR").spec(), "hash": "mix32"})
