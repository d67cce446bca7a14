"""For all tests."""

import gc
import hashlib
import os
import shutil
import signal
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

ROOT = Path(__file__).parents[1]

# Several tests run at once, and hundreds of processes are started: a pool of threads each would only be in the way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Clients keep the number of their answers in the user's state folder. Golden folders are opened in several tests.
STATE = tempfile.mkdtemp(prefix="hubbub-state-")
os.environ.pop("XDG_RUNTIME_DIR", None)

# Programs that tests start import what tests share as tests do: from `tests`.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))

collect_ignore = ["plugin_package"]  # another package, whose tests run where it is installed
# Engines that exclude each other have environments of their own: `make test-sail`, `make test-spark`.
collect_ignore += [] if "HUBBUB_ENGINE" in os.environ else ["spark/engine"]

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
    collectors = yield
    return [collector for collector in collectors if not isinstance(collector, DoctestModule)]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Every test has a state folder of its own."""
    os.environ["XDG_STATE_HOME"] = os.path.join(STATE, hashlib.sha256(item.nodeid.encode()).hexdigest()[:16])


def pytest_collection_finish() -> None:
    """What is collected stays: the collector of garbage need not go through it again and again."""
    gc.freeze()
    gc.set_threshold(20_000)


def pytest_unconfigure() -> None:
    """What was frozen is looked at again: DuckDB's module complains of whatever is left when Python ends."""
    gc.unfreeze()
    shutil.rmtree(STATE, ignore_errors=True)
