"""The recipes of `examples/fold_anywhere.py` have the bytes that every other engine has; the examples of Spark run."""

from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from examples import spark_batch
from examples.fold_anywhere import RECIPES
from hubbub.backends.folding import FoldPlan, fold, merge
from tests.shared.report_rows import EVERY, rows_of, with_bad_rows


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_has_the_same_bytes(name: str, tmp_path: Path) -> None:
    batches = [with_bad_rows(rows_of(each, type(each).__name__)[0], each) for each in EVERY]
    plan = FoldPlan(specs={each.spec_id: each.spec() for each in EVERY}).to_json()
    folder = tmp_path / "landing"
    folder.mkdir()
    for number, batch in enumerate([*batches, batches[0].slice(0, 0)]):
        pq.write_table(pa.Table.from_batches([batch.replace_schema_metadata(None)]), folder / f"{number}.parquet")
    paths = sorted(map(str, folder.iterdir()))
    result = RECIPES[name](paths, plan)
    assert result == reduce(merge, (fold(batch, plan) for batch in batches))


def test_the_example_of_batches_finds_what_it_should(spark: Any) -> None:
    """Intervals of fixed seeds: the shares are 1/2, 1/3 and 1/6, and the first two sizes are clear."""
    themes, sizes = spark_batch.main(spark, people=12_000)
    low, high = themes.interval(0.9999)
    assert all(low[:3] <= [1 / 2, 1 / 3, 1 / 6])
    assert all(high[:3] >= [1 / 2, 1 / 3, 1 / 6])
    assert sizes.labels is not None
    assert sizes.labels[:2] == ("1080", "1440")
