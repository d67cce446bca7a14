"""`hubbub audit`: what one report spends, recomputed and checked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli.options import AsJson, fields_of, mechanism_of
from hubbub.cli.output import emit, page, plain_table, progress, spec_text
from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    from rich.table import Table

    from hubbub.mechanisms.base import ReportFormat
    from hubbub.privacy.audit import Audit

VIOLATED = 1
_EPSILON, _DOMAIN = 1.0, 16


def audit(
    context: typer.Context,
    mechanism: Annotated[str | None, typer.Argument(help="A mechanism, such as OLH.", show_default=False)] = None,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", "-e", help="What one report may spend.", show_default="1")
    ] = None,
    domain: Annotated[
        int | None, typer.Option("--domain", "-d", help="How many values there are.", show_default="16")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every mechanism, at many settings unless given.")] = False,
    spec: Annotated[Path | None, typer.Option("--spec", help="A JSON file with a mechanism's spec, or a list.")] = None,
    montecarlo: Annotated[int, typer.Option("--montecarlo", min=0, help="Also test each sampler with N reports.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Audit a mechanism exactly: does a report spend more than it says?

    Exits with 1 if any does. Every field of the mechanism is an option, such as --dimension 6 --sparsity 2 of NetSub.
    """
    if sum((mechanism is not None, every, spec is not None)) != 1:
        from hubbub.questions.keys import NOTHING

        named = NOTHING if mechanism is None else mechanism
        raise InvalidValue("mechanism", named, "one of: a mechanism's name, --all, or --spec FILE")
    built: ReportFormat | None = None
    if every:
        audits = _all(epsilon, domain, montecarlo)
    elif spec is not None:
        audits = [_of_spec(content, montecarlo) for content in _read(spec)]
    else:
        from hubbub.mechanisms.base import Mechanism
        from hubbub.privacy.audit import audit as examine

        spent, given = _EPSILON if epsilon is None else epsilon, fields_of(context.args)
        asked = mechanism_of(str(mechanism), epsilon=spent, domain=domain, default=_DOMAIN, given=given)
        assert isinstance(asked, Mechanism)  # no others are known without `known`
        built, audits = asked, [examine(asked, montecarlo=montecarlo)]
    if as_json:
        spec_of = {} if built is None else {"spec": built.spec()}
        emit([{**audited.to_dict(), **spec_of} for audited in audits])
    else:
        console = page()
        console.print(_summary(audits) if every else _table(audits))
        if built is not None:
            console.print(f"\n{spec_text(built)}", markup=False)
        for audited in audits if not every else [audited for audited in audits if not audited.ok]:
            console.print()
            console.print(audited.statement(), markup=False)
    if not all(audited.ok for audited in audits):
        raise typer.Exit(VIOLATED)


def _all(epsilon: float | None, domain: int | None, montecarlo: int) -> list[Audit]:
    """Every mechanism at every setting; the samplers are tested at one setting each, which takes longer."""
    from hubbub.core.domain import as_domain
    from hubbub.mechanisms import randomizers
    from hubbub.privacy.audit import audit as examine
    from hubbub.privacy.audit import audit_all
    from hubbub.privacy.enumeration import required_fields

    settings: dict[str, Any] = {}
    if epsilon is not None:
        settings["epsilons"] = [epsilon]
    if domain is not None:
        settings["domains"] = [domain]
    with progress("auditing") as follow:
        audits = audit_all(**settings, progress=follow)
    for name, reason in audits.broken.items():
        typer.echo(f"hubbub: {name} is not audited: {reason}", err=True)
    if montecarlo:
        with progress("sampling") as follow:
            working = [kind for name, kind in randomizers().items() if name not in audits.broken]
            for done, kind in enumerate(working, start=1):
                example = next(kind.examples())
                options: dict[str, Any] = {name: getattr(example, name) for name in required_fields(kind)}
                if "domain" in options and as_domain("domain", options["domain"]).size is not None:
                    options["domain"] = _DOMAIN if domain is None else domain
                spent = _EPSILON if epsilon is None else epsilon
                # the oracles of a bundle spend what they spend
                mechanism = example if "oracles" in options else kind(epsilon=spent, **options)
                audits.append(examine(mechanism, montecarlo=montecarlo))
                follow(done, len(working))
    return audits


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise InvalidValue("spec", str(path), "a JSON file") from None
    specs = content if isinstance(content, list) else [content]
    if not specs or not all(isinstance(spec, dict) for spec in specs):
        raise InvalidValue("spec", str(path), "a mechanism's spec as a JSON object, or a list of them")
    return specs


def _of_spec(spec: dict[str, Any], montecarlo: int) -> Audit:
    """Audit a spec. One whose integers spend more than it declares cannot be built, and is audited all the same."""
    from hubbub.core.spec import spec_id
    from hubbub.mechanisms.base import MOST_EPSILON, Mechanism
    from hubbub.privacy.audit import audit as examine

    try:
        return examine(Mechanism.from_spec(spec), montecarlo=montecarlo)
    except InvalidValue as refused:
        declared = spec.get("epsilon")
        if refused.field != "epsilon" or not isinstance(declared, int | float) or not 0 < declared <= MOST_EPSILON:
            raise
        try:
            examined = examine(Mechanism.from_spec({**spec, "epsilon": MOST_EPSILON}), montecarlo=montecarlo)
        except InvalidValue:
            raise refused from None
        return replace(examined, epsilon=float(declared), spec_id=spec_id(spec))


def _verdict(ok: bool) -> str:
    return "[green]holds[/]" if ok else "[bold red]VIOLATED[/]"


def _table(audits: list[Audit]) -> Table:
    table = plain_table("mechanism", "domain", "epsilon", "spends", "checked by", "", left=["checked by", ""])
    for audit in audits:
        size = "open" if audit.domain is None else f"{audit.domain:,}"
        spent = f"{audit.effective_epsilon:.10g}"
        table.add_row(audit.mechanism, size, f"{audit.epsilon:g}", spent, audit.how, _verdict(audit.ok))
    return table


def _summary(audits: list[Audit]) -> Table:
    """One row per mechanism: at how many settings, how they were checked, how much of the declared epsilon is spent."""
    table = plain_table("mechanism", "settings", "enumerated", "sampled", "spends of epsilon", "", left=[""])
    for name in dict.fromkeys(audit.mechanism for audit in audits):
        mine = [audit for audit in audits if audit.mechanism == name]
        spent = [100 * audit.effective_epsilon / audit.epsilon for audit in mine]
        enumerated = sum(audit.enumeration is not None for audit in mine)
        sampled = sum(audit.montecarlo is not None for audit in mine)
        share = f"{min(spent):.4g}% to {max(spent):.4g}%"
        verdict = _verdict(all(audit.ok for audit in mine))
        table.add_row(name, str(len(mine)), str(enumerated), str(sampled), share, verdict)
    return table
