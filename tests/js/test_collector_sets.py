"""Browsers and Python's clients tell which items they hold: the shares that are released are those of their reports."""

import pytest

from hubbub import Random
from hubbub.authoring import load_collection
from tests.js.both_clients import OpenBothClients
from tests.shared.small_collections import collection_text, first_ask

TOML = collection_text(
    "editor",
    "Features of an editor",
    privacy={"event": 60.0, "minimum_batch": 20},
    override={"epsilon_above_8": "a few devices"},
    fields={
        "features": {
            "kind": "sets",
            "most": 3,
            "items": {"kind": "categorical", "names": ["bold", "table", "link", "image", "undo"]},
        }
    },
    questions={
        "used": {"kind": "histogram", "field": "features", "epsilon": 12.0},
        "sampled": {"kind": "histogram", "field": "features", "epsilon": 12.0, "mechanism": "PSFO"},
        "bits": {"kind": "histogram", "field": "features", "epsilon": 12.0, "mechanism": "SplitUnary"},
    },
)
EACH, STEP = 20, 7
REACH = {"used": 0.1, "sampled": 1.3, "bits": 0.4}
"""How far a share may be off. Standard errors of 40 reports are at most 0.002, 0.22 and 0.056; a false item of PrivSet
moves a share by 0.025, with probability 0.006. Of the 15 shares, one is further off in less than 1 in 100,000 runs."""


def test_both_clients_tell_which_items_they_hold(both_clients: OpenBothClients) -> None:
    """One device of either sort recorded nothing, and answers as one that holds nothing.

    Python's devices are seeded; a browser's random numbers are its own, so that shares may be off by `REACH`.
    """
    editor = load_collection(TOML)
    here = both_clients(editor, editor.opens(STEP) + 1.0)
    here.server.restart()
    for number in range(EACH):
        with here.python(number, Random(seed=number)) as device:
            if number:
                device.record("features", {"link", "bold"} if number % 2 else {"undo", "bold"})
    here.browsers(EACH, 'if (n) await client.record("features", n % 2 ? ["link", "bold"] : ["undo", "bold"]);')
    assert here.accepted == 3 * 2 * EACH
    here.go(STEP + 1)
    made_by = {}
    for question in editor.questions:
        _, mechanism = first_ask(editor, question)
        (told,) = here.releases(question)
        assert told["labels"] == ["bold", "table", "link", "image", "undo"]
        assert told["n"] == 2 * EACH
        assert told["value"] == mechanism.estimate(here.sketches(question, STEP)[0]).value.tolist()
        assert told["value"] == pytest.approx([0.95, 0, 0.5, 0, 0.45], abs=REACH[question])
        made_by[question] = type(mechanism).__name__
    assert made_by == {"used": "PrivSet", "sampled": "PSFO", "bits": "SplitUnary"}
