"""The contract suite of kinds of questions; `hubbub.checks` has its public names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hubbub.checks.failure import CheckFailed, named_failure, require
from hubbub.collection.safety import Finding
from hubbub.core.domain import Domain
from hubbub.core.errors import needs
from hubbub.core.plugins import PluginFailed, is_foreign
from hubbub.questions import QUESTIONS, Question
from hubbub.questions.collection import Collection
from hubbub.simulate.asked_question import AskedQuestion
from hubbub.simulate.kind_checks import KIND_CHECKS, KindCheck, check_forecast

if TYPE_CHECKING:
    import pytest


def kind_checks_for(kind: type[Question]) -> tuple[KindCheck, ...]:
    """The checks of a kind: all but those that it opts out of by name, with a reason, in `skip_checks`."""
    unknown = set(kind.skip_checks) - {check.__name__ for check in KIND_CHECKS}
    require(not unknown, f"{kind.__name__}.skip_checks names no check: {', '.join(sorted(unknown))}")
    return tuple(check for check in KIND_CHECKS if check.__name__ not in kind.skip_checks)


def run_kind_checks(
    question: Question, fields: Mapping[str, Domain], rng_seed: int = 1, *, statistical: bool = True
) -> tuple[str, ...]:
    """Run every check on a question about these fields, and return their names; the first that fails raises.

    Parameters
    ----------
    question
        The question. Its kind need not be registered.
    fields
        The domain of each field that it reads.
    rng_seed
        The seed of the simulated devices.
    statistical
        Whether to compare the forecast with repeated simulations, which takes a few seconds.

    Example:
        >>> from hubbub import Categorical
        >>> from hubbub.questions import Question
        >>> question = Question.make("histogram", field="theme", epsilon=1.0)
        >>> run_kind_checks(question, {"theme": Categorical(["light", "dark"])})[:3]
        ('check_keys', 'check_words', 'check_labels')
    """
    asked = AskedQuestion(question, fields, rng_seed)
    checks = [check for check in kind_checks_for(type(question)) if statistical or check is not check_forecast]
    for check_kind in checks:
        run_kind_check(check_kind, asked)
    return tuple(check.__name__ for check in checks)


def run_kind_check(check_kind: KindCheck, asked: AskedQuestion) -> None:
    """Run one check; a failure names it and the question."""
    with named_failure(check_kind.__name__, asked.question), _registered(type(asked.question)):
        check_kind(asked)


@contextmanager
def _registered(kind: type[Question]) -> Iterator[None]:
    """Register a kind for as long as it is checked, where it is not."""
    if kind.kind in QUESTIONS:
        yield
        return
    QUESTIONS[kind.kind] = kind
    try:
        yield
    finally:
        del QUESTIONS[kind.kind]


def kind_findings(collection: Collection) -> Iterator[Finding]:
    """The questions of a collection whose kind is of another package and breaks the contract; forecasts are not run."""
    for name, question in collection.questions.items():
        if is_foreign(type(question)):
            try:
                run_kind_checks(question, question.setting.domains, statistical=False)
            except CheckFailed as error:
                if isinstance(error.__cause__, PluginFailed):  # which commands report as it is
                    raise error.__cause__ from None
                yield Finding("error", f"questions.{name}", f"its kind breaks the contract of kinds: {error}")


def kind_tests(*kinds: type[Question], slow: pytest.MarkDecorator | None = None) -> Callable[..., None]:
    """A pytest test of some kinds: every check of every one of their examples is a case of it.

    Parameters
    ----------
    kinds
        The classes.
    slow
        A pytest mark for the check of the forecast, of all examples of a kind but the first.

    Example:
        >>> from hubbub.questions.mean import MeanQuestion
        >>> test_contract = kind_tests(MeanQuestion)  # in a file of tests
        >>> test_contract.pytestmark[0].args[1][0].id
        'mean-example0-keys'
    """
    with needs(""):
        import pytest

    cases = []
    for kind in kinds:
        examples = [AskedQuestion(*example) for example in kind.examples()]
        require(examples, f"{kind.__name__}.examples() yields nothing that could be checked")
        for number, asked in enumerate(examples):
            for check_kind in kind_checks_for(type(asked.question)):
                marks = [slow] if slow is not None and number and check_kind is check_forecast else []
                name = f"{kind.kind}-example{number}-{check_kind.__name__.removeprefix('check_')}"
                cases.append(pytest.param(check_kind, asked, id=name, marks=marks))

    @pytest.mark.parametrize(("check_kind", "asked"), cases)
    def test_contract(check_kind: KindCheck, asked: AskedQuestion) -> None:
        run_kind_check(check_kind, asked)

    return test_contract
