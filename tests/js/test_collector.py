"""The browser's client and the real collector, on two addresses."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from hubbub.authoring import load_collection
from tests.shared.small_collections import THEME, collection_text

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

TOML = collection_text(
    "themes",
    "Light or dark?",
    schedule={"step": "STEP", "lateness": "1s"},
    privacy={"user": 40.0, "minimum_batch": 20},
    fields={"theme": THEME},
    questions={
        "popular": {"kind": "histogram", "field": "theme", "epsilon": 4.0},
        "lasting": {"kind": "memo", "field": "theme", "epsilon": 2.0, "permanent": 4.0},
    },
)
SERVE = "import typer; from hubbub.cli.serve import serve; typer.run(serve)"
SERVE_DISTINCT = f"""
from tests.questions.distinct import DistinctQuestion
from hubbub.questions import QUESTIONS
QUESTIONS["distinct"] = DistinctQuestion
{SERVE}
"""
"""A collector that knows one more kind of question, which is in a file of the tests."""
EXAMPLES = Path(__file__).parents[2] / "examples"


class Running(NamedTuple):
    """A collector that is running: its address, its key, and the token for its results."""

    url: str
    key: str
    token: str

    def get(self, path: str, name: str = "themes") -> Any:
        request = urllib.request.Request(f"{self.url}/v1/collections/{name}/{path}")
        request.add_header("Authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[list[str], str], re.Match[str]]]:
    """Start a Python program and wait until it says something that matches."""
    started: list[subprocess.Popen[bytes]] = []

    def start_program(arguments: list[str], wanted: str) -> re.Match[str]:
        said = tmp_path / f"said {len(started)}"
        with said.open("w") as output:
            command = [sys.executable, "-u", *arguments]
            started.append(subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT))
        while not (found := re.search(wanted, said.read_text(encoding="utf-8"), re.DOTALL)):
            assert started[-1].poll() is None, said.read_text(encoding="utf-8")
            time.sleep(0.05)
        return found

    yield start_program
    for process in started:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)


@pytest.fixture
def serve(tmp_path: Path, start: Callable[..., re.Match[str]]) -> Callable[..., Running]:
    """Start a collector, of a file or of the collection above with steps of some length."""

    def serve_file(what: str | Path, script: str = SERVE, toml: str = TOML) -> Running:
        file, keys = tmp_path / "themes.toml", tmp_path / "keys"
        file.write_text(toml.replace("STEP", what) if isinstance(what, str) else what.read_text(encoding="utf-8"))
        options = ["--port", "0", "--keys", str(keys), "--store", f"sqlite:///{tmp_path}/store.db"]
        said = start(["-c", script, str(file), *options], r'"at": "([^"]+)".*"public_key": "([^"]+)"')
        return Running(said[1], said[2], (keys / "admin.token").read_text(encoding="utf-8").strip())

    return serve_file


def visit(context: BrowserContext, page_at: str, collector: Running) -> Page:
    page = context.new_page()
    page.goto(f"{page_at}/page")
    page.wait_for_function("() => !!window.open_client")
    page.evaluate(
        """options => {
          window.device = (n) => open_client({ ...options, now: Date.now, database: `device ${n}` });
        }""",
        {"server": collector.url, "collection": "themes", "keys": [collector.key]},
    )
    return page


def test_a_page_of_another_site_answers_and_what_it_leaves_arrives(
    context: BrowserContext, site: Callable[..., Any], serve: Callable[..., Running]
) -> None:
    collector = serve("1h")
    home = site(load_collection(TOML.replace("STEP", "1h")))
    page = visit(context, home.url, collector)
    page.evaluate("async () => { const one = await device(1); await one.record('theme', 'dark'); await one.tick(); }")
    assert collector.get("counts")["outcomes"] == {"accepted": 2}
    page.evaluate("async () => { const one = await device(1); await one.tick(); }")
    assert collector.get("counts")["outcomes"] == {"accepted": 2}
    # The second device cannot send while it is open, and leaves its answers when the page goes.
    page.evaluate(
        """async () => {
          const fetch = window.fetch;
          window.fetch = (at, more) => {
            if (more?.body && !more.keepalive) throw new Error("no network");
            return fetch(at, more);
          };
          await (await device(2)).tick();
        }"""
    )
    assert collector.get("counts")["outcomes"] == {"accepted": 2}
    page.goto("about:blank")
    for _ in range(200):
        if collector.get("counts")["outcomes"]["accepted"] == 4:
            break
        page.wait_for_timeout(20)
    assert collector.get("counts")["outcomes"] == {"accepted": 4}
    page = visit(context, home.url, collector)
    assert page.evaluate("async () => (await device(2)).flush()") is True
    assert collector.get("counts")["outcomes"] == {"accepted": 4, "duplicate": 2}


def test_the_example_page_beside_a_collector(
    context: BrowserContext, built: Path, start: Callable[..., re.Match[str]], serve: Callable[..., Running]
) -> None:
    collector = serve(EXAMPLES / "emoji.toml")
    options = ["--server", collector.url, "--key", collector.key, "--port", "0"]
    page = context.new_page()
    page.goto(start([str(EXAMPLES / "browser" / "serve.py"), *options], r"open (\S+)")[1])
    page.get_by_role("button", name="\U0001f389").click()
    page.get_by_text("A randomised answer has gone out").wait_for()
    assert collector.get("counts", "emoji")["outcomes"]["accepted"] == int(page.locator("#spent").inner_text())


def test_a_kind_of_question_from_outside_is_answered(
    context: BrowserContext, site: Callable[..., Any], serve: Callable[..., Running]
) -> None:
    """Browsers know no kinds: one that is in a file of the tests is answered like any other, and is released."""
    seconds = 6
    toml = TOML.split("[questions.popular]")[0] + (
        '[questions.in-use]\nkind = "distinct"\nfield = "theme"\nepsilon = 6.0\nsteps = 3\n'
    )
    collector = serve(f"{seconds}s", SERVE_DISTINCT, toml)
    home = site(load_collection(TOML.replace("STEP", f"{seconds}s")))
    page = visit(context, home.url, collector)
    time.sleep(seconds - time.time() % seconds + 0.2)
    step = int(time.time() // seconds)
    page.evaluate(
        """() => Promise.all(Array.from({ length: 24 }, async (_, n) => {
          const one = await device(n);
          await one.record("theme", n % 2 ? "dark" : "light");
          await one.tick();
        })).then(() => null)"""
    )
    accepted = collector.get("counts")["outcomes"]["accepted"]
    assert accepted == 24
    for _ in range(300):  # the last reports may have come in the next step on a slow machine
        released = collector.get(f"questions/in-use/releases?from={step}&to={step + 1}")["releases"]
        heard = [release for release in released if release["n"] == accepted]
        if heard:
            break
        time.sleep(0.1)
    assert heard[0]["labels"] == ["values in use"]
    # Half of 24 devices each, at epsilon 6: a share that chance would hide is 7 standard errors away.
    assert heard[0]["value"] == [2.0]


@pytest.mark.slow
def test_a_crowd_of_browsers_is_estimated(
    context: BrowserContext, site: Callable[..., Any], serve: Callable[..., Running]
) -> None:
    # 60 devices, 45 of them dark, at epsilon 4 and 2. The estimates' standard deviations are about 0.04 and 0.14: six
    # of them are exceeded with probability 2e-9.
    seconds = 12
    collector = serve(f"{seconds}s")
    home = site(load_collection(TOML.replace("STEP", f"{seconds}s")))
    page = visit(context, home.url, collector)
    page.evaluate(
        """async () => {
          window.crowd = await Promise.all(Array.from({ length: 60 }, (_, n) => device(n)));
        }"""
    )
    time.sleep(seconds - time.time() % seconds + 0.3)
    step = int(time.time() // seconds)
    page.evaluate(
        """() => Promise.all(crowd.map(async (one, n) => {
          await one.record("theme", n < 45 ? "dark" : "light");
          await one.tick();
        })).then(() => null)"""
    )
    time.sleep((step + 1) * seconds + 2.5 - time.time())
    for question, error in (("popular", 0.24), ("lasting", 0.84)):
        (release,) = collector.get(f"questions/{question}/releases?from={step}&to={step}")["releases"]
        assert release["n"] == 60
        assert abs(release["value"][1] - 0.75) < error
        # And the page for people shows the same.
        shown = context.new_page()
        shown.set_extra_http_headers({"Authorization": f"Bearer {collector.token}"})
        shown.goto(f"{collector.url}/results/themes/{question}")
        row = shown.locator("table.bars tbody tr").filter(has_text="dark").inner_text()
        number, ends = 100 * release["value"][1], (100 * release["low"][1], 100 * release["high"][1])
        assert any(f"{number:.{digits}f}%" in row for digits in range(4))
        assert all(any(f"{end:.{digits}f}%" in row.replace("−", "-") for digits in range(4)) for end in ends)
        assert "60" in shown.locator("aside").first.inner_text()
