"""One study of Python's clients and of browsers, together: what is released is what a simulation says of the same."""

from tests.js.both_clients import OpenBothClients
from tests.service.study_world import LATENESS, ROUND, START, retold, study_collection

EACH = 24
"""Devices of either sort."""


def test_both_clients_answer_one_study_and_a_simulation_says_the_same(both_clients: OpenBothClients) -> None:
    # Three rounds, the first in two parts of which one is kept and counted; what the third asks depends on the others.
    here = both_clients(study_collection(most=2), START + 1.0)
    by_python = by_browser = 0
    for round in (1, 2, 3):
        before = here.accepted if round > 1 else 0
        for number in range(EACH):  # everyone begins again from what it keeps
            with here.python(number) as device:
                device.record("word", 5 if number % 3 else (number + round) % 40)  # frozen at the first answer
        by_python += here.accepted - before
        before = here.accepted
        here.browsers(EACH, f'await client.record("word", n % 3 ? 5 : (n + {round}) % 40);')
        by_browser += here.accepted - before
        here.clock.set(START + ROUND * round + LATENESS + 1.0)
        here.server.collector.tick()
        here.server.restart()
    assert (by_python, by_browser) == (EACH, EACH), "every device is on one arc"
    (told,) = here.releases("common")
    releases = retold(here.collection, here.server.store)
    assert told.get("stopped") is None
    assert releases.estimate.value.tolist() == told["value"]
    assert list(releases.estimate.labels or ()) == told["labels"]
    assert releases.n == 2 * EACH
