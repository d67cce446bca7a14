"""The contract, on every registered mechanism: add a class to the registry and this file finds it.

Each statistical check states its chance of a false alarm (1e-6; coverage 1e-4); the seed is fixed. The long checks see
the first example of each class here, the others in `make test-slow`; of baselines, which only papers use, all of them.
At extreme settings every mechanism is built, audited and estimates, or the setting is refused; a spec names its hash.
"""

import dataclasses
import inspect
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub import Random
from hubbub.checks import checks_for, contract_tests
from hubbub.checks.influence import check_influence
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms import MECHANISMS, randomizers
from hubbub.mechanisms.base import Mechanism, ReportFormat
from hubbub.privacy.audit import audit
from hubbub.privacy.enumeration import required_fields
from tests.shared.answers import sketched

BASELINES = [kind for kind in MECHANISMS.values() if "baselines" in kind.__module__]
OURS = [kind for kind in MECHANISMS.values() if kind not in BASELINES]

test_contract = contract_tests(*OURS, slow=pytest.mark.slow)
test_contract_of_baselines = contract_tests(*BASELINES, slow=pytest.mark.slow, unmarked=0)

NO_MEANS = {"BloomRappor", "Rappor", "SquareWave"}
"""Those whose estimates are no means over reports."""


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_has_examples_and_a_name(name: str):
    kind = MECHANISMS[name]
    assert kind.__name__ == name
    assert list(kind.examples())


@pytest.mark.parametrize("name", MECHANISMS)
def test_what_is_skipped_says_why(name: str):
    for check, reason in getattr(MECHANISMS[name], "skip_checks", {}).items():
        assert check.startswith("check_")
        assert len(reason.split()) >= 3


@pytest.mark.parametrize("name", [name for name in randomizers() if name not in NO_MEANS])
def test_what_a_forged_report_can_do_is_checked(name: str):
    assert all(check_influence in checks_for(mechanism) for mechanism in MECHANISMS[name].examples())


# -- extreme settings -----------------------------------------------------------------------------------------------

EPSILONS = (5e-324, 1e-300, 1e-100, 1e-20, 1e-16, 1e-12, 1e-9, 20.0, 50.0, 300.0, 700.0, 709.9, 1000.0)
IMPOSSIBLE = (1000.1, 1e300, math.nan, math.inf, -math.inf, -1.0, 0.0, True, "1", None)
SIZES = (0, -1, 1, 2, 3, 1000, 2**16, 2**31, 2**32, 2**53, 2**64, 10**30, 2.5, 5e-324, 1e300, math.nan, math.inf)
LARGE = 1 << 12  # bytes of a report, numbers of a sketch


def _settings(kind: type[ReportFormat]) -> Iterator[dict[str, Any]]:
    example = next(kind.examples())
    fields = {name: getattr(example, name) for name in required_fields(kind)}
    for epsilon in (*EPSILONS, *IMPOSSIBLE):
        yield {**fields, "epsilon": epsilon}
    for name in fields:
        for size in SIZES:
            for epsilon in (1e-20, 1.0, 1000.0):
                yield {**fields, name: size, "epsilon": epsilon}


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_an_extreme_setting_works_or_is_refused(name: str):
    refused = 0
    for setting in _settings(MECHANISMS[name]):
        try:
            mechanism = MECHANISMS[name](**setting)
        except InvalidValue:
            refused += 1
            continue
        assert type(setting["epsilon"]) is float, setting
        assert 0 < mechanism.effective_epsilon <= setting["epsilon"], setting
        assert mechanism.event().spent > 0, setting
        if isinstance(mechanism, Mechanism):
            assert audit(mechanism).ok, setting
            if mechanism.report_bytes <= LARGE and math.prod(mechanism.sketch_shape) <= LARGE:
                sketch = sketched(mechanism, mechanism.example_values(3), Random(seed=1))
                if mechanism.bias == "none":
                    assert np.isfinite(mechanism.estimate(sketch).value).all(), setting
    assert refused >= len(IMPOSSIBLE)


@pytest.mark.parametrize(("name", "epsilon"), [("THE", 1e-20), ("OLH", 1000.0), ("SHE", 5e-324), ("PSFO", 700.0)])
def test_an_epsilon_that_no_integers_can_spend_is_refused_by_name(name: str, epsilon: float):
    with pytest.raises(InvalidValue, match=r"^epsilon: got "):
        getattr(hb, name)(epsilon=epsilon, domain=16)


# -- the name of the hash function ----------------------------------------------------------------------------------

HASHES = {
    **dict.fromkeys(
        (
            "BLH",
            "SOLH",
            "OLH",
            "FLH",
            "CMS",
            "HCMS",
            "Rappor",
            "BloomRappor",
            "Collision",
            "CoCo",
            "FastCollision",
            "FastCoCo",
            "Wheel",
        ),
        "product32",
    ),
    "Loloha": "toeplitz",
    "NetSeed": "bch",
}
"""The function of each mechanism whose reports can be read only by whoever knows the function."""


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
    spec = next(MECHANISMS[name].examples()).spec()
    assert spec["hash"] == HASHES[name]
    for unknown in ("sha256", "mix32", "", None, 5, [HASHES[name]]):
        with pytest.raises(InvalidValue, match="hash"):
            Mechanism.from_spec({**spec, "hash": unknown})
    with pytest.raises(InvalidValue, match="spec"):
        Mechanism.from_spec({key: value for key, value in spec.items() if key != "hash"})


def test_a_mechanism_without_a_hash_takes_no_such_key():
    with pytest.raises(InvalidValue, match="spec"):
        Mechanism.from_spec({**hb.GRR(epsilon=1.0, domain=2).spec(), "hash": "product32"})
