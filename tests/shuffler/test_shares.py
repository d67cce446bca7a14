"""Shufflers of shares: what comes out, what a dishonest device and a dishonest shuffler can break, what is refused."""

import json
from typing import Any

import msgspec
import pytest

from hubbub import Random
from hubbub.collection.shuffle_route import ObliviousRoute, batch_name, layer_name
from hubbub.core.errors import InvalidValue
from hubbub.shuffle import device_shares, oblivious
from hubbub.shuffle.dgk import DGKPrivate
from hubbub.shuffle.onion import wrap
from hubbub.shuffler.share_run import ShareRun
from hubbub.wire.shares import decode_message, decode_shared, encode_message, encode_shared
from hubbub.wire.upload import Entry
from tests.shared.dgk_keys import private_key
from tests.shuffler.share_world import PATH, PEOPLE, ShareWorld, cheating
from tests.shuffler.shuffle_world import HOUR

HANDED = ["handed"] * 3
DROPPED = ["dropped"] * 3


def rejected(told: list[dict[str, Any]]) -> list[str]:
    return [row["reason"] for answer in told for row in answer.get("rejected", [])]


@pytest.mark.parametrize("shufflers", [3, 4])
def test_reports_are_counted_once_and_fakes_are_taken_off(shufflers: int) -> None:
    world = ShareWorld(shufflers=shufflers)
    world.send(world.entries(PEOPLE))
    assert world.shuffle() == ["handed"] * shufflers
    assert world.notes() == ["24 came, 0 unreadable, 0 incomplete, 5 fakes"] * shufflers
    batch = world.batch()
    assert (batch.n, batch.fakes, batch.unreadable, batch.lost) == (29, 5, 0, 0)
    assert json.loads(world.finish().payload)["n"] == 24


def test_what_comes_out_are_the_reports_of_devices_and_fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole run over the service, ciphertexts and all: every number that a device divided is in the result."""
    world, sent, came = ShareWorld(), list[int](), list[int]()
    divide, combine = device_shares.sealed_shares, oblivious.combine

    def dividing(number: Any, *given: Any) -> bytes:
        sent.append(int(number[0]))
        return divide(number, *given)

    def combining(*given: Any) -> Any:
        combined = combine(*given)
        came.extend(combined.reports.tolist())
        return combined

    monkeypatch.setattr(device_shares, "sealed_shares", dividing)
    monkeypatch.setattr(oblivious, "combine", combining)
    world.send(world.entries(PEOPLE))
    assert world.shuffle() == HANDED
    assert len(came) == 29
    assert len(sent) == 24
    assert set(sent) <= set(came)


def test_a_share_is_taken_once_by_each_shuffler() -> None:
    world = ShareWorld()
    (entry,) = world.entries(["dark"])
    world.send([entry])
    assert [answer["duplicates"] for answer in world.send([entry])] == [1, 1, 1]
    (other,) = world.entries(["dark"])
    again = msgspec.structs.replace(other, report_id=entry.report_id)
    assert rejected(world.send([again])) == ["replay"] * 3
    assert rejected(world.send([msgspec.structs.replace(other, report=other.report + bytes(3))])) == ["malformed"] * 3
    upload = world.frame(other, 0)
    assert world.post(upload, 1)["accepted"] == 1  # it is sealed for shuffler 0, which nobody sees before it is opened
    world.send(world.entries(PEOPLE))
    assert world.shuffle() == HANDED
    assert world.notes()[1] == "26 came, 1 unreadable, 0 incomplete, 5 fakes"
    assert world.batch().n == 30


def bad_shares(world: ShareWorld) -> dict[str, Entry]:
    """What a dishonest device can send, one of each kind; each is complete, sealed and of the right size."""
    key, (opened,) = private_key(), world.collector.board.open(world.collection.collection_id, world.clock.now())
    layer = layer_name(batch_name("survey", 1, opened.name), opened.ask)
    route = world.collection.shuffle
    assert isinstance(route, ObliviousRoute)
    size = key.public.ciphertext_bytes
    fine = [bytes(size), bytes(size), key.public.to_bytes(key.public.encrypt([1]))]

    def numbers(last: int) -> list[bytes]:
        return [*fine[:2], last.to_bytes(size, "big")]

    def entry(shares: list[bytes], places: tuple[int, ...] = (0, 1, 2)) -> Entry:
        shufflers = [bytes.fromhex(shuffler.encryption_key) for shuffler in route.shufflers]
        sealed = [wrap(share, [shufflers[at]], layer, place=places[at]) for at, share in enumerate(shares)]
        return Entry(*opened.name, world.rng.bytes(16), b"".join(sealed))

    return {
        "zero": entry(numbers(0)),
        "the modulus": entry(numbers(key.public.modulus)),
        "above the modulus": entry(numbers((1 << 8 * size) - 1)),
        "a factor of the modulus": entry(numbers(key.p)),
        "padding": entry([bytes(size - 1) + b"\1", *fine[1:]]),
        "sealed for another shuffler": entry(fine, (1, 0, 2)),
        "no message": entry(numbers(2)),
        "no message either": entry(numbers(3)),
    }


def test_a_dishonest_device_costs_its_own_row_alone() -> None:
    world = ShareWorld()
    bad = bad_shares(world)
    world.send([*world.entries(PEOPLE), *bad.values()])
    (half,) = world.entries(["dark"])
    world.post(world.frame(half, 0))  # a share that the other shufflers never get
    assert world.shuffle() == HANDED
    assert world.notes() == [
        "33 came, 2 unreadable, 5 incomplete, 5 fakes",  # padding, and another's; and what the last one cannot read
        "32 came, 1 unreadable, 5 incomplete, 5 fakes",
        "32 came, 4 unreadable, 2 incomplete, 5 fakes",
    ]
    batch = world.batch()
    assert (batch.n, batch.unreadable) == (29, len(bad) + 1)  # two of which only the holder of the key sees
    assert json.loads(world.finish().payload)["n"] == 24


def test_the_minimum_is_of_complete_reports_and_nobody_is_told_the_number() -> None:
    world = ShareWorld()
    entries = world.entries(PEOPLE[:20])
    world.send(entries[:19])
    world.post(world.frame(entries[19], 0))
    assert world.shuffle() == DROPPED
    assert world.notes() == ["batch: got 'too few reports'; allowed: at least 20"] * 3
    assert world.batch() is None
    assert all(hop.status()["counts"] == {"batches dropped": 1} for hop in world.hops)


def test_a_shuffler_that_no_device_reached_costs_the_batch() -> None:
    world = ShareWorld()
    for entry in world.entries(PEOPLE):
        for place in (0, 1):
            world.post(world.frame(entry, place), place)
    assert world.shuffle() == ["dropped", "dropped", ""]
    world.next_step()
    world.send(world.entries(PEOPLE))
    assert world.shuffle() == HANDED


def _without_an_id(receiver: int, topic: str, content: bytes) -> bytes:
    return content[:-16] if (receiver, topic) == (1, "ids") else content


def _random(receiver: int, topic: str, content: bytes) -> bytes:
    return content[:32] + Random(seed=1).bytes(len(content) - 32) if topic == "share 0" else content


def _not_in_the_group(receiver: int, topic: str, content: bytes) -> bytes:
    return content[:-256] + bytes(256) if topic == "hide 2" and len(content) > 256 * 24 else content


def _shorter(receiver: int, topic: str, content: bytes) -> bytes:
    return content[:-8] if topic == "share 0" else content


def _other_lists(receiver: int, topic: str, content: bytes) -> bytes:
    return bytes(32) + content[32:] if topic == "share 0" else content


def _ids_twice(receiver: int, topic: str, content: bytes) -> bytes:
    return content[:-16] + content[-32:-16] if topic == "ids" else content


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_without_an_id, "status 400"),
        (_not_in_the_group, "shares that can be read"),
        (_shorter, "shares that can be read"),
        (_other_lists, "the same lists of ids"),
        (_ids_twice, "a list of ids in their order, each once"),
    ],
)
def test_a_dishonest_shuffler_costs_its_batch_alone(change: Any, why: str) -> None:
    world = ShareWorld()
    cheating(world.hops[2], change)
    world.send(world.entries(PEOPLE))
    assert "dropped" in world.shuffle()
    world.clock.set(8 * HOUR + world.collection.lateness_seconds)
    world.tick()
    assert "listed" not in world.latest_states()  # whoever waits for a message gives up when the time is over
    assert any(why in note for note in world.notes()), world.notes()
    assert world.batch() is None
    world.hops[2] = world.hop(2)
    world.next_step()
    world.send(world.entries(PEOPLE))
    assert world.shuffle() == HANDED
    assert world.batch().n == 29


def test_garbage_shares_make_reports_random_and_spot_checks_find_it() -> None:
    """Who gives others random shares replaces all reports by random numbers: of the collector's own none comes back."""
    for change, lost in ((None, 0), (_random, 8)):
        world = ShareWorld()
        frame, uploads = world.collector.spot_check("survey", world.answer_name, 8, Random(seed=2))
        world.collector.ingest([frame])
        for at, upload in enumerate(uploads):
            assert world.post(upload, at % 3)["accepted"] == 1
        world.send(world.entries(PEOPLE))
        if change is not None:
            cheating(world.hops[2], change)
        assert world.shuffle() == HANDED
        assert (world.batch().checks, world.batch().lost) == (8, lost)
        assert world.batch().n == 29 + lost  # what came in their place cannot be told from other reports


def messages(world: ShareWorld, to: int) -> list[bytes]:
    return [body for who, _, path, body in world.seen if who == world.urls[to] and path == PATH and body is not None]


def post(world: ShareWorld, to: int, body: bytes) -> int:
    return world.to(world.urls[to]).request("POST", PATH, {}, body).status


def test_messages_are_taken_once_from_the_shuffler_that_signed_them() -> None:
    world = ShareWorld()
    world.send(world.entries(PEOPLE))
    world.down = {world.urls[2]}
    world.close()
    world.tick()
    world.tick()
    ids = messages(world, 1)[0]
    assert post(world, 1, ids) == 200  # the same bytes are acknowledged again
    message = decode_message(ids)
    own = world.keys[0].signing.private
    fresh = wrap(bytes(32), [world.keys[1].encryption.public], message.seal_name)
    assert post(world, 1, encode_message(msgspec.structs.replace(message, sealed=fresh).signed(own))) == 409
    other = msgspec.structs.replace(message, topic="seeds")
    assert post(world, 1, encode_message(other)) == 400  # signed for another topic
    forged = msgspec.structs.replace(message, sender=2)
    assert post(world, 1, encode_message(forged.signed(own))) == 400  # shuffler 0 cannot speak for shuffler 2
    assert post(world, 1, encode_message(msgspec.structs.replace(message, sender=1).signed(own))) == 400
    later = message.answer._replace(step=8)
    assert post(world, 1, encode_message(msgspec.structs.replace(message, answer=later))) == 400
    world.down = set()
    world.tick()
    assert post(world, 2, ids) == 400  # it is for shuffler 1
    for _ in range(40):
        world.tick()
    assert world.latest_states() == HANDED


@pytest.mark.parametrize(
    ("topic", "size", "status"),
    [("share 0", 0, 400), ("hide 9", 8 * 29, 400), ("nonsense", 8, 400), ("result", 8, 400), ("seeds", 65, 400)],
)
def test_only_messages_that_are_due_are_taken_up_to_their_size(topic: str, size: int, status: int) -> None:
    """To shuffler 1 from shuffler 0, who hides nothing before the last round."""
    world = ShareWorld()
    world.send(world.entries(PEOPLE))
    world.down = {world.urls[2]}
    world.close()
    world.tick()
    world.tick()
    message = decode_message(messages(world, 1)[0])
    sealed = wrap(bytes(32 + (size or 8 * 29 + 1)), [world.keys[1].encryption.public], "any")
    wrong = msgspec.structs.replace(message, topic=topic, sealed=sealed)
    assert post(world, 1, encode_message(wrong.signed(world.keys[0].signing.private))) == status
    assert post(world, 1, b"rubbish") == 400


def test_a_message_comes_neither_before_its_batch_is_closed_nor_after_its_end() -> None:
    world = ShareWorld()
    world.send(world.entries(PEOPLE))
    world.shuffle()
    first = messages(world, 1)[0]
    assert post(world, 1, first) == 200
    message = decode_message(first)
    late = msgspec.structs.replace(message, topic="later").signed(world.keys[0].signing.private)
    assert post(world, 1, encode_message(late)) == 410
    world.next_step()
    world.send(world.entries(PEOPLE))
    answer = message.answer._replace(step=int(world.clock.now() // 3600))
    early = msgspec.structs.replace(message, answer=answer).signed(world.keys[0].signing.private)
    assert post(world, 1, encode_message(early)) == 425


def delivered(world: ShareWorld) -> bytes:
    (body,) = {body for who, _, path, body in world.seen if (who, path) == ("collector", "/v1/shuffled")}
    assert body is not None
    return body


def test_the_collector_takes_one_whole_batch_that_all_shufflers_signed() -> None:
    world = ShareWorld()
    world.send(world.entries(PEOPLE))
    world.shuffle()
    body = delivered(world)
    batch, private = decode_shared(body), [keys.signing.private for keys in world.keys]

    def status(results: list[Any]) -> int:
        changed = encode_shared(msgspec.structs.replace(batch, results=results))
        return world.to("collector").request("POST", "/v1/shuffled", {}, changed).status

    def stated(place: int, *, signer: int | None = None, sealed: bytes | None = None, **changes: Any) -> list[Any]:
        result = batch.results[place]
        unsigned = msgspec.structs.replace(result.statement, **changes)
        statement = unsigned.signed(batch.name, place, private[place if signer is None else signer])
        changed = msgspec.structs.replace(result, statement=statement, sealed=sealed or result.sealed)
        return [*batch.results[:place], changed, *batch.results[place + 1 :]]

    assert world.to("collector").request("POST", "/v1/shuffled", {}, body).status == 200  # the same again
    assert status(stated(1)) == 200  # signatures are always the same
    for wrong in (
        batch.results[:2],
        batch.results[::-1],
        stated(1, signer=0),
        stated(1, sealed=batch.results[1].sealed[:-1] + b"x"),
        stated(1, fakes=0),
        stated(1, rows=23),
        stated(1, received=10),
        stated(1, lists=bytes(32)),
    ):
        assert status(wrong) == 400
    world.store.close()


def test_the_collector_refuses_results_of_too_few_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of shufflers that all go by another minimum than is signed."""

    def lax(place: int, route: ObliviousRoute, *given: Any) -> ShareRun:
        return ShareRun(place, ObliviousRoute.from_spec({**route.spec(), "least": 2}), *given)

    monkeypatch.setattr("hubbub.shuffler.share_states.ShareRun", lax)
    world = ShareWorld()
    world.send(world.entries(PEOPLE[:15]))
    assert world.shuffle() == ["dropped", "handed", "handed"]
    assert "status 422" in world.notes()[0]
    assert world.batch() is None


def test_keys_that_change_while_a_batch_gathers() -> None:
    world = ShareWorld()
    world.send(world.entries(PEOPLE))
    from hubbub.authoring import load_collection

    world.collection = load_collection(world.text(version=2, fakes=9))
    world.collector = world.collect()
    for hop in world.hops:
        hop.refresh()
    world.tick()
    assert world.latest_states() == DROPPED
    world.next_step()
    world.send(world.entries(PEOPLE))
    assert world.shuffle() == HANDED
    assert world.batch().fakes == 9


def test_what_a_shuffler_keeps_of_a_batch_that_is_over_are_ids_and_hashes() -> None:
    world = ShareWorld()
    world.send(world.entries(PEOPLE))
    world.shuffle()
    for store in world.stores:
        assert not any(store.run(f"SELECT 1 FROM {table}") for table in ("turns", "masks", "sending"))
        assert not store.run("SELECT 1 FROM messages WHERE sealed IS NOT NULL")
        assert not store.run("SELECT 1 FROM reports WHERE onion IS NOT NULL")
    world.clock.set(world.clock.now() + 3600)
    world.tick()
    assert not any(store.run("SELECT 1 FROM messages") for store in world.stores)


def test_masks_are_made_while_a_batch_gathers() -> None:
    world = ShareWorld()
    world.send(world.entries(PEOPLE))
    for _ in range(3):
        world.tick()
    made = [store.run("SELECT COUNT(*) FROM masks")[0][0] for store in world.stores]
    assert made == [0, 1, 1]  # shuffler 0 never hands ciphertexts on
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hubbub.shuffler.share_states.mask_chunk", None)  # none is made any more
        assert world.shuffle() == HANDED


def test_a_collector_without_the_key_that_is_signed_does_not_begin() -> None:
    world = ShareWorld()
    for key in (None, DGKPrivate.generate(2048)):
        world.homomorphic_key = key
        with pytest.raises(InvalidValue, match="homomorphic_key"):
            world.collect()
