"""Browsers and Python's clients train one model: each device answers one round, with what its own program computes."""

import json

import numpy as np

from hubbub.authoring import load_collection
from tests.client.test_client_models import shrunk
from tests.js.both_clients import OpenBothClients
from tests.shared.answers import room_for_few_signs
from tests.shared.small_collections import collection_text

ROUNDS, EACH = 2, 40
START = 86_400
TOML = collection_text(
    "learn",
    "A model",
    schedule={"step": "1h", "lateness": "60s"},
    privacy={"user": 8.0, "minimum_batch": 20},
    fields={"step": {"kind": "vector", "dimension": 3}},
    questions={
        "model": {
            "kind": "vector",
            "field": "step",
            "epsilon": 8.0,
            "start": "1970-01-02T00:00Z",
            "round": "1h",
            "rounds": ROUNDS,
            "sparsity": 2,
            "mechanism": "NetSub",
        }
    },
)
TARGET = np.array([0.75, 0.0, -0.5])
BROWSER = """
client.onModel("model", async (bytes) => {
  const weights = new Float32Array(bytes.buffer);
  if (n === 0) throw new Error("no data");
  return [0.75, 0, -0.5].map((target, at) => target - weights[at]);
});
"""


def test_both_clients_train_one_model(both_clients: OpenBothClients) -> None:
    """The second round is about what the first led to, and the collector begins again in between.

    One browser of 80 devices has a program that fails, and answers with zeros. A round has fewer than 20 reports, which
    withholds its release, once in 100,000 times.
    """
    learn = load_collection(TOML)
    here = both_clients(learn, START + 61.0)
    for round in range(ROUNDS):
        here.clock.set(START + 3600 * round + 61.0)
        here.server.restart()
        for number in range(EACH):
            with here.python(number) as device:
                device.on_model("model", lambda content: TARGET - np.frombuffer(content, dtype="<f4"))
        here.browsers(EACH, BROWSER)
    assert here.accepted == 2 * EACH
    here.clock.set(START + 3600 * ROUNDS + 61.0)
    here.server.restart()
    rows = here.server.store.releases(learn.collection_id, "model", 0, 99, 99)
    payloads = [json.loads(row.payload) for row in rows]
    assert sum(payload["n"] for payload in payloads) == 2 * EACH
    start = np.zeros(3)
    for payload in payloads:
        way, error = np.array(payload["value"]), np.sqrt(payload["variance"])
        shown = shrunk(TARGET - start)
        reach = 5 * error + room_for_few_signs(shown, payload["n"])
        assert (np.abs(way - shown) < reach + np.abs(shown) / 10).all()  # the zeros are up to a tenth of a round
        np.testing.assert_allclose(payload["estimates"]["model"]["value"], start + way, atol=1e-6)
        start = np.array(payload["estimates"]["model"]["value"])
