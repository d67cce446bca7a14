"""Masks: encrypted random numbers by which a shuffler makes ciphertexts unrecognisable, with one multiplication each.

Who hands ciphertexts on multiplies each by Enc(-d) and adds d to its share in the clear. The number d and the noise do
not depend on the ciphertext, so masks are made while a batch still gathers. Both come from a secret seed of the batch:
a shuffler that was killed makes the same masks again, for the same rows, and no mask is ever used for anything else.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from hubbub.core.reports import Words
from hubbub.random.source import Random
from hubbub.shuffle.dgk import DGKPublic

CHUNK = 500
"""How many masks are made at a time."""


class Masks(NamedTuple):
    """Random numbers, and ciphertexts of what takes them away."""

    numbers: Words
    encrypted: list[Any]


def mask_chunk(key: DGKPublic, seed: bytes, number: int) -> bytes:
    """The ciphertexts of a chunk of masks, as bytes."""
    size = -(-key.mask_bits // 8)
    noise = Random(seed=seed).child("noise", number).bytes(CHUNK * size)
    exponents = [int.from_bytes(noise[at : at + size], "little") for at in range(0, len(noise), size)]
    return key.to_bytes(key.masks(np.negative(_numbers(seed, number)), exponents))


def masks_for(key: DGKPublic, seed: bytes, count: int, made: Mapping[int, bytes] | None = None) -> Masks:
    """The masks of the first rows of a batch; chunks that were not `made` yet are made now."""
    made = made or {}
    chunks = range(-(-count // CHUNK))
    encrypted = [mask for number in chunks for mask in key.numbers(made.get(number) or mask_chunk(key, seed, number))]
    numbers = np.concatenate([np.empty(0, dtype=np.uint64), *(_numbers(seed, number) for number in chunks)])
    return Masks(numbers[:count], encrypted[:count])


def _numbers(seed: bytes, number: int) -> Words:
    return Random(seed=seed).child("numbers", number).uint64(CHUNK)
