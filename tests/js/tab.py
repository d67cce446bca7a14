"""A page of a site with the client in it: what a test does in a browser."""

from collections.abc import Callable
from typing import Any, TypeAlias

from playwright.sync_api import BrowserContext, Page

from hubbub.protocols.ask import Ask
from hubbub.questions.collection import Collection
from tests.js.local_site import Site

OPEN = "options => open_client(options).then(client => { window.client = client; })"
STATUS = """() => client.status().then(status => JSON.parse(JSON.stringify(status,
    (_, value) => typeof value === "bigint" ? Number(value) : value)))"""
SEVERAL = """async options => {
  for (let n = 0; n < 24; n++) await (await open_client({ ...options, database: `device ${n}` })).tick();
}"""
"""Each database is a device. Of 24, all or none are in a half of the circle with probability 2^-23."""


class Tab:
    """A page, and the client that is open in it. What it keeps outlives the page."""

    def __init__(self, context: BrowserContext, site: Site, **options: Any) -> None:
        self.context, self.site = context, site
        self.load()
        self.connect(**options)

    @property
    def options(self) -> dict[str, Any]:
        """How the client is opened, but for what a test gives."""
        return {"collection": self.site.collection.name, "keys": [self.site.keys.public.hex()]}

    def load(self) -> None:
        """A new page, in which no client is open yet."""
        self.page = blank(self.context, self.site)
        self.evaluate = self.page.evaluate

    def connect(self, **options: Any) -> None:
        self.evaluate(OPEN, {**self.options, **options})

    def reopen(self, **options: Any) -> None:
        """Close the page, and open the client in another."""
        self.page.close()
        self.load()
        self.connect(**options)

    def set_time(self) -> None:
        self.evaluate("time => { window.time = time; }", self.site.clock.now() * 1000)

    def record(self, field: str, value: Any) -> None:
        self.evaluate("([field, value]) => client.record(field, value)", [field, value])

    def tick(self, later: float = 0) -> None:
        """Let time pass, and let the client do its work."""
        self.site.clock.advance(later)
        self.set_time()
        self.evaluate("client.tick()")

    def look(self) -> None:
        """Work with the asks of this moment, which the client would fetch only when those it has are over."""
        self.evaluate("client.asks = null")
        self.tick()

    def ask(self, *asks: tuple[str, Ask]) -> None:
        """Publish these asks of questions and no others, and let the client work with them."""
        self.site.asks = list(asks)
        self.look()

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.evaluate(STATUS)
        return status

    @property
    def lifetime(self) -> int:
        return self.status()["lifetime"]

    @property
    def refused(self) -> dict[str, str]:
        """Why questions were not answered."""
        return self.status()["refused"]

    def promise(self, scope: str) -> dict[str, Any]:
        """The one promise about an account or a question."""
        (promise,) = [each for each in self.status()["promises"] if each.pop("scope") == scope]
        return promise


RunNode: TypeAlias = Callable[..., str]
OpenSite: TypeAlias = Callable[[Collection], Site]
Visit: TypeAlias = Callable[..., Tab]
"""Of a collection or a site, with options of the client."""


def blank(context: BrowserContext, site: Site) -> Page:
    """A page in which the client is loaded, at the time of the site; no client is open."""
    page = context.new_page()
    page.goto(f"{site.url}/page")
    page.wait_for_function("() => !!window.open_client")
    page.evaluate("time => { window.time = time; }", site.clock.now() * 1000)
    return page
