"""The gallery: a budget that is kept, a run that goes on where it was left, and a page that says what came out."""

import json
import math
import re
import signal
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from hubbub_papers import REPRODUCTIONS, budget, gallery, records
from hubbub_papers.budget import run_all, setting, share
from hubbub_papers.gallery import compared, kind_of, write
from hubbub_papers.records import KEPT, Cost, Record, costs, read, record_of
from hubbub_papers.result import Cell, Claim, Result

TABLE, FIGURE = "wang-2021-analyzing-table-3.2", "wang-2021-analyzing-figure-3.1"
CLAIMED = Record(
    FIGURE, "A figure", "2026-11-19", "0.1.0", 4, 0.05, 1, 12.0,
    (
        Claim("surely <above>", 3.00000012345, above=1.0, paper=2.5).cell(0.1),
        Claim("surely below", 3.0, below=1.0).cell(0.1),
        Claim("in its noise", 1.1, above=1.0).cell(0.1),
        Claim("by one run", 3.0, above=1.0).cell(None),
        Claim("not a number", math.nan, above=1.0).cell(),
        Cell("a row", "a column", 2.0, 2.1, "one remark; a longer remark that both of the rows share"),
        Cell("a row", "other", "O(d)", 2.0, "a longer remark that both of the rows share"),
    ),
    5, (9.0, 4.0),
)  # fmt: skip


def test_a_budget_is_shared_and_nobody_gets_more_than_they_want() -> None:
    assert share([1.0, 2.0, 30.0], 100.0) == 30.0
    assert share([1.0, 20.0, 30.0], 21.0) == pytest.approx(10.0)
    assert share([5.0, 5.0], 0.0) == 0.0
    assert share([], 7.0) == 0.0
    for wanted in ([3.0, 8.0, 1.0], [10.0] * 5, [0.5, 100.0]):
        cap = share(wanted, 12.0)
        assert sum(min(want, cap) for want in wanted) == pytest.approx(min(12.0, sum(wanted)))


def test_less_time_means_fewer_runs_and_then_fewer_people(monkeypatch: pytest.MonkeyPatch) -> None:
    item = replace(REPRODUCTIONS[FIGURE], repeats=10)
    monkeypatch.setattr(budget, "costs", lambda: {item.name: Cost(2.0, 10.0, False)})
    assert setting(item, 102.0) == (10, 1.0)
    assert setting(item, 52.0) == (5, 1.0)
    assert setting(item, 17.0) == (3, 0.5)
    assert setting(item, 0.0) == (3, budget.LEAST_SCALE)
    for seconds in (8.0, 20.0, 40.0, 75.0):
        runs, scale = setting(item, seconds)
        assert costs_of(2.0, 10.0, runs, scale) <= 1.02 * seconds


def costs_of(fixed: float, each: float, runs: int, scale: float) -> float:
    return Cost(fixed, each, False).seconds(runs, scale)


def test_the_next_call_runs_more_of_it_or_less_of_what_took_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    item = replace(REPRODUCTIONS[FIGURE], repeats=10)
    monkeypatch.setattr(budget, "costs", lambda: {item.name: Cost(2.0, 10.0, False)})
    assert budget._next_setting(item, None, 17.0) == (3, 0.5)
    assert budget._next_setting(item, replace(CLAIMED, repeats=3, scale=0.05), 17.0) == (3, 0.5)
    assert budget._next_setting(item, replace(CLAIMED, repeats=3, scale=0.4), 17.0) == (0, 0.5)
    too_long = replace(CLAIMED, repeats=8, scale=1.0, failure=budget._TOO_LONG)
    assert budget._next_setting(item, too_long, 102.0) == (3, 0.25)
    assert budget._next_setting(item, replace(too_long, failure="wrong"), 102.0) == (10, 1.0)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    CLAIMED.save(tmp_path)
    again = read(tmp_path)[FIGURE]
    assert replace(again, cells=()) == replace(CLAIMED, cells=())
    assert [repr(cell) for cell in again.cells] == [repr(cell) for cell in CLAIMED.cells]
    assert [kind_of(cell) for cell in again.claims] == ["holds", "fails", "open", "open", "fails"]
    assert len((tmp_path / f"{FIGURE}.json").read_text("utf-8").splitlines()) < 40


def test_a_record_keeps_what_the_paper_has_a_word_on_and_counts_the_rest() -> None:
    plain = tuple(Cell(f"r{place}", "c", None, float(place)) for place in range(70))
    result = Result(TABLE, "T", (*plain, Cell("r", "c", 1.0, 1.5), Claim("s", 1.0, above=0).cell()))
    record = record_of(result, repeats=1, scale=1.0, seed=1, seconds=2.0)
    assert ([cell.row for cell in record.cells], record.more, record.whole) == (["r", "s"], 70, True)
    assert [share for _, share in compared(record)] == [0.5]
    without = record_of(Result(TABLE, "T", plain), repeats=1, scale=1.0, seed=1, seconds=2.0)
    assert (len(without.cells), without.more) == (60, 10)


class _Page(HTMLParser):
    """What a page is made of: its tags must close, and nothing may be loaded from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)
        assert self.open == ["html"] or not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "img", "br", "input", "rect", "line", "circle"):
            self.open.append(tag)
        values = dict(attrs)
        self.ids += [values["id"] or ""] if "id" in values else []
        self.links += [values["href"] or ""] if tag == "a" else []
        self.loads += [values["src"] or ""] if "src" in values else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag


def test_the_page_says_what_came_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery, "KEPT", tmp_path / "none")
    CLAIMED.save(tmp_path)
    (tmp_path / f"{FIGURE}.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    replace(CLAIMED, name=TABLE, cells=(), failure="stopped <here>").save(tmp_path)
    text = write(tmp_path, [FIGURE, TABLE]).read_text("utf-8")
    page = _Page(text)
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert page.loads == [f"{FIGURE}.svg"]
    assert not re.search(r"(?:src|href)=\"?(?:https?:)?//(?!doi\.org|arxiv\.org)|@import|<script|url\(", text)
    assert "surely &lt;above&gt;" in text
    assert "stopped &lt;here&gt;" in text
    assert text.count('<tr class="holds">') == 2  # among all claims, and with its figure
    assert text.count('<tr class="fails">') == text.count('<tr class="open">') == 4
    assert "5% of the people" in text
    assert text.count("a longer remark that both of the rows share") == 1
    assert ">+5%<" in text
    assert "prefers-color-scheme: dark" in text
    assert text.count("holds if above 1<") == 8  # of four claims
    assert "Of 5 claims 1 hold, 2 do not, 2 are not decided." in text
    assert re.search(rf'<a href="#{FIGURE}" title="[^"]+">Figure 3.1<div class="bar">', text)  # in the index
    assert re.search(rf'<li class=never><a href="#{TABLE}"', text)
    assert re.search(r"holds 1</label>.*does not hold 2</label>.*not decided 2</label>", text)


@pytest.mark.parametrize("came", [{"failure": "stopped"}, {"scale": 0.01}])
def test_a_kept_record_stands_where_a_run_came_to_nothing_or_was_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, came: dict[str, Any]
) -> None:
    monkeypatch.setattr(gallery, "KEPT", tmp_path / "kept")
    replace(CLAIMED, scale=1.0).save(tmp_path / "kept")
    replace(CLAIMED, cells=(), **came).save(tmp_path)
    text = write(tmp_path, [FIGURE]).read_text("utf-8")
    assert "stopped" not in text
    assert "in its noise" in text
    assert _Page(text).loads == []  # its figure was not drawn here
    replace(CLAIMED, scale=1.0).save(tmp_path)
    assert _Page(write(tmp_path, [FIGURE]).read_text("utf-8")).loads == [f"{FIGURE}.svg"]


def test_two_small_ones_are_run_once_and_a_failure_is_run_again(tmp_path: Path) -> None:
    replace(CLAIMED, name=TABLE, cells=(), failure="stopped").save(tmp_path)
    calls: list[str] = []
    kept = tmp_path / "kept"
    there = run_all(
        [TABLE, FIGURE], tmp_path, hours=0.5, workers=2, keep=kept, progress=lambda *step: calls.append(step[2])
    )
    assert set(there) == {TABLE, FIGURE} == set(read(kept))
    assert all(record.whole and record.cells for record in there.values())
    assert (tmp_path / f"{FIGURE}.svg").read_text("utf-8").startswith("<?xml")
    assert any(TABLE in call for call in calls)
    at = (tmp_path / f"{TABLE}.json").stat().st_mtime_ns
    run_all([TABLE, FIGURE], tmp_path, hours=0.5, workers=2)
    assert (tmp_path / f"{TABLE}.json").stat().st_mtime_ns == at
    page = _Page(write(tmp_path).read_text("utf-8"))
    assert set(REPRODUCTIONS) - set(page.ids) == {name for name, item in REPRODUCTIONS.items() if not item.paper}


@pytest.mark.parametrize(
    ("does", "hours", "why"),
    [
        ("exec sleep 60", 0.3 / 3600, "stopped: it"),
        ("ulimit -S -t 1; while :; do :; done", 0.5, "stopped: it"),
        ("echo went; echo wrong >&2; exit 3", 0.1, "wrong"),
        ("exit 3", 0.1, "ended"),
    ],
)
def test_what_is_not_done_in_time_or_fails_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, hours: float, why: str
) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    CLAIMED.save(tmp_path / "out")
    there = run_all([TABLE, FIGURE], tmp_path / "out", hours=hours, workers=1)
    assert there[TABLE].failure.startswith(why)
    assert not there[TABLE].whole
    assert not there[FIGURE].failure  # what was run with fewer people stays


def test_a_run_is_limited_in_computing_and_not_by_the_clock(tmp_path: Path) -> None:
    begins = [sys.executable, "-m", "hubbub_papers.records"]
    slow = subprocess.run([*begins, "wang-2021-analyzing-figure-3.2", str(tmp_path), "10", "1", "1", "1"], check=False)
    assert slow.returncode == -signal.SIGXCPU
    assert not read(tmp_path)
    subprocess.run([*begins, TABLE, str(tmp_path), "1", "1", "1", "60"], check=True)
    assert set(read(tmp_path)) == {TABLE}


def test_expected_times_are_of_reproductions_and_in_words() -> None:
    assert set(costs()) == set(REPRODUCTIONS)
    timed = [records.expected(item) for item in REPRODUCTIONS.values()]
    assert all(re.fullmatch(r"~?(?:under 1 s|\d+ s|\d+ min|[\d.]+ h)", text) for text in timed)


def test_what_is_kept_is_of_whole_runs_with_a_day() -> None:
    kept = read(KEPT)
    files = {file.name.removesuffix(".json") for file in KEPT.iterdir() if file.name.endswith(".json")}
    assert files == set(kept)
    for name, record in kept.items():
        assert record.whole, name
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", record.day), name
        assert json.loads((KEPT / f"{name}.json").read_text("utf-8"))["name"] == name
    assert gallery.KINDS.keys() == {"holds", "fails", "open"}
