"""Spark on this machine against `hubbub fold`, over the same landing files: python benchmarks/spark_fold.py [REPORTS].

Run with the Python of `.venv-spark` (`make test-spark` makes it). Reports of OLH over 1,024 values, ids of 16 random
bytes, row groups of 2^18. Start-up of Spark and the first job, which starts Python workers and loads kernels, are
measured by themselves.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hubbub as hb
from hubbub.backends.file_fold import fold_files
from hubbub.backends.folding import FoldPlan
from hubbub.backends.report_files import SketchKey, landing_schema, row_bytes

ORACLE = hb.OLH(epsilon=1.0, domain=1024)
KEY = SketchKey("survey", 1, "page", 0, 7, 1, 0, ORACLE.spec_id)
ROWS = 1 << 18
FILE = 1 << 20


def write(folder: Path, n: int) -> None:
    """Landing files of n reports; the reports of one row group are made by devices, and repeated with fresh ids."""
    reports = row_bytes(ORACLE, ORACLE.randomize(np.arange(ROWS) % 1024, hb.Random(seed=1)))
    rng, schema = np.random.default_rng(2), landing_schema([ORACLE])
    report = pa.array(reports, pa.binary())
    for start in range(0, n, FILE):
        with pq.ParquetWriter(folder / f"{start:012}.parquet", schema, use_dictionary=list(KEY._fields)) as writer:
            for first in range(start, min(start + FILE, n), ROWS):
                size = min(ROWS, n - first)
                ids = pa.FixedSizeBinaryArray.from_buffers(
                    pa.binary(16), size, [None, pa.py_buffer(rng.bytes(16 * size))]
                )
                named = [
                    pa.repeat(pa.scalar(value, schema.field(name).type), size) for name, value in KEY._asdict().items()
                ]
                writer.write_table(pa.table([*named, ids, report.slice(0, size)], schema=schema), row_group_size=ROWS)


def cpu_seconds() -> float:
    """What this process and all below it have used: the JVM and the Python workers."""
    used, parents = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        process = int(path.parent.name)
        parents[process], used[process] = int(fields[1]), sum(map(int, fields[11:15]))
    family, before = {os.getpid()}, 0
    while len(family) > before:
        before = len(family)
        family |= {process for process, parent in parents.items() if parent in family}
    return sum(used[process] for process in family) / os.sysconf("SC_CLK_TCK")


def timed(name: str, work):
    """Runs a function and prints its seconds, those of all processors, and the load of the machine before."""
    load, start, cpu = os.getloadavg()[0], time.perf_counter(), cpu_seconds()
    result = work()
    print(f"{name}: {time.perf_counter() - start:.1f} s, CPU {cpu_seconds() - cpu:.1f} s (load {load:.1f})", flush=True)
    return result


def main(n: int) -> None:
    """Prints the seconds of both, which must have the same bytes."""
    from pyspark.sql import SparkSession

    import hubbub.spark

    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as folder:
        lake = Path(folder) / "lake"
        lake.mkdir()
        timed("writing", lambda: write(lake, n))
        plan = FoldPlan(specs={ORACLE.spec_id: ORACLE.spec()})
        ORACLE.accumulate(ORACLE.randomize([1] * 4, hb.Random(seed=1)))  # loads the kernel
        here = timed("hubbub fold, 2 cores", lambda: fold_files([str(lake)], plan, Path(folder) / "out", cores=2))

        def session():
            builder = (
                SparkSession.builder.master("local[2]")
                .config("spark.ui.enabled", "false")
                .config("spark.ui.showConsoleProgress", "false")
            )
            return builder.config("spark.driver.memory", "2g").getOrCreate()

        spark = timed("start of Spark", session)
        few = sorted(map(str, lake.iterdir()))[0]
        timed("first job, one file", lambda: hubbub.spark.fold(spark.read.parquet(few).limit(1000), plan))
        df = spark.read.parquet(str(lake))
        there = timed("Spark, local[2], ids compared", lambda: hubbub.spark.fold(df, plan))
        alone = timed("Spark, local[2], as they are", lambda: hubbub.spark.fold(df, plan, repetitions=False))
        assert here.folded.to_bytes() == there.folded.to_bytes() == alone.folded.to_bytes()
        print(f"{here.folded.n:,} reports, the same bytes")


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000)
