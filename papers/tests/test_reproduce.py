"""The harness: names, repeats, progress, saving, and verdicts that know their noise."""

import csv
import io
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from hubbub.core.errors import InvalidValue
from hubbub.random.source import Random
from hubbub_papers import REPRODUCTIONS, Cell, Result, reproduce
from hubbub_papers.harness import Context, reproduction
from hubbub_papers.result import Claim, judged, ratio

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def toy() -> Iterator[str]:
    """A reproduction whose numbers show what it was run with."""

    @reproduction("toy-1", title="A toy", repeats=4, needs=("emoji",))
    def run(context: Context):
        draws = [context.rng.child("run", step).below(1000, 1)[0] for step in context.track(range(3), str)]
        numbers = {"repeats": context.repeats, "size": context.size(1000), "draw": sum(draws)}
        return [Cell(name, "value", None, float(value)) for name, value in numbers.items()], None

    yield "toy-1"
    del REPRODUCTIONS["toy-1"]


def values(result: Result) -> dict[str, float]:
    return {cell.row: cell.ours for cell in result.cells}


def test_repeats_and_scale_reach_the_function(toy: str):
    record = REPRODUCTIONS[toy]
    assert (record.name, record.title, record.repeats, record.needs) == ("toy-1", "A toy", 4, ("emoji",))
    assert values(reproduce(toy))["repeats"] == 4
    result = reproduce(toy, repeats=2, scale=0.1)
    assert values(result)["repeats"] == 2
    assert values(result)["size"] == 100


def test_a_seed_gives_the_same_numbers_and_another_others(toy: str):
    assert values(reproduce(toy, seed=5)) == values(reproduce(toy, seed=5))
    # Sums of three draws below 1,000: these two differ, for good.
    assert values(reproduce(toy, seed=5))["draw"] != values(reproduce(toy, seed=6))["draw"]


def test_progress_is_told_from_nothing_done_to_all_done(toy: str):
    progress_calls: list[tuple[int, int, str]] = []
    reproduce(toy, progress=lambda *step: progress_calls.append(step))
    assert progress_calls == [(0, 3, "0"), (1, 3, "1"), (2, 3, "2"), (3, 3, "done")]


@pytest.mark.parametrize("threads", [1, 2])
def test_every_setting_is_run_as_often_as_asked_and_its_scores_are_kept_in_order(threads: int):
    calls: list[tuple[int, int, str]] = []
    context = Context(repeats=2, rng=Random(seed=1), progress=lambda *step: calls.append(step))
    scores = context.measure(
        ["a", "b"], lambda name, run: {name: [run, 1.0], f"{name} twice": 2 * run}, str.upper, threads=threads
    )
    assert {key: rows.tolist() for key, rows in scores.items()} == {
        "a": [[0.0, 1.0], [1.0, 1.0]],
        "a twice": [0.0, 2.0],
        "b": [[0.0, 1.0], [1.0, 1.0]],
        "b twice": [0.0, 2.0],
    }
    assert [label for _, _, label in calls] == ["A, run 1", "A, run 2", "B, run 1", "B, run 2", "done"]


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_a_run_ends_the_measurement(threads: int):
    def run_step(step: int) -> dict[str, float]:
        if step == 1:
            raise ValueError("step 1")
        return {"score": 1.0}

    with pytest.raises(ValueError, match="step 1"):
        Context(repeats=1, rng=Random(seed=1)).gather(range(50), run_step, str, threads=threads)


def test_an_unknown_name_is_answered_with_the_closest():
    with pytest.raises(InvalidValue, match=r"the closest is wang-2021-analyzing-table-3\.2"):
        reproduce("wang-2021-analysing-tabel-3.2")


@pytest.mark.parametrize(
    "options", [{"repeats": 0}, {"repeats": True}, {"scale": 0}, {"scale": 2}, {"scale": math.nan}, {"steps": 5}]
)
def test_bad_options_are_refused(toy: str, options: dict[str, Any]):
    with pytest.raises(InvalidValue, match=next(iter(options))):
        reproduce(toy, **options)


def test_a_name_is_taken_once(toy: str):
    with pytest.raises(InvalidValue, match="not taken"):
        reproduction(toy, title="again")(lambda context: ([], None))


def test_every_reproduction_of_the_chapters_is_there():
    tables = ["3.1", "3.2", "4.1", "4.2", "4.3", "5.1", "5.2", "7.2", "7.3", "8.1", "9.1", "9.2", "9.3"]
    figures = {3: 5, 4: 6, 5: 8, 8: 10}
    wanted = {f"wang-2021-analyzing-table-{number}" for number in tables}
    wanted |= {
        f"wang-2021-analyzing-figure-{chapter}.{k}" for chapter, most in figures.items() for k in range(1, most + 1)
    }
    wanted -= {"wang-2021-analyzing-figure-5.2"}  # a drawing
    wanted |= {f"wang-2021-analyzing-figure-6.{number}" for number in range(3, 10)}
    wanted |= {f"wang-2021-analyzing-figure-7.{k}" for k in range(3, 11)}
    wanted |= {"wang-2021-analyzing-figure-9.3", "wang-2021-analyzing-figure-9.4"}
    there = {name for name in REPRODUCTIONS if name.startswith("wang-2021-analyzing-")}
    assert wanted <= there
    assert there - wanted == {"wang-2021-analyzing-section-4.4"}


def test_dictionaries_have_stable_keys():
    result = Result("x", "X", (Cell("a", "b", 1.0, 2.0, "n"), Cell("a", "c", "O(d)", 3.0)))
    assert result.to_dicts() == [
        {"row": "a", "column": "b", "paper": 1.0, "ours": 2.0, "note": "n"},
        {"row": "a", "column": "c", "paper": "O(d)", "ours": 3.0, "note": ""},
    ]


def test_what_is_saved_can_be_read(tmp_path: Path):
    result = reproduce("wang-2021-analyzing-figure-3.1")
    table, image = result.save(tmp_path / "made" / "here")
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["row"] for row in rows] == [cell.row for cell in result.cells]
    assert [float(row["ours"]) for row in rows] == [cell.ours for cell in result.cells]
    assert {row["paper"] for row, cell in zip(rows, result.cells, strict=True) if cell.paper is None} == {""}
    assert image.read_bytes().startswith(PNG)
    assert image.stat().st_size > 10_000


def shown(result: Result) -> str:
    text = io.StringIO()
    Console(file=text, width=80).print(result)
    return text.getvalue()


def test_the_table_shows_brackets_and_states_a_shared_remark_once():
    remark = "a remark that is as long as they come"
    cells = tuple(Cell(f"Var[c({i})]", "b", None, float(i), f"own {i}; {remark}") for i in range(3))
    text = shown(Result("x", "X", cells))
    assert "Var[c(2)]" in text
    assert text.count(remark) == 1
    assert "own 2 (1)" in text


def test_a_long_table_keeps_to_what_the_paper_has_a_word_on():
    cells = tuple(Cell(f"r{i}", "b", "above 1" if i == 70 else None, float(i)) for i in range(90))
    text = shown(Result("x", "X", (*cells, Claim("a statement", 0.5, below=1).cell())))
    assert "r70" in text
    assert "a statement" in text
    assert "r1," not in text
    assert "89 measured values more" in text


def test_a_claim_says_whether_it_holds_and_what_the_paper_prints():
    assert Claim("a", 0.5, below=1).cell().note == "holds (below 1)"
    assert Claim("a", 2.0, below=1).cell().note == "does not hold here (below 1)"
    assert Claim("a", math.nan, below=1).cell().note == "does not hold here (below 1)"
    assert Claim("a", 0.5, paper=0.4, above=0.3, below=0.6).cell().note.startswith("holds (above 0.3, below 0.6)")
    assert Claim("a", 0.5, below=1).cell().paper is None
    assert Claim("a", 0.5, paper="about half", above=0.4, below=0.6).cell().paper == "about half"


@pytest.mark.parametrize(
    ("paper", "above", "below", "whose"),
    [
        (None, 1.0, math.inf, ""),
        (None, -math.inf, 1 + 1e-9, ""),
        (None, 0.8, 1.25, "the bounds are ours"),
        ("similar", 0.8, 1.25, "the bounds are ours"),
        ("worse", 1.0, math.inf, ""),
        (2.5, -math.inf, 2.5, ""),
        (0.9, 0.8, math.inf, "the bound is ours"),
        (4, 3.5, 4.5, ""),
        ("over 60%", 0.6, math.inf, ""),
        ("over 60%", 0.5, math.inf, "the bound is ours"),
        ("10%-30%", 0.1, 0.3, ""),
        ("at least 2 orders of magnitude", 100.0, math.inf, ""),
        ("two magnitudes", 10.0, math.inf, "the bound is ours"),
        ("one to two magnitudes better", 10.0, 100.0, ""),
        ("10^3 to 10^4", 1e3, math.inf, ""),
        ("about 3", 1.0, math.inf, "the bound is ours"),
    ],
)
def test_a_claim_says_that_its_bounds_are_ours_where_the_print_does_not_have_them(
    paper: float | str | None, above: float, below: float, whose: str
) -> None:
    note = Claim("a", 1.0, paper, above, below, "n").cell().note
    assert note.split("; ")[1:] == ["n", *filter(None, [whose])]


def test_a_claim_within_its_noise_decides_nothing():
    assert Claim("a", 1.1, above=1).cell(error=0.04).note.startswith("holds")
    assert Claim("a", 1.1, above=1).cell(error=0.06).note.startswith("too close to call")
    assert Claim("a", 0.9, above=1).cell(error=0.06).note.startswith("too close to call")
    assert Claim("a", 0.9, above=1).cell(error=0.04).note.startswith("does not hold here")


def test_the_standard_error_of_a_mean_is_the_textbook_one():
    runs = {"a": np.array([1.0, 5.0, 2.0, 4.0])}
    (cell,) = judged(lambda runs: [Claim("mean", float(runs["a"].mean()), above=0)], runs)
    assert f"standard error {runs['a'].std(ddof=1) / 2:.2g}" in cell.note
    (cell,) = judged(lambda runs: [Claim("mean", float(runs["a"].mean()), above=0)], {"a": np.array([1.0, 5.0])})
    assert cell.note == "holds (above 0)"  # two runs are too few


def test_a_context_never_scales_a_population_away_and_a_ratio_to_nothing_is_not_a_number():
    assert (ratio(1.0, 4.0), math.isnan(ratio(1.0, 0.0))) == (0.25, True)
    context = Context(repeats=1, rng=Random(seed=1), scale=1e-9)
    assert context.size(1_000_000, least=1000) == 1000
    assert context.size(10, least=1000) == 10


def test_steps_reach_a_reproduction_with_streams():
    @reproduction("toy-stream", title="A stream")
    def run(context: Context, steps: int = 800):
        return [Cell("steps", "value", None, float(steps))], None

    try:
        assert [reproduce("toy-stream", steps=steps).cells[0].ours for steps in (None, 7)] == [800, 7]
        with pytest.raises(InvalidValue, match="steps"):
            reproduce("toy-stream", steps=0)
    finally:
        del REPRODUCTIONS["toy-stream"]


def test_rounds_end_with_the_budget_and_leave_as_many_runs_of_each_setting() -> None:
    steps: list[tuple[int, int, str]] = []
    context = Context(50, Random(seed=1), progress=lambda *step: steps.append(step))

    def slow(setting: str, run: int) -> float:
        ends = time.process_time() + 0.01
        while time.process_time() < ends:
            pass
        return float(run)

    rows = context.rounds(["a", "b"], slow, budget=0.2)
    assert rows["a"].tolist() == rows["b"].tolist() == list(range(rows["a"].size))
    assert 1 <= rows["a"].size < 20
    assert steps[-1] == (100, 100, "done")
    assert context.rounds(["a"], lambda *_: 1.0, budget=60.0)["a"].size == 50
