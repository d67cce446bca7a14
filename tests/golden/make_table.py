"""Makes a golden file of a table of reports, in the format of the code that it is run with.

python -m tests.golden.make_table FOLDER
"""

import json
import sys
from pathlib import Path

import hubbub as hb
from hubbub.query.build import build_table
from hubbub.query.schema import PrivateColumn, PublicColumn, TableSchema

QUERIES = (
    "SELECT COUNT(*) FROM people WHERE age BETWEEN 5 AND 11 OR town IS NULL",
    "SELECT os, SUM(price) FROM people WHERE town = 'Rye' AND day > DATE '2024-01-03' GROUP BY os",
)


def make(folder: Path) -> None:
    """A folder of Parquet files, and what queries must answer from it."""
    import datetime

    folder.mkdir(parents=True)
    towns = hb.Categorical(["Ely", "Rye"])
    private = (PrivateColumn("age", hb.Ordinal(20)), PrivateColumn("town", towns, missing=True))
    kinds = {"os": "VARCHAR", "price": "DOUBLE", "day": "DATE"}
    public = tuple(PublicColumn(name, kind) for name, kind in kinds.items())
    people = {
        "age": [k % 20 for k in range(200)],
        "town": [("Ely", "Rye", None)[k % 3] for k in range(200)],
        "os": [("ios", None)[k % 2] for k in range(200)],
        "price": [k % 7 / 4 for k in range(200)],
        "day": [datetime.date(2024, 1, 1 + k % 9) for k in range(200)],
    }
    schema = TableSchema("people", private, public, epsilon=3.0)
    build_table(folder / "store", schema, [people], rng=hb.Random(seed=1))
    table = hb.connect(folder / "store")
    expected = {query: table.sql(query).to_json()["rows"] for query in QUERIES}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
