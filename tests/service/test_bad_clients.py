"""Bad clients, by name: each is refused with its reason, which is counted, and nothing else changes."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pytest

from hubbub import Random, Reports
from hubbub.collection.names import AnswerName
from hubbub.service.collector.collector import Limits
from hubbub.service.ingest.frames import RefusedRequest
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from hubbub.wire.upload import JSON_TYPE, UPLOAD_TYPE, Entry, encode_upload_json, json_size
from tests.service.web import Web, problem, website

pack = msgspec.msgpack.encode
PUBLIC = "?"  # counted, but of no collection
MOST = 100_000


@dataclass(frozen=True)
class Bad:
    """What is sent, and what must come back: a status, or 200 with the reason in it."""

    name: str
    make: Callable[[Web], tuple[str, Any]]
    reason: str
    status: int = 200
    slug: str | None = None
    counted: int = 1
    headers: tuple[tuple[str, str], ...] = ()


CASES: list[Bad] = []


def bad(reason: str, status: int = 200, **more: Any) -> Callable[[Any], Any]:
    def register(make: Callable[[Web], tuple[str, Any]]) -> Callable[[Web], tuple[str, Any]]:
        CASES.append(Bad(make.__name__, make, reason, status, **more))
        return make

    return register


def raw(entry: Entry) -> list[Any]:
    return [*entry.name, entry.report_id, entry.report]


def raw_upload(web: Web, **changed: Any) -> bytes:
    """An upload of one report, any part of it changed; padded to the right size if it can be."""
    entry = web.entry()
    parts = {
        "kind": 1,
        "collection": web.collection.name,
        "version": web.collection.version,
        **entry.name._asdict(),
        "id": entry.report_id,
        "report": entry.report,
        **changed,
    }
    entries = parts.get("entries", [[parts[key] for key in (*AnswerName._fields, "id", "report")]])
    head = pack([parts["kind"], parts["collection"], parts["version"], entries, b""])[:-2]
    room = web.collection.frame_bytes - len(head) - 5
    return head + b"\xc6" + room.to_bytes(4, "big") + bytes(room)


def report(web: Web, column: Any = 1, dtype: str = "u1") -> bytes:
    """A report's values, and no more."""
    return np.asarray(column, dtype=dtype).tobytes()


def batch(web: Web, n: int = 3, **changed: Any) -> bytes:
    ask = web.ask()
    reports = changed.get("reports") or ask.mechanism.randomize([1] * n, web.draw)
    ids = changed.get("ids", web.draw.bytes(16 * n))
    head = [changed.get("collection", web.collection.name), changed.get("version", web.collection.version)]
    name = {**web.name()._asdict(), **{key: changed[key] for key in AnswerName._fields if key in changed}}
    return pack([changed.get("kind", 2), *head, *name.values(), ids, changed.get("data", reports.to_bare())])


def spelt(web: Web, **changed: Any) -> bytes:
    entry = web.entry()
    encoded = base64.b64encode(entry.report).decode()
    fields = {**entry.name._asdict(), "id": entry.report_id.hex(), "report": encoded}
    fields |= {key: value for key, value in changed.items() if key in fields or key in ("ask", "more")}
    document = {"collection": web.collection.name, "version": web.collection.version, "entries": [fields]}
    document |= {key: value for key, value in changed.items() if key in document or key in ("pad", "extra")}
    return json.dumps(document).encode()


# -- requests that are not uploads at all ----------------------------------------------------------------------

unsupported = {"reason": PUBLIC + "malformed", "status": 415, "slug": "unsupported_type"}


@bad(**unsupported)
def says_nothing_of_its_type(web: Web):
    return "", raw_upload(web)


@bad(**unsupported)
def sends_plain_text(web: Web):
    return "text/plain", raw_upload(web)


@bad(**unsupported)
def sends_a_form(web: Web):
    return "application/x-www-form-urlencoded", b"a=1"


@bad(**unsupported)
def sends_bytes_of_no_kind(web: Web):
    return "application/octet-stream", raw_upload(web)


@bad(**unsupported, headers=(("Content-Encoding", "gzip"),))
def sends_a_compressed_bomb(web: Web):
    import gzip

    return UPLOAD_TYPE, gzip.compress(bytes(10_000_000))


@bad(**unsupported, headers=(("Content-Encoding", "br"),))
def claims_an_encoding(web: Web):
    return UPLOAD_TYPE, raw_upload(web)


for kind in (UPLOAD_TYPE, BATCH_TYPE, JSON_TYPE):
    name = kind.removeprefix("application/").removeprefix("vnd.hubbub.").partition("+")[0]
    wrong = {"reason": PUBLIC + "malformed", "status": 400}
    CASES += [
        Bad(f"sends_an_empty_{name}", lambda web, kind=kind: (kind, b""), **wrong),
        Bad(f"sends_noise_as_{name}", lambda web, kind=kind: (kind, Random(seed=9).bytes(1024)), **wrong),
        Bad(f"sends_zeros_as_{name}", lambda web, kind=kind: (kind, bytes(1024)), **wrong),
        Bad(f"sends_null_as_{name}", lambda web, kind=kind: (kind, b"null" if kind == JSON_TYPE else b"\xc0"), **wrong),
    ]


@bad(PUBLIC + "malformed", 400)
def sends_a_truncated_upload(web: Web):
    return UPLOAD_TYPE, raw_upload(web)[:-1]


@bad(PUBLIC + "malformed", 400)
def sends_a_truncated_batch(web: Web):
    return BATCH_TYPE, batch(web)[:-1]


@bad(PUBLIC + "malformed", 400)
def sends_truncated_json(web: Web):
    return JSON_TYPE, spelt(web)[:-1]


@bad(PUBLIC + "malformed", 400)
def sends_an_upload_as_a_batch(web: Web):
    return BATCH_TYPE, raw_upload(web)


@bad(PUBLIC + "malformed", 400)
def sends_a_batch_as_an_upload(web: Web):
    return UPLOAD_TYPE, batch(web)


@bad(PUBLIC + "malformed", 400)
def sends_an_upload_as_json(web: Web):
    return JSON_TYPE, raw_upload(web)


@bad(PUBLIC + "malformed", 400)
def sends_bytes_after_the_end(web: Web):
    return UPLOAD_TYPE, raw_upload(web)[:-1] + b"\x00\x00"


@bad(PUBLIC + "malformed", 400)
def claims_four_billion_entries(web: Web):
    return UPLOAD_TYPE, b"\x95\x03\xa6themes\x02\xdd\xff\xff\xff\xff"


@bad(PUBLIC + "malformed", 400)
def claims_four_billion_bytes_of_ids(web: Web):
    head = pack([2, web.collection.name, web.collection.version, *web.name()])[1:]
    return BATCH_TYPE, b"\x9a" + head + b"\xc6\xff\xff\xff\xff"


@bad(PUBLIC + "malformed", 400)
def nests_msgpack_without_end(web: Web):
    return UPLOAD_TYPE, b"\x91" * 50_000


@bad(PUBLIC + "malformed", 400)
def nests_json_without_end(web: Web):
    return JSON_TYPE, b"[" * 50_000


@bad(PUBLIC + "malformed", 400)
def sends_a_json_array(web: Web):
    return JSON_TYPE, b"[1]"


@bad(PUBLIC + "malformed", 400)
def sends_json_in_another_alphabet(web: Web):
    return JSON_TYPE, spelt(web).decode().encode("utf-16")


@bad(PUBLIC + "malformed", 400)
def adds_a_field_to_json(web: Web):
    return JSON_TYPE, spelt(web, extra=1)


@bad(PUBLIC + "malformed", 400)
def adds_a_field_to_an_entry(web: Web):
    return JSON_TYPE, spelt(web, more=1)


@bad(PUBLIC + "malformed", 400)
def pads_json_with_letters(web: Web):
    return JSON_TYPE, spelt(web, pad="secret")


@bad(PUBLIC + "malformed", 400)
def pads_with_a_message(web: Web):
    return UPLOAD_TYPE, raw_upload(web)[:-6] + b"secret"


@bad(PUBLIC + "too_large", 413)
def sends_too_much(web: Web):
    return UPLOAD_TYPE, bytes(MOST + 1)


@bad(PUBLIC + "too_large", 413)
def sends_too_much_bit_by_bit(web: Web):
    def chunks() -> Iterator[bytes]:
        for _ in range(MOST // 1000 + 1):
            yield bytes(1000)

    return UPLOAD_TYPE, chunks()


# -- uploads with something wrong in their head ----------------------------------------------------------------

for kind in (0, 2, 3, 4, -1, 1 << 63, "1", 1.0, None, [1]):
    CASES.append(
        Bad(
            f"speaks_format_{kind}",
            lambda web, kind=kind: (UPLOAD_TYPE, raw_upload(web, kind=kind)),
            PUBLIC + "malformed",
            400,
        )
    )

for version in (0, -1, (1 << 31) + 1, 1 << 63, "2", 2.0, None, True, [2]):
    CASES.append(
        Bad(
            f"is_of_version_{version}",
            lambda web, version=version: (UPLOAD_TYPE, raw_upload(web, version=version)),
            PUBLIC + "malformed",
            400,
        )
    )

for field, value in (
    *(("question", value) for value in ("", "Popular", "q" * 65, "pop ular", 7, None, b"popular")),
    *(("run", value) for value in (-1, 1 << 31, "0", 0.0, None, False)),
    *(("step", value) for value in (-1, 1 << 53, "10", 10.0, None)),
    *(("round", value) for value in (0, -1, 1 << 31, "1", 1.0, True)),
    *(("part", value) for value in (-1, 1 << 31, "0", None)),
):
    CASES.append(
        Bad(
            f"has_the_{field}_{value!r}",
            lambda web, field=field, value=value: (UPLOAD_TYPE, raw_upload(web, **{field: value})),
            PUBLIC + "malformed",
            400,
        )
    )


@bad(PUBLIC + "malformed", 400)
def sends_a_batch_that_says_it_is_an_upload(web: Web):
    return BATCH_TYPE, batch(web, kind=1)


@bad(PUBLIC + "malformed", 400)
def shouts_its_collection(web: Web):
    return UPLOAD_TYPE, raw_upload(web, collection="ABCDEF" + "0" * 26)


@bad(PUBLIC + "malformed", 400)
def names_its_collection_by_its_id(web: Web):
    return UPLOAD_TYPE, raw_upload(web, collection="0" + web.collection.collection_id[1:])


@bad(PUBLIC + "malformed", 400)
def speaks_as_they_did_before(web: Web):
    head = pack([1, web.collection.collection_id, [[web.ask().ask_id, bytes(16), b"\x01"]], b""])[:-2]
    room = web.collection.frame_bytes - len(head) - 5
    return UPLOAD_TYPE, head + b"\xc6" + room.to_bytes(4, "big") + bytes(room)


@bad(PUBLIC + "malformed", 400)
def names_its_collection_in_emoji(web: Web):
    return UPLOAD_TYPE, raw_upload(web, collection="\N{GRINNING FACE}" * 32)


@bad(PUBLIC + "unknown_collection", 404)
def belongs_to_an_unknown_collection(web: Web):
    return UPLOAD_TYPE, raw_upload(web, collection="schemes")


@bad(PUBLIC + "unknown_collection", 404, counted=3)
def relays_for_an_unknown_collection(web: Web):
    return BATCH_TYPE, batch(web, collection="schemes")


@bad(PUBLIC + "outdated_version", 410)
def belongs_to_an_earlier_version(web: Web):
    return UPLOAD_TYPE, raw_upload(web, version=1)


@bad(PUBLIC + "outdated_version", 410, counted=3)
def relays_for_an_earlier_version(web: Web):
    return BATCH_TYPE, batch(web, version=1)


@bad(PUBLIC + "unknown_collection", 404)
def belongs_to_a_later_version(web: Web):
    return UPLOAD_TYPE, raw_upload(web, version=3)


@bad(PUBLIC + "unknown_collection", 404, counted=3)
def relays_for_a_later_version(web: Web):
    return BATCH_TYPE, batch(web, version=3)


@bad("malformed", 400)
def does_not_pad(web: Web):
    return UPLOAD_TYPE, pack([1, web.collection.name, web.collection.version, [raw(web.entry())], b""])


@bad("malformed", 400)
def pads_too_much(web: Web):
    return UPLOAD_TYPE, pack([1, web.collection.name, web.collection.version, [raw(web.entry())], bytes(4096)])


@bad("malformed", 400)
def pads_json_too_much(web: Web):
    return JSON_TYPE, spelt(web, pad="0" * json_size(web.collection.frame_bytes))


@bad("malformed", 400, counted=200)
def answers_two_hundred_times_in_one_frame(web: Web):
    entries = [raw(web.entry()) for _ in range(200)]
    return UPLOAD_TYPE, pack([1, web.collection.name, web.collection.version, entries, b""])


@bad(PUBLIC + "malformed", 400)
def sends_more_entries_than_there_can_be(web: Web):
    entry = [*web.name()._replace(question="q"), bytes(16), b""]
    frame = pack([1, web.collection.name, web.collection.version, [entry] * 4097, b""])
    assert len(frame) > MOST
    return UPLOAD_TYPE, frame[:MOST]


for size in (0, 15, 17, 32):
    CASES.append(
        Bad(
            f"has_an_id_of_{size}_bytes",
            lambda web, size=size: (UPLOAD_TYPE, raw_upload(web, id=bytes(size))),
            PUBLIC + "malformed",
            400,
        )
    )


@bad(PUBLIC + "malformed", 400)
def has_an_id_that_is_text(web: Web):
    return UPLOAD_TYPE, raw_upload(web, id="0" * 16)


@bad(PUBLIC + "malformed", 400)
def has_an_id_that_is_no_number(web: Web):
    return JSON_TYPE, spelt(web, id="x" * 32)


@bad(PUBLIC + "malformed", 400)
def shouts_its_id(web: Web):
    return JSON_TYPE, spelt(web, id="A" * 32)


@bad(PUBLIC + "malformed", 400)
def spells_its_report_wrongly(web: Web):
    return JSON_TYPE, spelt(web, report="not base64!")


@bad(PUBLIC + "malformed", 400)
def names_an_ask_by_its_id(web: Web):
    return JSON_TYPE, spelt(web, ask=web.ask().ask_id)


@bad("malformed", counted=2)
def relays_with_too_few_ids(web: Web):
    return BATCH_TYPE, batch(web, n=4, ids=bytes(32))


@bad(PUBLIC + "malformed", 400)
def relays_with_too_many_ids(web: Web):
    return BATCH_TYPE, batch(web, ids=bytes(64))


@bad(PUBLIC + "malformed", 400)
def relays_with_half_an_id(web: Web):
    return BATCH_TYPE, batch(web, ids=bytes(47))


@bad(PUBLIC + "malformed", 400)
def relays_nothing(web: Web):
    return BATCH_TYPE, batch(web, ids=b"", data=b"")


@bad("malformed", counted=3)
def relays_noise(web: Web):
    return BATCH_TYPE, batch(web, data=web.draw.bytes(99))


@bad(PUBLIC + "malformed", 400)
def relays_noise_that_no_reports_can_be(web: Web):
    return BATCH_TYPE, batch(web, data=web.draw.bytes(100))


# -- reports that cannot be counted ----------------------------------------------------------------------------


@bad("unknown_ask")
def answers_an_ask_that_never_was(web: Web):
    return UPLOAD_TYPE, raw_upload(web, question="unpopular")


@bad("unknown_ask")
def answers_a_second_round_that_never_was(web: Web):
    return UPLOAD_TYPE, raw_upload(web, round=2)


@bad("unknown_ask")
def answers_another_run(web: Web):
    return UPLOAD_TYPE, raw_upload(web, run=1)


@bad("unknown_ask")
def answers_a_part(web: Web):
    return UPLOAD_TYPE, raw_upload(web, part=1)


@bad("unknown_ask")
def answers_a_step_before_anything_was_asked(web: Web):
    return UPLOAD_TYPE, raw_upload(web, step=9)


@bad("unknown_ask")
def answers_at_the_end_of_time(web: Web):
    return UPLOAD_TYPE, raw_upload(web, step=(1 << 53) - 1, round=(1 << 31) - 1)


@bad("unknown_ask", counted=3)
def relays_to_an_ask_that_never_was(web: Web):
    return BATCH_TYPE, batch(web, question="unpopular")


@bad("unknown_ask")
def answers_an_ask_far_ahead(web: Web):
    return UPLOAD_TYPE, raw_upload(web, step=99)


@bad("too_early")
def answers_the_next_step_already(web: Web):
    return UPLOAD_TYPE, raw_upload(web, step=11)


@bad("too_early", counted=3)
def relays_to_the_next_step_already(web: Web):
    return BATCH_TYPE, batch(web, step=11)


@bad("late")
def comes_after_the_close(web: Web):
    entry = web.entry()
    web.wait_until(1110.0)
    return UPLOAD_TYPE, web.frame(entry)


@bad("late", counted=3)
def relays_after_the_close(web: Web):
    body = batch(web)
    web.wait_until(1110.0)
    return BATCH_TYPE, body


@bad("malformed")
def answers_another_question(web: Web):
    other = web.entry(value=50, ask=web.ask("old"))
    return UPLOAD_TYPE, raw_upload(web, report=other.report)


@bad("malformed", counted=3)
def relays_answers_to_another_question(web: Web):
    other = web.ask("old").mechanism.randomize([50.0] * 3, web.draw)
    return BATCH_TYPE, batch(web, reports=other)


@bad("malformed")
def says_what_its_columns_are(web: Web):
    return UPLOAD_TYPE, raw_upload(web, report=web.ask().mechanism.randomize([1], web.draw).to_bytes())


@bad("malformed", counted=3)
def relays_what_its_columns_are(web: Web):
    three_reports = Reports.concat([web.ask().mechanism.randomize([1], web.draw)] * 3).to_bytes()
    return BATCH_TYPE, batch(web, data=three_reports + bytes(-len(three_reports) % 3))


@bad("malformed")
def sends_an_empty_report(web: Web):
    return UPLOAD_TYPE, raw_upload(web, report=b"")


@bad("malformed")
def sends_noise_for_a_report(web: Web):
    return UPLOAD_TYPE, raw_upload(web, report=web.draw.bytes(80))


@bad("malformed")
def truncates_its_report(web: Web):
    return UPLOAD_TYPE, raw_upload(web, report=report(web)[:-1])


@bad("malformed")
def lengthens_its_report(web: Web):
    return UPLOAD_TYPE, raw_upload(web, report=report(web) + b"\x00")


@bad("malformed")
def sends_two_reports_as_one(web: Web):
    return UPLOAD_TYPE, raw_upload(web, report=report(web, [1, 1]))


@bad("malformed")
def sends_wider_numbers(web: Web):
    return UPLOAD_TYPE, raw_upload(web, report=report(web, 1, "u2"))


@bad("malformed")
def sends_signed_numbers(web: Web):
    return UPLOAD_TYPE, raw_upload(web, report=report(web, -1, "i1"))


@bad("malformed")
def is_out_of_range(web: Web):
    return UPLOAD_TYPE, raw_upload(web, report=report(web, 3))


@bad("malformed")
def is_far_out_of_range(web: Web):
    return UPLOAD_TYPE, raw_upload(web, report=report(web, 255))


@bad("malformed", counted=3)
def relays_one_value_out_of_range(web: Web):
    mechanism = web.ask().mechanism
    return BATCH_TYPE, batch(web, reports=Reports(mechanism.spec_id, private={"value": np.uint8([0, 1, 3])}))


@bad("malformed", counted=3)
def relays_wider_numbers(web: Web):
    mechanism = web.ask().mechanism
    return BATCH_TYPE, batch(web, reports=Reports(mechanism.spec_id, private={"value": np.uint64([0, 1, 1])}))


@bad("malformed")
def sends_a_sketch(web: Web):
    return UPLOAD_TYPE, raw_upload(web, report=web.ask().mechanism.empty().to_bytes())


@bad("malformed", counted=2)
def has_two_bad_entries(web: Web):
    entry = [*web.name(), web.draw.bytes(16), b"hostile"]
    other = [*web.name(), web.draw.bytes(16), b""]
    return UPLOAD_TYPE, raw_upload(web, entries=[entry, other])


@bad("malformed")
def writes_its_bad_report_in_json(web: Web):
    return JSON_TYPE, spelt(web, report=base64.b64encode(b"hostile").decode())


@bad("over_quota", 429, counted=101)
def sends_more_than_its_share(web: Web):
    return BATCH_TYPE, batch(web, n=101)


def test_there_are_enough_of_them():
    assert len({case.name for case in CASES}) == len(CASES)
    assert len(CASES) >= 100


@pytest.fixture(scope="module")
def shared() -> Iterator[Web]:
    with website(Limits(most_bytes=MOST, rate=1e9, burst=1 << 30)) as web:
        good(web)
        yield web


def good(web: Web) -> None:
    """Some honest reports, so that there is a state to be spoilt."""
    answer = web.post(UPLOAD_TYPE, web.frame(*(web.entry(value) for value in (0, 1, 2))))
    assert answer.json() == {"accepted": 3, "duplicates": 0, "rejected": []}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_bad_client_is_refused_and_changes_nothing(case: Bad, shared: Web):
    if case.reason in ("late", "over_quota"):  # these move the clock, or need a quota
        with website(Limits(most_bytes=MOST, rate=1.0, burst=100)) as web:
            good(web)
            attack(case, web)
    else:
        attack(case, shared)


def attack(case: Bad, web: Web) -> None:
    kind, body = case.make(web)
    if case.reason == "over_quota":
        web.post(BATCH_TYPE, batch(web, n=90))
    before, counts = web.state(), web.counts()
    answer = web.post(kind, body, **dict(case.headers))
    reason = case.reason.removeprefix(PUBLIC)
    assert answer.status_code == case.status, answer.text
    if case.status == 200:
        document = answer.json()
        assert (document["accepted"], document["duplicates"]) == (0, 0)
        assert [rejection["reason"] for rejection in document["rejected"]] == [reason] * case.counted
    else:
        assert problem(answer) == (case.slug or reason)
    assert web.state() == before
    after = web.counts()
    assert {key: after[key] - counts.get(key, 0) for key in after if after[key] != counts.get(key, 0)} == {
        case.reason: case.counted
    }
    assert web.service.ready


def test_a_replay_is_refused_and_a_duplicate_is_no_fault(shared: Web):
    first, second = shared.entry(0), shared.entry(1)
    shared.post(UPLOAD_TYPE, shared.frame(first))
    before, counts = shared.state(), shared.counts()
    again = shared.post(UPLOAD_TYPE, shared.frame(first)).json()
    assert again == {"accepted": 0, "duplicates": 1, "rejected": []}
    changed = next(report(shared, value) for value in (0, 1) if report(shared, value) != first.report)
    forged = msgspec.structs.replace(first, report=changed)
    answer = shared.post(UPLOAD_TYPE, shared.frame(forged)).json()
    assert answer["rejected"] == [{"id": first.report_id.hex(), "reason": "replay"}]
    assert shared.state() == before
    assert shared.counts()["duplicate"] == counts.get("duplicate", 0) + 1
    assert shared.counts()["replay"] == counts.get("replay", 0) + 1
    both = shared.post(UPLOAD_TYPE, shared.frame(second, second)).json()
    assert both == {"accepted": 1, "duplicates": 1, "rejected": []}
    place = shared.collection.name, shared.collection.version
    spelt_out = encode_upload_json(*place, [second], shared.collection.frame_bytes)
    assert shared.post(JSON_TYPE, spelt_out).json()["duplicates"] == 1
    alone = encode_batch(*place, second.name, second.report_id, second.reports(shared.ask().mechanism))
    assert shared.post(BATCH_TYPE, alone).json()["duplicates"] == 1


def test_a_good_report_is_counted_beside_a_bad_one(shared: Web):
    entry = shared.entry(1)
    entries = [raw(entry), [*entry.name, bytes(16), b"hostile"]]
    answer = shared.post(UPLOAD_TYPE, raw_upload(shared, entries=entries)).json()
    assert answer == {"accepted": 1, "duplicates": 0, "rejected": [{"id": "00" * 16, "reason": "malformed"}]}


def test_a_request_that_is_too_large_is_refused_unread(shared: Web):
    """Also where no limit of a body came first."""
    collector = shared.collector
    with pytest.raises(RefusedRequest, match="too_large"):
        collector.admit(UPLOAD_TYPE, bytes(collector.limits.most_bytes + 1))
    with pytest.raises(RefusedRequest, match="too_large"):
        collector.admit_shuffled(bytes(collector.limits.shuffled_bytes + 1))


def test_a_body_of_unknown_length_is_not_read_to_its_end(shared: Web):
    read: list[int] = []

    def chunks() -> Iterator[bytes]:
        for number in range(100):
            read.append(number)
            yield bytes(MOST // 4)

    answer = shared.client.post("/v1/reports", content=chunks(), headers={"Content-Type": UPLOAD_TYPE})
    assert (answer.status_code, problem(answer)) == (413, "too_large")
    assert len(read) < 10


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "HEAD"])
def test_other_methods_are_not_allowed(method: str, shared: Web):
    answer = shared.client.request(method, "/v1/reports")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST, OPTIONS"


def test_any_web_page_may_send_reports(shared: Web):
    answer = shared.client.request("OPTIONS", "/v1/reports", headers={"Origin": "https://page.example"})
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-allow-headers"] == "content-type"
    assert shared.post(UPLOAD_TYPE, shared.frame()).headers["access-control-allow-origin"] == "*"
    assert shared.post(UPLOAD_TYPE, b"hostile").headers["access-control-allow-origin"] == "*"


def test_a_fault_of_the_collector_costs_one_request_and_not_its_neighbours(monkeypatch: pytest.MonkeyPatch):
    with website() as web:
        faulty = web.entry(0)
        check = type(web.ask().mechanism).check

        def fails(self: Any, reports: Reports) -> None:
            if faulty.report in [reports[row : row + 1].to_bare() for row in range(len(reports))]:
                raise ZeroDivisionError
            check(self, reports)

        other = next(one for one in (web.entry(1) for _ in range(99)) if one.report != faulty.report)
        frames = [web.collector.admit(UPLOAD_TYPE, web.frame(entry)) for entry in (faulty, other)]
        monkeypatch.setattr(type(web.ask().mechanism), "check", fails)
        bad, good = web.collector.ingest(frames)
        assert bad.rejected == [(faulty.report_id.hex(), "malformed")]
        assert (good.accepted, web.counts()) == (1, {"malformed": 1, "accepted": 1})


def test_a_frame_of_cover_holds_nothing(shared: Web):
    assert shared.post(UPLOAD_TYPE, shared.frame()).json() == {"accepted": 0, "duplicates": 0, "rejected": []}
