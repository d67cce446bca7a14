"""What the tests of the browser's client share: Node and its tools, the built client, a real browser."""

import fcntl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from hubbub.questions.collection import Collection
from tests.js.both_clients import BothClients, OpenBothClients
from tests.js.chromium import NODE, NPM, chromium
from tests.js.local_site import Site
from tests.js.tab import OpenSite, RunNode, Tab, Visit

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


@pytest.fixture(scope="session")
def run_node(node: list[str], built: Path) -> RunNode:
    """Run a file of this folder in Node, with the built client or the bundle that is given; what it printed."""

    def run(name: str, *options: str, bundle: Path | None = None, given: str | None = None, **environment: str) -> str:
        done = subprocess.run(
            [*node, *options, str(Path(__file__).with_name(name))],
            env={"HUBBUB_JS": str(bundle or built / "internals.mjs"), **environment},
            input=given,
            capture_output=True,
            text=True,
            timeout=None if given else 120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")  # while it is there, no other test of this process could run a loop of its own
def browser() -> Iterator[Browser]:
    """A real browser, without a window."""
    program, environment = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], env={**environment})
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A device of its own: nothing is kept from one test to the next."""
    context = browser.new_context()
    yield context
    context.close()


@pytest.fixture
def site(built: Path) -> Iterator[OpenSite]:
    """Open a site for a collection."""
    opened: list[Site] = []

    def open_site(collection: Collection) -> Site:
        opened.append(Site(collection, built, ROOT / "examples" / "browser"))
        return opened[-1]

    yield open_site
    for each in opened:
        each.close()


@pytest.fixture
def visit(context: BrowserContext, site: OpenSite) -> Visit:
    """Open a page with the client in it: of a site, or of a new site for a collection."""

    def visit_site(place: Collection | Site, **options: Any) -> Tab:
        return Tab(context, place if isinstance(place, Site) else site(place), **options)

    return visit_site


@pytest.fixture
def both_clients(context: BrowserContext, site: OpenSite, tmp_path: Path) -> Iterator[OpenBothClients]:
    """Start a real collector of a collection for both clients, at a time."""
    started: list[BothClients] = []

    def start(collection: Collection, now: float | None = None) -> BothClients:
        folder = tmp_path / str(len(started))
        folder.mkdir()
        started.append(BothClients(context, site, folder, collection, now))
        return started[-1]

    yield start
    for each in started:
        each.close()
