"""The recipes of `examples/fold_anywhere.py` have the bytes that every other engine has, for every mechanism."""

from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
