"""`hubbub fold` and `hubbub estimate` on the files that a team's own ingest wrote from devices' uploads."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from hubbub.collection.names import AnswerName
from hubbub.mechanisms.base import ReportFormat
from hubbub.wire.batches import Batch, decode_batch, encode_batch, land
from hubbub.wire.upload import (
    Entry,
    Upload,
    decode_upload,
    decode_upload_json,
    encode_upload,
    encode_upload_json,
)
from tests.cli.commands import Hubbub

OLH = hb.OLH(epsilon=3.0, domain=["bath", "rye", "york"])
OPEN = {AnswerName("town", 0, step, 1, 0) for step in (7, 8)}


def mechanism_of(collection: str, version: int, name: AnswerName) -> ReportFormat | None:
    return OLH if (collection, version) == ("survey", 1) and name in OPEN else None


@pytest.fixture
def day(hubbub: Hubbub) -> Path:
    """What an ingest of one's own wrote of 300 uploads, 40 of which came twice."""
    towns = ["rye"] * 200 + ["bath"] * 100
    reports = OLH.randomize(towns, hb.Random(seed=1))
    entries = [
        Entry("town", 0, 7 + at % 2, 1, 0, at.to_bytes(16, "big"), reports[at : at + 1].to_bare()) for at in range(300)
    ]
    folder = hubbub.folder / "day"
    folder.mkdir()
    for number, some in enumerate((entries[:170], entries[130:])):
        frames = [decode_upload(encode_upload("survey", 1, [entry], 1024)) for entry in some]
        landed = land(frames, mechanism_of)
        assert landed.refused == []
        pq.write_table(pa.Table.from_batches([landed.rows]), folder / f"{number}.parquet")
    return folder


def test_uploads_become_sketches_and_estimates(hubbub: Hubbub, day: Path) -> None:
    folded = hubbub.answer("fold", day, "--out", "day.sketches")
    assert (folded["files"], folded["rows"], folded["reports"], folded["repeated"]) == (2, 340, 300, 40)
    assert [(ask["question"], ask["step"], ask["n"]) for ask in folded["asks"]] == [("town", 7, 150), ("town", 8, 150)]
    told = hubbub.answer("estimate", "day.sketches")
    assert told["left_out"] == {}
    for sketch in told["sketches"]:
        assert (sketch["mechanism"], sketch["n"], sketch["kind"]) == ("OLH", 150, "share")
        rows = {row["value"]: row for row in sketch["rows"]}
        # The standard error is below .06: five of them, fails once in 3 million.
        assert rows["rye"]["estimate"] == pytest.approx(2 / 3, abs=0.3)
        assert sketch["rows"][0]["value"] == "rye"
    text = hubbub.shown("estimate", "day.sketches", "--step", 8)
    assert "town, step 8: 150 reports through OLH, epsilon 3" in text
    assert "step 7" not in text
    assert "300 reports to 2 asks, from 2 files. 40 rows repeat an id." in hubbub.shown("fold", day, "-o", "again")
    assert (hubbub.folder / "again").read_bytes() == (hubbub.folder / "day.sketches").read_bytes()


def test_candidates_steps_and_specs_are_options(hubbub: Hubbub, day: Path) -> None:
    hubbub.write("towns", "york\nrye\n")
    hubbub.answer("fold", day, "--out", "few", "--candidates", "town=towns", "--steps", "7..7", "--question", "town")
    (sketch,) = hubbub.answer("estimate", "few")["sketches"]
    assert (sketch["step"], {row["value"] for row in sketch["rows"]}) == (7, {"york", "rye"})
    hubbub.write("specs.json", json.dumps([hb.GRR(epsilon=1.0, domain=3).spec()]))
    folded = hubbub.answer("fold", day, "--out", "none", "--specs", "specs.json")
    assert sum(reasons["unknown_spec"] for reasons in folded["left_out"].values()) == 300
    for wrong in (("--steps", "9..7"), ("--candidates", "towns"), ("--candidates", "town=nowhere")):
        assert hubbub.refused("fold", day, "--out", "x", *wrong)
    assert "--out FILE" in hubbub.refused("fold", day)


def test_reports_are_tested_and_intervals_hold_if_some_are_forged(hubbub: Hubbub, day: Path) -> None:
    hubbub.answer("fold", day, "--out", "day.sketches", "--screen")
    for sketch in hubbub.answer("estimate", "day.sketches", "--forged", 0.05)["sketches"]:
        assert 1e-3 < sketch["looks"]["p_value"] <= 1.0
        assert sketch["looks"]["test"] in ("total", "pairs")
        for row in sketch["rows"]:
            assert row["forged_low"] <= row["low"] <= row["high"] <= row["forged_high"]
    text = hubbub.shown("estimate", "day.sketches", "--forged", 0.05)
    assert "Genuine reports look as odd as these with a chance of" in text
    hubbub.answer("fold", day, "--out", "plain")
    assert {sketch["looks"]["test"] for sketch in hubbub.answer("estimate", "plain")["sketches"]} == {"total"}
    assert "of a column, no report is forged" in hubbub.refused(
        "estimate", "plain", "--column", "x", "--epsilon", 1, "--forged", 0.1
    )


def test_a_check_names_bad_rows_and_its_exit_code_says_so(hubbub: Hubbub, day: Path) -> None:
    assert hubbub.answer("fold", "--check", day)["files"][0]["left_out"] == {}
    table = pq.read_table(day / "0.parquet")
    reports = table.column("report").to_pylist()
    reports[5] = b"short"
    place = table.schema.get_field_index("report")
    pq.write_table(table.set_column(place, table.schema.field(place), pa.array([reports])[0].values), day / "0.parquet")
    result = hubbub("fold", "--check", day)
    assert result.exit_code == 1
    assert "malformed: 1 rows (5)" in result.stdout
    checked = hubbub.answer("fold", "--check", day, code=1)["files"][0]
    assert checked["left_out"] == {"malformed": {"rows": 1, "first": [5]}}


def test_a_file_that_is_none_is_refused(hubbub: Hubbub, day: Path) -> None:
    hubbub.write("text", "not sketches")
    assert "what `hubbub fold` wrote" in hubbub.refused("estimate", "text")
    assert "--epsilon" in hubbub.refused("estimate", "text", "--column", "x")
    hubbub.answer("fold", day, "--out", "sketches")
    assert "town, step 7; town, step 8" in hubbub.refused("estimate", "sketches", "--step", 9)


def test_every_form_of_an_upload_lands_and_what_cannot_be_read_is_refused() -> None:
    reports = OLH.randomize(["rye", "york", "bath"], hb.Random(seed=2))
    name = AnswerName("town", 0, 7, 1, 0)
    ids = [bytes([at]) * 16 for at in range(3)]
    entries = [Entry(*name, identity, reports[at : at + 1].to_bare()) for at, identity in enumerate(ids)]
    forms: list[list[Upload | Batch]] = [
        [decode_upload(encode_upload("survey", 1, entries, 2048))],
        [decode_upload_json(encode_upload_json("survey", 1, entries, 2048))],
        [decode_batch(encode_batch("survey", 1, name, b"".join(ids), reports))],
    ]
    landed = [land(frames, mechanism_of) for frames in forms]
    assert landed[0].rows.equals(landed[1].rows)
    assert landed[0].rows.equals(landed[2].rows)
    assert landed[0].rows.column("report").to_pylist() == [entry.report for entry in entries]

    closed, short = Entry("town", 0, 9, 1, 0, ids[0], entries[0].report), Entry(*name, ids[1], b"x")
    mixed = land([decode_upload(encode_upload("survey", 1, [closed, short, entries[2]], 2048))], mechanism_of)
    assert mixed.refused == [(ids[0].hex(), "unknown_ask"), (ids[1].hex(), "malformed")]
    assert mixed.rows.column("id").to_pylist() == [ids[2]]
    other = land([decode_batch(encode_batch("other", 1, name, b"".join(ids), reports))], mechanism_of)
    assert (other.rows.num_rows, len(other.refused)) == (0, 3)
