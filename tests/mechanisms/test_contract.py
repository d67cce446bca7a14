"""The contract, on every registered mechanism: add a class to the registry and this file finds it.

Each statistical check states its chance of a false alarm (1e-6; coverage 1e-4); the seed is fixed. The long checks see
the first example of each class here, the others in `make test-slow`; of baselines, which only papers use, all of them.
"""

from __future__ import annotations

import pytest

from hubbub.checks import checks_for, contract_tests
from hubbub.checks.influence import check_influence
from hubbub.mechanisms import MECHANISMS, randomizers

BASELINES = [kind for kind in MECHANISMS.values() if "baselines" in kind.__module__]
OURS = [kind for kind in MECHANISMS.values() if kind not in BASELINES]

test_contract = contract_tests(*OURS, slow=pytest.mark.slow)
test_contract_of_baselines = contract_tests(*BASELINES, slow=pytest.mark.slow, unmarked=0)

NO_MEANS = {"Rappor", "SquareWave"}
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
