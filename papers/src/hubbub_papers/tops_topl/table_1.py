"""Table 1: the paper's streams and the synthetic ones that replace them here."""

from __future__ import annotations

import numpy as np

from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.tops_topl.setting import paper_streams
from hubbub_papers.tops_topl.streams import HOW, PAPER, REAL, real

_SHORT = "no figure reads more of the stream than this"


@reproduction(
    "tops-table-1", title="The streams: lengths, percentiles, averages", needs=("taxi", "retail", "flights3m")
)
def tops_table_1(context: Context) -> Reproduced:
    """The percentiles of the synthetic streams beside the paper's, and those of the real ones."""
    cells = []
    for stream in paper_streams(context):
        shape = PAPER[stream.name]
        printed = (shape.n, shape.bound, shape.p85, shape.p95, shape.p995, shape.p100, shape.average)
        cells += _row(stream.name, stream.values, stream.bound, printed, HOW)
    for name, title in REAL.items():
        stream = real(name)
        cells += _row(name, stream.values, stream.bound, (None,) * 7, f"real: {title}")
    return cells, None


def _row(name: str, values: np.ndarray, bound: float, printed: tuple[float | None, ...], note: str) -> list[Cell]:
    numbers = (values.size, bound, *np.percentile(values, [85, 95, 99.5, 100]), values.mean())
    columns = ("n", "max", "p85", "p95", "p99.5", "p100", "avg")
    return [
        Cell(name, column, paper, float(ours), f"{note}; {_SHORT}" if column == "n" and paper else note)
        for column, paper, ours in zip(columns, printed, numbers, strict=True)
    ]
