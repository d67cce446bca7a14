"""All that a package with a mechanism and a question needs to test them."""

from hubbub_forced import ForcedResponse
from hubbub_forced.holders import HoldersQuestion

from hubbub.checks import contract_tests, kind_tests

test_contract = contract_tests(ForcedResponse)
test_contract_of_the_question = kind_tests(HoldersQuestion)
