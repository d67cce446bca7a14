"""Rows of landing files for tests: of every mechanism, in groups of very different sizes, with bad rows among them."""

from typing import Any

import numpy as np
import pyarrow as pa

import hubbub as hb
from hubbub.backends.report_files import SketchKey, landing_schema, row_bytes
from hubbub.core.reports import Reports
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.base import Mechanism, ReportFormat
from hubbub.mechanisms.stateful import Stateful

EVERY = [next(iter(kind.examples())) for kind in MECHANISMS.values()]
GROUPS = ((1, 1, 0, 60), (2, 1, 0, 3), (2, 2, 0, 1), (2, 2, 7, 1))
"""Step, round and part of each group, and how many reports it has: most are in one, and step 3 has none."""
BAD = {"bad_name": 2, "bad_id": 1, "unknown_spec": 2, "malformed": 2}


def some_reports(mechanism: ReportFormat, n: int, seed: int = 1) -> Reports:
    """Reports of any mechanism; of a device that remembers, those of its first steps."""
    rng = hb.Random(seed=seed)
    values = (mechanism.example_values(9) * n)[:n]
    if isinstance(mechanism, Mechanism):
        return mechanism.randomize(values, rng)
    assert isinstance(mechanism, Stateful)
    states, batches = mechanism.enroll(n, rng), []
    for step in range(4):
        states, reports, _ = mechanism.step(states, step, values, rng, np.ones(n, dtype=np.bool_))
        batches.append(reports)
    reports = Reports.concat(batches)
    assert len(reports) >= n
    return reports[:n]


def rows_of(mechanism: ReportFormat, question: str = "theme") -> tuple[list[Any], dict[SketchKey, Reports]]:
    """Landing rows in a mixed order, and the reports of each group."""
    rows, groups = [], {}
    for number, (step, round, part, n) in enumerate(GROUPS):
        key = SketchKey("survey", 1, question, 0, step, round, part, mechanism.spec_id)
        groups[key] = some_reports(mechanism, n, seed=number + 1)
        rows += [
            (key, bytes([number, row, *[7] * 14]), report)
            for row, report in enumerate(row_bytes(mechanism, groups[key]))
        ]
    return [rows[at] for at in np.random.default_rng(1).permutation(len(rows))], groups


def with_bad_rows(rows: list[Any], mechanism: ReportFormat) -> pa.RecordBatch:
    """A batch with rows that cannot be counted between the others; its columns have room for them."""
    key, _, report = rows[0]
    other = hb.GRR(epsilon=1.0, domain=3)
    ids = [bytes([number]) + mechanism.spec_id.encode()[:15] for number in range(100, 107)]
    bad = [
        (key._replace(question=None), ids[0], report),
        (key._replace(step=-1), ids[1], report),
        (key, b"short", report),
        (key._replace(spec_id=other.spec_id), ids[3], b"\0"),
        (key._replace(spec_id="f" * 32), ids[4], report),
        (key, ids[5], report + b"\0"),
        (key, ids[6], None),
    ]
    mixed = [*rows[:5], *bad[:4], *rows[5:30], *bad[4:], *rows[30:]]
    schema = landing_schema([mechanism])
    fields = [pa.field(field.name, pa.binary() if field.name == "id" else field.type) for field in schema]
    schema = pa.schema(fields).with_metadata(schema.metadata)
    columns = zip(*((*key, identity, report) for key, identity, report in mixed), strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return pa.record_batch(arrays, schema=schema)
