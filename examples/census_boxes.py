"""How many people are in a box of several columns of the census: grids (HDG) and a hierarchy (HIO).

Half of each of two, and of each of four columns. Run it with `python examples/census_boxes.py`.
"""

import numpy as np

from hubbub import Random
from hubbub.data import census
from hubbub.protocols.ranges.dimension import Dimension, RangeQuery
from hubbub.protocols.ranges.grid_table import GridTable
from hubbub.protocols.ranges.grids import HDG
from hubbub.protocols.ranges.hierarchy import HIO
from hubbub.protocols.ranges.table import RangeTable

SIZE, EPSILON, BOXES = 64, 1.0, 20
COLUMNS = ("age", "weeks_worked", "industry_code", "occupation_code")


def people() -> np.ndarray:
    """Records of 64 values a column; ages are cut into as many."""
    table = census(columns=list(COLUMNS))
    return np.stack([table["age"] * SIZE // 91, *(table[name] for name in COLUMNS[1:])], axis=1)


def half_boxes(asked: int, rng: np.random.Generator) -> list[RangeQuery]:
    """Boxes of half of each of so many columns, which and where at random."""
    boxes = []
    for _ in range(BOXES):
        box: list[tuple[int, int] | None] = [None] * len(COLUMNS)
        for column in rng.choice(len(COLUMNS), asked, replace=False).tolist():
            first = int(rng.integers(0, SIZE // 2 + 1))
            box[column] = (first, first + SIZE // 2 - 1)
        boxes.append(RangeQuery(box))
    return boxes


def mean_error(table: GridTable | RangeTable, records: np.ndarray, boxes: list[RangeQuery]) -> float:
    """The mean absolute error, as a share of the people."""
    off = []
    for query in boxes:
        inside = np.ones(len(records), dtype=bool)
        for column, wanted in enumerate(query.box):
            if isinstance(wanted, tuple):
                inside &= (records[:, column] >= wanted[0]) & (records[:, column] <= wanted[1])
        off.append(abs(table.answer(query).value[0] - inside.sum()) / len(records))
    return float(np.mean(off))


def main(records: np.ndarray | None = None, runs: int = 6) -> dict[int, tuple[float, float]]:
    """Measure both for two and for four columns, HIO once: its error is far larger, and takes longer to measure."""
    records = people() if records is None else records
    space = (Dimension.ordinal(SIZE),) * len(COLUMNS)
    hdg, hio = HDG(EPSILON, space, len(records)), HIO(EPSILON, space)
    boxes = {asked: half_boxes(asked, np.random.default_rng(asked)) for asked in (2, 4)}
    grids: dict[int, list[float]] = {2: [], 4: []}
    for run in range(runs):
        table = GridTable(hdg, hdg.randomize(records, Random(seed=run)))
        for asked, own in grids.items():
            own.append(mean_error(table, records, boxes[asked]))
    tree = RangeTable(hio, hio.randomize(records, Random(seed=0)))
    print(
        f"{len(records):,} people, epsilon {EPSILON:g}, {BOXES} boxes: mean absolute error as a share of the people\n"
    )
    result = {}
    for asked, own in grids.items():
        errors = float(np.mean(own)), mean_error(tree, records, boxes[asked])
        times = errors[1] / errors[0]
        print(f"{asked} columns: HDG {errors[0]:.4f} ({runs} runs), HIO {errors[1]:.3f}: {times:.0f} times")
        result[asked] = errors
    return result


if __name__ == "__main__":
    main()
