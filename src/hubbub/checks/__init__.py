"""The public contract suite: given any mechanism, it verifies that the contract holds.

It is applied to every registered mechanism, and to yours with `run_checks(mechanism)`, or in pytest with one line,
`test_contract = contract_tests(YourMechanism)`. Exact checks never give a false alarm; a statistical one does once in a
million times (that of the intervals' coverage once in ten thousand).

Example:
    >>> import hubbub as hb
    >>> from hubbub.checks import checks_for, run_checks
    >>> oracle = hb.GRR(epsilon=1.0, domain=["yes", "no"])
    >>> len(run_checks(oracle)) == len(checks_for(oracle))
    True
"""

from hubbub.checks.failure import CheckFailed
from hubbub.checks.suite import CHECKS, STATISTICAL, Check, checks_for, contract_tests, run_checks
from hubbub.checks.values import some_values

__all__ = ["CHECKS", "STATISTICAL", "Check", "CheckFailed", "checks_for", "contract_tests", "run_checks", "some_values"]
