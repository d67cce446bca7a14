"""What each party of a run holds, from all that was said: nobody holds what it must not."""

import hashlib
import json
from itertools import combinations

import gmpy2
import numpy as np
import pytest

from hubbub import Random
from hubbub.shuffle.dgk import DGKPrivate, DGKPublic
from hubbub.shuffle.oblivious import hider_sets
from tests.shuffle.whole_run import whole_run


@pytest.fixture(scope="module")
def key():
    return DGKPrivate.generate(2048)


def followed(run, key):
    """How many ciphertexts there were, and how many pairs of them whoever decrypts can see to be the same handed on.

    That is: the noise h^r of both is the same, but for the few times that known numbers added up to 2^64.
    """
    n, g = gmpy2.mpz(key.public.modulus), key.public.g
    noises = []
    for *_, topic, body in run.network.transcript:
        if body[:1] == b"e" and not topic.endswith(".seed"):
            ciphers = key.public.from_bytes(body[1:])
            for cipher, message in zip(ciphers, key.decrypt(ciphers).tolist(), strict=True):
                noises.append(cipher * gmpy2.powmod(g, -message, n) % n)
    overflows = {gmpy2.powmod(g, times << 64, n) for times in range(-8, 9)}
    same = sum(a * gmpy2.invert(b, n) % n in overflows for a, b in combinations(noises, 2))
    return len(noises), same


def known_order(run, shufflers, coalition, count):
    """The order in which reports come out, if a coalition's own messages are enough to know it."""
    order = np.arange(count)
    for number, hiders in enumerate(hider_sets(shufflers)):
        seeds = {
            sender: body
            for sender, to, topic, body in run.network.transcript
            if topic == f"{number}.seed" and coalition & {sender, to}
        }
        if set(seeds) != set(hiders):
            return None
        seed = hashlib.sha256(b"".join(seeds[hider] for hider in hiders)).digest()
        order = order[np.argsort(Random(seed=seed).uint64(count), kind="stable")]
    return order


def test_the_server_hears_settings_and_shares_of_the_result_alone(key):
    run = whole_run(np.uint64([5, 6, 7]), key, fakes=2)
    to_server = [(sender, topic) for sender, to, topic, _ in run.network.transcript if to == 3]
    assert sorted(to_server) == sorted((sender, topic) for sender in range(3) for topic in ("agree", "result"))
    for sender, to, topic, body in run.network.transcript:
        if to == 3 and topic == "agree":
            assert set(json.loads(body)) == {"shares", "fakes", "least", "nonce", "kept"}, sender
    assert sorted(run.released[0].tolist())[:3] == [5, 6, 7]


def test_shufflers_together_read_nothing_and_hold_no_key(key):
    # In two worlds whose reports differ, shares drawn from the same stream: all that is said in the clear is the same.
    worlds = []
    for reports in (np.uint64([5, 6]), np.uint64([900, 2**63])):
        transcript = whole_run(reports, key).network.transcript
        worlds.append({(a, b, topic): body for a, b, topic, body in transcript if body[:1] == b"p"})
        assert not any(key.p.to_bytes(128, "big") in body for *_, body in transcript)
    assert worlds[0] == worlds[1]
    assert len(worlds[0]) >= 10


def test_no_ciphertext_can_be_followed_even_by_who_decrypts_it(key, monkeypatch):
    reports = np.uint64([5, 6, 7])
    ciphertexts, same = followed(whole_run(reports, key), key)
    assert ciphertexts >= 6
    assert same == 0
    # The planted bug: what section 9.5.1 leaves out, ciphertexts that are handed on with the noise they had.
    monkeypatch.setattr(DGKPublic, "rerandomise", lambda self, ciphertexts: list(ciphertexts))
    assert followed(whole_run(reports, key), key)[1] >= 3


@pytest.mark.parametrize(("shufflers", "many"), [(3, 2), (5, 3)])
def test_less_than_half_of_the_shufflers_do_not_know_the_order(key, shufflers, many):
    reports = Random(seed=4).uint64(6)
    run = whole_run(reports, key, shufflers=shufflers)
    (came,) = run.released
    for coalition in combinations(range(shufflers), many - 1):
        assert known_order(run, shufflers, set(coalition), 6) is None
    for coalition in combinations(range(shufflers), many):
        order = known_order(run, shufflers, set(coalition), 6)  # and half of them do, as the docs say
        assert came.tolist() == reports[order].tolist()


def test_numbers_seen_before_a_hidden_round_do_not_come_back(key):
    # Shuffler 2 and the server: in round 0 the others hide. What it gave is in nothing that it gets.
    run = whole_run(Random(seed=4).uint64(5), key, seed=3)

    def numbers(body):
        return (
            key.decrypt(key.public.from_bytes(body[1:])) if body[:1] == b"e" else np.frombuffer(body, "<u8", offset=1)
        )

    transcript = run.network.transcript
    gave = [numbers(body) for sender, _, topic, body in transcript if sender == 2 and topic == "0.hide"]
    got = [numbers(body) for _, to, topic, body in transcript if to == 2 and topic == "0.reshare"]
    before = {int(number) for row in [*gave, sum(gave)] for number in row}
    after = {int(number) for row in [*got, sum(got)] for number in row}
    assert len(before) == len(after) == 15
    assert not before & after


def test_seeds_go_to_hiders_alone(key):
    for _, to, topic, _ in whole_run(np.uint64([1, 2]), key, shufflers=5).network.transcript:
        if topic.endswith(".seed"):
            assert to in hider_sets(5)[int(topic.split(".")[0])]
