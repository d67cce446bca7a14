"""Every kind of question keeps to the contract of kinds; so does one of another package."""

import pytest

from hubbub.checks import kind_tests
from hubbub.questions import QUESTIONS
from tests.questions.distinct import DistinctQuestion

OURS = [kind for kind in QUESTIONS.values() if kind.__module__.startswith("hubbub.")]  # other tests register more
test_contract = kind_tests(*OURS, slow=pytest.mark.slow)
test_contract_of_another_package = kind_tests(DistinctQuestion)
