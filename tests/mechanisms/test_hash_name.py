"""A spec names its hash function."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

import pytest

from hubbub.core.errors import InvalidValue
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.base import Mechanism

HASHES = {
    **dict.fromkeys(("BLH", "SOLH", "OLH", "FLH", "Rappor", "Collision", "CoCo"), "product32"),
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
    ours = {name: kind for name, kind in MECHANISMS.items() if kind.__module__.startswith("hubbub.")}
    assert {name for name, kind in ours.items() if _uses_a_hash(kind)} == set(HASHES)
    for name, kind in ours.items():
        assert ("hash" in {field.name for field in dataclasses.fields(kind)}) == (name in HASHES)


@pytest.mark.parametrize("name", HASHES)
def test_a_spec_names_its_function_and_no_other(name: str):
    spec = _example(name).spec()
    assert spec["hash"] == HASHES[name]
    for unknown in ("sha256", "mix32", "", None, 5, [HASHES[name]]):
        with pytest.raises(InvalidValue, match="hash"):
            Mechanism.from_spec({**spec, "hash": unknown})
    with pytest.raises(InvalidValue, match="spec"):
        Mechanism.from_spec({key: value for key, value in spec.items() if key != "hash"})


def test_a_mechanism_without_a_hash_takes_no_such_key():
    with pytest.raises(InvalidValue, match="spec"):
        Mechanism.from_spec({**_example("GRR").spec(), "hash": "product32"})
