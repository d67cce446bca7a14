"""The most common word of Python's clients and of browsers, in one study: it is one word, and nobody pays twice."""

from hubbub import Strings
from tests.js.both_clients import OpenBothClients
from tests.questions.top_world import START, top_collection

EACH = 16
"""Devices of either sort: together more than a release needs."""
IN_NFD = """await client.record("word", "e\\u0301");
await client.tick();
await client.record("word", "no");"""


def test_what_browsers_have_in_nfd_and_python_in_nfc_is_one_word(both_clients: OpenBothClients) -> None:
    words = {"word": Strings(longest=3)}  # in NFD, as browsers have it
    collection = top_collection(epsilon=8.0, k=1, fields={**words}, longest=2, query_limit=1 << 17, every="2h")
    assert collection.terms["words"].parts == 1
    here = both_clients(collection, START + 1.0)
    for number in range(EACH):
        with here.python(number) as device:
            device.record("word", "\u00e9")
    here.browsers(EACH, IN_NFD)
    assert here.accepted == 2 * EACH
    here.clock.set(START + 3600 + 11.0)
    here.server.collector.tick()
    (told,) = here.releases("words")
    # About 16 of 32 reports support it, and any other text at most 2: otherwise with a probability below 1e-6.
    assert told["labels"] == ["\u00e9"]
    assert told["value"][0] > 0.2
