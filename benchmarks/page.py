"""Writes docs/benchmarks.md, and its plots, from the numbers of a run.

python benchmarks/page.py NUMBERS.json
"""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measure import BUILD, HERE
from mechanisms import CLIENT, SERVER

DOCS = HERE.parent / "docs"
Row = dict[str, Any]

TITLES = {
    "randomness": "Random bits",
    "startup": "Import",
    "olh": "Local hashing: the server",
    "hadamard": "Hadamard response: the server",
    "clients": "Devices, against other libraries",
    "mechanisms": "Every mechanism",
    "growth": "With more reports",
    "streams": "Window streams",
    "ingest": "The collector over HTTP",
    "processes": "Several processes on one PostgreSQL",
    "ternary": "Sparse ternary vectors",
    "release": "Published values (ToPS)",
    "square_wave": "Distributions (square wave)",
    "heavy_hitters": "Heavy hitters (PEM)",
    "range_sums": "Range sums (HIO)",
    "files": "Files of reports (`hubbub fold`)",
    "amplification": "Amplification by shuffling",
    "oblivious": "The oblivious shuffle",
    "collector": "The collector, as it grows",
    "internet_scale": "Laws by which large crowds are extrapolated",
}
HEAD = """# Benchmarks

Written by `make bench`, which runs everything anew; `python benchmarks/run.py --only PART --page` runs one part and
replaces its numbers here. A time is CPU time over all threads, the best of several turns in which both sides alternate.
Read the *ratio*: it is the other's time divided by ours (2 is twice as fast), or our rate divided by the other's. Times
themselves are those of this machine, and other work on it makes them longer.
"""


def number(value: float, unit: str) -> str:
    """A number with its unit, as short as it can be."""
    if unit == "s" and value < 1:
        return f"{value * 1e3:.3g} ms"
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{text} {unit}".strip()


def target(row: Row) -> str:
    if row["least"] is None and row["most"] is None:
        return ""
    unit = "" if row["ratio"] is not None else row["unit"]
    least, most = (None if row[end] is None else number(row[end], unit) for end in ("least", "most"))
    words = f"{least} to {most}" if least and most else f"at least {least}" if least else f"at most {most}"
    return f"{words}: {'held' if row['passed'] else '**missed**'}"


def table(rows: list[Row]) -> Iterator[str]:
    yield "| | hubbub | other | compared with | ratio | target |"
    yield "|---|---:|---:|---|---:|---|"
    for row in rows:
        other = "" if row["theirs"] is None else number(row["theirs"], row["unit"])
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.3g}"
        cells = row["what"], number(row["ours"], row["unit"]), other, row["versus"], ratio, target(row)
        yield f"| {' | '.join(cells)} |"


def mechanisms(rows: list[Row]) -> dict[str, tuple[float, float]]:
    """The nanoseconds of a device and of a server, by mechanism."""
    sides = {side: {row["what"].removesuffix(side): row["ours"] for row in rows} for side in (CLIENT, SERVER)}
    return {name: (sides[CLIENT][name], sides[SERVER][name]) for name in sides[CLIENT] if name in sides[SERVER]}


def mechanism_table(rows: list[Row]) -> Iterator[str]:
    yield "At epsilon 1, in batches. Adding up a report of local hashing takes one hash for each value of the domain.\n"
    yield "![Nanoseconds of each mechanism, on the device and on the server](benchmarks.png)\n"
    yield "| mechanism (size; bytes of a report) | a device makes a report in | a server adds it up in |"
    yield "|---|---:|---:|"
    for name, (client, server) in mechanisms(rows).items():
        yield f"| {name} | {number(client, 'ns')} | {number(server, 'ns')} |"


def draw(rows: list[Row], path: Path) -> None:
    """Both sides of every mechanism, as bars on a logarithmic axis."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    costs = {name.partition(" (")[0]: sides for name, sides in mechanisms(rows).items()}
    figure, axis = plt.subplots(figsize=(9, 0.3 * len(costs) + 1), layout="constrained")
    for place, (side, colour) in enumerate((("on the device", "#4269d0"), ("on the server", "#ff725c"))):
        places = [row + 0.2 - 0.4 * place for row in range(len(costs))]
        axis.barh(places, [sides[place] for sides in costs.values()], height=0.38, label=side, color=colour)
    axis.set(xscale="log", xlabel="CPU nanoseconds a report", yticks=range(len(costs)), yticklabels=list(costs))
    axis.invert_yaxis()
    axis.grid(axis="x", alpha=0.3)
    axis.legend()
    figure.savefig(path, dpi=72)
    plt.close(figure)


def write(run: dict[str, Any], docs: Path = DOCS) -> None:
    """Write the page and its plots."""
    parts: dict[str, dict[str, Any]] = run["parts"]
    judged = [row for part in parts.values() for row in part["results"] if row["passed"] is not None]
    missed = [row for row in judged if not row["passed"]]
    lines = [HEAD, f"{run['machine']}. {len(judged) - len(missed)} of {len(judged)} targets are held."]
    if missed:
        lines += [
            "",
            "Missed: " + "; ".join(f"{row['what'] or row['unit']} ({target(row)[:-12]})" for row in missed) + ".",
        ]
    for name, title in TITLES.items():
        if name not in parts:
            continue
        part = parts[name]
        lines += ["", f"## {title}", ""]
        if name == "mechanisms":
            draw(part["results"], docs / "benchmarks.png")
            lines += mechanism_table(part["results"])
        else:
            if name == "collector" and (BUILD / "growth.png").exists():
                shutil.copy(BUILD / "growth.png", docs / "growth.png")
                lines += [
                    "![CPU milliseconds of the collector's step, release, start and page, by what grows](growth.png)",
                    "",
                ]
            lines += table(part["results"])
        smaller = ", with fewer repeats and smaller crowds (`--quick`)" if part["quick"] else ""
        lines += ["", f"Measured at a load of {part['load']:.1f} on {run['cores']} cores{smaller}."]
    absent = [title for name, title in TITLES.items() if name not in parts]
    if absent:
        lines += ["", "## Not run", "", f"{'; '.join(absent)}."]
    (docs / "benchmarks.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write(json.loads(Path(sys.argv[1]).read_text()))
