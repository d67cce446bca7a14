"""Browsers and Python's clients answer questions by group: one report of two fields, with rounded numbers."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from hubbub import Random
from hubbub.authoring import load_collection
from hubbub.mechanisms.frequency.measured import Measured
from hubbub.protocols.driver import Conversation, Release
from hubbub.service.kept.archive import reports_to
from tests.js.both_clients import OpenBothClients

TOML = (Path(__file__).parents[2] / "examples" / "crashes.toml").read_text()
TOML = TOML.replace("epsilon = 1.0", "epsilon = 8.0").replace("epsilon = 14.0", "epsilon = 126.0")
TOML = TOML.replace("event = 2.0", "event = 18.0").replace("minimum_batch = 100", "minimum_batch = 20")
TOML += """
[questions.table]
kind = "table"
columns = ["os", "crashed"]
measures = ["start"]
method = ["HIO", "SC", "HI", "MG", "HDG"]
people = 100
epsilon = 1.0

[questions.marginals]
kind = "marginals"
fields = ["os", "crashed", "start"]
epsilon = 1.0

[override]
sent_as_it_is = "how long it takes is no secret"
"""
EACH, STEP = 10, 7
START = {"13": 2.5, "14": 10.0}
VALUES = """if (n < 9) await client.record("os", n % 2 ? "14" : "13");
await client.record("crashed", n % 2 ? "yes" : "no");
if (n < 8) await client.record("start", n % 2 ? 10 : 2.5);"""


def test_both_clients_answer_and_every_release_is_what_the_protocol_says(both_clients: OpenBothClients) -> None:
    """Nine of ten devices of either sort say their system, eight how long they take to start.

    At epsilon 8 a report of one of twelve cells names another once in 270 times; of two groups of ten and eight devices
    the limits leave room for two such, which chance exceeds once in a thousand times.
    """
    crashes = load_collection(TOML)
    here = both_clients(crashes, crashes.opens(STEP) + 1.0)
    here.go(STEP)
    for number in range(EACH):
        with here.python(number, Random(seed=number)) as device:
            os = "14" if number % 2 else "13"
            if number < 9:
                device.record("os", os)
            device.record("crashed", "yes" if number % 2 else "no")
            if number < 8:
                device.record("start", START[os])
    here.browsers(EACH, VALUES)
    assert here.accepted == 4 * 2 * EACH
    here.go(STEP + 1)
    asks = here.server.store.closed_asks(crashes.collection_id, "table", STEP, STEP)
    kept = [reports_to(here.server.store, None, ask.key) for ask in asks]
    numbers = np.concatenate([Measured.numbers(reports)[:, 0] for batches in kept for reports in batches])
    assert Counter(np.nan_to_num(numbers, nan=-1.0).tolist()) == {2.5: 8, 10.0: 8, -1.0: 4}
    assert sum(sketch.n for sketch in here.sketches("marginals", STEP)) == 2 * EACH
    told = {}
    for question in ("crashes", "start"):
        talk = Conversation(crashes.protocol(question, first=STEP), parts=crashes.terms[question].parts)
        talk.reply_all(here.sketches(question, STEP)[: len(talk.asks)])
        message = talk.listen()
        assert isinstance(message, Release)
        (told[question],) = here.releases(question)
        assert told[question]["value"] == [
            None if value != value else value for value in message.estimate.value.tolist()
        ]
        assert told[question]["n"] == 2 * EACH
    shares = dict(zip(told["crashes"]["labels"], told["crashes"]["value"], strict=True))
    assert shares["13: no"] == pytest.approx(1.0, abs=0.35)
    assert shares["14: yes"] == pytest.approx(1.0, abs=0.35)
    assert told["crashes"]["estimates"]["groups of os"]["value"][:2] == pytest.approx([0.5, 0.4], abs=0.2)
    means = dict(zip(told["start"]["labels"], told["start"]["value"], strict=True))
    assert means["13"] == pytest.approx(2.5, abs=2.5)
    assert means["14"] == pytest.approx(10.0, abs=3.0)
