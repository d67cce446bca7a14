"""For all tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

collect_ignore = ["plugin_package"]  # another package, whose tests run where it is installed

# How long an example takes says more about the machine than about the code; and a failure comes again.
settings.register_profile("hubbub", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("long", settings.get_profile("hubbub"), max_examples=200)
settings.load_profile(os.environ.get("HUBBUB_EXAMPLES", "hubbub"))

# Whoever starts the tests in the background has children ignore Ctrl-C, which some tests press.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[Any], list[Any]]:
    """Tests have no doctests: looking for them would import, and rewrite, every file of tests a second time."""
    found = yield
    return [collector for collector in found if not isinstance(collector, DoctestModule)]
