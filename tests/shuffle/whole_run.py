"""Whole runs in one process: shufflers and the server in threads, with all that was said, and parties that cheat."""

import threading
from dataclasses import dataclass, field

from hubbub import Random
from hubbub.core.errors import HubbubError
from hubbub.shuffle.channel import LocalNetwork
from hubbub.shuffle.oblivious import divide
from hubbub.shuffle.program import ShuffleTerms, server_part, shuffler_part
from hubbub.shuffle.stored_result import shares_digest


@dataclass
class WholeRun:
    """What became of a run: what each party ended with, what the server released, and every message."""

    network: LocalNetwork
    outcomes: dict = field(default_factory=dict)
    released: list = field(default_factory=list)

    @property
    def reasons(self):
        return [str(outcome) for outcome in self.outcomes.values() if isinstance(outcome, HubbubError)]


class Cheating:
    """The channel of a party that changes, drops or repeats what it sends under some topics."""

    def __init__(self, inner, topics, change):
        self.inner, self.topics, self.change = inner, topics, change

    def send(self, to, topic, body):
        for message in self.change(body) if topic in self.topics else [body]:
            self.inner.send(to, topic, message)

    def expect(self, sender, topic, most_bytes):
        self.inner.expect(sender, topic, most_bytes)

    def receive(self, sender, topic):
        return self.inner.receive(sender, topic)


def whole_run(
    reports, key, *, shufflers=3, fakes=0, least=1, seed=1, seconds=2.0, cheat=None, stored=None, shares=None
):
    """A run of everyone. `cheat` is (party, topics, change); `stored` holds the result of each shuffler."""
    terms, run = ShuffleTerms(shufflers, fakes, least), WholeRun(LocalNetwork(shufflers + 1, seconds=seconds))
    stored = {} if stored is None else stored
    shares = divide(reports, shufflers, key.public, Random(seed=f"shares {seed}")) if shares is None else shares

    def channel(me):
        end = run.network.channel(me)
        return Cheating(end, *cheat[1:]) if cheat is not None and cheat[0] == me else end

    def part(me):
        try:
            if me == shufflers:
                run.outcomes[me] = server_part(terms, channel(me), key=key, release=run.released.append)
                return
            digest = shares_digest(bytes([me]))
            run.outcomes[me] = shuffler_part(
                me,
                terms,
                channel(me),
                shares[me],
                digest=digest,
                stored=stored.get(me),
                store=lambda result: stored.__setitem__(me, result),
                key=key.public,
                rng=Random(seed=f"{seed}.{me}"),
            )
        except HubbubError as error:
            run.outcomes[me] = error

    threads = [threading.Thread(target=part, args=(me,)) for me in range(shufflers + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return run
