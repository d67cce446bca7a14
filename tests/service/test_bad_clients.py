"""Bad clients, by name: each is refused with its reason, which is counted, and nothing else changes."""

import base64
import gzip
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest

from hubbub import Random, Reports
from hubbub.collection.names import AnswerName
from hubbub.service.base.limits import RefusedRequest
from hubbub.service.collector.collector import Limits
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from hubbub.wire.upload import JSON_TYPE, UPLOAD_TYPE, Entry, encode_upload_json, json_size
from tests.service.web import Web, problem, website
from tests.shared.in_process import randomized

pack = msgspec.msgpack.encode
PUBLIC = "?"  # counted, but of no collection
MALFORMED = PUBLIC + "malformed"
MOST = 100_000

Make = Callable[[Web], Any]


class Bad(NamedTuple):
    """What is sent, and what must come back: a status, or 200 with the reason in it."""

    name: str
    kind: str
    make: Make
    reason: str
    status: int = 200
    counted: int = 1
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def slug(self) -> str:
        return "unsupported_type" if self.status == 415 else self.reason.removeprefix(PUBLIC)


CASES: list[Bad] = []


def bad(
    kind: str,
    reason: str,
    status: int = 200,
    makes: dict[str, Make] | None = None,
    /,
    *,
    counted: int = 1,
    headers: tuple[tuple[str, str], ...] = (),
    **more_makes: Make,
) -> None:
    """Clients that send a body of one kind each, and are refused alike."""
    for name, make in {**(makes or {}), **more_makes}.items():
        CASES.append(Bad(name, kind, make, reason, status, counted, headers))


bad_upload, bad_batch, bad_json = (partial(bad, kind, MALFORMED, 400) for kind in (UPLOAD_TYPE, BATCH_TYPE, JSON_TYPE))


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
    return padded(web, [parts["kind"], parts["collection"], parts["version"], entries, b""])


def padded(web: Web, parts: list[Any]) -> bytes:
    head = pack(parts)[:-2]
    room = web.collection.frame_bytes - len(head) - 5
    return head + b"\xc6" + room.to_bytes(4, "big") + bytes(room)


def unpadded(web: Web, entries: list[Any], padding: bytes = b"") -> bytes:
    return pack([1, web.collection.name, web.collection.version, entries, padding])


def report(column: Any = 1, dtype: str = "u1") -> bytes:
    """A report's values, and no more."""
    return np.asarray(column, dtype=dtype).tobytes()


def batch(web: Web, n: int = 3, **changed: Any) -> bytes:
    reports = changed.get("reports") or honest(web, n)
    ids = changed.get("ids", web.draw.bytes(16 * n))
    head = [changed.get("collection", web.collection.name), changed.get("version", web.collection.version)]
    name = {**web.name()._asdict(), **{key: changed[key] for key in AnswerName._fields if key in changed}}
    return pack([changed.get("kind", 2), *head, *name.values(), ids, changed.get("data", reports.to_bare())])


def honest(web: Web, n: int = 1) -> Reports:
    return randomized(web.ask(), [1] * n, web.draw)


def batch_of(web: Web, values: np.ndarray[Any, Any]) -> bytes:
    return batch(web, reports=Reports(web.ask().mechanism.spec_id, private={"value": values}))


def spelt(web: Web, **changed: Any) -> bytes:
    entry = web.entry()
    encoded = base64.b64encode(entry.report).decode()
    fields = {**entry.name._asdict(), "id": entry.report_id.hex(), "report": encoded}
    fields |= {key: value for key, value in changed.items() if key in fields or key in ("ask", "more")}
    document = {"collection": web.collection.name, "version": web.collection.version, "entries": [fields]}
    document |= {key: value for key, value in changed.items() if key in document or key in ("pad", "extra")}
    return json.dumps(document).encode()


# -- requests that are not uploads at all ----------------------------------------------------------------------

bad("", MALFORMED, 415, says_nothing_of_its_type=raw_upload)
bad("text/plain", MALFORMED, 415, sends_plain_text=raw_upload)
bad("application/x-www-form-urlencoded", MALFORMED, 415, sends_a_form=lambda web: b"a=1")
bad("application/octet-stream", MALFORMED, 415, sends_bytes_of_no_kind=raw_upload)
gzipped, brotli = (("Content-Encoding", "gzip"),), (("Content-Encoding", "br"),)
bad(UPLOAD_TYPE, MALFORMED, 415, sends_a_compressed_bomb=lambda web: gzip.compress(bytes(10_000_000)), headers=gzipped)
bad(UPLOAD_TYPE, MALFORMED, 415, claims_an_encoding=raw_upload, headers=brotli)

for kind, name in ((UPLOAD_TYPE, "upload"), (BATCH_TYPE, "batch"), (JSON_TYPE, "json")):
    null = b"null" if kind == JSON_TYPE else b"\xc0"
    bodies = {"an_empty": b"", "noise_as": Random(seed=9).bytes(1024), "zeros_as": bytes(1024), "null_as": null}
    constant: dict[str, Make] = {
        f"sends_{what}_{name}": partial(lambda body, web: body, body) for what, body in bodies.items()
    }
    bad(kind, MALFORMED, 400, constant)


def chunks(web: Web) -> Iterator[bytes]:
    for _ in range(MOST // 1000 + 1):
        yield bytes(1000)


bad_upload(
    sends_a_truncated_upload=lambda web: raw_upload(web)[:-1],
    sends_a_batch_as_an_upload=batch,
    sends_bytes_after_the_end=lambda web: raw_upload(web)[:-1] + b"\x00\x00",
    claims_four_billion_entries=lambda web: b"\x95\x03\xa6themes\x02\xdd\xff\xff\xff\xff",
    nests_msgpack_without_end=lambda web: b"\x91" * 50_000,
    pads_with_a_message=lambda web: raw_upload(web)[:-6] + b"secret",
)
bad_batch(
    sends_a_truncated_batch=lambda web: batch(web)[:-1],
    sends_an_upload_as_a_batch=raw_upload,
    claims_four_billion_bytes_of_ids=lambda web: (
        b"\x9a" + pack([2, web.collection.name, web.collection.version, *web.name()])[1:] + b"\xc6\xff\xff\xff\xff"
    ),
)
bad_json(
    sends_truncated_json=lambda web: spelt(web)[:-1],
    sends_an_upload_as_json=raw_upload,
    nests_json_without_end=lambda web: b"[" * 50_000,
    sends_a_json_array=lambda web: b"[1]",
    sends_json_in_another_alphabet=lambda web: spelt(web).decode().encode("utf-16"),
    adds_a_field_to_json=partial(spelt, extra=1),
    adds_a_field_to_an_entry=partial(spelt, more=1),
    pads_json_with_letters=partial(spelt, pad="secret"),
)
bad(
    UPLOAD_TYPE, PUBLIC + "too_large", 413, sends_too_much=lambda web: bytes(MOST + 1), sends_too_much_bit_by_bit=chunks
)

# -- uploads with something wrong in their head ----------------------------------------------------------------

WRONG_HEADS: dict[str, tuple[Any, ...]] = {
    "kind": (0, 2, 3, 4, -1, 1 << 63, "1", 1.0, None, [1]),
    "version": (0, -1, (1 << 31) + 1, 1 << 63, "2", 2.0, None, True, [2]),
    "question": ("", "Popular", "q" * 65, "pop ular", 7, None, b"popular"),
    "run": (-1, 1 << 31, "0", 0.0, None, False),
    "step": (-1, 1 << 53, "10", 10.0, None),
    "round": (0, -1, 1 << 31, "1", 1.0, True),
    "part": (-1, 1 << 31, "0", None),
    "id": (b"", bytes(15), bytes(17), bytes(32), "0" * 16),
}
for field, values in WRONG_HEADS.items():
    bad_upload({f"has_the_{field}_{value!r}": partial(raw_upload, **{field: value}) for value in values})


def more_entries_than_there_can_be(web: Web) -> bytes:
    frame = unpadded(web, [[*web.name()._replace(question="q"), bytes(16), b""]] * 4097)
    assert len(frame) > MOST
    return frame[:MOST]


bad_upload(
    shouts_its_collection=partial(raw_upload, collection="ABCDEF" + "0" * 26),
    names_its_collection_by_its_id=lambda web: raw_upload(web, collection="0" + web.collection.collection_id[1:]),
    speaks_as_they_did_before=lambda web: padded(
        web, [1, web.collection.collection_id, [[web.ask().ask_id, bytes(16), b"\x01"]], b""]
    ),
    names_its_collection_in_emoji=partial(raw_upload, collection="\N{GRINNING FACE}" * 32),
    sends_more_entries_than_there_can_be=more_entries_than_there_can_be,
)
bad_batch(
    sends_a_batch_that_says_it_is_an_upload=partial(batch, kind=1),
    relays_with_too_many_ids=partial(batch, ids=bytes(64)),
    relays_with_half_an_id=partial(batch, ids=bytes(47)),
    relays_nothing=partial(batch, ids=b"", data=b""),
    relays_noise_that_no_reports_can_be=lambda web: batch(web, data=web.draw.bytes(100)),
)
bad_json(
    has_an_id_that_is_no_number=partial(spelt, id="x" * 32),
    shouts_its_id=partial(spelt, id="A" * 32),
    spells_its_report_wrongly=partial(spelt, report="not base64!"),
    names_an_ask_by_its_id=lambda web: spelt(web, ask=web.ask().ask_id),
)
for reason, status, place, changed in (
    ("unknown_collection", 404, "an_unknown_collection", {"collection": "schemes"}),
    ("outdated_version", 410, "an_earlier_version", {"version": 1}),
    ("unknown_collection", 404, "a_later_version", {"version": 3}),
):
    bad(UPLOAD_TYPE, PUBLIC + reason, status, {f"belongs_to_{place}": partial(raw_upload, **changed)})
    bad(BATCH_TYPE, PUBLIC + reason, status, {f"relays_for_{place}": partial(batch, **changed)}, counted=3)
bad(UPLOAD_TYPE, "malformed", 400, does_not_pad=lambda web: unpadded(web, [raw(web.entry())]))
bad(UPLOAD_TYPE, "malformed", 400, pads_too_much=lambda web: unpadded(web, [raw(web.entry())], bytes(4096)))
bad(
    JSON_TYPE,
    "malformed",
    400,
    pads_json_too_much=lambda web: spelt(web, pad="0" * json_size(web.collection.frame_bytes)),
)
bad(
    UPLOAD_TYPE,
    "malformed",
    400,
    answers_two_hundred_times_in_one_frame=lambda web: unpadded(web, [raw(web.entry()) for _ in range(200)]),
    counted=200,
)

# -- reports that cannot be counted ----------------------------------------------------------------------------

bad(
    UPLOAD_TYPE,
    "unknown_ask",
    answers_an_ask_that_never_was=partial(raw_upload, question="unpopular"),
    answers_a_second_round_that_never_was=partial(raw_upload, round=2),
    answers_another_run=partial(raw_upload, run=1),
    answers_a_part=partial(raw_upload, part=1),
    answers_a_step_before_anything_was_asked=partial(raw_upload, step=9),
    answers_at_the_end_of_time=partial(raw_upload, step=(1 << 53) - 1, round=(1 << 31) - 1),
    answers_an_ask_far_ahead=partial(raw_upload, step=99),
)
bad(BATCH_TYPE, "unknown_ask", relays_to_an_ask_that_never_was=partial(batch, question="unpopular"), counted=3)
bad(UPLOAD_TYPE, "too_early", answers_the_next_step_already=partial(raw_upload, step=11))
bad(BATCH_TYPE, "too_early", relays_to_the_next_step_already=partial(batch, step=11), counted=3)


def after_the_close(make: Make, web: Web) -> bytes:
    body: bytes = make(web)
    web.wait_until(1110.0)
    return body


bad(UPLOAD_TYPE, "late", comes_after_the_close=partial(after_the_close, lambda web: web.frame(web.entry())))
bad(BATCH_TYPE, "late", relays_after_the_close=partial(after_the_close, batch), counted=3)
bad(
    UPLOAD_TYPE,
    "malformed",
    answers_another_question=lambda web: raw_upload(web, report=web.entry(value=50, ask=web.ask("old")).report),
    says_what_its_columns_are=lambda web: raw_upload(web, report=honest(web).to_bytes()),
    sends_an_empty_report=partial(raw_upload, report=b""),
    sends_noise_for_a_report=lambda web: raw_upload(web, report=web.draw.bytes(80)),
    truncates_its_report=partial(raw_upload, report=report()[:-1]),
    lengthens_its_report=partial(raw_upload, report=report() + b"\x00"),
    sends_two_reports_as_one=partial(raw_upload, report=report([1, 1])),
    sends_wider_numbers=partial(raw_upload, report=report(1, "u2")),
    sends_signed_numbers=partial(raw_upload, report=report(-1, "i1")),
    is_out_of_range=partial(raw_upload, report=report(3)),
    is_far_out_of_range=partial(raw_upload, report=report(255)),
    sends_a_sketch=lambda web: raw_upload(web, report=web.ask().mechanism.empty().to_bytes()),
)
bad(JSON_TYPE, "malformed", writes_its_bad_report_in_json=partial(spelt, report=base64.b64encode(b"hostile").decode()))


def columns_of_three(web: Web) -> bytes:
    three_reports = honest(web, 3).to_bytes()
    return batch(web, data=three_reports + bytes(-len(three_reports) % 3))


bad(
    BATCH_TYPE,
    "malformed",
    relays_noise=lambda web: batch(web, data=web.draw.bytes(99)),
    relays_answers_to_another_question=lambda web: batch(web, reports=randomized(web.ask("old"), [50.0] * 3, web.draw)),
    relays_what_its_columns_are=columns_of_three,
    relays_one_value_out_of_range=lambda web: batch_of(web, np.array([0, 1, 3], dtype=np.uint8)),
    relays_wider_numbers=lambda web: batch_of(web, np.array([0, 1, 1], dtype=np.uint64)),
    counted=3,
)
bad(BATCH_TYPE, "malformed", relays_with_too_few_ids=partial(batch, n=4, ids=bytes(32)), counted=2)
bad(
    UPLOAD_TYPE,
    "malformed",
    has_two_bad_entries=lambda web: raw_upload(
        web, entries=[[*web.name(), web.draw.bytes(16), report] for report in (b"hostile", b"")]
    ),
    counted=2,
)
bad(BATCH_TYPE, "over_quota", 429, sends_more_than_its_share=partial(batch, n=101), counted=101)


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
    body = case.make(web)
    if case.reason == "over_quota":
        web.post(BATCH_TYPE, batch(web, n=90))
    before, counts = web.state(), web.counts()
    answer = web.post(case.kind, body, **dict(case.headers))
    assert answer.status_code == case.status, answer.text
    if case.status == 200:
        document = answer.json()
        assert (document["accepted"], document["duplicates"]) == (0, 0)
        assert [rejection["reason"] for rejection in document["rejected"]] == [case.reason] * case.counted
    else:
        assert problem(answer) == case.slug
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
    changed = next(report(value) for value in (0, 1) if report(value) != first.report)
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


def test_a_good_report_is_counted_next_to_a_bad_one(shared: Web):
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

        other = next(candidate for candidate in (web.entry(1) for _ in range(99)) if candidate.report != faulty.report)
        frames = [web.collector.admit(UPLOAD_TYPE, web.frame(entry)) for entry in (faulty, other)]
        monkeypatch.setattr(type(web.ask().mechanism), "check", fails)
        bad, good = web.collector.ingest(frames)
        assert bad.rejected == [(faulty.report_id.hex(), "malformed")]
        assert (good.accepted, web.counts()) == (1, {"malformed": 1, "accepted": 1})


def test_a_frame_of_cover_holds_nothing(shared: Web):
    assert shared.post(UPLOAD_TYPE, shared.frame()).json() == {"accepted": 0, "duplicates": 0, "rejected": []}
