"""`hubbub data`: the real data sets, whose they are, and where they are kept."""

from typing import Annotated

import typer

from hubbub.cli.options import AsJson, named
from hubbub.cli.output import emit, page, say

__all__ = ["app"]

app = typer.Typer()


@app.callback(invoke_without_command=True)
def data(context: typer.Context) -> None:
    """Real data sets: list them, fetch one."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("list")
def list_sets(as_json: AsJson = False) -> None:
    """List the data sets, with their sources and licences."""
    from hubbub.data import CATALOG

    records = [_record(name) for name in CATALOG]
    if as_json:
        return emit(records)
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 1, 0), show_header=False)
    for record in records:
        stored = record["stored"] or f"not fetched yet: hubbub data get {record['name']}"
        table.add_row(
            f"[bold]{record['name']}[/]",
            f"{record['title']}: {record['content']}\n"
            f"[dim]source   {record['source']}\nlicence  {record['terms']}\nstored   {stored}[/]",
        )
    page().print(table)
    return None


@app.command("get")
def get_set(
    name: Annotated[str, typer.Argument(help="A name from `hubbub data list`.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Fetch a data set, once; later uses need no network."""
    from hubbub.data import CATALOG, fetch

    name = named("name", name, CATALOG)
    fetch(name, progress=say)
    record = _record(name)
    if as_json:
        return emit(record)
    console = page()
    console.print(f"[bold]{record['title']}[/]: {record['content']}")
    for key in ("source", "terms", "package", "stored"):
        console.print(f"  {'licence' if key == 'terms' else key:9}{record[key]}", soft_wrap=True)
    return None


def _record(name: str) -> dict[str, object]:
    from hubbub.data import CATALOG
    from hubbub.data.packages import cache_folder, damage

    entry = CATALOG[name]
    home = cache_folder() / entry.name / entry.version
    return {
        "name": entry.name,
        "title": entry.title,
        "content": entry.content,
        "source": entry.source,
        "terms": entry.terms,
        "package": f"{entry.requirement} ({entry.registry}, {entry.licence})",
        "bytes": entry.size,
        "sha256": entry.sha256,
        "files": list(entry.files),
        "stored": None if damage(home, entry) else str(home),
    }
