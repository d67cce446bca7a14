"""`hubbub reproduce`: the papers' tables and figures, next to ours."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli.options import AsJson, Seed
from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    from hubbub_papers import Result

_LIST, _GALLERY = "list", "gallery"
_SETS = "Of `gallery`: "


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="A name from `hubbub reproduce list`, a pattern such as 'tops-figure-*'; or `gallery`, a page of all."
        ),
    ] = _LIST,
    repeats: Annotated[
        int | None, typer.Option("--repeats", help="Runs of each setting.", show_default="as listed")
    ] = None,
    scale: Annotated[float, typer.Option("--scale", help="Shrink the populations, for a quick look.")] = 1.0,
    steps: Annotated[
        int | None, typer.Option("--steps", help="How long its synthetic streams are.", show_default="its own")
    ] = None,
    data: Annotated[
        str, typer.Option("--data", help="Files of a paper's own data, such as 'pos=FILE,dns=FILE': one value a line.")
    ] = "",
    seed: Seed = 1,
    out: Annotated[
        Path, typer.Option("--out", help="The folder for CSV and figures; the page of `gallery` is its index.html.")
    ] = Path("build/reproduce"),
    cite: Annotated[bool, typer.Option("--cite", help="Print the BibTeX of its paper, and run nothing.")] = False,
    hours: Annotated[
        float | None, typer.Option("--hours", help=f"{_SETS}when it is done.", show_default="no limit")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help=f"{_SETS}how many run at once.")] = 2,
    only: Annotated[str, typer.Option("--only", help=f"{_SETS}a pattern of the names to run.")] = "*",
    keep: Annotated[Path | None, typer.Option("--keep", help=f"{_SETS}a folder for the records of whole runs.")] = None,
    afresh: Annotated[bool, typer.Option("--afresh", help=f"{_SETS}run again what was run before.")] = False,
    as_json: AsJson = False,
) -> None:
    """Reproduce the papers' tables and figures, our numbers next to theirs."""
    from hubbub.cli.output import emit, page, say
    from hubbub_papers import REPRODUCTIONS

    if name == _LIST:
        return _cite(list(REPRODUCTIONS), every=True) if cite else _list(as_json)
    if name == _GALLERY:
        if repeats is not None or scale != 1 or steps is not None or data:
            raise InvalidValue("gallery", "--repeats, --scale, --steps or --data", "--hours: it chooses both")
        return _gallery(out, hours, workers, only, keep, seed, afresh)
    chosen = _chosen(name)
    if cite:
        return _cite(chosen)
    given = dict(_file(pair) for pair in data.split(",") if pair)
    rows: list[dict[str, Any]] = []
    for paper in chosen:
        # Of several reproductions, each takes the files that it can read.
        own = {name: file for name, file in given.items() if len(chosen) == 1 or name in REPRODUCTIONS[paper].data}
        result = _run(paper, repeats, scale, seed, steps, own)
        files = ", ".join(map(str, result.save(out)))
        if not as_json:
            page().print(result)
        say(f"saved {files}")
        # Cells of several reproductions in one list are told apart by their rows.
        prefix = f"{paper}: " if len(chosen) > 1 else ""
        rows += [{**cell, "row": f"{prefix}{cell['row']}"} for cell in result.to_dicts()]
    return emit(rows) if as_json else None


def _chosen(pattern: str) -> list[str]:
    """The names that fit a pattern, with a paper's full name or its alias; the closest if none does."""
    from hubbub.cli.options import named
    from hubbub_papers import REPRODUCTIONS
    from hubbub_papers.harness import full_name

    wanted = full_name(pattern)
    return [known for known in REPRODUCTIONS if fnmatchcase(known, wanted)] or [named("name", wanted, REPRODUCTIONS)]


def _cite(names: list[str], *, every: bool = False) -> None:
    """Print the BibTeX of the papers of these reproductions, or all of it."""
    from hubbub_papers import REPRODUCTIONS
    from hubbub_papers.bibliography import sources

    papers = {REPRODUCTIONS[name].paper for name in names}
    keys = list(sources()) if every else [paper.key for paper in papers if paper]
    typer.echo("\n".join(sources()[key].bibtex for key in keys), nl=False)


def _gallery(
    out: Path, hours: float | None, workers: int, only: str, keep: Path | None, seed: int, afresh: bool
) -> None:
    from hubbub.cli.output import progress, say
    from hubbub_papers.budget import run_all
    from hubbub_papers.gallery import write

    if hours is not None and not hours > 0:
        raise InvalidValue("hours", hours, "a number above 0")
    names = _chosen(only)
    try:
        with progress(_GALLERY) as follow:
            records = run_all(
                names, out, hours=hours, workers=workers, seed=seed, afresh=afresh, progress=follow, keep=keep
            )
    finally:  # what was run until an interrupt is on the page
        path = write(out)
    for name in names:
        if name not in records or records[name].failure:
            say(f"{name}: {records[name].failure if name in records else 'not begun in time; run it again to go on'}")
    typer.echo(path)


def _list(as_json: bool) -> None:
    from rich.markup import escape

    from hubbub.cli.output import emit, page, plain_table
    from hubbub_papers import REPRODUCTIONS
    from hubbub_papers.bibliography import sources
    from hubbub_papers.harness import PAPERS
    from hubbub_papers.records import costs, expected

    by_paper = {paper: [item for item in REPRODUCTIONS.values() if item.paper == paper] for paper in (*PAPERS, None)}
    if as_json:
        return emit(
            [
                {
                    "name": item.name,
                    "title": item.title,
                    "repeats": item.repeats,
                    "needs": list(item.needs),
                    "paper": item.paper.key if item.paper else None,
                    "seconds": costs()[item.name].seconds(item.repeats) if item.name in costs() else None,
                    "measured": item.name in costs() and costs()[item.name].measured,
                }
                for item in REPRODUCTIONS.values()
            ]
        )
    for paper, items in by_paper.items():
        if not items:
            continue
        table = plain_table("name", "time", "what it shows", left=["what it shows"])
        table.columns[2].no_wrap = False
        for item in items:
            runs = f"{item.repeats} run" + "s" * (item.repeats > 1)
            shows = f"{item.title} ({', '.join((runs, *item.needs))})"
            table.add_row(item.name, expected(item), escape(shows))
        if paper:
            page().print(
                f"\n{sources()[paper.key].text()}\n{paper.alias}-... is short for {paper.name}-...", markup=False
            )
        page().print(table)
    page().print("The time is that of one core, in full; after ~ extrapolated from small runs.")
    return None


def _file(pair: str) -> tuple[str, str]:
    name, equals, file = pair.partition("=")
    if not (name and equals and file):
        raise InvalidValue("--data", pair, "NAME=FILE, several joined by commas")
    return name.strip().lower(), file


def _run(name: str, repeats: int | None, scale: float, seed: int, steps: int | None, data: Mapping[str, str]) -> Result:
    from hubbub.cli.output import progress
    from hubbub_papers import reproduce as run

    with progress(name) as follow:
        return run(name, repeats=repeats, scale=scale, seed=seed, steps=steps, progress=follow, data=data)
