"""How fast, as ratios in one run: against plain C, against the best of the other libraries, against its own targets.

    python benchmarks/run.py [--only PART] [--quick] [--page]

Times are CPU seconds over all threads, the best of several turns. The numbers of each part are kept in
build/benchmarks.json, from which `--page` writes docs/benchmarks.md. Exits with 1 if a target is missed.
"""

import argparse
import dataclasses
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from typing import Any

import page
from amplification import amplification
from files import files
from growth import collector, growth
from heavy_hitters import heavy_hitters
from ingest import ingest, processes
from internet_scale import internet_scale
from measure import BUILD, Failure, Result
from mechanisms import mechanisms
from native import compiler
from oblivious import oblivious
from randomness import randomness
from range_sums import range_sums
from release import release
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from servers import hadamard, olh
from square_wave import square_wave
from startup import startup
from streams import streams
from ternary import ternary

from clients import clients

NUMBERS = BUILD / "benchmarks.json"

PARTS: dict[str, Callable[[bool], Iterator[Result]]] = {
    part.__name__: part
    for part in (
        *(
            randomness,
            startup,
            olh,
            hadamard,
            clients,
            mechanisms,
            growth,
            streams,
            ingest,
            processes,
            ternary,
            release,
            square_wave,
        ),
        *(heavy_hitters, range_sums, files, amplification, oblivious, collector, internet_scale),
    )
}


def main() -> int:
    options = _options()
    chosen = options.only or list(PARTS)
    run: dict[str, Any] = json.loads(NUMBERS.read_text()) if options.only and NUMBERS.exists() else {"parts": {}}
    run |= {"machine": _machine(), "cores": os.cpu_count()}
    results: list[Result] = []
    try:
        compiler()
        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("", total=len(chosen))
            for name in chosen:
                progress.update(task, description=name)
                before, measured = os.getloadavg()[0], list(PARTS[name](options.quick))
                load = max(before, os.getloadavg()[0])
                run["parts"][name] = {"quick": options.quick, "load": load, "results": _plain(measured)}
                NUMBERS.write_text(json.dumps(run, indent=2) + "\n")
                results += measured
                progress.advance(task)
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 2
    missed = [result for result in results if result.passed is False]
    Console(width=None if sys.stdout.isatty() else 140).print(_table(results))
    if options.page:
        page.write(run)
    print(f"{len(missed)} of {sum(result.passed is not None for result in results)} targets missed.")
    return 1 if missed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS, action="append", help="one part of it; may be given again")
    parser.add_argument("--quick", action="store_true", help="fewer repeats, smaller runs of the slow libraries")
    parser.add_argument(
        "--page", action="store_true", help="write docs/benchmarks.md, with all parts that were ever run"
    )
    return parser.parse_args()


def _machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _plain(results: list[Result]) -> list[dict[str, object]]:
    return [{**dataclasses.asdict(result), "passed": result.passed} for result in results]


def _table(results: list[Result]) -> Table:
    table = Table(title=f"hubbub, {_machine()}", caption="s: CPU seconds over all threads, the best of several turns")
    table.add_column("what")
    for column in ("hubbub", "other"):
        table.add_column(column, justify="right")
    table.add_column("compared with")
    for column in ("ratio", "target"):
        table.add_column(column, justify="right")
    table.add_column("")
    for result in results:
        table.add_row(
            result.what,
            _number(result.ours, result.unit),
            "" if result.theirs is None else _number(result.theirs, result.unit),
            result.versus,
            "" if result.ratio is None else f"{result.ratio:.3g}",
            _target(result),
            {True: "[green]pass[/]", False: "[red]MISSED[/]", None: ""}[result.passed],
        )
    return table


def _number(value: float, unit: str) -> str:
    if unit == "s" and value < 1:
        return f"{value * 1e3:.3g} ms"
    return f"{value:.4g} {unit}".strip()


def _target(result: Result) -> str:
    unit = "" if result.ratio is not None else result.unit
    if result.least is not None and result.most is not None:
        return f"{result.least:g} to {result.most:g}"
    if result.least is not None:
        return f"at least {result.least:g}"
    return "" if result.most is None else f"at most {_number(result.most, unit)}"


if __name__ == "__main__":
    sys.exit(main())
