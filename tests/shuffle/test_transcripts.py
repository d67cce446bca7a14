"""What each party of a run holds, from all that was said: nobody holds what it must not."""

import hashlib
from itertools import combinations

import gmpy2
import numpy as np
import pytest

from hubbub import Random
from hubbub.shuffle.dgk import DGKPrivate, DGKPublic
from hubbub.shuffle.in_memory import shares_of, shuffle_in_memory
from hubbub.shuffle.oblivious import SecretShares, combine, hider_sets


@pytest.fixture(scope="module")
def key():
    return DGKPrivate.generate(2048)


def followed(transcript, key, count):
    """How many ciphertexts there were, and how many pairs of them whoever decrypts can see to be the same handed on.

    That is: the noise h^r of both is the same, but for the few times that known numbers added up to 2^64.
    """
    n, g = gmpy2.mpz(key.public.modulus), key.public.g
    noises = []
    for *_, topic, body in transcript:
        if topic != "seeds":
            _, ciphers = parts_of(body, key, count)
            for cipher, message in zip(ciphers, key.decrypt(ciphers).tolist(), strict=True):
                noises.append(cipher * gmpy2.powmod(g, -message, n) % n)
    overflows = {gmpy2.powmod(g, times << 64, n) for times in range(-8, 9)}
    same = sum(a * gmpy2.invert(b, n) % n in overflows for a, b in combinations(noises, 2))
    return len(noises), same


def known_order(transcript, shufflers, coalition, count):
    """The order in which reports come out, if a coalition's own messages are enough to know it."""
    order = np.arange(count)
    rounds = hider_sets(shufflers)
    for number, hiders in enumerate(rounds):
        seeds = {}
        for sender, to, topic, body in transcript:
            if topic == "seeds" and {sender, to} <= set(hiders) and coalition & {sender, to}:
                shared = [other for other, both in enumerate(rounds) if {sender, to} <= set(both)]
                seeds[sender] = body[32 * shared.index(number) :][:32]
        if set(seeds) != set(hiders):
            return None
        seed = hashlib.sha256(b"".join(seeds[hider] for hider in hiders)).digest()
        order = order[np.argsort(Random(seed=seed).uint64(count), kind="stable")]
    return order


def whole_run(reports, key, *, shufflers=3, fakes=0, seed=1):
    """A run of all shufflers; returns every message, and what the server gets out of the results."""
    shares = shares_of(reports, shufflers, key.public, Random(seed=f"shares {seed}"))
    seeds = [Random(seed=f"{seed}.{me}").bytes(32) for me in range(shufflers)]
    run = shuffle_in_memory(shares, seeds, key.public, fakes=fakes)
    return run.transcript, combine(run.results, len(reports) + fakes, key).reports


def parts_of(body, key, count):
    """The numbers in the clear of a message, and its ciphertexts."""
    return np.frombuffer(body, "<u8", count), key.public.from_bytes(body[8 * count :])


def test_the_server_hears_the_results_alone(key):
    transcript, reports = whole_run(np.array([5, 6, 7], dtype=np.uint64), key, fakes=2)
    assert sorted((sender, topic) for sender, to, topic, _ in transcript if to == 3) == [
        (sender, "result") for sender in range(3)
    ]
    assert {5, 6, 7} <= set(reports.tolist())


def test_shufflers_together_read_nothing_and_hold_no_key(key):
    # In two worlds whose reports differ, shares drawn from the same stream: all that is said in the clear is the same.
    worlds = []
    for reports in (np.array([5, 6], dtype=np.uint64), np.array([900, 2**63], dtype=np.uint64)):
        transcript, _ = whole_run(reports, key)
        worlds.append(
            [body if topic == "seeds" else parts_of(body, key, 2)[0].tolist() for *_, topic, body in transcript]
        )
        assert not any(key.p.to_bytes(128, "big") in body for *_, body in transcript)
    assert worlds[0] == worlds[1]
    assert len(worlds[0]) >= 10


def test_no_ciphertext_can_be_followed_even_by_who_decrypts_it(key, monkeypatch):
    reports = np.array([5, 6, 7], dtype=np.uint64)
    ciphertexts, same = followed(whole_run(reports, key)[0], key, 3)
    assert ciphertexts == 6  # from the last shuffler to the holder of the last round, and from there to the server
    assert same == 0
    # The planted bug: what section 9.5.1 leaves out, ciphertexts that are handed on with the noise they had.
    monkeypatch.setattr(
        DGKPublic, "masks", lambda self, messages, noise: [gmpy2.powmod(self.g, int(m), self.modulus) for m in messages]
    )
    assert followed(whole_run(reports, key)[0], key, 3)[1] >= 3


@pytest.mark.parametrize("shufflers", [3, 4])
def test_a_mark_is_kept_by_new_noise_and_found_by_the_holder_of_the_key(key, shufflers):
    """Why one shuffler that breaks the rules, together with the server, is at the local epsilon in every table."""
    reports, marked = Random(seed=4).uint64(6), 2
    shares = shares_of(reports, shufflers, key.public, Random(seed=1))
    mark = 2
    sent = [*(shares[-1].encrypted or [])]
    sent[marked] = sent[marked] * mark % key.public.modulus
    shares[-1] = SecretShares(shares[-1].plain, sent)
    seeds = [Random(seed=f"{me}").bytes(32) for me in range(shufflers)]
    run = shuffle_in_memory(shares, seeds, key.public)
    (ciphers,) = [ciphers for body in run.results if (ciphers := parts_of(body, key, 6)[1])]
    order = (key.v_p << 64, key.p)  # what takes away every message and all noise, but not the mark
    traces = [gmpy2.powmod(cipher, *order) for cipher in ciphers]
    (row,) = [row for row, trace in enumerate(traces) if trace != 1]
    assert traces[row] == gmpy2.powmod(mark, *order)
    ciphers[row] = ciphers[row] * gmpy2.invert(mark, key.public.modulus) % key.public.modulus
    plain = sum(int(parts_of(body, key, 6)[0][row]) for body in run.results)
    assert (plain + int(key.decrypt([ciphers[row]])[0])) % 2**64 == reports[marked]
    assert combine(run.results, 6, key).dropped == 1  # an honest server sees a row without a message, as of a device


@pytest.mark.parametrize(("shufflers", "many"), [(3, 2), (5, 3)])
def test_less_than_half_of_the_shufflers_do_not_know_the_order(key, shufflers, many):
    reports = Random(seed=4).uint64(6)
    transcript, came = whole_run(reports, key, shufflers=shufflers)
    for coalition in combinations(range(shufflers), many - 1):
        assert known_order(transcript, shufflers, set(coalition), 6) is None
    for coalition in combinations(range(shufflers), many):
        order = known_order(transcript, shufflers, set(coalition), 6)  # and half of them do, as the docs say
        assert came.tolist() == reports[order].tolist()


@pytest.mark.parametrize("coalition", [0, 1, 2])
def test_what_a_shuffler_and_the_server_saw_before_a_hidden_round_does_not_come_back(key, coalition):
    """The numbers that one shuffler sent or got, ciphertexts decrypted, before the round in which the others hide."""
    reports = Random(seed=4).uint64(5)
    transcript, _ = whole_run(reports, key, seed=3)
    hidden = next(number for number, hiders in enumerate(hider_sets(3)) if coalition not in hiders)
    rounds: dict[str, set[int]] = {"before": set(), "after": set()}
    for sender, to, topic, body in transcript:
        if topic == "seeds" or not {coalition, 3} & {sender, to}:
            continue
        plain, ciphers = parts_of(body, key, 5)
        does, _, number = topic.partition(" ")
        early = number and (int(number) < hidden or (int(number) == hidden and does == "hide"))
        rounds["before" if early else "after"] |= {*plain.tolist(), *key.decrypt(ciphers).tolist()}
    assert len(rounds["before"]) >= 10
    assert len(rounds["after"]) >= 15
    assert not rounds["before"] & rounds["after"]


def test_seeds_go_to_hiders_of_the_same_round_alone(key):
    rounds = hider_sets(5)
    for sender, to, topic, body in whole_run(np.array([1, 2], dtype=np.uint64), key, shufflers=5)[0]:
        if topic == "seeds":
            assert len(body) == 32 * sum({sender, to} <= set(hiders) for hiders in rounds)
