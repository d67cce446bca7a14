"""Browsers and Python's clients, two real shufflers of which one is killed on the way, and a real collector."""

import time
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext

from hubbub.client import Client
from tests.js.tab import OpenSite, blank
from tests.served import wait_for
from tests.shared.shuffled_processes import ShuffledProcesses
from tests.shared.small_collections import THEME, collection_text

STEP, BROWSERS, PYTHONS, FAKES = 16, 12, 12, 10
TOML = collection_text(
    "themes",
    "Light or dark?",
    trust="shuffle",
    schedule={"step": f"{STEP}s", "lateness": "10s"},
    privacy={"user": 40.0, "minimum_batch": 20},
    fields={"theme": THEME},
    questions={"popular": {"kind": "histogram", "field": "theme", "epsilon": 4.0}},
    shuffle={"collector_key": "COLLECTOR", "delta": 1e-6, "least": 20, "fakes": FAKES},
)
CROWD = """async ([options, count]) => {
  for (let n = 0; n < count; n++) {
    const client = await open_client({ ...options, now: Date.now, database: `device ${n}` });
    await client.record("theme", n % 4 ? "dark" : "light");
    await client.tick();
    if (!(await client.flush())) throw new Error("something still waits");
  }
}"""


@pytest.mark.slow
def test_browsers_and_python_through_two_shufflers(context: BrowserContext, site: OpenSite, tmp_path: Path) -> None:
    parts = ShuffledProcesses(tmp_path, TOML)
    clients: list[Client] = []
    try:
        home = site(parts.collection)
        page = blank(context, home)
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
        wait_for(lambda: not any(client.upload() + client.status().queued for client in clients))
        assert [client.status().counts for client in clients] == [{"sent": 1}] * PYTHONS
        shuffled = "/v1/collections/themes/shuffled"
        (batch,) = wait_for(lambda: parts.get(shuffled)["questions"]["popular"]["batches"])
        assert batch["step"] == step
        assert (batch["people"], batch["fakes"]) == (BROWSERS + PYTHONS, 2 * FAKES)
        assert (batch["unreadable"], batch["repeated"]) == (0, 0)
        path = f"/v1/collections/themes/questions/popular/releases?from={step}&to={step}"
        (release,) = wait_for(lambda: parts.get(path)["releases"])
        assert (release["n"], release["withheld"]) == (BROWSERS + PYTHONS, None)
    finally:
        for client in clients:
            client.close()
        parts.stop()
