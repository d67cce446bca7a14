"""Every claim of every reproduction, at a size that a test can afford: verdicts.json lists what each comes to.

A claim's number has a standard error, by the jackknife over the runs, or is exact. A verdict is listed where the number
is at least three standard errors from the nearest bound. If the truth were on the bound, that would happen by chance,
to one side, in 4.8% of such claims with 3 runs, 2.9% with 4, 1.5% with 6 and 0.4% with 20 (Student's t). Claims that
are nearer are listed as not decided. With the fixed seed, a method whose number moves across the bound is always seen.
The size is smaller than the paper's, at which a verdict may be another one.

`python papers/tests/test_verdicts.py 'wang-2023-vectors-*'` writes the list anew, of all or some. Run it after a
change that moves numbers, and read the difference: a verdict that turned is a finding, or a mistake.
"""

import json
import math
import re
import sys
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from hubbub_papers import REPRODUCTIONS, Cell, reproduce

FEWEST = 3.0
FILE = Path(__file__).with_name("verdicts.json")
RECORDED: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
UNCLAIMED = {
    *(
        f"wang-2021-analyzing-table-{number}"
        for number in ("3.1", "3.2", "4.3", "5.1", "5.2", "7.3", "9.1", "9.2", "9.3")
    ),
    *("wang-2021-analyzing-figure-4.1", "wang-2021-analyzing-figure-8.1", "wang-2021-streams-table-1"),
}
"""These are numbers next to the printed ones, or a figure of which the text claims nothing."""

NOT_LISTED: set[str] = {
    "wang-2021-analyzing-figure-6.7",
    "ren-2022-ldpids-figure-10",
}
"""Not yet listed: three runs of one, at a hundredth of the people, take 80 to 100 seconds of computing."""


def distance(cell: Cell) -> float:
    """How many standard errors a claim's number is from its nearest bound; infinite where it is exact."""
    verdict = cell.note.split("; ")[0]
    bounds = [float(bound) for bound in re.findall(r"(?:above|below) ([-+.\de]+)", verdict)]
    error = re.search(r"standard error ([-+.\de]+)", cell.note)
    nearest = min(abs(cell.ours - bound) for bound in bounds)
    return nearest / float(error[1]) if error else math.inf if nearest > 0 else 0.0


def decision(cell: Cell) -> str:
    """What a claim comes to: "holds", "does not hold" or "not decided"."""
    if not math.isfinite(cell.ours) or distance(cell) < FEWEST:
        return "not decided"
    return "does not hold" if cell.note.startswith("does not hold") else "holds"


def decisions(name: str, size: dict[str, Any]) -> dict[str, str]:
    """What the claims come to at a size: a number of runs, a scale, and a number of steps where there are streams.

    Of several claims in the same words, the later ones are numbered.
    """
    options = {key: size[key] for key in ("repeats", "scale", "steps") if key in size}
    found: dict[str, str] = {}
    for cell in reproduce(name, **options).cells:
        if cell.column == "claim":
            same = sum(row.split(" (again, ")[0] == cell.row for row in found)
            found[f"{cell.row} (again, {same})" if same else cell.row] = decision(cell)
    return found


def test_every_reproduction_that_claims_something_is_listed() -> None:
    assert set(RECORDED) | NOT_LISTED == set(REPRODUCTIONS) - UNCLAIMED
    assert not set(RECORDED) & NOT_LISTED
    assert all(row["claims"] for row in RECORDED.values())
    verdicts = {verdict for row in RECORDED.values() for verdict in row["claims"].values()}
    assert verdicts == {"holds", "does not hold", "not decided"}


@pytest.mark.papers
@pytest.mark.parametrize("name", RECORDED)
def test_every_claim_comes_to_what_is_listed(name: str) -> None:
    listed: dict[str, str] = RECORDED[name]["claims"]
    found = decisions(name, RECORDED[name])
    assert set(found) == set(listed)
    assert {row: verdict for row, verdict in found.items() if listed[row] != "not decided"} == {
        row: verdict for row, verdict in listed.items() if verdict != "not decided"
    }


def test_distances_are_read_from_notes() -> None:
    near = Cell("a", "claim", None, 1.3, "holds (above 1, below 2); standard error 0.1")
    assert distance(near) == pytest.approx(3)
    exact = Cell("a", "claim", None, 1e-3, "holds (above -1e-09); exact")
    assert distance(exact) == math.inf
    assert decision(exact) == "holds"
    assert decision(Cell("a", "claim", None, 1.2, near.note)) == "not decided"
    assert (
        decision(Cell("a", "claim", None, 9.0, "does not hold here (below 2); standard error 0.1")) == "does not hold"
    )


if __name__ == "__main__":
    for name, row in RECORDED.items():
        if any(fnmatchcase(name, pattern) for pattern in sys.argv[1:] or ["*"]):
            row["claims"] = decisions(name, row)
            # Read again: another process may have recorded others.
            newest = json.loads(FILE.read_text(encoding="utf-8")) | {name: row}
            FILE.write_text(json.dumps(newest, indent=1) + "\n", encoding="utf-8")
            print(name, dict(Counter(row["claims"].values())), flush=True)
