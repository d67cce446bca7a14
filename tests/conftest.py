"""For all tests."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

collect_ignore = ["plugin_package"]  # another package, whose tests run where it is installed

# How long an example takes says more about the machine than about the code; and a failure comes again.
settings.register_profile("hubbub", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("long", settings.get_profile("hubbub"), max_examples=200)
settings.load_profile(os.environ.get("HUBBUB_EXAMPLES", "hubbub"))

# Whoever starts the tests in the background has children ignore Ctrl-C, which some tests press.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
