"""The browser's client and the real collector, on two addresses."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import BrowserContext, Page

from hubbub.authoring import load_collection
from tests.js.local_site import Site
from tests.js.tab import OpenSite, blank
from tests.served import ServedCollector, after, wait_for
from tests.shared.small_collections import THEME, collection_text


def survey(questions: dict[str, dict[str, Any]]) -> str:
    return collection_text(
        "themes",
        "Light or dark?",
        schedule={"step": "STEP", "lateness": "1s"},
        privacy={"user": 40.0, "minimum_batch": 20},
        fields={"theme": THEME},
        questions=questions,
    )


TOML = survey(
    {
        "popular": {"kind": "histogram", "field": "theme", "epsilon": 4.0},
        "lasting": {"kind": "memo", "field": "theme", "epsilon": 2.0, "permanent": 4.0},
    }
)
DISTINCT = """
from tests.questions.distinct import DistinctQuestion
from hubbub.questions import QUESTIONS
QUESTIONS["distinct"] = DistinctQuestion
"""
"""One more kind of question, which is in a file of the tests."""
EXAMPLES = Path(__file__).parents[2] / "examples"


class Themes(ServedCollector):
    """A collector of a file, or of the collection above with steps of some seconds."""

    def outcomes(self, name: str = "themes") -> dict[str, int]:
        counts: dict[str, int] = self.read(f"/v1/collections/{name}/counts")["outcomes"]
        return counts

    def releases(self, question: str, first: int, last: int) -> list[dict[str, Any]]:
        path = f"/v1/collections/themes/questions/{question}/releases?from={first}&to={last}"
        releases: list[dict[str, Any]] = self.read(path)["releases"]
        return releases


Serve: TypeAlias = Callable[..., Themes]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start a collector."""
    started: list[Themes] = []

    def start(text: str, **options: Any) -> Themes:
        started.append(Themes(tmp_path, text, **options))
        return started[-1]

    yield start
    for each in started:
        each.close()


def visit(context: BrowserContext, home: Site, collector: Themes) -> Page:
    page = blank(context, home)
    page.evaluate(
        """options => {
          window.device = (n) => open_client({ ...options, now: Date.now, database: `device ${n}` });
        }""",
        {"server": collector.url, "collection": "themes", "keys": [collector.key.hex()]},
    )
    return page


def test_a_page_of_another_site_answers_and_what_it_leaves_arrives(
    context: BrowserContext, site: OpenSite, serve: Serve
) -> None:
    text = TOML.replace("STEP", "1h")
    collector, home = serve(text), site(load_collection(text))
    page = visit(context, home, collector)
    page.evaluate("async () => { const one = await device(1); await one.record('theme', 'dark'); await one.tick(); }")
    assert collector.outcomes() == {"accepted": 2}
    page.evaluate("async () => { const one = await device(1); await one.tick(); }")
    assert collector.outcomes() == {"accepted": 2}
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
    assert collector.outcomes() == {"accepted": 2}
    page.goto("about:blank")
    wait_for(lambda: collector.outcomes()["accepted"] == 4)
    assert collector.outcomes() == {"accepted": 4}
    page = visit(context, home, collector)
    assert page.evaluate("async () => (await device(2)).flush()") is True
    assert collector.outcomes() == {"accepted": 4, "duplicate": 2}


def test_the_example_page_next_to_a_collector(context: BrowserContext, built: Path, serve: Serve) -> None:
    collector = serve((EXAMPLES / "emoji.toml").read_text(encoding="utf-8"))
    options = ["--server", collector.url, "--key", collector.key.hex(), "--port", "0"]
    command = [sys.executable, "-u", str(EXAMPLES / "browser" / "serve.py"), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        page = context.new_page()
        page.goto(process.stdout.readline().removeprefix("open ").strip())
        page.get_by_role("button", name="\U0001f389").click()
        page.get_by_text("A randomised answer has gone out").wait_for()
        assert collector.outcomes("emoji")["accepted"] == int(page.locator("#spent").inner_text())
        process.send_signal(signal.SIGINT)


def test_a_kind_of_question_from_outside_is_answered(context: BrowserContext, site: OpenSite, serve: Serve) -> None:
    """Browsers know no kinds: one that is in a file of the tests is answered like any other, and is released."""
    seconds = 6
    toml = survey({"in-use": {"kind": "distinct", "field": "theme", "epsilon": 6.0, "steps": 3}})
    collector = serve(toml.replace("STEP", f"{seconds}s"), program=after(DISTINCT))
    home = site(load_collection(TOML.replace("STEP", f"{seconds}s")))
    page = visit(context, home, collector)
    page.evaluate("async () => { window.crowd = await Promise.all(Array.from({ length: 24 }, (_, n) => device(n))); }")

    def release_of_all() -> dict[str, Any] | None:
        """Let all answer at the beginning of a step. Its release, if it was over only after the last of them."""
        time.sleep(seconds - time.time() % seconds + 0.2)
        step = int(time.time() // seconds)
        page.evaluate(
            """() => Promise.all(crowd.map(async (client, n) => {
              await client.record("theme", n % 2 ? "dark" : "light");
              await client.tick();
            })).then(() => null)"""
        )
        time.sleep(max(0.0, (step + 1) * seconds + 1.2 - time.time()))  # what is late is not taken any more
        (told,) = wait_for(lambda: collector.releases("in-use", step, step))
        return told if told["n"] == 24 else None

    release = next(filter(None, (release_of_all() for _ in range(6))))  # a busy machine may need more than one step
    assert release["labels"] == ["values in use"]
    # Half of 24 devices each, at epsilon 6: a share that chance would hide is 7 standard errors away.
    assert release["value"] == [2.0]


@pytest.mark.slow
def test_a_crowd_of_browsers_is_estimated(context: BrowserContext, site: OpenSite, serve: Serve) -> None:
    # 60 devices, 45 of them dark, at epsilon 4 and 2. The estimates' standard deviations are about 0.04 and 0.14: six
    # of them are exceeded with probability 2e-9.
    seconds = 12
    text = TOML.replace("STEP", f"{seconds}s")
    collector, home = serve(text), site(load_collection(text))
    page = visit(context, home, collector)
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
        (release,) = collector.releases(question, step, step)
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
