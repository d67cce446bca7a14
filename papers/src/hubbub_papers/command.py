"""`hubbub reproduce`: the papers' tables and figures, beside ours."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli.options import AsJson, Seed

if TYPE_CHECKING:
    from hubbub_papers import Result

_LIST = "list"


def reproduce(
    name: Annotated[
        str, typer.Argument(help="A name from `hubbub reproduce list`, or a pattern such as 'dissertation-table-3.*'.")
    ] = _LIST,
    repeats: Annotated[
        int | None, typer.Option("--repeats", help="Runs of each setting.", show_default="as listed")
    ] = None,
    scale: Annotated[float, typer.Option("--scale", help="Shrink the populations, for a quick look.")] = 1.0,
    steps: Annotated[
        int | None, typer.Option("--steps", help="How long its synthetic streams are.", show_default="its own")
    ] = None,
    seed: Seed = 1,
    out: Annotated[Path, typer.Option("--out", help="The folder for CSV and PNG.")] = Path("build/reproduce"),
    as_json: AsJson = False,
) -> None:
    """Reproduce the papers' tables and figures, our numbers beside theirs."""
    from hubbub.cli.output import emit, page, say
    from hubbub_papers import REPRODUCTIONS

    if name == _LIST:
        return _list(as_json)
    chosen = [known for known in REPRODUCTIONS if fnmatchcase(known, name)] or [_closest(name)]
    rows: list[dict[str, Any]] = []
    for paper in chosen:
        result = _run(paper, repeats, scale, seed, steps)
        files = ", ".join(map(str, result.save(out)))
        if not as_json:
            page().print(result)
        say(f"saved {files}")
        # Cells of several reproductions in one list are told apart by their rows.
        prefix = f"{paper}: " if len(chosen) > 1 else ""
        rows += [{**cell, "row": f"{prefix}{cell['row']}"} for cell in result.to_dicts()]
    return emit(rows) if as_json else None


def _list(as_json: bool) -> None:
    from hubbub.cli.output import emit, page
    from hubbub_papers import REPRODUCTIONS

    known = [
        {"name": paper.name, "title": paper.title, "repeats": paper.repeats, "needs": list(paper.needs)}
        for paper in REPRODUCTIONS.values()
    ]
    if as_json:
        return emit(known)
    from hubbub.cli.output import plain_table

    table = plain_table("name", "what it shows", "runs", "data", left=["what it shows", "data"])
    table.columns[1].no_wrap = False
    for paper in REPRODUCTIONS.values():
        table.add_row(paper.name, paper.title, str(paper.repeats), ", ".join(paper.needs))
    page().print(table)
    return None


def _closest(name: str) -> str:
    from hubbub.cli.options import named
    from hubbub_papers import REPRODUCTIONS

    return named("name", name, REPRODUCTIONS)


def _run(name: str, repeats: int | None, scale: float, seed: int, steps: int | None) -> Result:
    from hubbub.cli.output import progress
    from hubbub_papers import reproduce as run

    with progress(name) as follow:
        return run(name, repeats=repeats, scale=scale, seed=seed, steps=steps, progress=follow)
