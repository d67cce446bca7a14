"""Private encrypted oblivious shuffle: what comes out, who can know what, and what a party can break."""

import json
import threading
from itertools import combinations
from pathlib import Path

import gmpy2
import numpy as np
import pytest

from hubbub import Random
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.shuffle.channel import LocalNetwork, ShuffleAborted
from hubbub.shuffle.dgk import DGKPrivate, DGKPublic
from hubbub.shuffle.oblivious import (
    SecretShares,
    combine,
    divide,
    hider_sets,
    oblivious_shuffle,
    shuffle_with_fakes,
    split,
)


@pytest.fixture(scope="module")
def key():
    return DGKPrivate.generate(2048)


def run(shares, key, *, fakes=0, seed=1, sources=None):
    """All shufflers of a run, each in its thread; returns what each ends with."""
    parties = len(shares)
    network = LocalNetwork(parties, seconds=5.0)
    results = [None] * parties

    def take_part(me):
        rng = Random(seed=f"{seed}.{me}") if sources is None else sources[me]
        channel = network.channel(me)
        results[me] = shuffle_with_fakes(me, parties, channel, shares[me], fakes=fakes, key=key.public, rng=rng)

    threads = [threading.Thread(target=take_part, args=(me,)) for me in range(parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize("parties", [3, 4, 5])
def test_the_reports_come_out_with_the_fakes(key, parties):
    reports = Random(seed=1).uint64(40)
    results = run(divide(reports, parties, key.public, Random(seed=2)), key, fakes=7)
    came = combine(results, key).reports
    assert len(came) == 47
    assert set(reports.tolist()) <= set(came.tolist())
    assert came[:40].tolist() != reports.tolist()


def test_the_sum_is_that_of_reports_and_fakes(key):
    reports = Random(seed=3).uint64(30)
    came = combine(run(divide(reports, 3, key.public, Random(seed=4)), key, fakes=5, seed=9), key).reports
    fakes = sum(Random(seed=f"9.{me}").uint64(5) for me in range(3))
    assert sorted(came.tolist()) == sorted([*reports.tolist(), *fakes.tolist()])


class _NoFakes:
    """A dishonest shuffler's draws: its shares of the fakes, which it draws first, are all zero."""

    def __init__(self, seed):
        self.inner, self.first = Random(seed=seed), True

    def uint64(self, *shape):
        drawn = self.inner.uint64(*shape)
        self.first, first = False, self.first
        return np.zeros_like(drawn) if first else drawn

    def below(self, *given):
        return self.inner.below(*given)


def _chi2_of_fakes(key, dishonest):
    """How unevenly 320 fakes fall into 16 equal parts: chi2 of 15 degrees of freedom if they are uniform."""
    sources = [_NoFakes(f"fakes.{me}") if me in dishonest else Random(seed=f"fakes.{me}") for me in range(3)]
    report = np.uint64([7])
    came = combine(
        run(divide(report, 3, key.public, Random(seed=5)), key, fakes=320, sources=sources), key
    ).reports.tolist()
    came.remove(7)
    counts = np.bincount(np.array(came, dtype=np.uint64) >> np.uint64(60), minlength=16)
    return float(((counts - 20) ** 2 / 20).sum())


@pytest.mark.parametrize("honest", [0, 2])  # the last one's shares are encrypted
def test_one_honest_shuffler_makes_fakes_uniform(key, honest):
    assert _chi2_of_fakes(key, {0, 1, 2} - {honest}) < 44.3  # p = 1e-4


def test_without_an_honest_shuffler_fakes_are_what_they_choose(key):
    assert _chi2_of_fakes(key, {0, 1, 2}) > 1000


def test_seven_shufflers(key):
    reports = np.arange(4, dtype=np.uint64)
    came = combine(run(divide(reports, 7, key.public, Random(seed=6)), key), key).reports
    assert sorted(came.tolist()) == [0, 1, 2, 3]
    assert len(hider_sets(7)) == 35


@pytest.mark.parametrize("parties", [3, 4, 5, 7])
def test_no_half_of_the_shufflers_knows_every_permutation(parties):
    for coalition in combinations(range(parties), parties // 2 if parties % 2 else parties // 2 - 1):
        unknown = [hiders for hiders in hider_sets(parties) if not set(hiders) & set(coalition)]
        assert unknown, coalition


@pytest.mark.parametrize("runs", [90, pytest.param(900, marks=pytest.mark.slow)])
def test_every_order_is_as_likely(runs):
    # Three reports have six orders. chi2 of 5 degrees of freedom: p = 1e-4 at 25.7.
    counts = {}
    for seed in range(runs):
        network, results = LocalNetwork(3), {}

        def take_part(me, mine, network=network, results=results, seed=seed):
            rng = Random(seed=f"{seed}.{me}")
            results[me] = oblivious_shuffle(me, 3, network.channel(me), SecretShares(mine), key=None, rng=rng)

        shares = split(np.arange(3, dtype=np.uint64), 3, Random(seed=seed))
        threads = [threading.Thread(target=take_part, args=party) for party in enumerate(shares)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        order = tuple(sum(results[me].plain for me in range(3)).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert sum((count - runs / 6) ** 2 / (runs / 6) for count in counts.values()) < 25.7


def test_what_the_server_refuses(key):
    plain, cipher = SecretShares(np.uint64([1])), SecretShares(encrypted=key.public.encrypt([2]), key=key.public)
    with pytest.raises(ShuffleAborted, match="exactly one"):
        combine([plain, plain], key)
    with pytest.raises(ShuffleAborted, match="exactly one"):
        combine([cipher, cipher], key)
    with pytest.raises(ShuffleAborted, match="as many"):
        combine([SecretShares(np.uint64([1, 2])), cipher], key)
    with pytest.raises(ShuffleAborted, match="last shuffler"):
        shuffle_with_fakes(2, 3, LocalNetwork(3).channel(2), plain, fakes=0, key=key.public, rng=Random(seed=1))
    with pytest.raises(InvalidValue, match="parties"):
        hider_sets(2)


def test_dgk_refuses_what_is_no_ciphertext(key):
    public = key.public
    for wrong in (b"\0" * 256, b"\xff" * 256, b"\1" * 255, key.p.to_bytes(256, "big")):
        with pytest.raises(DecodeError, match="ciphertexts"):
            public.from_bytes(wrong)
    with pytest.raises(DecodeError, match="without a message"):
        key.decrypt([gmpy2.mpz(3)])  # in the group, but of another order
    other = DGKPrivate.generate(2048)
    with pytest.raises(DecodeError, match="without a message"):
        key.decrypt(other.public.encrypt([1]))
    with pytest.raises(InvalidValue, match="messages"):
        public.encrypt([2**64])
    with pytest.raises(InvalidValue, match="modulus"):
        DGKPublic(modulus=2**1000 + 1, g=3, h=5)
    assert str(key.p) not in repr(key)


def test_dgk_adds_modulo_two_to_the_64(key):
    public = key.public
    numbers = Random(seed=4).uint64(2, 20)
    added = public.add(public.encrypt(numbers[0]), public.encrypt(numbers[1]))
    assert key.decrypt(added).tolist() == (numbers[0] + numbers[1]).tolist()
    assert (
        key.decrypt(public.add_plain(public.encrypt(numbers[0]), numbers[1])).tolist()
        == (numbers[0] + numbers[1]).tolist()
    )


def test_dgk_known_answers():
    # Numbers of a key and its ciphertexts by the definition, made with Python's own integers (tests/vectors/dgk.json).
    vectors = json.loads((Path(__file__).parents[1] / "vectors" / "dgk.json").read_text())
    n, g, h, p, q, v_p = (int(vectors[name], 16) for name in ("n", "g", "h", "p", "q", "v_p"))
    assert (p * q, pow(h, v_p, p), pow(g, v_p << 64, p)) == (n, 1, 1)
    assert pow(g, v_p << 63, p) != 1
    key = DGKPrivate(DGKPublic(n, g, h), p, v_p)
    for answer in vectors["answers"]:
        message, noise, cipher = (int(answer[name], 16) for name in ("message", "noise", "cipher"))
        assert pow(g, message, n) * pow(h, noise, n) % n == cipher
        assert key.decrypt([gmpy2.mpz(cipher)]).tolist() == [message]
