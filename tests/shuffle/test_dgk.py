"""DGK: ciphertexts that can be added, masks that hide them, and what is no ciphertext."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import gmpy2
import numpy as np
import pytest

from hubbub import Random
from hubbub.collection.shuffle_route import HomomorphicKey
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.shuffle.device_shares import encrypt
from hubbub.shuffle.dgk import DGKPrivate, DGKPublic
from hubbub.shuffle.keys import key_workers, spread_private, with_key
from hubbub.shuffle.masks import CHUNK, mask_chunk, masks_for
from hubbub.shuffle.oblivious import SecretShares


@pytest.fixture(scope="module")
def key():
    return DGKPrivate.generate(2048)


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


def test_what_devices_send_is_read_one_by_one(key):
    public, size = key.public, key.public.ciphertext_bytes
    good = public.to_bytes(public.encrypt([7]))
    bad = [bytes(size), public.modulus.to_bytes(size, "big"), b"\xff" * size, key.p.to_bytes(size, "big")]
    read = public.from_devices([good, *bad, good])
    assert [number is None for number in read] == [False, True, True, True, True, False]
    assert key.decrypt([read[0], read[5]]).tolist() == [7, 7]


def test_a_device_encrypts_without_a_library(key):
    numbers = {name: f"{getattr(key.public, name):x}" for name in ("modulus", "g", "h")}
    public = HomomorphicKey(**numbers, subgroup_bits=key.public.subgroup_bits)
    assert DGKPublic.of(public) == key.public
    share = encrypt(2**64 - 1, public)
    assert key.decrypt(key.public.from_bytes(share)).tolist() == [2**64 - 1]
    assert share != encrypt(2**64 - 1, public)


def test_dgk_adds_modulo_two_to_the_64(key):
    public = key.public
    numbers = Random(seed=4).uint64(2, 20)
    added = public.add(public.encrypt(numbers[0]), public.encrypt(numbers[1]))
    assert key.decrypt(added).tolist() == (numbers[0] + numbers[1]).tolist()
    with pytest.raises(InvalidValue, match="as many of both"):
        public.add(added, added[:5])


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


def test_masks_hide_ciphertexts_and_are_taken_off_in_the_clear(key):
    public, numbers = key.public, Random(seed=5).uint64(12)
    encrypted = public.encrypt(numbers)
    masks = masks_for(public, b"one batch", 12)
    masked = SecretShares(np.zeros(12, dtype=np.uint64), encrypted).masked(public, masks)
    assert (masked.plain + key.decrypt(masked.encrypted)).tolist() == numbers.tolist()
    assert masked.encrypted is not None
    assert not set(masked.encrypted) & set(encrypted)
    assert not set(key.decrypt(masked.encrypted).tolist()) & set(numbers.tolist())


def test_masks_are_those_of_their_seed_and_no_other(key):
    made = {0: mask_chunk(key.public, b"one batch", 0)}
    again = masks_for(key.public, b"one batch", CHUNK + 1, made)
    assert again.encrypted == masks_for(key.public, b"one batch", CHUNK + 1).encrypted
    assert len(set(again.encrypted)) == CHUNK + 1
    other = masks_for(key.public, b"another batch", CHUNK + 1)
    assert not set(again.encrypted) & set(other.encrypted)
    assert not set(again.numbers.tolist()) & set(other.numbers.tolist())


def test_the_noise_of_masks_is_uniform_for_the_holder_of_the_key(key):
    """The exponent has 128 bits more than the order of h, which its holder knows: nothing of it is left to see."""
    assert key.public.mask_bits - 2 * key.public.subgroup_bits == 128
    power = key.public._wide[1]
    assert power(1 << key.public.mask_bits - 1) == pow(key.public.h, 1 << key.public.mask_bits - 1, key.public.modulus)


def test_processes_answer_as_the_key_does(key):
    numbers = Random(seed=1).uint64(230)
    with spread_private(key, 2) as private:
        ciphers = key.public.encrypt(numbers)
        assert private.decrypt(ciphers).tolist() == numbers.tolist()
        assert private.messages([*ciphers, 3])[-1] is None
    with key_workers(key.public, 1) as workers:
        assert workers.submit(with_key, mask_chunk, b"seed", 2).result() == mask_chunk(key.public, b"seed", 2)
    assert str(key.p) not in repr(private)


_PARENT = """
import sys
from hubbub.shuffle.dgk import DGKPrivate
from hubbub.shuffle.keys import key_workers, with_key
from hubbub.shuffle.masks import mask_chunk
if __name__ == "__main__":
    with key_workers(DGKPrivate.generate(2048).public, 2) as workers:
        list(workers.map(with_key, [mask_chunk] * 2, [b"seed"] * 2, range(2)))
        print("ready", flush=True)
        input()
"""


@pytest.mark.slow
def test_processes_end_with_a_parent_that_is_killed(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(_PARENT)
    parent = subprocess.Popen([sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "ready\n"
    with open(f"/proc/{parent.pid}/task/{parent.pid}/children", encoding="ascii") as file:
        children = [int(pid) for pid in file.read().split()]
    assert len(children) >= 2
    parent.kill()
    parent.communicate()
    for _ in range(100):
        alive = [pid for pid in children if _alive(pid)]
        if not alive:
            break
        time.sleep(0.1)
    assert not alive


def _alive(pid):
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().split()[2] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
