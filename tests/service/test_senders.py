"""Quotas of senders: by a keyed hash that changes, in a table that does not grow, by a proxy's word if it is signed."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from hubbub import Random
from hubbub.collection import ManualClock
from hubbub.core.errors import InvalidValue
from hubbub.service.base.limits import SenderLimits
from hubbub.service.http.guard import HEADER, Senders, read_secret, signed_sender
from hubbub.service.ingest.frames import RefusedRequest

SECRET = b"what the proxy and the collector know"


def senders(**limits: object) -> tuple[Senders, ManualClock]:
    clock = ManualClock(1000.0)
    return Senders(SenderLimits(**limits), clock, Random(seed=1)), clock  # type: ignore[arg-type]


def said(address: str, secret: bytes = SECRET) -> list[tuple[bytes, bytes]]:
    return [(b"host", b"x"), (HEADER, signed_sender(address, secret).encode())]


def test_a_name_lasts_an_hour_and_tells_nothing():
    one, clock = senders()
    first = one.name("192.0.2.7", [])
    assert first is not None
    assert "192" not in first
    clock.advance(3599.0)
    assert one.name("192.0.2.7", []) == first
    one.take(first, 1)
    clock.advance(1.0)
    assert one.name("192.0.2.7", []) not in (None, first)
    assert len(one) == 0
    clock.set(0.0)  # a clock that was set back changes the key too
    other = one.name("192.0.2.7", [])
    clock.set(1.0)
    assert one.name("192.0.2.7", []) == other


def test_no_address_is_kept():
    one, _ = senders()
    for number in range(100):
        one.take(one.name(f"198.51.100.{number}", []), 1)
    assert len(one) == 100
    assert "198.51" not in repr(vars(one)) + repr(vars(one._quota))


def test_a_household_is_one_sender():
    one, _ = senders()
    assert one.name("2001:db8::1", []) == one.name("2001:db8::ffff:2", []) != one.name("2001:db8:0:1::1", [])
    assert one.name("::ffff:192.0.2.7", []) == one.name("192.0.2.7", [])


def test_the_table_does_not_grow():
    one, clock = senders(most=50, rate=1.0, burst=1)
    busy = one.name("192.0.2.1", [])
    one.take(busy, 1)
    for number in range(1000):
        one.take(one.name(f"10.0.{number % 250}.{number // 250}", []), 1)
        if number % 40 == 0:
            with pytest.raises(RefusedRequest):  # who is active is not forgotten
                one.take(busy, 1)
    assert len(one) == 50
    clock.advance(2000.0)
    one.take(busy, 1)


def test_a_proxy_is_believed_if_it_knows_the_secret():
    one, _ = senders(secret=SECRET)
    behind = one.name("127.0.0.1", said("192.0.2.7"))
    assert behind == one.name("192.0.2.7", [])
    assert behind != one.name("127.0.0.1", said("192.0.2.8"))
    for forged in (
        said("192.0.2.7", b"another secret, of somebody"),
        [(HEADER, b"192.0.2.7")],
        [(HEADER, b"192.0.2.7 " + b"0" * 64)],
        [(HEADER, b"\xff\xfe " + b"0" * 64)],
        [(HEADER, b"")],
        [],
    ):
        assert one.name("203.0.113.5", forged) == one.name("203.0.113.5", [])
    # The proxy's own address is one sender, once it could have said more.
    assert one.name("127.0.0.1", []) == one.name("127.0.0.1", [(HEADER, b"nonsense")]) is not None


def test_without_a_secret_nobody_is_believed_and_the_machine_itself_is_not_limited():
    one, _ = senders(rate=1.0, burst=1)
    assert one.name("127.0.0.1", said("192.0.2.7")) is None
    assert one.name("203.0.113.5", said("192.0.2.7")) == one.name("203.0.113.5", [])
    for _ in range(10):
        one.take(None, 1)
        one.correct(None, 1000)
    assert len(one) == 0


def test_a_batch_leaves_its_sender_in_debt():
    one, clock = senders(rate=10.0, burst=100)
    name = one.name("192.0.2.7", [])
    one.take(name, 100)
    one.correct(name, 1000)
    with pytest.raises(RefusedRequest, match="over_sender_quota: more than 10 reports per second") as refused:
        one.take(name, 1)
    assert refused.value.wait == pytest.approx(100.1)
    clock.advance(105.2)  # a request that was refused costs something too
    one.take(name, 1)
    one.correct(name, -5000)  # a bucket is full at its burst
    one.take(name, 100)
    with pytest.raises(RefusedRequest):
        one.take(name, 1)


def test_who_goes_on_after_many_refusals_is_not_even_listened_to():
    one, clock = senders(rate=10.0, burst=100)
    name = one.name("192.0.2.7", [])
    refusals = 0
    while not one.blocked("192.0.2.7"):
        with contextlib.suppress(RefusedRequest):
            one.take(name, 100)
            continue
        refusals += 1
    assert refusals == 2  # and two connections
    assert not one.blocked("192.0.2.8")
    assert not one.blocked("127.0.0.1")
    clock.advance(60.0)
    assert not one.blocked("192.0.2.7")
    one.take(name, 1)


def test_a_secret_is_long_enough(tmp_path: Path):
    (tmp_path / "short").write_text("secret\n")
    with pytest.raises(InvalidValue, match="proxy secret: got '6 bytes'; allowed: at least 16 bytes"):
        read_secret(tmp_path / "short")
