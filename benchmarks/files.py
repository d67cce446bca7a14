"""`hubbub fold`: files of reports against the kernel alone, reports in memory; and two cores against one."""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measure import Result, short

import hubbub as hb
from hubbub.backends.file_fold import fold_files
from hubbub.backends.folding import FoldPlan
from hubbub.backends.report_files import SketchKey, archive_table, landing_schema
from hubbub.core.reports import Reports

D, GROUP = 1024, 1 << 20
KEY = ("survey", 1, "theme", 0, 7, 1, 0)


def files(quick: bool) -> Iterator[Result]:
    """OLH over 1,024 values in Parquet, by the clock: threads that wait are not worth a processor's time."""
    oracle, groups = hb.OLH(epsilon=1.0, domain=D), 4 if quick else 8
    reports = [oracle.randomize(np.arange(GROUP) % D, hb.Random(seed=seed)) for seed in range(groups)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, oracle, reports)
        for kind, least in (("archive", 0.8), ("landing", 0.8)):
            turns: dict[str, Callable[[], object]] = {}
            for cores in (1, 2):
                turns[f"fold {cores}"] = lambda kind=kind, cores=cores: _fold(folder, kind, cores)
                turns[f"kernel {cores}"] = lambda cores=cores: _kernel(oracle, reports, cores)
            spent = _by_the_clock(turns, 3 if quick else 7)
            what = f"fold of {kind}{' files' if kind == 'landing' else 's'}, n={short(groups * GROUP)}, d={D}"
            for cores in (1, 2):
                ours, kernel = spent[f"fold {cores}"], spent[f"kernel {cores}"]
                label = f"{what}, {cores} core{'s' * (cores > 1)}"
                yield Result.faster(label, ours, "the kernel, reports in memory", kernel, least=least)
            scaling, own = spent["fold 1"] / spent["fold 2"], spent["kernel 1"] / spent["kernel 2"]
            yield Result(
                what=f"{what}: two cores against one",
                unit="times",
                ours=scaling,
                versus="the kernel's two cores against one",
                theirs=own,
                ratio=scaling / own,
                least=0.9,
            )


def _write(folder: Path, oracle: hb.OLH, reports: list[Reports]) -> None:
    key, rng = SketchKey(*KEY, oracle.spec_id), hb.Random(seed=99)
    archives = [archive_table(key, oracle, each) for each in reports]
    pq.write_table(pa.concat_tables(archives), folder / "archive.parquet", row_group_size=GROUP)
    schema = landing_schema([oracle])
    with pq.ParquetWriter(folder / "landing.parquet", schema, write_page_checksum=True) as writer:
        for each in reports:
            bare = each.to_bare()
            columns: dict[str, object] = {
                name: pa.array([value]).cast(schema.field(name).type).take(pa.array(np.zeros(GROUP, dtype=np.int32)))
                for name, value in zip(SketchKey._fields, key, strict=True)
            }
            columns["id"] = pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(16), GROUP, [None, pa.py_buffer(rng.bytes(16 * GROUP))]
            ).cast(schema.field("id").type)
            width = oracle.report_bytes
            columns["report"] = pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(width), GROUP, [None, pa.py_buffer(bare)]
            ).cast(schema.field("report").type)
            writer.write_table(pa.table(columns, schema=schema), row_group_size=GROUP)


def _fold(folder: Path, kind: str, cores: int) -> None:
    out = folder / f"{kind}.sketches"
    out.unlink(missing_ok=True)
    with _threads(cores):
        fold_files([str(folder / f"{kind}.parquet")], FoldPlan(), out, cores=cores)


def _kernel(oracle: hb.OLH, reports: list[Reports], cores: int) -> None:
    with _threads(cores):
        for each in reports:
            oracle.accumulate(each)


class _threads:
    """How many threads a kernel may use."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __enter__(self) -> None:
        self._before = numba.config.NUMBA_NUM_THREADS
        numba.config.NUMBA_NUM_THREADS = self._count

    def __exit__(self, *_: object) -> None:
        numba.config.NUMBA_NUM_THREADS = self._before


def _by_the_clock(turns: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The middle of some turns: all take turns, so that a slow spell hits them alike."""
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    for turn in turns.values():
        turn()
    for _ in range(repeats):
        for name, turn in turns.items():
            began = time.perf_counter()
            turn()
            seconds[name].append(time.perf_counter() - began)
    return {name: median(spent) for name, spent in seconds.items()}


if __name__ == "__main__":
    for result in files("--quick" in sys.argv):
        print(f"{result.what}: {result.ours:.4g} {result.unit}, {result.theirs:.4g}, ratio {result.ratio:.3f}")
