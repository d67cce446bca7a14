"""A streaming query over landing files, as a program that is killed: python stream_world.py FOLDER."""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from hubbub.backends.report_files import landing_schema
from hubbub.spark import SketchSink, fold_stream
from tests.shared.landed_crowd import survey

TYPES = {"string": "string", "int64": "long", "fixed_size_binary[16]": "binary", "binary": "binary"}
SCHEMA = ", ".join(f"{field.name} {TYPES[str(field.type)]}" for field in landing_schema())


def main(folder: Path) -> None:
    """Adds up what lands, file by file, until the file `stop` is there."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "landing"))
    query = fold_stream(rows, survey(), SketchSink(folder / "sketches.db"), checkpoint=str(folder / "checkpoint"))
    while not (folder / "stop").exists():
        query.awaitTermination(1)
    query.processAllAvailable()
    query.stop()
    (folder / "done").touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
