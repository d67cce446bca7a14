"""All that a package with a mechanism needs to test it."""

from hubbub_forced import ForcedResponse

from hubbub.checks import contract_tests

test_contract = contract_tests(ForcedResponse)
