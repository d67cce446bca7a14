"""`hubbub plan table`: how devices report the private columns of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.options import AsJson, Epsilon, N
from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    from hubbub.planning.ranges import RangeChoice
    from hubbub.protocols.ranges.dimension import Dimension, RangeQuery
    from hubbub.random.source import Random

_COLUMN = re.compile(r"(?P<name>[^:=,\s]+):(?P<size>\d+)(?P<words>:words)?")
_WANTED = re.compile(r"(?P<name>[^:=,\s]+)=(?:(?P<low>\d+)(?:-(?P<high>\d+))?|(?P<part>\d+(?:\.\d+)?)%)")
DRAWN = 20
"""How many random ranges a query of a part of a column stands for."""


def plan_table(
    columns: Annotated[
        list[str],
        typer.Option(
            "--column", help="A private column, NAME:SIZE, or NAME:SIZE:words without an order.", show_default=False
        ),
    ],
    queries: Annotated[
        list[str],
        typer.Option(
            "--query",
            help="A box that will be asked for, age=30-40,state=3; age=50% is any half.",
            show_default=False,
        ),
    ],
    n: N,
    epsilon: Epsilon,
    unbiased: Annotated[bool, typer.Option("--unbiased", help="Only ways whose answers are unbiased.")] = False,
    as_json: AsJson = False,
) -> None:
    """Counts of boxes over private columns of a table, each of --column and --query once or more."""
    from hubbub.cli.output import emit, page, plain_table
    from hubbub.planning.ranges import choose_ranges
    from hubbub.random.source import Random

    dimensions = read_columns(columns)
    rng = Random(seed="plan table")  # ranges that are drawn to stand for many: nothing of anybody is in them
    boxes = [query for text in queries for query in read_queries(text, dimensions, rng)]
    ways = choose_ranges(epsilon=epsilon, dimensions=list(dimensions.values()), queries=boxes, n=n, unbiased=unbiased)
    best = ways[0]
    if as_json:
        setting = {"n": n, "epsilon": epsilon, "columns": list(columns), "queries": list(queries)}
        return emit([{**_row(way), **setting, "picked": way is best} for way in ways])
    title = f"{', '.join(columns)}; {n:,} people, epsilon {epsilon:.4g}\nAsked: {'; '.join(queries)}\n"
    table = plain_table("way", "stderr", "of people", "", left=[""], title=title)
    for way in ways:
        note = "picked" if way is best else f"{way.stderr / best.stderr:.2g} times"
        note += "" if way.unbiased else ", not unbiased"
        style = "bold green" if way is best else None
        table.add_row(way.name, f"{way.stderr:,.0f}", f"{100 * way.stderr / n:.3g}%", note, style=style)
    page().print(table, f"\n{_why(ways)}")
    return None


def _row(way: RangeChoice) -> dict[str, object]:
    return {"way": way.name, "stderr": way.stderr, "unbiased": way.unbiased, "consistent": way.consistent}


def _why(ways: list[RangeChoice]) -> str:
    best = ways[0]
    text = f"{best.name} has the smallest expected error of a count, over the queries that were named."
    if best.unbiased:
        return f"{text} Its answers are unbiased, with exact variances."
    sure = next((way for way in ways if way.unbiased), None)
    other = "" if sure is None else f" Without that: {sure.name} (--unbiased)."
    return f"{text} It takes people to be spread evenly inside cells; where they are not, it errs more.{other}"


def read_columns(texts: Sequence[str]) -> dict[str, Dimension]:
    """The private columns by name: `age:100` has 100 values with an order, `state:50:words` has 50 without."""
    from hubbub.protocols.ranges.dimension import Dimension

    columns: dict[str, Dimension] = {}
    for text in texts:
        match = _COLUMN.fullmatch(text)
        if match is None or match["name"] in columns:
            raise InvalidValue(
                "--column", text, "NAME:SIZE, or NAME:SIZE:words for values without an order; names once"
            )
        kind = Dimension.categorical if match["words"] else Dimension.ordinal
        columns[match["name"]] = kind(int(match["size"]))
    return columns


def read_queries(text: str, columns: dict[str, Dimension], rng: Random) -> list[RangeQuery]:
    """A query such as `age=30-40,state=3` as one box; `age=50%` as random ranges of half of the values."""
    from hubbub.protocols.ranges.dimension import RangeQuery

    wanted: dict[str, re.Match[str]] = {}
    for part in text.split(","):
        match = _WANTED.fullmatch(part.strip())
        if match is None or match["name"] in wanted or match["name"] not in columns:
            allowed = f"NAME=FIRST-LAST, NAME=VALUE or NAME=PART%, with commas between, of {', '.join(columns)}"
            raise InvalidValue("--query", text, allowed)
        wanted[match["name"]] = match
    drawn = DRAWN if any(match["part"] for match in wanted.values()) else 1
    boxes = [[_ends(columns[name], wanted.get(name), rng) for name in columns] for _ in range(drawn)]
    return [RangeQuery(box) for box in boxes]


def _ends(column: Dimension, wanted: re.Match[str] | None, rng: Random) -> tuple[int, int] | None:
    if wanted is None:
        return None
    if wanted["part"] is None:
        return int(wanted["low"]), int(wanted["high"] or wanted["low"])
    if not 0 < float(wanted["part"]) <= 100:
        raise InvalidValue("--query", wanted.group(), "a part above 0%, at most 100%")
    wide = max(1, round(column.size * float(wanted["part"]) / 100))
    first = int(rng.below(column.size - wide + 1, 1)[0])
    return first, first + wide - 1
