"""`hubbub plan --of distribution`: which way to ask for the distribution of a number."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from hubbub.cli.output import emit, page
from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    from hubbub.planning.ranges import RangeChoice
    from hubbub.planning.sparse import TernaryRow
    from hubbub.protocols.ranges.dimension import Dimension, RangeQuery
    from hubbub.random.source import Random


def plan_numbers(*, goal: str, n: int, epsilon: float, as_json: bool) -> None:
    """Print the measured error of every way, and which to use."""
    from hubbub.cli.output import plain_table
    from hubbub.rehearse.numbers import GOALS, compare_numbers

    rows = compare_numbers(epsilon=epsilon, n=n, goal=goal)
    best = rows[0]
    if as_json:
        setting = {"n": n, "epsilon": epsilon, "of": goal}
        return emit([{**row.to_dict(), **setting, "picked": row is best} for row in rows])
    title = f"A {goal} of numbers, {n:,} reports, epsilon {epsilon:.4g}; of a skewed crowd, measured\n"
    table = plain_table("way", "error", "bytes", "", left=[""], title=title)
    for row in rows:
        note = "picked" if row is best else f"{row.error / best.error:.2g} times"
        style = "bold green" if row is best else None
        table.add_row(row.way, f"{100 * row.error:.3g}%", f"{row.bytes}", note, style=style)
    page().print(table, f"\nThe error is {GOALS[goal]}, as a part of the range.")
    return None


def print_set_plan(
    *, domain: int, most: int, held: float | None, n: int, epsilon: float, forged: float, as_json: bool
) -> None:
    """Print the exact error of every mechanism at one setting, and which to use."""
    from hubbub.cli.output import plain_table
    from hubbub.core.domain import Ordinal, Sets
    from hubbub.planning.predict import part_text
    from hubbub.planning.sets import plan_sets

    plan = plan_sets(domain=Sets(Ordinal(domain), most), n=n, epsilon=epsilon, held=held, forged=forged)
    if as_json:
        setting = {"domain": domain, "sets": most, "held": plan.held, "n": n, "epsilon": epsilon, "forged": forged}
        return emit([{**row.to_dict(), **setting} for row in plan.rows])
    people = f"Sets of at most {most:,} of {domain:,} items, {plan.held:.4g} on average"
    title = f"{people}\n{n:,} reports, epsilon {epsilon:.4g}\n"
    table = plain_table("mechanism", "stderr", f"{part_text(forged)} forged", "bytes", "", left=[""], title=title)
    for row in plan.rows:
        numbers = f"{100 * row.stderr:.3g}%", f"{100 * row.shift:.3g}%", f"{row.bytes:,}"
        table.add_row(row.mechanism, *numbers, row.why, style="bold green" if row.picked else None)
    page().print(table, f"\n{plan.picked} has the smallest error of an item's share, on average over the items.")
    return None


def plan_sparse(*, domain: int, sparsity: int, n: int, epsilon: float, of: str, as_json: bool) -> None:
    """Print the exact error of every ternary mechanism at one setting, and which to use."""
    from hubbub.cli.output import plain_table
    from hubbub.planning.sparse import compare_ternary

    if of not in ("mean", "frequency"):
        raise InvalidValue("--of", of, "mean or frequency")
    rows = compare_ternary(epsilon=epsilon, dimension=domain, sparsity=sparsity, n=n, of=of)  # type: ignore[arg-type]
    best = rows[0]
    if best.error is None:
        raise InvalidValue("--sparsity", sparsity, best.why)
    if as_json:
        setting = {"domain": domain, "sparsity": sparsity, "n": n, "epsilon": epsilon, "of": of}
        return emit([{**row.to_dict(), **setting, "picked": row is best} for row in rows])
    title = f"{domain:,} entries, at most {sparsity:,} not 0; {n:,} reports, epsilon {epsilon:.4g}: each entry's {of}\n"
    table = plain_table("mechanism", "stderr", "bits", "", left=[""], title=title)
    for row in rows:
        numbers = _stderr(row, domain), "-" if row.bits is None else f"{row.bits:,}"
        style = "bold green" if row is best else "dim" if row.error is None else None
        table.add_row(row.mechanism, *numbers, _note(row, best), style=style)
    page().print(table, f"\n{best.mechanism} has the smallest error of the {of}, if everyone has {sparsity:,} entries.")
    return None


def _stderr(row: TernaryRow, domain: int) -> str:
    return "-" if row.error is None else f"{math.sqrt(row.error / domain):.3g}"


def _note(row: TernaryRow, best: TernaryRow) -> str:
    if row is best:
        return "picked"
    if row.error is None or best.error is None:
        return "refused" if row.bits is None else row.why
    return f"{row.error / best.error:.2f} times the squared error"


QUERIES: dict[str, Literal["prefixes", "ranges"]] = {"sums": "prefixes", "ranges": "ranges"}
"""What is asked for, and its name in `choose_counter`."""
_WORDS = {"sums": "Running sums", "ranges": "Sums between two random positions"}
_RHO_OF = "zCDP: (epsilon, delta) with delta above 0; weaker than pure epsilon, which implies it"


def plan_sums(*, of: str, n: int, epsilon: float, as_json: bool) -> None:
    """Print the error of both counters under pure epsilon, and under the rho that it implies."""
    from hubbub.cli.output import plain_table
    from hubbub.planning.sums import choose_counter
    from hubbub.random.source import Random

    rho, rng = epsilon**2 / 2, Random(seed="plan sums")  # simulated noise: nothing of anybody is in it
    pure = choose_counter(n, queries=QUERIES[of], epsilon=epsilon, rng=rng)
    gaussian = choose_counter(n, queries=QUERIES[of], rho=rho, rng=rng)
    if as_json:
        setting = {"n": n, "of": of}
        return emit(
            [
                {
                    "counter": choice.name,
                    "guarantee": choice.guarantee,
                    "stderr": choice.on_paper**0.5,
                    "measured": choice.measured**0.5,
                    "picked": choice is choices[0],
                    **setting,
                }
                for choices in (pure, gaussian)
                for choice in choices
            ]
        )
    title = f"{_WORDS[of]} of {n:,} values that a curator has; errors in multiples of the threshold\n"
    table = plain_table("counter", "stderr", "measured", "guarantee", "", left=["guarantee", ""], title=title)
    for choices in (pure, gaussian):
        best = choices[0]
        for choice in choices:
            note = "picked" if choice is best else f"{(choice.on_paper / best.on_paper) ** 0.5:.2g} times"
            style = "bold green" if choice is best else None
            numbers = (f"{number**0.5:.3g}" for number in (choice.on_paper, choice.measured))
            table.add_row(choice.name, *numbers, choice.guarantee, note, style=style)
    page().print(
        table,
        f"\nUnder pure epsilon: {pure[0].name}. Under rho: {gaussian[0].name}.\n{_RHO_OF}.\n"
        "The hierarchy has fan-out 16 and consistency; measured is simulated noise.",
    )
    return None


_COLUMN = re.compile(r"(?P<name>[^:=,\s]+):(?P<size>\d+)(?P<words>:words)?")
_WANTED = re.compile(r"(?P<name>[^:=,\s]+)=(?:(?P<low>\d+)(?:-(?P<high>\d+))?|(?P<part>\d+(?:\.\d+)?)%)")
DRAWN = 20
"""The number of random ranges that are tried for a query of a part of a column."""


def plan_table(
    *, columns: Sequence[str], queries: Sequence[str], n: int, epsilon: float, unbiased: bool, as_json: bool
) -> None:
    """Print the expected error of every way to report the columns, and which to use."""
    from hubbub.cli.output import plain_table
    from hubbub.planning.ranges import choose_ranges
    from hubbub.random.source import Random

    dimensions = read_columns(columns)
    rng = Random(seed="plan table")  # ranges drawn to represent many: nothing of anybody is in them
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
    """A query such as `age=30-40,state=3`; of `age=50%`, random ranges of that share of the values.

    Example:
        >>> from hubbub.random.source import Random
        >>> columns = read_columns(["age:100", "state:50:words"])
        >>> read_queries("age=30-40,state=3", columns, Random(seed=1))[0].box
        ((30, 40), (3, 3))
        >>> len(read_queries("age=50%", columns, Random(seed=1)))
        20
    """
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
