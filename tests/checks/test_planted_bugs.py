"""The suite earns its keep here: every check catches at least one bug that was planted for it.

Statistical checks reject a right mechanism with probability 1e-6; the seeds are fixed, and each planted bug is so far
off that its own check misses it with a smaller probability than that.
"""

import pytest

from hubbub import GRR, OLH, OUE, SHE, CoCo, Collision, ExSub, NetSeed, NetSub
from hubbub.checks import CHECKS, CheckFailed, checks_for, run_checks
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.base import Mechanism, ReportFormat
from tests.checks import planted_randomizers, planted_servers, planted_specs, planted_states, planted_ternary
from tests.checks.planted import PLANTED

BY_NAME = {check.__name__: check for check in CHECKS}
MODULES = [planted_randomizers, planted_servers, planted_specs, planted_states, planted_ternary]


@pytest.mark.parametrize(("mechanism", "name", "says"), PLANTED)
def test_the_planted_bug_is_caught(mechanism: ReportFormat, name: str, says: str | None):
    assert BY_NAME[name] in checks_for(mechanism)
    with pytest.raises(CheckFailed, match=says):
        BY_NAME[name](mechanism)


def test_every_check_catches_something():
    assert {case.values[1] for case in PLANTED} == set(BY_NAME)
    assert {type(case.values[0]).__module__ for case in PLANTED} == {module.__name__ for module in MODULES}


SMALL = planted_specs.SMALL
TERNARY = planted_ternary.SMALL
RIGHT: list[Mechanism] = [OUE(**SMALL), OUE(epsilon=1.0, domain=131), OLH(**SMALL), SHE(epsilon=2.0, domain=2)]
RIGHT += [kind(**TERNARY) for kind in (Collision, CoCo, ExSub, NetSub)]


@pytest.mark.parametrize(
    "mechanism",
    [GRR(**SMALL), NetSeed(**TERNARY), *(pytest.param(mechanism, marks=pytest.mark.slow) for mechanism in RIGHT)],
    ids=lambda mechanism: f"{type(mechanism).__name__}-{mechanism.size}",
)
def test_the_right_classes_pass(mechanism: Mechanism):
    names = run_checks(mechanism, rng_seed=2)
    assert names == tuple(check.__name__ for check in checks_for(mechanism))
    assert "check_tight_epsilon" in names or mechanism.outputs() is None


def test_a_ratio_beyond_floats_is_checked():
    BY_NAME["check_exact_epsilon"](ExSub(epsilon=800.0, dimension=4, sparsity=2, m=2))


def test_a_spec_one_too_greedy_is_refused():
    right = GRR(epsilon=1.0, domain=5)
    with pytest.raises(InvalidValue, match="which its integers spend"):
        GRR(epsilon=1.0, domain=5, other=right.other - 1)
    GRR(epsilon=1.0, domain=5, other=right.other + 1)
