"""For the tests of attacks."""

from tests.cli.conftest import hubbub

__all__ = ["hubbub"]
