"""Messages over TLS: who sends what nobody asked for, too much, twice, or nothing at all."""

import ssl
import struct
import threading

import pytest

from hubbub.core.errors import InvalidValue
from hubbub.shuffle.channel import ShuffleAborted
from hubbub.shuffle.config import Party
from hubbub.shuffle.local_parties import free_ports, write_certificate
from hubbub.shuffle.tls import TlsChannel


@pytest.fixture
def ends(tmp_path):
    """The two ends of a connection between two parties."""
    parties = []
    for number, port in enumerate(free_ports(2)):
        write_certificate(tmp_path, f"party-{number}")
        parties.append(Party("127.0.0.1", port, tmp_path / f"party-{number}.pem"))
    channels = [TlsChannel(me, parties, tmp_path / f"party-{me}.key", seconds=1.0) for me in range(2)]
    threads = [threading.Thread(target=channel.__enter__) for channel in channels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield channels
    for channel in channels:
        channel.__exit__()


def test_messages_wait_until_they_are_due(ends):
    for topic in ("second", "first"):
        ends[1].expect(0, topic, 10)
    ends[0].send(1, "first", b"one")
    ends[0].send(1, "second", b"two")
    ends[0].send(1, "third", b"three")
    assert (ends[1].receive(0, "second"), ends[1].receive(0, "first")) == (b"two", b"one")
    ends[1].expect(0, "third", 5)
    assert ends[1].receive(0, "third") == b"three"


def test_both_ends_send_and_receive_at_once(ends):
    """One thread reads a connection while another writes. Without a lock around each call, 4 of 12 runs failed."""
    messages = [bytes([number]) * 1_000_000 for number in range(250)]
    for me in range(2):
        for number, message in enumerate(messages):
            ends[me].expect(1 - me, str(number), len(message))

    def send(me):
        for number, message in enumerate(messages):
            ends[me].send(1 - me, str(number), message)

    senders = [threading.Thread(target=send, args=(me,)) for me in range(2)]
    for sender in senders:
        sender.start()
    for number, message in enumerate(messages):
        assert all(ends[me].receive(1 - me, str(number)) == message for me in range(2))
    for sender in senders:
        sender.join()


def test_what_is_too_long_is_not_read(ends):
    ends[1].expect(0, "hello", 5)
    # A header that announces ten gigabytes: refused before a byte of them is taken.
    ends[0]._connections[1].write(struct.pack(">HQ", 5, 10**10) + b"hello")
    with pytest.raises(ShuffleAborted, match="at most 5 bytes about hello; it sends 10,000,000,000"):
        ends[1].receive(0, "hello")


def test_a_flood_is_not_read(ends):
    ends[1].expect(0, "hello", 5)
    stopped = []

    def flood():
        try:
            for number in range(10_000):
                ends[0].send(1, f"junk {number}", bytes(10_000))
        except ShuffleAborted as error:
            stopped.append(error)

    flooding = threading.Thread(target=flood)
    flooding.start()
    with pytest.raises(ShuffleAborted, match="within 1 s; it sends 'junk 0'"):
        ends[1].receive(0, "hello")
    assert len(ends[1].mailbox) == 0  # of a hundred megabytes, nothing is kept
    flooding.join(timeout=20)
    assert stopped  # who takes nothing keeps no sender for ever


def test_a_message_that_comes_twice_ends_the_run(ends):
    ends[1].expect(0, "hello", 5)
    for _ in range(2):
        ends[0].send(1, "hello", b"one")
    assert ends[1].receive(0, "hello") == b"one"
    ends[1].expect(0, "more", 5)
    with pytest.raises(ShuffleAborted, match="it sent two"):
        ends[1].receive(0, "more")


def test_silence_and_departure_are_told_apart(ends):
    ends[1].expect(0, "hello", 5)
    with pytest.raises(ShuffleAborted, match="within 1 s") as silent:
        ends[1].receive(0, "hello")
    ends[0].__exit__()
    with pytest.raises(ShuffleAborted, match="its connection is gone") as gone:
        ends[1].receive(0, "hello")
    assert (silent.value.lost, gone.value.lost) == (False, True)


@pytest.mark.parametrize("lost", [True, False])
def test_a_reason_is_told_to_all(ends, lost):
    ends[1].expect(0, "hello", 5)
    error = ShuffleAborted("batch", "3 reports", "more")
    error.lost = lost
    ends[0].abort(error)
    with pytest.raises(ShuffleAborted, match="it stopped: batch: got '3 reports'") as raised:
        ends[1].receive(0, "hello")
    assert raised.value.lost == lost


def test_certificates_are_checked(tmp_path):
    write_certificate(tmp_path, "a")
    write_certificate(tmp_path, "b")
    party = Party("127.0.0.1", free_ports(1)[0], tmp_path / "a.pem")
    with pytest.raises(InvalidValue, match="a certificate of its own"):
        TlsChannel(0, [party, party], tmp_path / "a.key")
    with pytest.raises(InvalidValue, match="private_key"):
        TlsChannel(0, [party], tmp_path / "b.key")
    assert ssl.HAS_TLSv1_3


def test_a_party_that_reads_slowly_delays_a_message_until_the_deadline_only(ends):
    connection, sent, closed = ends[1]._connections[0], [], threading.Event()
    read = connection.read

    def dribble(size):
        parts = bytearray()
        while len(parts) < size:
            if closed.wait(0.05):  # it takes 13 s in all; the deadline is one second
                raise ConnectionResetError
            parts += read(min(size - len(parts), 1 << 18))
        return bytes(parts)

    def send():
        try:
            ends[0].send(1, "first", bytes(1 << 26))
        except ShuffleAborted as error:
            sent.append(error)

    connection.read = dribble
    ends[1].expect(0, "first", 1 << 26)
    sending = threading.Thread(target=send, daemon=True)
    sending.start()
    sending.join(60)
    closed.set()
    assert sent
    assert sent[0].lost
