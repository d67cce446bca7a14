"""A whole oblivious shuffle in one process, for simulations and measurements: every shuffler, step by step."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hubbub.core.reports import Words
from hubbub.random.source import Random
from hubbub.shuffle.dgk import DGKPublic
from hubbub.shuffle.masks import Masks
from hubbub.shuffle.oblivious import Message, ObliviousShuffle, SecretShares, fake_shares, split, steps


@dataclass
class ShuffledInMemory:
    """What came of a run.

    `results`: what each shuffler has for the server. `transcript`: every message: sender, receiver, topic, content. The
    server is the receiver after the last shuffler. `seconds`: the CPU seconds of each shuffler.
    """

    results: list[bytes]
    transcript: list[tuple[int, int, str, bytes]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def shares_of(numbers: Words, shufflers: int, key: DGKPublic | None, rng: Random) -> list[SecretShares]:
    """The shares of reports for each shuffler, those of the last one encrypted to the server where there is a key."""
    parts = split(numbers, shufflers, rng)
    shares = [SecretShares(part) for part in parts]
    if key is not None:
        shares[-1] = SecretShares(parts[-1] * 0, key.encrypt(parts[-1]))
    return shares


def shuffle_in_memory(
    shares: Sequence[SecretShares],
    seeds: Sequence[bytes],
    key: DGKPublic | None,
    *,
    fakes: int = 0,
    masks: Mapping[int, Masks] | None = None,
) -> ShuffledInMemory:
    """Run all shufflers, each with its shares and its seed.

    `key`: the server's key; None where the shares have no ciphertexts. `fakes`: how many fake reports are added.
    `masks`: the masks that shufflers have made before, by their numbers.
    """
    count, number = len(shares[0]) + fakes, len(shares)
    parties = [ObliviousShuffle(me, number, seed, count, key) for me, seed in enumerate(seeds)]
    holds = [own.with_fakes(fake_shares(seed, fakes)) for own, seed in zip(shares, seeds, strict=True)]
    left = [steps(me, number) for me in range(number)]
    boxes: list[dict[Message, bytes]] = [{} for _ in range(number + 1)]
    run = ShuffledInMemory([b""] * number, seconds=[0.0] * number)
    while any(left):
        for me, party in enumerate(parties):
            while left[me] and all(message in boxes[me] for message in left[me][0].needs):
                begun = time.process_time()
                outcome = party.take(left[me].pop(0), holds[me], boxes[me], (masks or {}).get(me))
                run.seconds[me] += time.process_time() - begun
                holds[me] = outcome.shares
                for (receiver, topic), body in outcome.messages.items():
                    boxes[receiver][me, topic] = body
                    run.transcript.append((me, receiver, topic, body))
    run.results = [boxes[number][me, "result"] for me in range(number)]
    return run
