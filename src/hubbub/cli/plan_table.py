"""`hubbub plan table`: how devices report the private columns of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.options import AsJson, Epsilon, N, named
from hubbub.cli.output import PICKED, emit, page, plain_table
from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    from hubbub.planning.ranges import MethodDivision, RangeChoice
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
            "--query", help="A box that will be asked for, age=30-40,state=3; age=50% is any half.", show_default=False
        ),
    ],
    n: N,
    epsilon: Epsilon,
    fanout: Annotated[int, typer.Option("--fanout", help="How many intervals make one of the next level.")] = 5,
    method: Annotated[
        list[str] | None, typer.Option("--method", "-m", help="Compare only these methods.", show_default="all")
    ] = None,
    unbiased: Annotated[bool, typer.Option("--unbiased", help="Only ways whose answers are unbiased.")] = False,
    as_json: AsJson = False,
) -> None:
    """Counts of boxes over private columns of a table, each of --column and --query once or more."""
    from hubbub.planning.ranges import choose_ranges, divide_people
    from hubbub.random.source import Random

    dimensions = read_columns(columns, fanout)
    rng = Random(seed="plan table")  # ranges that are drawn to stand for many: nothing of anybody is in them
    boxes = [query for text in queries for query in read_queries(text, dimensions, rng)]
    ways = choose_ranges(epsilon=epsilon, dimensions=list(dimensions.values()), queries=boxes, n=n, unbiased=unbiased)
    names = [type(way.mechanism).__name__ for way in ways]
    chosen = [named("method", name, dict.fromkeys(names)) for name in method or names]
    ways = [way for way, name in zip(ways, names, strict=True) if name in chosen]
    divided = divide_people(ways, [box.share(list(dimensions.values())) for box in boxes], n)
    best = ways[0]
    if as_json:
        setting = {"n": n, "epsilon": epsilon, "columns": list(columns), "queries": list(queries), "fanout": fanout}
        shares = {} if divided is None else dict(zip(map(id, divided.choices), divided.shares, strict=True))
        return emit(
            [{**_row(way), **setting, "picked": way is best, "share_of_two": shares.get(id(way))} for way in ways]
        )
    title = f"{', '.join(columns)}; {n:,} people, epsilon {epsilon:.4g}\nAsked: {'; '.join(queries)}\n"
    table = plain_table("way", "stderr", "of people", "at most", "", left=[""], title=title)
    for way in ways:
        note = "picked" if way is best else f"{way.stderr / best.stderr:.2g} times"
        note += "" if way.unbiased else ", not unbiased"
        style = PICKED if way is best else None
        most = "" if way.bound is None else f"{way.bound:,.0f} ({bound_of(way)})"
        table.add_row(way.name, f"{way.stderr:,.0f}", f"{100 * way.stderr / n:.3g}%", most, note, style=style)
    page().print(table, f"\n{_why(ways)}\n{_bounds(epsilon, list(dimensions.values()))}{_divided(divided, best)}")
    return None


def _row(way: RangeChoice) -> dict[str, object]:
    return {
        "way": way.name,
        "stderr": way.stderr,
        "unbiased": way.unbiased,
        "consistent": way.consistent,
        "bound": way.bound,
        "bound_name": bound_of(way),
    }


def bound_of(way: RangeChoice) -> str:
    """The number of a method's bound in T. Wang, 2021; empty where there is none."""
    from hubbub.planning.range_bounds import bound_name
    from hubbub.protocols.ranges.hierarchy import IntervalMechanism
    from hubbub.protocols.ranges.split import SC

    return bound_name(way.mechanism) if isinstance(way.mechanism, IntervalMechanism | SC) else ""


def _bounds(epsilon: float, dimensions: list[Dimension]) -> str:
    """What the bounds say of which method is better, and where."""
    from hubbub.planning.range_bounds import hio_from_volume, sc_up_to_columns

    try:
        volume, columns = hio_from_volume(epsilon, dimensions), sc_up_to_columns(epsilon, dimensions)
    except InvalidValue:  # HIO has too many levels
        return ""
    single = len(dimensions) == 1
    boxes = "ranges" if single else "boxes of all columns"
    text = (
        f"By the bounds, HIO is better than MG for {boxes} of at least {volume:.2g} of all cells"
        if volume <= 1
        else f"By the bounds, MG is better than HIO for all {boxes}"
    )
    text += " (7.32)" if single else " (7.33)"
    if single:
        return f"{text}."
    split = f"SC for queries of up to {columns}" if columns else "HIO for queries of any number"
    return f"{text}, and the better one of SC and HIO is {split} of the columns (7.34)."


def _divided(division: MethodDivision | None, best: RangeChoice) -> str:
    """How people would be divided between two methods."""
    if division is None:
        return "\nOne method answers all queries best: nothing is gained by dividing people between methods."
    parts = " and ".join(
        f"{share:.0%} by {type(way.mechanism).__name__} (it answers {division.answered.count(place)} of "
        f"{len(division.answered)} queries)"
        for place, (way, share) in enumerate(zip(division.choices, division.shares, strict=True))
    )
    times = division.stderr / best.stderr
    if times < 1:
        return f"\nDivided between two methods, {parts}, people give a smaller error: {division.stderr:,.0f}."
    errs = f"errs {times:.2g} times as much as {best.name} alone"
    return f"\nNo division of the people between two methods errs less; the best one, {parts}, {errs}."


def _why(ways: list[RangeChoice]) -> str:
    best = ways[0]
    text = f"{best.name} has the smallest expected error of a count, over the queries that were named."
    if best.unbiased:
        return f"{text} Its answers are unbiased, with exact variances."
    sure = next((way for way in ways if way.unbiased), None)
    other = "" if sure is None else f" Without that: {sure.name} (--unbiased)."
    return f"{text} It takes people to be spread evenly inside cells; where they are not, it errs more.{other}"


def read_columns(texts: Sequence[str], fanout: int = 5) -> dict[str, Dimension]:
    """The private columns by name: `age:100` has 100 values with an order, `state:50:words` has 50 without."""
    from hubbub.protocols.ranges.dimension import Dimension

    columns: dict[str, Dimension] = {}
    for text in texts:
        match = _COLUMN.fullmatch(text)
        if match is None or match["name"] in columns:
            raise InvalidValue(
                "--column", text, "NAME:SIZE, or NAME:SIZE:words for values without an order; names once"
            )
        size = int(match["size"])
        words = match["words"] is not None
        columns[match["name"]] = Dimension.categorical(size) if words else Dimension.ordinal(size, fanout=fanout)
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
