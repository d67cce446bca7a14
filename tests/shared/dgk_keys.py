"""A key of the homomorphic encryption that is made already: it takes seconds to find one."""

import json
from functools import cache
from pathlib import Path

from hubbub.collection.shuffle_route import HomomorphicKey
from hubbub.shuffle.dgk import DGKPrivate, DGKPublic

VECTORS = Path(__file__).parents[1] / "vectors" / "dgk.json"


@cache
def private_key() -> DGKPrivate:
    """The private key of the known answers: 2,048 bits."""
    numbers = json.loads(VECTORS.read_text())
    n, g, h, p, v_p = (int(numbers[name], 16) for name in ("n", "g", "h", "p", "v_p"))
    return DGKPrivate(DGKPublic(n, g, h), p, v_p)


def homomorphic_key() -> HomomorphicKey:
    """Its public half, as it stands in a signed route."""
    public = private_key().public
    return HomomorphicKey(f"{public.modulus:x}", f"{public.g:x}", f"{public.h:x}", public.subgroup_bits)
