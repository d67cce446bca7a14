"""`hubbub promise`: what a collection promises, to read, to sign and to publish."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.output import emit, page


def promise(
    file: Annotated[Path, typer.Argument(help="A collection (TOML).", show_default=False)],
    html: Annotated[Path | None, typer.Option("--html", help="Write a document to sign, as HTML.")] = None,
    against: Annotated[Path | None, typer.Option("--against", help="The version before, to compare with.")] = None,
    short: Annotated[bool, typer.Option("--short", help="A few sentences for the person who is asked.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Answer a record for a registry of deployments.")] = False,
) -> None:
    """Say what a collection promises to everyone who takes part.

    An unsafe collection promises nothing, and is refused.
    """
    from hubbub.authoring import load_collection
    from hubbub.authoring import promise as full
    from hubbub.authoring.promise import short_promise
    from hubbub.core.errors import InvalidValue
    from hubbub.dashboard.promise_document import promise_document, registry_record

    if against is not None and html is None:
        raise InvalidValue("--against", str(against), "with --html only: hubbub check --against compares, too")
    collection, today = load_collection(file), datetime.now(UTC).date()
    if html is not None:
        older = None if against is None else load_collection(against)
        html.write_text(promise_document(collection, on=today, against=older), encoding="utf-8")
        typer.echo(f"wrote {html}")
    elif as_json:
        emit(registry_record(collection, on=today))
    else:
        console = page()
        text = short_promise(collection) if short else full(collection, width=console.width)
        console.print(text, markup=False)
