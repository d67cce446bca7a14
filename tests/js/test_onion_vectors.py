"""What the browser's client wraps in layers, the library opens, layer by layer and for the right batch alone."""

import json
import re

import numpy as np

from hubbub import GRR, SOLH, Random
from hubbub.shuffle.device_shares import read_plain_share
from hubbub.shuffle.onion import LAYER_BYTES, OnionKey, peel
from hubbub.shuffle.report_numbers import from_numbers
from tests.js.tab import RunNode
from tests.shared.dgk_keys import homomorphic_key, private_key


def test_onions_and_shares_of_the_browser_are_opened(run_node: RunNode) -> None:
    keys, report, batch = [OnionKey.generate() for _ in range(3)], bytes(range(40)), "themes.1.popular.0.7.1.0"
    mechanisms = (SOLH(epsilon=3.0, domain=100, buckets=64), GRR(epsilon=2.0, domain=300))
    reports = [mechanism.randomize([7], Random(seed=1)) for mechanism in mechanisms]
    asked = {
        "report": report.hex(),
        "route": [key.public.hex() for key in keys],
        "batch": batch,
        "specs": [mechanism.spec() for mechanism in mechanisms],
        "reports": [drawn.to_bare().hex() for drawn in reports],
        "homomorphic": vars(homomorphic_key()),
    }
    told = run_node("onion.test.mjs", "--test", HUBBUB_ROUTE=json.dumps(asked))
    printed = re.search(r"onions ([0-9a-f ]+)", told)
    assert printed is not None, told
    onions = [bytes.fromhex(onion) for onion in printed.group(1).split()]
    assert len(set(onions)) == 3  # a fresh ephemeral key each
    assert {len(onion) for onion in onions} == {len(report) + 3 * LAYER_BYTES}
    assert peel(onions, keys[0], "themes.1.popular.0.8.1.0", place=0).unreadable == 3
    assert peel(onions, keys[0], batch, place=1).unreadable == 3
    for place, key in enumerate(keys):
        onions = peel(onions, key, batch, place=place).inside
    assert onions == [report] * 3
    for mechanism, drawn, printed in zip(mechanisms, reports, re.findall(r"shares ([0-9a-f]{99,})", told), strict=True):
        sealed = bytes.fromhex(printed)
        size = len(sealed) // 3
        shares = [
            peel([sealed[place * size : (place + 1) * size]], key, batch, place=place).inside[0]
            for place, key in enumerate(keys)
        ]
        public = homomorphic_key()
        plain = sum(read_plain_share(share, public) for share in shares[:2])
        (encrypted,) = private_key().messages([int.from_bytes(shares[2], "big")])
        assert encrypted is not None
        number = np.array([(plain + encrypted) % (1 << 64)], dtype=np.uint64)
        assert from_numbers(mechanism, number).to_bare() == drawn.to_bare()
