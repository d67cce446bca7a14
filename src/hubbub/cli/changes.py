"""`hubbub changes`: how common values were over a range of steps, where they change rarely."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.marginals import Fields, Source
from hubbub.cli.options import AsJson, CollectionName, FreshSeed, QuestionName, Token, Truth, range_domain
from hubbub.cli.output import emit, page, percent, plain_table, progress, shorten
from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    from rich.table import Table

    from hubbub.service.collector.candidates import RangeBody

_MOST = 30


def changes(
    source: Source,
    fields: Fields = None,
    epsilon: Annotated[
        float | None,
        typer.Option("--epsilon", "-e", help="Of a file: what a device may spend over all steps.", show_default=False),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option("--changes", "-k", help="Of a file: how many changes a device may tell of.", show_default=False),
    ] = None,
    first: Annotated[
        int | None, typer.Option("--from", help="The first step.", show_default="that of the horizon")
    ] = None,
    last: Annotated[int | None, typer.Option("--to", help="The last step.", show_default="the latest")] = None,
    queries: Annotated[str, typer.Option("--queries", help="Of a file: best for mean, prefix or range.")] = "range",
    fanout: Annotated[int, typer.Option("--fanout", help="Of a file: intervals that make up a longer one.")] = 2,
    mechanism: Annotated[str, typer.Option("--mechanism", "-m", help="Of a file: ExSub or NetSub.")] = "ExSub",
    device: Annotated[str, typer.Option("--device", help="Of a file: the column of the device.")] = "device",
    step: Annotated[str, typer.Option("--step", help="Of a file: the column of the step.")] = "step",
    collection: CollectionName = None,
    question: QuestionName = None,
    token: Token = None,
    truth: Truth = False,
    seed: FreshSeed = None,
    as_json: AsJson = False,
) -> None:
    """How common was each value over a range of steps, where values change rarely?

    Each row of a file is a value that a device recorded at a step; it holds until the next. One epsilon pays for all
    steps together. The interval is that of the range: it is narrower than those of its steps.
    """
    from hubbub.cli.watch_remote import is_address

    if is_address(source):
        from msgspec import convert

        from hubbub.cli.watch_remote import RemoteQuestion
        from hubbub.service.collector.candidates import RangeBody

        remote = RemoteQuestion(source, collection, question, token, lambda shape: shape["horizon"] > 0)
        steps = [(name, at) for name, at in (("from", first), ("to", last)) if at is not None]
        return _show(convert(remote.get("range", *steps), RangeBody), None, as_json=as_json)
    from hubbub.questions.keys import NOTHING
    from hubbub.random.source import Random
    from hubbub.rehearse.changes import read_followed, rehearse_changes
    from hubbub.service.collector.candidates import range_body

    if not fields:
        raise InvalidValue("field", NOTHING, "the columns of the values, each as --field NAME")
    if epsilon is None:
        raise InvalidValue("epsilon", NOTHING, "what a device may spend over all steps: --epsilon 1")
    if most is None:
        raise InvalidValue("changes", NOTHING, "how many changes a device may tell of: --changes 3")
    declared = [text.partition("=") for text in fields]
    domains = {name: range_domain("field", name, values) if values else None for name, _, values in declared}
    with progress(source) as follow:
        follow(0, 2, "reading")
        values = read_followed(Path(source), domains, device=device, step=step)
        follow(1, 2, f"asking {values.n:,} devices at {values.steps:,} steps")
        rehearsed = rehearse_changes(
            values,
            epsilon=epsilon,
            changes=most,
            rng=Random(seed=seed),
            fanout=fanout,
            queries=queries,
            mechanism=mechanism,
        )
        follow(2, 2)
    begins, ends = values.first, values.first + values.steps - 1
    first, last = begins if first is None else first, ends if last is None else last
    if not begins <= first <= last <= ends:
        raise InvalidValue("from", f"{first} to {last}", f"steps from {begins} to {ends}, the first one first")
    body = range_body(
        rehearsed.horizon,
        first=first,
        last=last,
        begins=begins,
        labels=rehearsed.labels,
        question="changes",
        minimum_batch=1,
    )
    shares = rehearsed.truth(first - begins + 1, last - begins + 1).tolist() if truth else None
    return _show(body, shares, as_json=as_json)


def _show(body: RangeBody, truth: Sequence[float] | None, *, as_json: bool) -> None:
    from msgspec import to_builtins

    if as_json:
        return emit({**to_builtins(body), **({} if truth is None else {"truth": list(truth)})})
    title = f"{body.question}: the mean of steps {body.first} to {body.last}, {body.mean.n:,} devices"
    page().print(title if body.first < body.last else f"{body.question}: step {body.first}, {body.mean.n:,} devices")
    if body.mean.withheld is not None:
        page().print(f"Withheld: {body.mean.withheld}.", markup=False)
        return None
    page().print(_table(body, truth))
    page().print(_remark(body), markup=False)
    return None


def _table(body: RangeBody, truth: Sequence[float] | None) -> Table:
    from rich.markup import escape

    table = plain_table("value", *(["truth"] if truth is not None else []), "mean share", "95% interval")
    mean = body.mean
    values, low, high = mean.value or [], mean.low or [], mean.high or []
    for place in sorted(range(len(values)), key=lambda place: -(values[place] or 0.0))[:_MOST]:
        share, ends = values[place], (low[place], high[place])
        known = share is not None and ends[0] is not None and ends[1] is not None
        interval = f"{percent(max(ends[0] or 0.0, 0.0))} to {percent(min(ends[1] or 1.0, 1.0))}" if known else "unknown"
        shares = [*([] if truth is None else [percent(truth[place])]), percent(share or 0.0)]
        table.add_row(escape(shorten(mean.labels[place], 40)), *shares, interval)
    return table


def _remark(body: RangeBody) -> str:
    remarks = []
    if body.mean.bias == "heuristic":
        remarks.append("A device that changed more often than it may tell counts with an earlier value.")
    if body.came < body.due:
        remarks.append(f"{body.due - body.came:,} of {body.due:,} reports are missing.")
    if len(body.mean.labels) > _MOST:
        remarks.append(f"The table ends after {_MOST} rows; --json has all.")
    return " ".join(remarks)
