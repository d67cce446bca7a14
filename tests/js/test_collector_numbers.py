"""Browsers and Python's clients answer questions about a number: what is released is what the protocol says of it."""

import pytest

from hubbub.authoring import load_collection
from hubbub.protocols.driver import Conversation, Release
from hubbub.protocols.topl.stream import ABOVE, LOST
from hubbub.protocols.window.clipping import WHOLE
from tests.js.both_clients import OpenBothClients
from tests.shared.small_collections import collection_text

TOML = collection_text(
    "rides",
    "Taxi rides",
    privacy={"event": 12.0, "minimum_batch": 20},
    fields={"fare": {"kind": "numeric", "low": 0.0, "high": 500.0, "cells": 50}},
    questions={
        "fares": {"kind": "release", "field": "fare", "epsilon": 6.0, "r": 3, "every": 1},
        "spread": {"kind": "distribution", "field": "fare", "epsilon": 6.0},
    },
)
EACH, STEPS, FIRST = 10, 2, 7
"""Devices of either sort, and steps."""
FARE = 12.0


def test_both_clients_answer_and_every_release_is_what_the_protocol_says(both_clients: OpenBothClients) -> None:
    """A release searches, and then clips on the device; its collector begins again in every step.

    The clipped mean of about 18 reports at epsilon 6 has a standard error of 3% of the threshold: six of them, and
    some more, are allowed, which chance exceeds once in a billion times.
    """
    rides = load_collection(TOML)
    here = both_clients(rides, rides.opens(FIRST) + 1.0)
    for step in range(FIRST, FIRST + STEPS):
        here.go(step)
        for number in range(EACH):
            with here.python(number) as device:
                device.record("fare", FARE)
        here.browsers(EACH, f'await client.record("fare", {FARE});')
        assert here.accepted == 4 * EACH * (step - FIRST + 1)  # everyone answers both questions
    here.go(FIRST + STEPS)
    for question in rides.questions:
        sketches = here.sketches(question, FIRST)
        talk = Conversation(rides.protocol(question, first=FIRST), parts=rides.terms[question].parts)
        releases = here.releases(question)
        assert [told["step"] for told in releases] == list(range(FIRST, FIRST + STEPS))
        for told in releases:
            (_, clipped) = talk.asks[-1].view.range or (0.0, 0.0)
            talk.reply_all([sketches.pop(0) for _ in talk.asks])
            message = talk.listen()
            assert isinstance(message, Release)
            assert told["n"] == message.n == 2 * EACH
            for name, estimate in message.estimates.items():
                told_of = told if name == "estimate" else told["estimates"][name]
                assert told_of["value"] == estimate.value.tolist()
        if question == "fares":
            assert clipped < 100
            assert told["value"][0] == pytest.approx(min(FARE, clipped), abs=clipped / 4)


FOUND = collection_text(
    "found",
    "Taxi rides",
    privacy={"event": 6.0, "minimum_batch": 2},
    fields={"fare": {"kind": "numeric", "low": 0.0, "high": 500.0, "cells": 50}},
    questions={"typical": {"kind": "mean", "field": "fare", "epsilon": 6.0, "range": "auto", "search": 0.5}},
    override={"minimum_batch_below_20": "a test with few devices"},
)


def test_both_clients_answer_a_mean_whose_range_is_found(both_clients: OpenBothClients) -> None:
    """In the first half of a step a half of the devices is asked for cells, in the second half all others for means.

    What 0 or 1 of the 20 devices answered would be withheld: with a chance of 2e-5 in a round.
    """
    rides = load_collection(FOUND)
    here = both_clients(rides, rides.opens(FIRST) + 1.0)
    clips = set()
    for step in range(FIRST, FIRST + STEPS):
        for half in range(2):
            here.go(step)
            here.clock.set(here.clock.now() + half * rides.step_seconds / 2)
            here.server.restart()
            for number in range(EACH):
                with here.python(number) as device:
                    device.record("fare", FARE)
            here.browsers(EACH, f'await client.record("fare", {FARE});')
        assert here.accepted == 2 * EACH * (step - FIRST + 1)  # everyone answers once
    here.go(FIRST + STEPS)
    sketches, releases = here.sketches("typical", FIRST), here.releases("typical")
    talk = Conversation(rides.protocol("typical", first=FIRST), rounds=rides.terms["typical"].rounds)
    assert [told["step"] for told in releases] == list(range(FIRST, FIRST + STEPS))
    for told in releases:
        while not isinstance(message := talk.listen(), Release):
            clips |= {talk.asks[0].view.range}
            talk.reply_all([sketches.pop(0)])
        assert told["value"] == message.estimate.value.tolist()
        for name in (ABOVE, LOST, WHOLE):
            assert told["estimates"][name]["value"] == message.estimates[name].value.tolist()
    assert len(clips) > 1
