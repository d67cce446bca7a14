"""How many people are between two values of a column: an adaptive hierarchy and a fixed one.

Real columns, each cut into 1,024 buckets of one width, and random ranges of them. Nothing in the adaptive hierarchy was
chosen on these columns. Run it with `python examples/adaptive_ranges.py`.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from hubbub import Random
from hubbub.data import adult, census, flights3m, taxi
from hubbub.planning.ranges import choose_ranges
from hubbub.protocols.ranges.adaptive import AdaptiveHierarchy, AdaptiveTable
from hubbub.protocols.ranges.dimension import Dimension, RangeQuery
from hubbub.protocols.ranges.hierarchy import HIO
from hubbub.protocols.ranges.table import RangeTable

SIZE, EPSILON, MOST = 1024, 1.0, 300_000


def real_columns() -> Iterator[tuple[str, np.ndarray]]:
    """Real columns, and what they are called."""
    people = census(columns=["age", "weeks_worked", "instance_weight", "dividends"])
    for name in ("age", "weeks_worked", "instance_weight", "dividends"):
        yield f"census, {name}", people[name]
    yield "Adult, hours_per_week", adult()["hours_per_week"]
    trips = taxi()
    yield "taxi, fare up to $100", np.clip(trips["fare_amount"], 0, 100)
    yield "taxi, distance up to 30 miles", np.clip(trips["trip_distance"], 0, 30)
    planes = flights3m()
    yield "flights, delay of -60 to 240 min", np.clip(planes["delay"], -60, 240)
    yield "flights, distance", planes["distance"]


def buckets(values: np.ndarray) -> np.ndarray:
    """So many buckets of one width, and a record of one code a person."""
    low, high = float(values.min()), float(values.max())
    return np.minimum((values - low) / (high - low) * SIZE, SIZE - 1).astype(np.int64)[:, None]


def errors(records: np.ndarray, queries: list[RangeQuery], runs: int) -> tuple[float, float, float]:
    """The mean absolute errors of both as shares, and how often the adaptive one's intervals of 95% hold the truth."""
    n, line = len(records), (Dimension.ordinal(SIZE),)
    truth = np.array([np.sum((records >= query.box[0][0]) & (records <= query.box[0][1])) for query in queries])
    hio, adaptive = HIO(EPSILON, line), AdaptiveHierarchy(EPSILON, line, n)
    fixed, grown, covered = [], [], []
    for run in range(runs):
        table = RangeTable(hio, hio.randomize(records, Random(seed=run)))
        fixed.append([table.answer(query, consistent=True).value[0] for query in queries] - truth)
        cut = AdaptiveTable(*adaptive.randomize(records, Random(seed=run)))
        answers = [cut.answer(query) for query in queries]
        off = np.array([answer.value[0] for answer in answers]) - truth
        grown.append(off)
        covered.append(np.abs(off) < 1.96 * np.array([answer.stderr[0] for answer in answers]))
    return float(np.abs(fixed).mean() / n), float(np.abs(grown).mean() / n), float(np.mean(covered))


def main(
    columns: Iterable[tuple[str, np.ndarray]] | None = None, runs: int = 5, number: int = 100
) -> list[tuple[str, int, float, float, float]]:
    """Measure every column, and print a line of each."""
    ends = np.sort(np.random.default_rng(1).integers(0, SIZE, (number, 2)), axis=1)
    queries = [RangeQuery([(int(low), int(high))]) for low, high in ends]
    print(f"{number} random ranges, {runs} runs, epsilon {EPSILON:g}: mean absolute error as a share of the people\n")
    print(f"{'column':34}{'people':>9}{'HIO, consistent':>17}{'adaptive':>10}{'times':>7}{'expected':>10}{'held':>7}")
    rows = []
    for name, values in real_columns() if columns is None else columns:
        picked = np.random.default_rng(2).permutation(len(values))[:MOST]
        fixed, grown, covered = errors(buckets(np.asarray(values, dtype=np.float64)[picked]), queries, runs)
        n = len(picked)
        ways = choose_ranges(epsilon=EPSILON, dimensions=[Dimension.ordinal(SIZE)], queries=queries, n=n)
        (way,) = (way for way in ways if isinstance(way.mechanism, AdaptiveHierarchy))
        expected = np.sqrt(2 / np.pi) * way.stderr / n
        print(f"{name:34}{n:9,}{fixed:17.4f}{grown:10.4f}{fixed / grown:7.1f}{expected:10.4f}{covered:7.0%}")
        rows.append((name, n, fixed, grown, covered))
    return rows


if __name__ == "__main__":
    main()
