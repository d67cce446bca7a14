"""The same sketches from any engine: processes, Dask, DataFusion. Each recipe is a function of a few lines.

    python examples/fold_anywhere.py

`fold` and `merge` take and give bytes, so an engine needs to know nothing of reports. Repeated ids must be gone before:
`hubbub fold` and `hubbub.spark.fold` compare them themselves, DataFusion does it in SQL.
"""

import multiprocessing
import tempfile
from functools import partial, reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

import hubbub as hb
from hubbub.backends.folding import Folded, FoldPlan, fold, merge
from hubbub.backends.report_files import SketchKey, landing_batch, landing_schema, row_bytes

NOTHING = Folded({}, False).to_bytes()


def fold_file(path: str, plan: str) -> bytes:
    """What one file comes to: the part that an engine runs somewhere else."""
    batches = pyarrow.dataset.dataset(path).to_batches()
    return reduce(merge, (fold(batch, plan) for batch in batches), NOTHING)


def with_processes(paths: list[str], plan: str) -> bytes:
    """Python's own processes. They are spawned: a kernel's threads do not survive a fork."""
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        return reduce(merge, pool.imap_unordered(partial(fold_file, plan=plan), paths), NOTHING)


def with_dask(paths: list[str], plan: str) -> bytes:
    """Dask, on this machine or on a cluster. Ray is the same with `ray.remote(fold_file)` and `ray.get`."""
    import dask.bag

    folded = dask.bag.from_sequence(paths).map(fold_file, plan=plan).fold(merge, initial=NOTHING)
    return bytes(folded.compute(scheduler="threads"))


def with_datafusion(paths: list[str], plan: str) -> bytes:
    """DataFusion, which also drops repetitions and rows that nobody asked for, in SQL, before anything is folded."""
    from datafusion import SessionContext

    context = SessionContext()
    context.register_parquet("landing", str(Path(paths[0]).parent))
    columns = ", ".join(f'"{name}"' for name in landing_schema().names)
    ask = ", ".join(f'"{name}"' for name in SketchKey._fields if name != "spec_id")
    rows = context.sql(f"SELECT DISTINCT ON ({ask}, id) {columns} FROM landing")
    return reduce(merge, (fold(batch.to_pyarrow(), plan) for batch in rows.execute_stream()), NOTHING)


RECIPES = {"processes": with_processes, "Dask": with_dask, "DataFusion": with_datafusion}


def main() -> None:
    """Lands the reports of 10,000 people in four files, and folds them by each engine that is installed."""
    oracle = hb.OLH(epsilon=1.0, domain=["bath", "rye", "york"])
    reports = oracle.randomize(["bath", "bath", "rye", "york"] * 2500, hb.Random(seed=1))
    key = SketchKey("survey", 1, "town", 0, 7, 1, 0, oracle.spec_id)
    rows = [(key, at.to_bytes(16, "little"), report) for at, report in enumerate(row_bytes(oracle, reports))]
    plan = FoldPlan(specs={oracle.spec_id: oracle.spec()}).to_json()
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/{number}.parquet" for number in range(4)]
        for number, path in enumerate(paths):
            pq.write_table(pa.Table.from_batches([landing_batch(rows[number::4], [oracle])]), path)
        for name, recipe in RECIPES.items():
            try:
                folded = Folded.from_bytes(recipe(paths, plan))
            except ModuleNotFoundError as missing:
                print(f"{name}: {missing}")
            else:
                print(f"{name}: {folded.n:,} reports, {folded.estimate(key)}")


if __name__ == "__main__":
    main()
