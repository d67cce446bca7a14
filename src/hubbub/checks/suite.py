"""The suite: which checks there are, and which apply to a mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from hubbub.checks.draws import check_batch_is_singles, check_draws, check_public_part
from hubbub.checks.estimator import check_bias_declared, check_coverage, check_linear, check_unbiased, check_variance
from hubbub.checks.failure import CheckFailed, named_failure
from hubbub.checks.heuristic import check_consistent, check_heuristic_error, heuristics
from hubbub.checks.influence import check_influence, influences
from hubbub.checks.merging import (
    check_bad_values,
    check_empty,
    check_foreign,
    check_hostile_columns,
    check_merge_laws,
    check_no_aliasing,
    check_round_trip,
)
from hubbub.checks.probability import (
    check_effective_epsilon,
    check_exact_epsilon,
    check_log_prob,
    check_normalised,
    check_tight_epsilon,
    covers_every_value,
    public_rows,
)
from hubbub.checks.sampler import check_sampler
from hubbub.checks.sampling import check_of_population, check_support, check_weights
from hubbub.checks.spec import check_event, check_frozen, check_hostile_spec, check_spec_fields, check_spec_round_trip
from hubbub.checks.transcripts import (
    check_state_batches,
    check_state_bytes,
    check_state_price,
    check_state_silence,
    check_transcript_epsilon,
    check_transcripts,
    steps_listed,
)
from hubbub.core.errors import needs
from hubbub.mechanisms.base import Mechanism, ReportFormat
from hubbub.mechanisms.frequency.oracle import SupportMechanism
from hubbub.mechanisms.stateful import Stateful
from hubbub.random.source import Random

if TYPE_CHECKING:
    import pytest


class Check(Protocol):
    """A function that raises where a mechanism breaks its contract."""

    __name__: str

    def __call__(self, mechanism: Any, rng_seed: int = 1) -> None: ...


CHECKS: tuple[Check, ...] = (
    check_spec_round_trip,
    check_spec_fields,
    check_frozen,
    check_effective_epsilon,
    check_normalised,
    check_exact_epsilon,
    check_tight_epsilon,
    check_hostile_spec,
    check_log_prob,
    check_sampler,
    check_draws,
    check_public_part,
    check_batch_is_singles,
    check_merge_laws,
    check_round_trip,
    check_empty,
    check_foreign,
    check_bad_values,
    check_hostile_columns,
    check_no_aliasing,
    check_event,
    check_influence,
    check_bias_declared,
    check_unbiased,
    check_variance,
    check_coverage,
    check_linear,
    check_support,
    check_weights,
    check_of_population,
    check_transcript_epsilon,
    check_transcripts,
    check_state_batches,
    check_state_price,
    check_state_silence,
    check_state_bytes,
    check_heuristic_error,
    check_consistent,
)
"""Every check, the exact ones first."""

STATISTICAL: frozenset[Check] = frozenset(
    {
        check_sampler,
        check_public_part,
        check_unbiased,
        check_variance,
        check_coverage,
        check_linear,
        check_support,
        check_weights,
        check_of_population,
        check_heuristic_error,
        check_consistent,
    }
)
"""The checks that test many random reports."""


def is_long(check: Check, mechanism: ReportFormat) -> bool:
    """Whether a check is one of those that take the longest.

    Long checks test many random reports, build many mechanisms, or read thousands of reports one by one. So do those of
    the random bytes that a report draws, where their number varies and only its distribution can be tested.
    """
    drawn = check in (check_draws, check_batch_is_singles) and not getattr(mechanism, "fixed_block", True)
    return drawn or check in STATISTICAL or check in (check_hostile_spec, check_influence)


def checks_for(mechanism: ReportFormat) -> tuple[Check, ...]:
    """The checks that apply to a mechanism.

    Checks that enumerate outputs need outputs that can be listed. Checks of the estimator need a mechanism whose bias
    is "none"; one whose bias is "consistent" estimates a distribution, and has a check of its own. Checks of states are
    for mechanisms whose devices remember; if these make no reports afresh, only those of specs and reports apply too.
    A class opts out of any other check by name, with a reason, in `skip_checks: ClassVar[dict[str, str]]`.

    Example:
        >>> from hubbub import GRR
        >>> check_unbiased in checks_for(GRR(epsilon=1.0, domain=3))
        True
    """
    skipped = getattr(mechanism, "skip_checks", {})
    unknown = set(skipped) - {check.__name__ for check in CHECKS}
    if unknown:
        raise CheckFailed(f"{type(mechanism).__name__}.skip_checks names no check: {', '.join(sorted(unknown))}")
    return tuple(check for check in CHECKS if check.__name__ not in skipped and _applies(check, mechanism))


def run_checks(mechanism: ReportFormat, rng_seed: int = 1) -> tuple[str, ...]:
    """Run every check that applies, and return their names; the first that fails raises CheckFailed.

    Example:
        >>> from hubbub import GRR
        >>> names = run_checks(GRR(epsilon=1.0, domain=3))
        >>> names[:3]
        ('check_spec_round_trip', 'check_spec_fields', 'check_frozen')
    """
    checks = checks_for(mechanism)
    for check in checks:
        with named_failure(check.__name__, mechanism):
            check(mechanism, rng_seed)
    return tuple(check.__name__ for check in checks)


def _applies(check: Check, mechanism: ReportFormat) -> bool:
    if check in _OF_STATES:
        return isinstance(mechanism, Stateful) and (check not in _OF_TRANSCRIPTS or steps_listed(mechanism, 1) > 0)
    if not isinstance(mechanism, Mechanism):
        return check in _OF_REPORTS
    where = _WHERE.get(check.__name__)
    return where is None or where(mechanism)


def _enumerable(mechanism: Mechanism) -> bool:
    return mechanism.outputs(public_rows(mechanism, 1, Random(seed=1))[0]) is not None


def _counts_candidates(mechanism: Mechanism) -> bool:
    return isinstance(mechanism, SupportMechanism) and not mechanism.is_open


def _unbiased(mechanism: Mechanism) -> bool:
    return mechanism.bias == "none"


_OF_REPORTS = frozenset(
    {
        check_spec_round_trip,
        check_spec_fields,
        check_frozen,
        check_effective_epsilon,
        check_hostile_spec,
        check_merge_laws,
        check_round_trip,
        check_foreign,
        check_hostile_columns,
        check_event,
    }
)
_OF_TRANSCRIPTS = frozenset({check_transcript_epsilon, check_transcripts})
_OF_STATES = _OF_TRANSCRIPTS | {check_state_batches, check_state_price, check_state_silence, check_state_bytes}
_WHERE: dict[str, Callable[[Mechanism], bool]] = {
    "check_normalised": _enumerable,
    "check_exact_epsilon": _enumerable,
    "check_tight_epsilon": covers_every_value,
    "check_influence": lambda mechanism: mechanism.bias != "consistent" and bool(influences(mechanism)),
    "check_unbiased": _unbiased,
    "check_variance": _unbiased,
    "check_coverage": _unbiased,
    "check_linear": _unbiased,
    "check_support": _counts_candidates,
    "check_weights": _counts_candidates,
    "check_of_population": _unbiased,
    "check_consistent": lambda mechanism: mechanism.bias == "consistent",
    "check_heuristic_error": lambda mechanism: any(heuristics(mechanism)),
}


def contract_tests(
    *kinds: type[ReportFormat], slow: pytest.MarkDecorator | None = None, unmarked: int = 1
) -> Callable[..., None]:
    """A pytest test of some classes: every check that applies to every one of their examples is a case of it.

    Parameters
    ----------
    kinds
        The classes.
    slow
        A pytest mark for the long checks, the statistical ones among them (`is_long`).
    unmarked
        How many examples of a class have their long checks without the mark.

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
