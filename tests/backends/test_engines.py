"""Every engine that runs `fold` and `merge` has the same bytes, for every mechanism, whatever stands in the rows."""

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from hubbub.backends.file_fold import fold_files
from hubbub.backends.folding import Folded, FoldPlan, fold, merge, read_plan
from hubbub.backends.report_files import SketchKey, archive_table, landing_batch, row_bytes
from hubbub.backends.report_rows import MOST_WEIGHT
from hubbub.core.errors import DecodeError, InvalidValue, SpecMismatch
from hubbub.core.reports import Reports
from hubbub.core.spec import canonical
from hubbub.mechanisms.base import ReportFormat
from tests.shared.report_rows import BAD, EVERY, rows_of, some_reports, with_bad_rows

Engine = Callable[[list[pa.RecordBatch], str, Path], bytes]
OLH = hb.OLH(epsilon=1.0, domain=5)


def _reduced(batches: list[pa.RecordBatch], plan: str, folder: Path, pool: Executor | None = None) -> bytes:
    each = (map if pool is None else pool.map)(partial(fold, plan=plan), batches)
    return reduce(merge, each)


def _backwards(batches: list[pa.RecordBatch], plan: str, folder: Path) -> bytes:
    parts = [fold(batch.slice(at, 1), plan) for batch in batches[::-1] for at in range(batch.num_rows)][::-1]
    while len(parts) > 1:  # a tree
        parts = [reduce(merge, parts[at : at + 3]) for at in range(0, len(parts), 3)]
    return parts[0]


def _parquet(batches: list[pa.RecordBatch], plan: str, folder: Path) -> bytes:
    for number, batch in enumerate(batches):
        pq.write_table(pa.Table.from_batches([batch]), folder / f"{number}.parquet", row_group_size=7)
    fold_files([str(folder)], read_plan(plan), folder / "day.sketches")
    return (folder / "day.sketches").read_bytes()


def _ipc(batches: list[pa.RecordBatch], plan: str, folder: Path) -> bytes:
    for number, batch in enumerate(batches):
        with pa.ipc.new_file(str(folder / f"{number}.arrow"), batch.schema) as file:
            file.write(batch)
    fold_files([folder.as_uri()], read_plan(plan), folder / "day.sketches", cores=1)
    return (folder / "day.sketches").read_bytes()


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, Engine]]:
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(2, mp_context=context) as processes, ThreadPoolExecutor(2) as threads:
        yield {
            "local": _reduced,
            "rows, in a tree": _backwards,
            "threads": partial(_reduced, pool=threads),
            "processes": partial(_reduced, pool=processes),
            "Parquet": _parquet,
            "Arrow IPC": _ipc,
        }


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda each: type(each).__name__)
def test_every_engine_has_the_same_bytes(mechanism: ReportFormat, engines: dict[str, Engine], tmp_path: Path) -> None:
    rows, groups = rows_of(mechanism)
    whole = with_bad_rows(rows, mechanism)
    batches = [whole.slice(0, 30), whole.slice(30, 0), whole.slice(30)]
    results = {}
    for name, engine in engines.items():
        folder = tmp_path / name
        folder.mkdir()
        results[name] = engine(batches, FoldPlan().to_json(), folder)
    folded = Folded.from_bytes(results["local"])
    assert folded.sketches == {key: mechanism.accumulate(reports) for key, reports in groups.items()}
    assert folded.left_out == BAD
    assert {name: data == results["local"] for name, data in results.items()} == dict.fromkeys(results, True)


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda each: type(each).__name__)
def test_archives_have_the_same_sketches_as_landing_files(mechanism: ReportFormat, tmp_path: Path) -> None:
    rows, groups = rows_of(mechanism)
    for number, (key, reports) in enumerate(groups.items()):
        pq.write_table(archive_table(key, mechanism, reports), tmp_path / f"{number}.parquet", row_group_size=40)
    result = fold_files([str(tmp_path)], FoldPlan(), tmp_path / "sketches")
    assert result.folded.to_bytes() == fold(landing_batch(rows, [mechanism]), FoldPlan().to_json())


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda each: type(each).__name__)
def test_values_that_no_client_sends_are_left_out(mechanism: ReportFormat) -> None:
    """Random bytes: whatever the mechanism refuses is left out, and the good reports around it are counted."""
    reports = some_reports(mechanism, 6)
    key = SketchKey("survey", 1, "theme", 0, 1, 1, 0, mechanism.spec_id)
    noise = np.random.default_rng(3).bytes(mechanism.report_bytes * 30)
    accepted, bad = [reports], 0
    for at in range(30):
        single = mechanism.read_bare(noise[at * mechanism.report_bytes : (at + 1) * mechanism.report_bytes])
        try:
            mechanism.check(single)
            accepted.append(single)
        except InvalidValue:
            bad += 1
    raw = [noise[at * mechanism.report_bytes : (at + 1) * mechanism.report_bytes] for at in range(30)]
    mixed = [*raw[:10], *row_bytes(mechanism, reports), *raw[10:]]
    batch = landing_batch([(key, bytes([at]) * 16, each) for at, each in enumerate(mixed)], [mechanism])
    folded = Folded.from_bytes(fold(batch, FoldPlan().to_json()))
    assert folded.sketches == {key: mechanism.accumulate(Reports.concat(accepted))}
    assert folded.left_out == ({"malformed": bad} if bad else {})


def test_reports_of_another_spec_than_the_plan_lists_are_left_out() -> None:
    rows, _ = rows_of(OLH)
    other = hb.OLH(epsilon=1.0, domain=6)
    plan = FoldPlan(specs={other.spec_id: other.spec()}).to_json()
    folded = Folded.from_bytes(fold(landing_batch(rows, [OLH]), plan))
    assert (folded.sketches, folded.left_out) == ({}, {"unknown_spec": 65})
    key, reports = next(iter(rows_of(OLH)[1].items()))
    (archive,) = archive_table(key, OLH, reports).to_batches()
    assert Folded.from_bytes(fold(archive, plan)).left_out == {"unknown_spec": 60}
    with pytest.raises(InvalidValue, match="the id of this spec"):
        FoldPlan(specs={other.spec_id: OLH.spec()}).read(archive)


def test_a_plan_takes_some_questions_and_steps() -> None:
    rows, groups = rows_of(OLH)
    rows += [(key._replace(question="colour"), identity, report) for key, identity, report in rows]
    batch = landing_batch(rows, [OLH])
    for plan, wanted in (
        (FoldPlan(questions=("theme",)), set(groups)),
        (FoldPlan(questions=("theme",), first=2, last=2), {key for key in groups if key.step == 2}),
        (FoldPlan(last=0), set()),
    ):
        folded = Folded.from_bytes(fold(batch, plan.to_json()))
        assert set(folded.sketches) == wanted
        assert folded.left_out == {}, "what is not asked for is not bad"


def test_supports_of_candidates_and_weights_are_those_of_the_mechanism() -> None:
    rows, groups = rows_of(OLH)
    key, reports = next(iter(groups.items()))
    plan = FoldPlan(candidates={"theme": [4, "1"]})
    halves = [fold(landing_batch(part, [OLH]), plan.to_json()) for part in (rows[:20], rows[20:])]
    folded = Folded.from_bytes(merge(*halves))
    assert folded.sketches[key] == OLH.support(reports, [4, 1])
    assert folded.estimate(key).value.tolist() == OLH.estimate(OLH.support(reports, [4, 1]), [4, 1]).value.tolist()
    with pytest.raises(SpecMismatch, match="candidates"):
        merge(halves[0], fold(landing_batch(rows, [OLH]), FoldPlan().to_json()))

    weights = [*range(-30, 34), None, MOST_WEIGHT + 1]
    mine = [(key, bytes([at]) * 16, each) for at, each in enumerate(row_bytes(OLH, some_reports(OLH, 66)))]
    batch = landing_batch(mine, [OLH]).append_column("worth", pa.array(weights, pa.int32()))
    for plan, candidates in (
        (FoldPlan(weight="worth"), list(range(5))),
        (FoldPlan(weight="worth", candidates={"theme": [3]}), [3]),
    ):
        folded = Folded.from_bytes(fold(batch, plan.to_json()))
        expected = OLH.support(some_reports(OLH, 66)[:64], candidates, np.arange(-30, 34))
        assert folded.sketches == {key: expected}
        assert folded.left_out == {"bad_weight": 2}
        assert folded.estimate(key).kind == "quantity"


@pytest.mark.parametrize(
    ("plan", "match"),
    [
        (FoldPlan(candidates={"theme": [5]}), "integers from 0 to 4"),
        (FoldPlan(candidates={"theme": [1, 1]}), "differ"),
        (FoldPlan(weight="nothing"), "one column 'nothing'"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(plan: FoldPlan, match: str) -> None:
    with pytest.raises(InvalidValue, match=match):
        fold(landing_batch(rows_of(OLH)[0], [OLH]), plan.to_json())


def test_candidates_of_a_mechanism_without_supports_are_refused() -> None:
    mechanism = hb.Piecewise(epsilon=1.0)
    with pytest.raises(InvalidValue, match="mechanism: got 'Piecewise'"):
        fold(landing_batch(rows_of(mechanism)[0], [mechanism]), FoldPlan(candidates={"theme": [1]}).to_json())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"specs": 1}', FoldPlan().to_json().replace("null", "-1")])
def test_plans_of_others_are_checked(text: str) -> None:
    with pytest.raises(InvalidValue):
        read_plan(text)


def column(batch: pa.RecordBatch, name: str, values: Any) -> pa.RecordBatch:
    """The batch with another column in the place of one."""
    arrays = [values if field.name == name else batch.column(field.name) for field in batch.schema]
    return pa.record_batch(arrays, names=batch.schema.names, metadata=batch.schema.metadata)


def test_columns_of_any_type_of_arrow_are_read_and_others_are_refused() -> None:
    rows, _ = rows_of(OLH)
    batch = landing_batch(rows, [OLH])
    expected = fold(batch, FoldPlan().to_json())
    for name, kind in (
        ("question", pa.large_string()),
        ("collection", pa.dictionary(pa.int8(), pa.string())),
        ("step", pa.uint16()),
        ("id", pa.large_binary()),
        ("report", pa.large_binary()),
    ):
        values = batch.column(name)
        other = values.dictionary_encode() if pa.types.is_dictionary(kind) else values.cast(kind)
        assert fold(column(batch, name, other), FoldPlan().to_json()) == expected
    for name, values in (
        ("step", pa.array([0.5] * 65)),
        ("step", pa.array([True] * 65)),
        ("report", pa.array([1] * 65)),
        ("question", pa.array([["x"]] * 65)),
        ("version", pa.array([1 << 63] * 65, pa.uint64())),
    ):
        with pytest.raises(DecodeError, match=name):
            fold(column(batch, name, values), FoldPlan().to_json())
    with pytest.raises(DecodeError, match="one column 'report'"):
        fold(batch.drop_columns(["report"]), FoldPlan().to_json())
    not_utf_8 = column(batch, "question", pa.array([b"\xff"] * 65))
    assert Folded.from_bytes(fold(not_utf_8, FoldPlan().to_json())).left_out == {"bad_name": 65}


@pytest.mark.parametrize(
    "head",
    [
        b"\xff",
        b"[" * 100_000,
        b"{}",
        b'{"format":2,"kind":"landing","specs":{}}',
        b'{"format":1,"kind":"archive","specs":{}}',
        b'{"format":1,"kind":"landing","key":[],"specs":{}}',
        b'{"format":1,"kind":"archive","key":["c",1,"q",0,1,1,0,"x"],"specs":{}}',
        b'{"format":1,"kind":"landing","specs":{"x":{"mechanism":"GRR"}}}',
        canonical({"format": 1, "kind": "landing", "specs": {"f" * 32: OLH.spec()}}).encode(),
        canonical(
            {
                "format": 1,
                "kind": "landing",
                "specs": {(huge := hb.OLH(epsilon=1.0, domain=1 << 25)).spec_id: huge.spec()},
            }
        ).encode(),
    ],
)
def test_metadata_of_others_is_checked(head: bytes) -> None:
    batch = landing_batch(rows_of(OLH)[0], [OLH]).replace_schema_metadata({"hubbub": head})
    with pytest.raises(InvalidValue):
        fold(batch, FoldPlan().to_json())


def test_a_batch_without_metadata_is_read_with_the_specs_of_the_plan() -> None:
    batch = landing_batch(rows_of(OLH)[0], [OLH])
    bare = batch.replace_schema_metadata(None)
    plan = FoldPlan(specs={OLH.spec_id: OLH.spec()}).to_json()
    assert fold(bare, plan) == fold(batch, plan) == fold(batch, FoldPlan().to_json())
    assert Folded.from_bytes(fold(bare, FoldPlan().to_json())).left_out == {"unknown_spec": 65}


def test_sketches_of_others_are_checked() -> None:
    data = fold(landing_batch(rows_of(OLH)[0], [OLH]), FoldPlan().to_json())
    for hostile in (
        b"",
        data[:-1],
        data + b"\0",
        data.replace(b"sketches", b"sketchez"),
        data.replace(b"theme", b"th\xffme"),
    ):
        with pytest.raises(InvalidValue):
            Folded.from_bytes(hostile)


def test_more_sketches_than_fit_are_refused_and_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hubbub.backends.folding.MOST_BYTES", 100)
    with pytest.raises(InvalidValue, match="fold fewer questions or steps"):
        fold(landing_batch(rows_of(OLH)[0], [OLH]), FoldPlan().to_json())
