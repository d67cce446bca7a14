"""`hubbub fold`: files of reports into sketches."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli import output
from hubbub.cli.options import AsJson
from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    from hubbub.backends.folding import FoldPlan

_BAD_ROWS = 1


def fold(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Parquet and Arrow IPC files of reports, folders of them, or URLs such as s3://bucket/day.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file of sketches to write.", show_default=False)
    ] = None,
    question: Annotated[
        list[str] | None, typer.Option("--question", help="Only reports to this question.", show_default="all")
    ] = None,
    steps: Annotated[
        str | None, typer.Option("--steps", metavar="FIRST..LAST", help="Only these steps.", show_default="all")
    ] = None,
    candidates: Annotated[
        list[str] | None,
        typer.Option(
            "--candidates",
            metavar="QUESTION=FILE",
            help="Count the support of the values in this file (one per line) instead of a whole sketch.",
            show_default=False,
        ),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option("--weight", metavar="COLUMN", help="A column of integers: what each report counts as."),
    ] = None,
    specs: Annotated[
        Path | None,
        typer.Option(
            "--specs",
            help="A JSON file with the list of the mechanisms' specs: others are left out.",
            show_default="those that the files name",
        ),
    ] = None,
    screen: Annotated[
        bool, typer.Option("--screen", help="Also count what tells forged reports: `hubbub estimate` then tests them.")
    ] = False,
    cores: Annotated[
        int | None, typer.Option("--cores", min=1, help="How many cores to use.", show_default="all")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only check the files, and name the rows that are bad.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Add up files of reports into sketches, each id once; `hubbub estimate` reads them.

    docs/report-files.md describes the files. Stopped and called again, it continues. Exit code 1 of --check means that
    some rows would be left out.
    """
    from hubbub.backends.file_fold import check_files, fold_files

    plan = replace(_plan(question or [], steps, candidates or [], weight, specs), screen=screen)
    if check:
        with output.progress("fold") as follow:
            checks = check_files(files, plan, progress=follow)
        answer: list[dict[str, Any]] = []
        for each in checks:
            reasons = {reason: {"rows": rows, "first": first} for reason, (rows, first) in each.left_out.items()}
            answer.append({**each._asdict(), "left_out": reasons})
            if not as_json:
                typer.echo(f"{each.path}: {each.kind}, {each.rows:,} rows, {each.asks:,} asks")
                for reason, (rows, first) in each.left_out.items():
                    more = ", ..." if rows > len(first) else ""
                    typer.echo(f"  {reason}: {rows:,} rows ({', '.join(map(str, first))}{more})")
        if as_json:
            output.emit({"files": answer})
        raise typer.Exit(_BAD_ROWS if any(each.left_out for each in checks) else 0)
    if out is None:
        raise InvalidValue("out", None, "--out FILE, or --check")
    with output.progress("fold") as follow:
        result = fold_files(files, plan, out, progress=follow, cores=cores)
    if as_json:
        asks = [{**key._asdict(), "n": sketch.n} for key, sketch in sorted(result.folded.sketches.items())]
        return output.emit(
            {
                "files": result.files,
                "rows": result.rows,
                "reports": result.folded.n,
                "repeated": result.repeated,
                "left_out": result.left_out,
                "asks": asks,
            }
        )
    typer.echo(
        f"{out}: {result.folded.n:,} reports to {len(result.folded.sketches):,} asks, from {result.files:,} files. "
        f"{result.repeated:,} rows repeat an id."
    )
    for path, counts in sorted(result.left_out.items()):
        output.say(f"left out of {path}: {', '.join(f'{rows:,} {reason}' for reason, rows in counts.items())}")
    return None


def _plan(
    questions: list[str], steps: str | None, candidates: list[str], weight: str | None, specs: Path | None
) -> FoldPlan:
    from hubbub.backends.folding import FoldPlan, read_plan
    from hubbub.mechanisms.base import ReportFormat

    first, last = _steps(steps)
    given = {}
    for each in candidates:
        name, equals, path = each.partition("=")
        if not equals:
            raise InvalidValue("candidates", each, "QUESTION=FILE")
        given[name] = [line for line in Path(path).read_text(encoding="utf-8").splitlines() if line]
    known = {}
    if specs is not None:
        try:
            listed = json.loads(specs.read_text(encoding="utf-8"))
        except ValueError:
            raise InvalidValue("specs", str(specs), "a file of JSON") from None
        for spec in listed if isinstance(listed, list) else [listed]:
            known[ReportFormat.from_spec(spec).spec_id] = spec
    plan = FoldPlan(specs=known, questions=tuple(questions), first=first, last=last, candidates=given, weight=weight)
    return read_plan(plan.to_json())


def _steps(text: str | None) -> tuple[int, int | None]:
    if text is None:
        return 0, None
    first, dots, last = text.partition("..")
    last = last if dots else first
    if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
        raise InvalidValue("steps", text, "FIRST..LAST, such as 480..503, or one step")
    return int(first), int(last)
