"""`hubbub marginals` and `hubbub synthesize`, on a file and on a collector."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hubbub import Random
from hubbub.core.domain import Numeric
from hubbub.core.errors import InvalidValue
from hubbub.rehearse.marginals import FieldRecords, rehearse_marginals
from tests.cli.commands import Hubbub
from tests.dashboard.pages_visit import TOKEN, Site
from tests.service.test_marginals_collector import HOMES, HOUR, STEP, N, people
from tests.shared.in_process import Crowd, World, places_of

ROWS = [("free", 25, "no"), ("free", 35, "no"), ("pro", 45, "yes"), ("pro", 95, "[b]yes"), ("", "", "no")] * 1000
FIELDS = ["-f", "plan", "-f", "age=0..100/4", "-f", "bold"]


def write(hubbub: Hubbub, form: str = "csv") -> object:
    if form == "jsonl":
        rows = [{"plan": plan or None, "age": age or None, "bold": bold} for plan, age, bold in ROWS]
        return hubbub.write("people.jsonl", "\n".join(map(json.dumps, rows)))
    return hubbub.write("people.csv", "plan,age,bold\n" + "".join(f"{a},{b},{c}\n" for a, b, c in ROWS))


def test_every_form_says_the_same(hubbub: Hubbub) -> None:
    options = [*FIELDS, "-e", 4, "--seed", 1, "--truth", "--of", "bold,plan"]
    (first,), (second,) = (
        hubbub.answer("marginals", write(hubbub, form), *options)["marginals"] for form in ("csv", "jsonl")
    )
    assert first == second
    assert list(first["values"]) == ["plan", "bold"]
    assert first["values"]["plan"] == ["free", "pro", "(none)"]
    assert first["truth"][first["labels"].index("free, no")] == 0.4
    assert first["truth"][first["labels"].index("(none), no")] == 0.2
    held = [
        low <= truth <= high for low, truth, high in zip(*(first[k] for k in ("low", "truth", "high")), strict=True)
    ]
    assert sum(held) >= 9  # of twelve intervals: fewer hold once in 2,000 times


def test_the_tables(hubbub: Hubbub) -> None:
    shown = hubbub.shown("marginals", write(hubbub), *FIELDS, "-e", 4, "--seed", 1, "--plot", hubbub.folder / "map.svg")
    assert "<!-- free -->" in (hubbub.folder / "map.svg").read_text()
    for text in ("5,000 people", "marginals reported on, epsilon 4", "plan, age", "25 to 50", "[b]yes", "go together"):
        assert text in shown
    unknown = hubbub.shown("marginals", write(hubbub), *FIELDS, "-e", 0.5, "--seed", 1, "--of", "plan,age,bold")
    assert "unknown" in unknown
    assert "nobody reported on these fields together" in unknown
    query = "SELECT plan, COUNT(*) FROM people WHERE age < 50 GROUP BY plan"
    answer = hubbub.answer("marginals", write(hubbub), *FIELDS, "-e", 6, "--seed", 1, "--sql", query)
    counts = {row[0]: row[1]["value"] for row in answer["rows"]}
    assert counts["free"] == pytest.approx(2000, abs=250)
    assert counts["pro"] == pytest.approx(1000, abs=250)


def test_records_of_nobody(hubbub: Hubbub) -> None:
    options = ["synthesize", write(hubbub), *FIELDS, "-e", 6, "--seed", 1, "-n", 2000]
    rows = list(csv.reader(io.StringIO(hubbub(*options, "--of", "bold,plan").stdout)))
    assert rows[0] == ["bold", "plan"]
    assert len(rows) == 2001
    assert np.mean([row == ["no", "free"] for row in rows[1:]]) == pytest.approx(0.4, abs=0.08)
    path = hubbub.folder / "drawn.csv"
    assert hubbub(*options, "--out", path).exit_code == 0
    assert path.read_text().startswith("plan,age,bold\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-e", 1], "field: got nothing"),
        ([*FIELDS], "epsilon: got nothing"),
        ([*FIELDS, "-e", 0], "epsilon: got 0"),
        (
            [*FIELDS, "-e", 1, "--of", "plan,boat"],
            "of: got 'plan, boat'; allowed: different fields, of plan, age, bold",
        ),
        (["-f", "plan", "-f", "boat", "-e", 1], "column: got 'boat'; allowed: one of plan, age, bold"),
        (["-f", "plan", "-f", "age=0..9", "-e", 1], "age: got"),
        (["-f", "plan", "-f", "bold=0..9/3", "-e", 1], "bold: got"),
        (["-f", "plan", "-f", "age=9", "-e", 1], "field: got 'age=9'"),
        ([*FIELDS, "-e", 1, "--marginals", "plan"], "marginals of all fields, also of age and bold"),
        ([*FIELDS, "-e", 1, "--oracle", "Hybrid"], "mechanism: got 'Hybrid'"),
        ([*FIELDS, "-e", 1, "--sql", "SELECT AVG(boat) FROM people"], "boat"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(hubbub: Hubbub, options: list[object], message: str) -> None:
    assert message in hubbub.refused("marginals", write(hubbub), *options)


def test_groups_of_devices_do_not_depend_on_the_order_of_the_rows() -> None:
    rows = {name: ["x"] * 3000 + ["y"] * 3000 for name in "abc"}
    released = rehearse_marginals(rows, epsilon=6.0, rng=Random(seed=1), theta=1e-9)
    assert len(released.reported) == 2
    for estimate in released.reported.values():
        assert estimate.value[0] == pytest.approx(0.5, abs=0.1)  # eight standard errors


def test_records_in_python_may_be_of_any_fields() -> None:
    released = rehearse_marginals({"a": ["x", None, "y"] * 500, "b": [1, 2, 3] * 500}, epsilon=6.0, rng=Random(seed=1))
    assert released.labels["b"] == ("1", "2", "3", "(none)")
    wrong: list[dict[str, list[str]]] = [{"a": ["x", "y"], "b": ["u"]}, {"a": [], "b": []}, {"a": ["x"], "b": ["y"]}]
    for values in wrong:
        with pytest.raises(InvalidValue):
            FieldRecords.of(values)  # not as many of each; none; names of which there is one
    numbers = FieldRecords.of({"c": [1.0, None, 99.0], "d": ["x", "y", "x"]}, {"c": Numeric(0, 10, cells=2)})
    assert numbers.truth(["c"]).tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3])  # 99 is clipped


@pytest.fixture(scope="module")
def collector() -> Iterator[str]:
    world = World(HOMES, STEP * HOUR)
    Crowd(places_of(N), people()).send_all(world.collector)
    world.at((STEP + 1) * HOUR + 11)
    site = Site(world.collector, None)
    yield site.address
    site.close()


def test_a_collector_is_asked_for_the_same(hubbub: Hubbub, collector: str) -> None:
    def run(*args: Any) -> Any:
        done = hubbub(*args, HUBBUB_TOKEN=TOKEN)
        assert done.exit_code == 0, done.output
        return done.stdout

    question = [collector, "--question", "homes"]
    body = json.loads(run("marginals", *question, "--of", "car,dog", "--json"))["marginals"][0]
    assert body["interval"] == "known"
    assert len(json.loads(run("marginals", *question, "--json"))["marginals"]) == 3  # those reported on
    shown = run("marginals", *question, "--of", "car,dog,rooms")
    assert "unknown" in shown
    records = list(csv.reader(io.StringIO(run("synthesize", *question, "-n", 21_000, "--of", "dog"))))
    assert (records[0], len(records)) == (["dog"], 21_001)
    counted = json.loads(run("sql", *question, "--collection", "homes", "SELECT COUNT(*) FROM homes WHERE car = 'yes' "
                             "AND dog = 'yes'", "--json"))  # fmt: skip
    place = body["labels"].index("yes, yes")
    assert counted["rows"][0][0]["value"] == pytest.approx(N * body["value"][place])
    refused = hubbub("marginals", collector, HUBBUB_TOKEN=TOKEN)  # there are two such questions
    assert "homes, pools" in refused.stderr
    unknown = hubbub("marginals", *question, "--of", "boat", HUBBUB_TOKEN=TOKEN).stderr
    assert "of: got 'boat'; allowed: different fields, of car, dog, rooms" in unknown
    assert "is not taken" in hubbub("marginals", *question, HUBBUB_TOKEN="wrong").stderr
    assert "hubbub sql" in hubbub("marginals", *question, "--sql", "SELECT 1", HUBBUB_TOKEN=TOKEN).stderr
