"""What the tests of the browser's client share: Node and its tools, the built client, a real browser."""

from __future__ import annotations

import fcntl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.js.chromium import NODE, NPM, chromium
from tests.js.local_site import Site

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "js"


@pytest.fixture(scope="session")
def node() -> list[str]:
    """The command that runs Node."""
    return [NODE]


@contextmanager
def alone() -> Iterator[None]:
    """One test process at a time: several may begin at once."""
    with (CLIENT / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def tools() -> Path:
    """The client's folder, with esbuild and TypeScript as its lock file says."""
    lock, installed = CLIENT / "package-lock.json", CLIENT / "node_modules" / "lock.json"
    with alone():
        if not installed.exists() or installed.read_bytes() != lock.read_bytes():
            subprocess.run([*NPM, "ci", "--loglevel=error"], cwd=CLIENT, check=True)
            installed.write_bytes(lock.read_bytes())
    return CLIENT


@pytest.fixture(scope="session")
def built(tools: Path) -> Path:
    """The folder of the client, built from what the sources are now."""
    dist = tools / "dist"
    sources = [*tools.glob("src/*.ts"), *tools.glob("*.json"), tools / "build.mjs"]
    changed = max(source.stat().st_mtime_ns for source in sources)
    with alone():
        made = [path.stat().st_mtime_ns for path in dist.glob("*.*js")]
        if len(made) < 3 or min(made) < changed:
            subprocess.run([NODE, "build.mjs"], cwd=tools, check=True)
    return dist


@pytest.fixture(scope="module")  # while it is there, no other test of this process could run a loop of its own
def browser() -> Iterator[Browser]:
    """A real browser, without a window."""
    from playwright.sync_api import sync_playwright

    program, environment = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], env=environment)
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A device of its own: nothing is kept from one test to the next."""
    context = browser.new_context()
    yield context
    context.close()


@pytest.fixture
def site(built: Path) -> Iterator[Callable[[Any], Any]]:
    """Open a site for a collection."""
    opened: list[Any] = []

    def open_site(collection: Any) -> Any:
        opened.append(Site(collection, built, ROOT / "examples" / "browser"))
        return opened[-1]

    yield open_site
    for each in opened:
        each.close()
