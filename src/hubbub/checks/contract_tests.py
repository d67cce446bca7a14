"""The contract suite as a pytest test: one line in the tests of whoever writes a mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hubbub.checks.failure import CheckFailed
from hubbub.checks.suite import Check, checks_for, is_long
from hubbub.core.errors import needs
from hubbub.mechanisms.base import ReportFormat


def contract_tests(*kinds: type[ReportFormat], slow: Any = None, unmarked: int = 1) -> Callable[..., None]:
    """A pytest test of some classes: every check that applies to every one of their examples is a case of it.

    Parameters
    ----------
    kinds
        The classes.
    slow
        A pytest mark for the long checks, the statistical ones among them (`is_long`).
    unmarked
        The first so many examples of a class have their long checks without the mark.

    Example:
        >>> from hubbub import GRR
        >>> test_contract = contract_tests(GRR)  # in a file of tests
        >>> cases = test_contract.pytestmark[0].args[1]
        >>> cases[0].id
        'GRR-example0-spec_round_trip'
    """
    with needs(""):
        import pytest

    cases = []
    for kind in kinds:
        examples = list(kind.examples())
        if not examples:
            raise CheckFailed(f"{kind.__name__}.examples() yields nothing that could be checked")
        for number, mechanism in enumerate(examples):
            for check in checks_for(mechanism):
                marks = [slow] if slow is not None and number >= unmarked and is_long(check, mechanism) else []
                name = check.__name__.removeprefix("check_")
                cases.append(pytest.param(check, mechanism, id=f"{kind.__name__}-example{number}-{name}", marks=marks))

    @pytest.mark.parametrize(("check", "mechanism"), cases)
    def test_contract(check: Check, mechanism: ReportFormat) -> None:
        check(mechanism)

    return test_contract
