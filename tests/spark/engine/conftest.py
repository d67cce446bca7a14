"""One session of the engine that HUBBUB_ENGINE names: "sail", or "spark" with two cores."""

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

ENGINE = os.environ.get("HUBBUB_ENGINE", "")
collect_ignore = [] if ENGINE == "spark" else ["test_streams.py"]  # Sail folds batches


def pytest_configure(config: pytest.Config) -> None:
    for warning in (
        "PySpark does not yet fully support:FutureWarning",
        "unclosed:ResourceWarning",
        ":pytest.PytestUnraisableExceptionWarning",
    ):
        config.addinivalue_line("filterwarnings", f"ignore:{warning}")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    if ENGINE == "sail":
        from pysail.spark import SparkConnectServer

        server = SparkConnectServer()
        server.start(background=True)
        _, port = server.listening_address
        session = SparkSession.builder.remote(f"sc://localhost:{port}").getOrCreate()
        yield session
        session.stop()
        server.stop()
        return
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def frame(spark: Any) -> Callable[..., Any]:
    """Batches as a DataFrame, which knows nothing of their metadata."""

    def made(*batches: pa.RecordBatch) -> Any:
        table = pa.Table.from_batches([batch.replace_schema_metadata(None) for batch in batches])
        for place, field in enumerate(table.schema):
            if pa.types.is_fixed_size_binary(field.type):
                table = table.set_column(place, field.name, table[field.name].cast(pa.binary()))
        return spark.createDataFrame(table).repartition(3)

    return made
