"""The public contract suites: given any mechanism, or any kind of question, they verify that the contract holds.

It is applied to every registered mechanism, and to yours with `run_checks(mechanism)`, or in pytest with one line,
`test_contract = contract_tests(YourMechanism)`. Exact checks never give a false alarm; a statistical one does once in a
million times (that of the intervals' coverage once in ten thousand).

Kinds of questions have `run_kind_checks(question, fields)`, and `test_contract = kind_tests(YourQuestion)`. Their suite
asks simulated devices, and is loaded when it is used.

Example:
    >>> import hubbub as hb
    >>> from hubbub.checks import checks_for, run_checks
    >>> oracle = hb.GRR(epsilon=1.0, domain=["yes", "no"])
    >>> len(run_checks(oracle)) == len(checks_for(oracle))
    True
"""

from importlib import import_module
from typing import TYPE_CHECKING

from hubbub.checks.failure import CheckFailed
from hubbub.checks.suite import CHECKS, STATISTICAL, Check, checks_for, contract_tests, run_checks
from hubbub.checks.values import some_values

if TYPE_CHECKING:
    from collections.abc import Callable

    KIND_CHECKS: tuple[Callable[..., None], ...]
    kind_tests: Callable[..., Callable[..., None]]
    run_kind_checks: Callable[..., tuple[str, ...]]

__all__ = [
    "CHECKS",
    "KIND_CHECKS",
    "STATISTICAL",
    "Check",
    "CheckFailed",
    "checks_for",
    "contract_tests",
    "kind_tests",
    "run_checks",
    "run_kind_checks",
    "some_values",
]


def __getattr__(name: str) -> object:
    if name in __all__:  # what is not here is above this package, which it must not load
        return getattr(import_module("hubbub.simulate.kind_suite"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
