"""A browser that is killed in the middle of a study goes on with it: one debit a run, one answer a round."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.js import chromium as browsers
from tests.js.test_browser import record, status, tick, visit
from tests.js.test_browser_studies import HOUR, PLAIN, ROUND, UNITS, Study

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext


@contextmanager
def chromium(folder: Path) -> Iterator[tuple[BrowserContext, subprocess.Popen[bytes]]]:
    """A browser with a folder of its own, and its process, which may be killed."""
    from playwright.sync_api import sync_playwright

    program, environment = browsers.chromium()
    options = ["--headless", "--no-sandbox", "--remote-debugging-port=0", f"--user-data-dir={folder}", "--no-first-run"]
    said = folder.with_suffix(".txt")
    with said.open("wb") as output:
        process = subprocess.Popen([program, *options], env=environment, stderr=output, start_new_session=True)
    try:
        while not (found := re.search(r"DevTools listening on (ws://\S+)", said.read_text(encoding="utf-8"))):
            assert process.poll() is None, said.read_text(encoding="utf-8")
            time.sleep(0.05)
        with sync_playwright() as playwright:
            yield playwright.chromium.connect_over_cdp(found[1]).contexts[0], process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("turns", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_killed_in_the_middle_of_a_study_it_goes_on(site: Callable[..., Any], tmp_path: Path, turns: int) -> None:
    # The browser is killed at some moment of every round, and goes on in the same one.
    collector = site(PLAIN)
    begins = int(collector.clock.now())
    # The trusted time of a browser that is killed again and again stands still: no run leaves the hour of its promise.
    hourly = {"limit": (turns + 2) // 3 * 3 * UNITS, "steps": 1, "interval": HOUR, "origin": 0}
    schedule = {"start": begins, "round_seconds": ROUND, "every": 3 * ROUND}
    study = Study(collector, study=schedule, promises=[hourly])
    for turn in range(turns + 1):
        with chromium(tmp_path / "profile") as (context, process):
            page = visit(context, collector)
            record(page, "age", 99)
            if turn:
                tick(page, collector)
                assert status(page)["lifetime"] == ((turn - 1) // 3 + 1) * 3 * UNITS
            if turn == turns:
                break
            run, number = divmod(turn, 3)
            collector.clock.set(begins + turn * ROUND)
            collector.published_asks = [study.ask(number + 1, run=run)]
            page.evaluate("time => { window.time = time; }", 1000 * collector.clock.now())
            record(page, "age", 10 + run)
            page.evaluate(f"() => {{ client.tick(); return new Promise(done => setTimeout(done, {turn % 8 * 25})); }}")
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    heard = sorted(study.heard())
    assert [each[:2] for each in heard] == [(turn // 3, turn % 3 + 1) for turn in range(turns)]
    for run in range(-(-turns // 3)):  # what was so at the first answer, which the killed browser gave or did not
        (value,) = {each[3] for each in heard if each[0] == run}
        assert value in (10 + run, 99)
    assert collector.replays == 0
