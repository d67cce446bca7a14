"""Ids and their table against a plain dictionary; digests that do not depend on the company a report came in."""

from __future__ import annotations

import numpy as np
import pytest
from every_mechanism import all_mechanisms

from hubbub import Random
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.base import Mechanism
from hubbub.service.ids import Ids, digests_of
from hubbub.service.seen import DUPLICATE, FRESH, REPLAY, Seen


def some_ids(rng: Random, count: int) -> Ids:
    return Ids.of(rng.bytes(16 * count), rng.uint64(count))


def test_ids_survive_their_bytes():
    ids = some_ids(Random(seed=1), 100)
    again = Ids.from_bytes(ids.to_bytes())
    assert all((mine == theirs).all() for mine, theirs in zip(ids.columns, again.columns, strict=True))
    assert len(ids.to_bytes()) == 24 * 100
    assert len(Ids.concat([])) == 0
    with pytest.raises(InvalidValue, match="a multiple of 24"):
        Ids.from_bytes(bytes(23))
    with pytest.raises(InvalidValue, match="16 bytes for each of 2"):
        Ids.of(bytes(16), np.uint64([1, 2]))


def test_digests_are_never_zero():
    assert (Ids.of(bytes(32), np.uint64([0, 2])).digest != 0).all()


@pytest.mark.parametrize("seed", range(20))
def test_the_table_agrees_with_a_dictionary(seed: int):
    rng = Random(seed=seed)
    seen, held = Seen(rng), {}
    known = some_ids(rng, 1)
    for _ in range(60):
        count = int(rng.uint64(1)[0] % 400)
        fresh = some_ids(rng, count)
        rows = (rng.uint64(30) % np.uint64(len(known))).astype(np.int64)
        asked = Ids.concat([fresh, known.take(rows)])
        changed = Ids(asked.a, asked.b, asked.digest ^ (rng.uint64(len(asked)) % np.uint64(2) << np.uint64(1)))
        status = seen.look(changed)
        for row in range(len(changed)):
            stored = held.get(changed.hex(row))
            wanted = FRESH if stored is None else DUPLICATE if stored == changed.digest[row] else REPLAY
            assert status[row] == wanted
        seen.add(fresh)
        held |= {fresh.hex(row): fresh.digest[row] for row in range(count)}
        known = fresh if count else known
        assert len(seen) == len(held)
    everything = Ids.concat([fresh, known])
    assert (seen.look(everything) == DUPLICATE).all()


def test_ids_that_fall_together_are_told_apart():
    # Whoever knew the secret could send ids that all want the last place of the table: they go round to its beginning.
    rng = Random(seed=3)
    seen = Seen(rng)
    inverse = pow(int(seen._secret[0]), -1, 1 << 64)
    wanted = [((1 << 64) - 1 - number) * inverse % (1 << 64) for number in range(300)]
    ids = Ids(np.uint64(wanted), np.zeros(300, np.uint64), np.arange(300, dtype=np.uint64) * 2 + 1)
    seen.add(ids.take(slice(200)))
    assert seen.look(ids).tolist() == [DUPLICATE] * 200 + [FRESH] * 100
    seen.add(ids.take(slice(200, 300)))
    seen.add(some_ids(rng, 5000))  # the table grows over them
    assert (seen.look(ids) == DUPLICATE).all()


def test_the_first_of_each_id_is_found():
    rng = Random(seed=4)
    pool = some_ids(rng, 50)
    rows = (rng.uint64(400) % np.uint64(50)).astype(np.int64)
    first = pool.take(rows).first_of_each()
    assert first.tolist() == [rows.tolist().index(row) for row in rows.tolist()]


@all_mechanisms
def test_a_digest_is_that_of_the_report_alone(mechanism: Mechanism):
    values = (mechanism.example_values(4) * 25)[:50]
    reports = mechanism.randomize(values, Random(seed=5))
    digests = digests_of(reports)
    assert digests.tolist() == [int(digests_of(reports[row : row + 1])[0]) for row in range(50)]
    # Different reports have different digests: 50 of them collide with probability below 2^-52.
    spelt = [reports[row : row + 1].to_bytes() for row in range(50)]
    assert len(set(digests.tolist())) == len(set(spelt))
