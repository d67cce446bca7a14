"""Browsers and Python's clients, two real shufflers of which one is killed on the way, and a real collector."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hubbub.client import Client
from tests.shared.shuffled_processes import ShuffledProcesses

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

STEP, BROWSERS, PYTHONS, FAKES = 16, 12, 12, 10
HANGS = 120.0  # seconds after which a test gives up, not a measure of anything
TOML = f"""
name = "themes"
version = 1
title = "Light or dark?"
trust = "shuffle"

[schedule]
step = "{STEP}s"
lateness = "10s"

[privacy]
user = 40.0
minimum_batch = 20

[fields.theme]
kind = "categorical"
names = ["light", "dark"]

[questions.popular]
kind = "histogram"
field = "theme"
epsilon = 4.0

[shuffle]
collector_key = "COLLECTOR"
delta = 1e-6
least = 20
fakes = {FAKES}
"""
CROWD = """async ([options, count]) => {
  for (let n = 0; n < count; n++) {
    const client = await open_client({ ...options, now: Date.now, database: `device ${n}` });
    await client.record("theme", n % 4 ? "dark" : "light");
    await client.tick();
    if (!(await client.flush())) throw new Error("something still waits");
  }
}"""


@pytest.mark.slow
def test_browsers_and_python_through_two_shufflers(
    context: BrowserContext, site: Callable[..., Any], tmp_path: Path
) -> None:
    parts = ShuffledProcesses(tmp_path, TOML)
    clients: list[Client] = []
    try:
        home = site(parts.collection)
        page = context.new_page()
        page.goto(f"{home.url}/page")
        page.wait_for_function("() => !!window.open_client")
        for number in range(PYTHONS):
            folder = tmp_path / f"client {number}"
            clients.append(Client(folder, parts.server, parts.public_key, collection="themes", jitter=0.0))
        time.sleep(STEP - time.time() % STEP + 0.2)
        step = int(time.time() // STEP)
        options = {"server": parts.server, "collection": "themes", "keys": [parts.public_key]}
        page.evaluate(CROWD, [options, BROWSERS])
        parts.kill("0")  # what it acknowledged is on its disk
        for number, client in enumerate(clients):
            client.record("theme", "dark" if number % 4 else "light")
            assert client.tick() == 1
            assert client.upload() == 0  # nobody is there
        parts.begin(0)
        end = time.monotonic() + HANGS
        while any(client.status().queued for client in clients) and time.monotonic() < end:
            for client in clients:
                client.upload()
            time.sleep(0.2)
        assert [client.status().counts for client in clients] == [{"sent": 1}] * PYTHONS
        batches: list[Any] = []
        while not batches and time.monotonic() < end:
            time.sleep(0.3)
            batches = parts.get("/v1/collections/themes/shuffled")["questions"]["popular"]["batches"]
        (batch,) = batches
        assert batch["step"] == step
        assert (batch["people"], batch["fakes"]) == (BROWSERS + PYTHONS, 2 * FAKES)
        assert (batch["unreadable"], batch["repeated"]) == (0, 0)
        releases: list[Any] = []
        while not releases and time.monotonic() < end:
            time.sleep(0.3)
            path = f"/v1/collections/themes/questions/popular/releases?from={step}&to={step}"
            releases = parts.get(path)["releases"]
        assert (releases[0]["n"], releases[0]["withheld"]) == (BROWSERS + PYTHONS, None)
    finally:
        for client in clients:
            client.close()
        parts.stop()
