"""`hubbub check`: what a collection promises, what is wrong with it, and what a change would break."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.options import AsJson

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hubbub.authoring.coalitions import Coalition
    from hubbub.collection.finding import Finding

REFUSED = 1
_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}


def check(
    file: Annotated[Path, typer.Argument(help="A collection (TOML).", show_default=False)],
    against: Annotated[Path | None, typer.Option("--against", help="The version it replaces.")] = None,
    forged: Annotated[float | None, typer.Option("--forged", help="The part of devices that may be forged.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check a collection before anyone is asked, and say what it promises.

    Exits with 1 if it is refused.
    """
    from hubbub.authoring.alarms import alarm_forecasts, alarms_promise
    from hubbub.authoring.check import check as examine
    from hubbub.authoring.coalitions import coalitions_of
    from hubbub.authoring.poisoning import poisoning
    from hubbub.authoring.promise import promise
    from hubbub.authoring.toml import load_alarms, read_collection
    from hubbub.cli.output import emit, page
    from hubbub.privacy.poisoning import FORGED

    collection, alarms = read_collection(file), load_alarms(file)
    older = None if against is None else read_collection(against)
    findings = examine(collection, against=older, alarms=alarms)
    watched = alarm_forecasts(collection, alarms)
    part = FORGED if forged is None else forged
    moved = {
        name: poisoning(question, collection.setting(name), part) for name, question in collection.questions.items()
    }
    parties = {name: coalitions_of(collection, name) for name in collection.questions}
    refused = any(finding.level == "error" for finding in findings)
    if as_json:
        emit(
            {
                "name": collection.name,
                "version": collection.version,
                "collection_id": collection.collection_id,
                "ok": not refused,
                "findings": [finding._asdict() for finding in findings],
                "promise": promise(collection),
                "coalitions": {name: [each.to_dict() for each in some] for name, some in parties.items() if some},
                "poisoning": {name: {**how.to_dict(), "text": how.text()} for name, how in moved.items()},
                "alarms": {"guarantee": alarms_promise(collection, alarms), "each": [row.to_dict() for row in watched]},
            }
        )
    else:
        console = page()
        if not refused:
            console.print(promise(collection, width=console.width), markup=False)
            console.print()
        console.print(_table(findings))
        if collection.shuffle is not None:
            console.print("\nWho must work together to see what.", style="bold")
            console.print(_coalitions(parties, collection.shuffle.least))
        console.print("\nWhat a liar can do.", style="bold")
        for name, how in moved.items():
            console.print(f"{name}: {how.text()}", markup=False)
        if watched:
            console.print("\nWhat the alarms promise.", style="bold")
            for row in watched:
                console.print(f"{row.alarm}: {row.guarantee}; {row.delays}.", markup=False)
        if len(watched) > 1:
            console.print(f"All together: {alarms_promise(collection, alarms)}.", markup=False)
        verdict = "refused" if refused else "good to serve"
        console.print(f"\n{collection.name} {collection.version}: {verdict}", style="bold red" if refused else "bold")
    if refused:
        raise typer.Exit(REFUSED)


def _coalitions(parties: dict[str, list[Coalition]], least: int) -> RenderableType:
    from rich.table import Table

    from hubbub.questions.words import rounded_up

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("question")
    table.add_column(f"who, of a batch of {least:,}", overflow="fold")
    table.add_column("epsilon", justify="right")
    table.add_column("delta", justify="right")
    for name, several in parties.items():
        for each in several:
            table.add_row(name, each.who, rounded_up(each.epsilon), f"{each.delta:g}" if each.delta else "0")
    return table


def _table(findings: list[Finding]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        text = Text(f"{finding.where}: ", style="bold").append(Text(finding.text, style="not bold"))
        table.add_row(Text(finding.level, style=_STYLES[finding.level]), text)
    return table
