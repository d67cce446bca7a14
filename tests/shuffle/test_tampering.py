"""A party that drops, repeats, replaces or adds: what is noticed, what the rest can do, and what the server finds."""

import re

import numpy as np
import pytest

from hubbub import Random
from hubbub.core.errors import DecodeError
from hubbub.shuffle.channel import ShuffleAborted
from hubbub.shuffle.dgk import DGKPrivate
from hubbub.shuffle.oblivious import SecretShares, divide
from hubbub.shuffle.stored_result import DONE, MIXED, SENT, StoredResult
from tests.shuffle.whole_run import whole_run

ACTIONS = {
    "drop a message": (lambda body: [], "an answer to|within"),
    "drop a share": (lambda body: [body[: -8 if body[:1] == b"p" else -256]], r"shares; it sent"),
    "repeat a share": (lambda body: [body + body[-8 if body[:1] == b"p" else -256 :]], r"bytes about|it sent"),
    "add a share": (lambda body: [body + (b"\1" * (8 if body[:1] == b"p" else 256))], r"bytes about|it sent"),
    "cut a share": (lambda body: [body[:-1]], "bytes each"),
    "another kind": (lambda body: [b"x" + body[1:]], "numbers in the clear"),
    "no group element": (
        lambda body: [body[:1] + b"\0" * (len(body) - 1)] if body[:1] == b"e" else [],
        "from 1 to|an answer",
    ),
}


@pytest.fixture(scope="module")
def key():
    return DGKPrivate.generate(2048)


def cases():
    """Each shuffler with each action at each kind of message: the short form has every action, party and topic once."""
    topics = {
        0: ["1.reshare", "2.hide", "result"],
        1: ["0.reshare", "1.hide", "result"],
        2: ["1.reshare", "0.hide", "result"],
    }
    for number, action in enumerate(ACTIONS):
        for party in range(3):
            for place, topic in enumerate(topics[party]):
                short = (number + party + place) % 6 == 0
                yield pytest.param(party, topic, action, marks=() if short else pytest.mark.slow)


@pytest.mark.parametrize(("party", "topic", "action"), list(cases()))
def test_what_changes_the_number_of_shares_ends_the_run(key, party, topic, action):
    change, reason = ACTIONS[action]
    run = whole_run(np.arange(3, dtype=np.uint64), key, cheat=(party, [topic], change), seconds=0.4)
    assert not run.released
    assert isinstance(run.outcomes[3], ShuffleAborted)
    assert any(re.search(reason, text) for text in run.reasons), run.reasons


@pytest.mark.parametrize(
    ("party", "topic"),
    [(0, "0.reshare"), (1, "2.reshare"), (2, "1.reshare"), (0, "result"), (1, "result"), (2, "result")],
)
def test_what_is_replaced_turns_as_many_reports_into_random_ones(key, party, topic):
    reports = Random(seed=9).uint64(8)

    def change(body):  # two of its shares
        size = 8 if body[:1] == b"p" else 256
        fresh = Random(seed=7).uint64(2).tobytes() if size == 8 else key.public.to_bytes(key.public.encrypt([1, 2]))
        return [body[:1] + fresh + body[1 + 2 * size :]]

    (came,) = whole_run(reports, key, cheat=(party, [topic], change)).released
    changed = set(came.tolist()) - set(reports.tolist())
    assert len(came) == 8
    assert 0 < len(changed) <= 4  # of two messages of a reshare


def test_what_is_added_to_every_share_shifts_every_report(key):
    # Additive shares can be shifted without being read. The server's own reports show it; docs/shuffle.md says so.
    def shifted(body):
        return [b"p" + (np.frombuffer(body, "<u8", offset=1) + np.uint64(1)).tobytes()] if body[:1] == b"p" else [body]

    reports = Random(seed=9).uint64(8)
    by_one = 0
    for seed in range(4):  # its result is encrypted in a third of the runs: then nothing is shifted here
        (came,) = whole_run(reports, key, seed=seed, cheat=(1, ["result"], shifted)).released
        if sorted(came.tolist()) != sorted(reports.tolist()):
            assert sorted(came.tolist()) == sorted((reports + np.uint64(1)).tolist())
            by_one += 1
    assert by_one


def test_the_server_can_only_withhold_its_thanks(key):
    run = whole_run(np.uint64([4, 5]), key, cheat=(3, ["thanks"], lambda body: []), seconds=0.4)
    assert len(run.released) == 1
    assert all("thanks" in str(run.outcomes[shuffler]) for shuffler in range(3))


# -- reports are released once ------------------------------------------------------------------------------------


def test_a_run_that_breaks_off_before_the_end_is_mixed_anew(key):
    reports, stored = np.uint64([4, 5, 6]), {}
    shares = divide(reports, 3, key.public, Random(seed=1))
    broken = whole_run(
        reports, key, fakes=4, shares=shares, stored=stored, seconds=0.4, cheat=(1, ["ready"], lambda body: [])
    )
    assert not broken.released
    assert {result.state for result in stored.values()} <= {MIXED, SENT}
    assert stored[0].state == stored[2].state == MIXED  # they have not heard of all, and send nothing
    del stored[1]  # and who was killed before it stored anything does not stop the others
    again = whole_run(reports, key, fakes=4, shares=shares, stored=stored, seed=2)
    assert set(reports.tolist()) <= set(again.released[0].tolist())
    assert {result.state for result in stored.values()} == {DONE}


def test_what_was_sent_is_sent_again_as_it_was(key):
    reports, stored = np.uint64([4, 5, 6]), {}
    shares = divide(reports, 3, key.public, Random(seed=1))
    first = whole_run(
        reports, key, fakes=4, shares=shares, stored=stored, seconds=0.4, cheat=(3, ["thanks"], lambda body: [])
    )
    assert {result.state for result in stored.values()} == {SENT}
    second = whole_run(reports, key, fakes=4, shares=shares, stored=stored, seed=2)
    assert first.released[0].tolist() == second.released[0].tolist()  # the same fakes, in the same order
    assert {result.state for result in stored.values()} == {DONE}
    third = whole_run(reports, key, fakes=4, shares=shares, stored=stored, seed=3, seconds=0.4)
    assert not third.released
    assert all("a new batch" in text or "an answer" in text for text in third.reasons)


@pytest.mark.parametrize("lost", [0, 2])
def test_no_second_mix_of_what_a_server_may_have_seen(key, lost):
    reports, stored = np.uint64([4, 5, 6]), {}
    shares = divide(reports, 3, key.public, Random(seed=1))
    whole_run(reports, key, fakes=4, shares=shares, stored=stored, seconds=0.4, cheat=(3, ["thanks"], lambda body: []))
    if lost:
        del stored[lost]  # or says so, to see the reports with other fakes
    else:
        stored[lost] = StoredResult(stored[lost].digest, bytes(32), MIXED, stored[lost].body)
    again = whole_run(reports, key, fakes=4, shares=shares, stored=stored, seed=2, seconds=0.4)
    assert not again.released
    assert any("fakes would be known" in text for text in again.reasons)
    assert not any(topic == "result" for _, _, topic, _ in again.network.transcript)


# -- bad input ----------------------------------------------------------------------------------------------------


def test_shares_of_other_lengths_and_other_kinds_stop_before_anything_is_mixed(key):
    shares = divide(np.uint64([1, 2, 3]), 3, key.public, Random(seed=1))
    shorter = divide(np.uint64([1, 2]), 3, key.public, Random(seed=1))
    for wrong, reason in (
        ([shares[0], shorter[1], shares[2]], "it has 2 shares"),
        ([shares[0], shares[1], SecretShares(np.uint64([1, 2, 3]))], "ciphertexts for the last"),
        ([shares[2], shares[1], shares[0]], "ciphertexts for the last"),
    ):
        run = whole_run(None, key, shares=wrong, seconds=0.4)
        assert any(reason in text for text in run.reasons), run.reasons
        assert not run.released
        assert not any(topic == "result" for _, _, topic, _ in run.network.transcript)


@pytest.mark.parametrize("bad", ["0", "n", "above n", "p", "2", "two of 2", "n - 1", "1", "a copy"])
def test_a_dishonest_device_costs_its_own_row_alone(key, bad):
    """One device of 12 sends a share that is no ciphertext, or has no message, or is another device's."""
    reports, n = Random(seed=1).uint64(12), key.public.modulus
    shares = divide(reports, 3, key.public, Random(seed=2))
    encrypted = list(shares[-1].encrypted)
    sent = {"0": 0, "n": n, "above n": 2**2048 - 1, "p": key.p, "n - 1": n - 1, "1": 1, "a copy": encrypted[5]}
    encrypted[7] = sent.get(bad, 2)
    lost = {7}
    if bad == "two of 2":
        encrypted[9] = 4
        lost = {7, 9}
    # As a shuffler reads the file of what devices sent.
    content = b"e" + key.public.to_bytes(encrypted)
    shares[-1] = SecretShares.from_bytes(content, key.public, devices=True)
    run = whole_run(None, key, shares=shares, fakes=3)
    assert not run.reasons
    others = {int(report) for place, report in enumerate(reports) if place not in lost}
    (released,) = run.released
    assert others <= set(released.tolist())
    random = bad in ("n - 1", "1", "a copy")  # these have a message: the device's report is some other number
    assert run.outcomes[3].dropped == (0 if random else len(lost))
    assert len(released) == 12 + 3 - run.outcomes[3].dropped


def test_shares_of_a_length_that_is_none_are_refused_before_anything_is_mixed(key):
    with pytest.raises(DecodeError, match="bytes each"):
        SecretShares.from_bytes(b"e" + bytes(257), key.public, devices=True)


def test_a_party_that_sends_no_ciphertext_is_refused(key):
    """A shuffler answers for what it sends, and is named: only devices are forgiven."""
    shares = divide(np.uint64([1, 2, 3]), 3, key.public, Random(seed=1))
    run = whole_run(None, key, shares=shares, cheat=(2, ["result"], lambda body: [body[:1] + bytes(len(body) - 1)]))
    assert not run.released
    assert any("shares that can be read" in text for text in run.reasons), run.reasons


def test_ciphertexts_of_another_key_release_nothing(key):
    other = DGKPrivate.generate(2048)  # a key that was changed while devices still encrypted to the old one
    shares = divide(np.uint64([1, 2, 3]), 3, other.public, Random(seed=1))
    last = SecretShares(encrypted=[c % key.public.modulus for c in shares[2].encrypted], key=key.public)
    run = whole_run(None, key, shares=[*shares[:2], last], seconds=1.0)
    assert not run.released
    assert any("this key decrypts" in text for text in run.reasons)


def test_a_lie_about_the_number_of_shares(key):
    def lie(body):
        return [body.replace(b'"shares": 3', b'"shares": 30000000')]

    run = whole_run(np.uint64([1, 2, 3]), key, cheat=(1, ["agree"], lie), seconds=0.4)
    assert not run.released
    assert any("it has 30000000 shares" in text for text in run.reasons)
    for nonsense in (b"", b"{}", b"[1]", b'{"shares": -1}', b"\xff"):
        run = whole_run(
            np.uint64([1]), key, cheat=(1, ["agree"], lambda body, message=nonsense: [message]), seconds=0.2
        )
        assert any("its settings: shares" in text for text in run.reasons)


def test_a_batch_below_the_minimum_is_refused_by_everyone(key):
    run = whole_run(np.uint64([1, 2, 3]), key, least=4, seconds=0.2)
    assert sum("at least 4" in text for text in run.reasons) == 3
    assert not run.released


def test_stored_files_of_other_programs_are_refused(tmp_path):
    path = tmp_path / "kept"
    for content in (b"", b"hubbub mixed 1\nx" + bytes(64), b"hubbub mixed 1\nm" + bytes(63)):
        path.write_bytes(content)
        with pytest.raises(DecodeError, match="kept"):
            StoredResult.load(path, bytes(32))
