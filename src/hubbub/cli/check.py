"""`hubbub check`: what a collection promises, what is wrong with it, and what a change would break."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
import typer
from msgspec.structs import asdict

from hubbub.cli.options import AsJson
from hubbub.cli.output import emit, page

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hubbub.authoring.alarms import AlarmForecast
    from hubbub.authoring.coalitions import Coalition
    from hubbub.authoring.forecast import Poisoning
    from hubbub.collection.safety import Finding
    from hubbub.questions.collection import Collection

REFUSED = 1
_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}


def check(
    files: Annotated[list[Path], typer.Argument(help="Collections (TOML).", show_default=False)],
    against: Annotated[Path | None, typer.Option("--against", help="The version that the file replaces.")] = None,
    forged: Annotated[float | None, typer.Option("--forged", help="The part of devices that may be forged.")] = None,
    policy: Annotated[Path | None, typer.Option("--policy", help="What is allowed here (TOML).")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse what is only warned of, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check collections before anyone is asked, and say what they promise.

    Exits with 1 if one is refused, or breaks a clause of the policy. With --json, the answer for several files is a
    list.
    """
    from hubbub.authoring.policy import breaches, breaches_together, load_policy
    from hubbub.core.errors import InvalidValue

    clauses = None if policy is None else load_policy(policy)

    if against is not None and len(files) > 1:
        raise InvalidValue("--against", str(against), "with one file only")
    checked = []
    for file in files:
        try:
            checked.append(_check(file, against, forged))
        except InvalidValue as error:
            if len(files) == 1 or error.field == str(file):
                raise
            raise InvalidValue(f"{file}: {error.field}", error.value, error.allowed) from None
    if clauses is not None:
        shared = breaches_together(clauses, [each.collection for each in checked])
        checked = [
            each._replace(findings=[*breaches(clauses, each.collection), *shared, *each.findings]) for each in checked
        ]
    checked = [each._replace(strict=strict) for each in checked]
    if as_json:
        answers = [collection.to_dict() for collection in checked]
        emit(answers if len(files) > 1 else answers[0])
    else:
        for place, collection in enumerate(checked):
            _print(collection, after_another=place > 0)
    if any(collection.refused for collection in checked):
        raise typer.Exit(REFUSED)


class CheckedFile(NamedTuple):
    """All that is said of one collection's file."""

    collection: Collection
    findings: list[Finding]
    poisonings: dict[str, Poisoning]
    coalitions: dict[str, list[Coalition]]
    alarms: list[AlarmForecast]
    alarms_guarantee: str | None
    older: Collection | None = None
    strict: bool = False

    @property
    def refused(self) -> bool:
        """Whether a finding is an error, or a warning where those are refused too."""
        levels = ("error", "warning") if self.strict else ("error",)
        return any(finding.level in levels for finding in self.findings)

    def to_dict(self) -> dict[str, object]:
        """The same as JSON."""
        from hubbub.authoring.guarantees import differences, guarantees_of
        from hubbub.authoring.promise import promise

        before: dict[str, object] = {}
        if self.older is not None:
            before["before"] = msgspec.to_builtins(guarantees_of(self.older))
            before["changed"] = [*differences(self.older.spec(), self.collection.spec())]
        return {
            "name": self.collection.name,
            "version": self.collection.version,
            "collection_id": self.collection.collection_id,
            "ok": not self.refused,
            "findings": [finding._asdict() for finding in self.findings],
            "promise": promise(self.collection),
            "guarantees": msgspec.to_builtins(guarantees_of(self.collection)),
            **before,
            "coalitions": {
                name: [asdict(coalition) for coalition in coalitions]
                for name, coalitions in self.coalitions.items()
                if coalitions
            },
            "poisoning": {
                name: {**poisoning.to_dict(), "text": poisoning.text()} for name, poisoning in self.poisonings.items()
            },
            "alarms": {"guarantee": self.alarms_guarantee, "each": [alarm.to_dict() for alarm in self.alarms]},
        }


def _check(file: Path, against: Path | None, forged: float | None) -> CheckedFile:
    from hubbub.authoring.alarms import alarm_forecasts, alarms_promise
    from hubbub.authoring.check import check as find
    from hubbub.authoring.coalitions import coalitions_of
    from hubbub.authoring.forecast import poisoning
    from hubbub.authoring.toml import load_alarms, read_collection
    from hubbub.planning.predict import FORGED
    from hubbub.simulate.kind_suite import kind_findings

    collection, alarms = read_collection(file), load_alarms(file)
    older = None if against is None else read_collection(against)
    part = FORGED if forged is None else forged
    findings = find(collection, against=older, alarms=alarms)
    if not any(finding.level == "error" for finding in findings):
        findings = [*kind_findings(collection), *findings]
    return CheckedFile(
        collection=collection,
        findings=findings,
        poisonings={name: poisoning(question, part) for name, question in collection.questions.items()},
        coalitions={name: coalitions_of(collection, name) for name in collection.questions},
        alarms=alarm_forecasts(collection, alarms),
        alarms_guarantee=alarms_promise(collection, alarms),
        older=older,
    )


def _print(checked: CheckedFile, *, after_another: bool) -> None:
    from rich.rule import Rule

    from hubbub.authoring.promise import promise

    console, collection = page(), checked.collection
    if after_another:
        console.print("", Rule(style="dim"), "", sep="\n")
    if not checked.refused:
        console.print(promise(collection, width=console.width), markup=False)
        console.print()
    console.print(_findings(checked.findings))
    if collection.shuffle is not None:
        console.print("\nWho must work together to see what.", style="bold")
        console.print(_coalitions(checked.coalitions, collection.shuffle.least))
    console.print("\nWhat forged devices can do.", style="bold")
    for name, poisoning in checked.poisonings.items():
        console.print(f"{name}: {poisoning.text()}", markup=False)
    if checked.alarms:
        console.print("\nWhat the alarms promise.", style="bold")
        for alarm in checked.alarms:
            console.print(f"{alarm.alarm}: {alarm.guarantee}; {alarm.delays}.", markup=False)
    if len(checked.alarms) > 1:
        console.print(f"All together: {checked.alarms_guarantee}.", markup=False)
    verdict = "refused" if checked.refused else "good to serve"
    style = "bold red" if checked.refused else "bold"
    console.print(f"\n{collection.name} {collection.version}: {verdict}", style=style)


def _coalitions(coalitions: dict[str, list[Coalition]], least: int) -> RenderableType:
    from rich.table import Table

    from hubbub.questions.words import rounded_up

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("question")
    table.add_column(f"who, of a batch of {least:,}", overflow="fold")
    table.add_column("epsilon", justify="right")
    table.add_column("delta", justify="right")
    years = any(coalition.year for rows in coalitions.values() for coalition in rows)
    if years:
        table.add_column("in a year", justify="right")
    for name, of_question in coalitions.items():
        for coalition in of_question:
            delta = f"{coalition.delta:g}" if coalition.delta else "0"
            year = [] if coalition.year is None else [rounded_up(coalition.year[0])]
            table.add_row(name, coalition.who, rounded_up(coalition.epsilon), delta, *year)
    return table


def _findings(findings: list[Finding]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        text = Text(f"{finding.where}: ", style="bold").append(Text(finding.text, style="not bold"))
        table.add_row(Text(finding.level, style=_STYLES[finding.level]), text)
    return table
