"""`hubbub marginals` and `hubbub synthesize`: what goes together, and records of people who do not exist."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli.options import AsJson, CollectionName, FreshSeed, Plot, QuestionName, Token, Truth, range_domain
from hubbub.cli.output import check_plot, emit, page, percent, plain_table, progress, save_plot, say, shorten
from hubbub.cli.sql import show_answer
from hubbub.core.errors import InvalidValue, check_integer

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

    from hubbub.cli.watch_remote import RemoteQuestion
    from hubbub.protocols.marginals.field_marginals import FieldMarginals
    from hubbub.rehearse.marginals import FieldRecords
    from hubbub.service.collector.marginals import MarginalBody

_SHOWN, _MOST, _AT_ONCE = 3, 30, 20_000
Source = Annotated[
    str,
    typer.Argument(
        help="A CSV, TSV, JSON lines or Parquet file with a person in each row; or a collector's address.",
        show_default=False,
    ),
]
Fields = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        "-f",
        help="Of a file: a column: NAME (names), NAME=0..9 (integers), NAME=0..100/5 (numbers in 5 cells).",
        show_default=False,
    ),
]
Of = Annotated[
    list[str] | None,
    typer.Option("--of", help="Fields to show together, such as 'age, plan'; may be repeated.", show_default=False),
]
FileEpsilon = Annotated[
    float | None, typer.Option("--epsilon", "-e", help="Of a file: what one report may spend.", show_default=False)
]
Wanted = Annotated[
    list[str] | None,
    typer.Option("--marginals", help="Of a file: pairs, triples, or fields such as 'age, plan'.", show_default="pairs"),
]
Theta = Annotated[float, typer.Option("--theta", help="The assumed error of a reconstructed marginal.")]
Oracle = Annotated[str, typer.Option("--oracle", help="adaptive, best, or the name of a frequency oracle.")]
Step = Annotated[int | None, typer.Option("--step", help="Of a collector: which step.", show_default="the latest")]


def marginals(
    source: Source,
    fields: Fields = None,
    epsilon: FileEpsilon = None,
    of: Of = None,
    wanted: Wanted = None,
    theta: Theta = 0.001,
    oracle: Oracle = "adaptive",
    collection: CollectionName = None,
    question: QuestionName = None,
    step: Step = None,
    token: Token = None,
    truth: Truth = False,
    query: Annotated[
        str | None,
        typer.Option("--sql", help="Of a file: a query to answer, such as SELECT COUNT(*) FROM people WHERE ..."),
    ] = None,
    plot: Plot = None,
    seed: FreshSeed = None,
    as_json: AsJson = False,
) -> None:
    """Which values of several fields go together?

    A person reports on a few of the fields, chosen at random, with all of epsilon. Marginals that nobody reported on
    are reconstructed from the others; their errors are not known.
    """
    from hubbub.cli.watch_remote import is_address

    check_plot(plot)
    wanted_fields = [_names(text) for text in of or []]
    if is_address(source):
        if query is not None:
            raise InvalidValue("sql", query, "nothing: a collector is asked by `hubbub sql`")
        bodies = _remote_marginals(marginals_question(source, collection, question, step, token), wanted_fields)
        return _show(bodies, [None] * len(bodies), None, source, as_json=as_json, plot=plot)
    records, released = _rehearsed(source, fields, epsilon, wanted, theta, oracle, seed)
    if query is not None:
        from hubbub.query.marginal_engine import MarginalEngine

        return show_answer(MarginalEngine(released, records.domains, "people").sql(query), as_json=as_json)
    from hubbub.service.collector.marginals import marginal_body

    chosen = wanted_fields or [[released.fields[place] for place in view] for view in list(released.reported)[:_SHOWN]]
    bodies = [marginal_body(released, names, question="marginals", step=0) for names in chosen]
    shares = [records.truth(names).tolist() if truth else None for names in chosen]
    title = f"{records.n:,} people, {len(released.reported)} marginals reported on, epsilon {epsilon:g}"
    return _show(bodies, shares, released, title, as_json=as_json, plot=plot)


def synthesize(
    source: Source,
    n: Annotated[int, typer.Option("--n", "-n", help="How many records.")] = 1000,
    fields: Fields = None,
    epsilon: FileEpsilon = None,
    of: Of = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A CSV file to write.", show_default="stdout")] = None,
    wanted: Wanted = None,
    theta: Theta = 0.001,
    oracle: Oracle = "adaptive",
    collection: CollectionName = None,
    question: QuestionName = None,
    step: Step = None,
    token: Token = None,
    seed: FreshSeed = None,
) -> None:
    """Write records of people who do not exist, as CSV, with the joint distribution that was released.

    They hold no more about anybody than the release does.
    """
    from hubbub.cli.watch_remote import is_address
    from hubbub.random.source import Random

    check_integer("n", n, 1)
    names = [name for text in of or [] for name in _names(text)]
    rows: list[list[str]]
    if is_address(source):
        names, rows = _remote_records(marginals_question(source, collection, question, step, token), names, n)
    else:
        _, released = _rehearsed(source, fields, epsilon, wanted, theta, oracle, seed)
        names = names or released.known_fields
        rng = Random(seed=None if seed is None else f"records {seed}")
        rows = list(map(list, released.records(n, rng, names)))
    if out is None:
        _write(sys.stdout, names, rows)
        return
    with out.open("w", encoding="utf-8", newline="") as file:
        _write(file, names, rows)
    say(f"{out}: {len(rows):,} records of {', '.join(names)}")


def _write(file: Any, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _rehearsed(
    source: str,
    fields: Sequence[str] | None,
    epsilon: float | None,
    wanted: Sequence[str] | None,
    theta: float,
    oracle: str,
    seed: int | None,
) -> tuple[FieldRecords, FieldMarginals]:
    from hubbub.questions.keys import NOTHING
    from hubbub.random.source import Random
    from hubbub.rehearse.marginals import read_records, rehearse_marginals

    if not fields:
        raise InvalidValue("field", NOTHING, "the columns of the file, each as --field NAME")
    if epsilon is None:
        raise InvalidValue("epsilon", NOTHING, "what one report may spend: --epsilon 1")
    declared = [text.partition("=") for text in fields]
    domains = {name: range_domain("field", name, values) if values else None for name, _, values in declared}
    with progress(source) as follow:
        follow(0, 2, "reading")
        records = read_records(Path(source), domains)
        follow(1, 2, f"asking {records.n:,} people")
        released = rehearse_marginals(
            records, epsilon=epsilon, rng=Random(seed=seed), marginals=wanted or "pairs", theta=theta, oracle=oracle
        )
        follow(2, 2)
    return records, released


def marginals_question(
    url: str, collection: str | None, question: str | None, step: int | None, token: Path | None
) -> RemoteQuestion:
    """The marginals question of a collector that the options name."""
    from hubbub.cli.watch_remote import RemoteQuestion

    steps = [] if step is None else [("step", step)]
    return RemoteQuestion(url, collection, question, token, lambda shape: shape["form"] == "marginals", steps)


def _remote_marginals(remote: RemoteQuestion, asked: Sequence[Sequence[str]]) -> list[MarginalBody]:
    import msgspec

    from hubbub.service.collector.marginals import MarginalBody

    chosen = asked or [_names(name) for name in list(remote.get("releases/latest")["estimates"])[:_SHOWN]]
    return [
        msgspec.convert(remote.get("marginal", *(("of", name) for name in names)), MarginalBody) for names in chosen
    ]


def _remote_records(remote: RemoteQuestion, names: list[str], n: int) -> tuple[list[str], list[list[str]]]:
    rows: list[list[str]] = []
    while len(rows) < n:
        part = min(n - len(rows), _AT_ONCE)
        body = remote.get("records", ("n", part), *(("of", name) for name in names))
        names, rows = body["fields"], [*rows, *body["records"]]
    return names, rows


def _show(
    bodies: Sequence[MarginalBody],
    truths: Sequence[Sequence[float] | None],
    released: FieldMarginals | None,
    title: str,
    *,
    as_json: bool,
    plot: Path | None,
) -> None:
    from msgspec import to_builtins

    if plot is not None:
        save_plot(_heat_map(bodies[0]), plot)
    if as_json:
        known = [{} if truth is None else {"truth": truth} for truth in truths]
        return emit({"marginals": [{**to_builtins(body), **more} for body, more in zip(bodies, known, strict=True)]})
    page().print(title, *(_table(body, truth) for body, truth in zip(bodies, truths, strict=True)), sep="\n\n")
    page().print(f"\n{_remarks(bodies, released)}", markup=False)
    return None


def _heat_map(body: MarginalBody) -> Figure:
    """The first marginal: the values of its last field side by side, all others below each other."""
    import numpy as np
    from matplotlib.figure import Figure

    *others, across = body.values
    rows = [", ".join(row) for row in product(*(body.values[name] for name in others))]
    table = 100 * np.reshape(body.value, (len(rows), -1))
    figure = Figure(figsize=(2.5 + 0.9 * table.shape[1], 1.5 + 0.4 * len(rows)), layout="constrained")
    panel = figure.subplots()
    image = panel.imshow(table, aspect="auto", cmap="viridis", vmin=0)
    plain = [[label.replace("$", r"\$") for label in labels] for labels in (body.values[across], rows)]
    panel.set_xticks(range(table.shape[1]), labels=plain[0])
    panel.set_yticks(range(len(rows)), labels=plain[1])
    panel.set_xlabel(across)
    panel.set_ylabel(", ".join(others))
    figure.colorbar(image, ax=panel, label=f"% of people ({body.n:,} reports)")
    return figure


def _table(body: MarginalBody, truth: Sequence[float] | None) -> Table:
    from rich.markup import escape

    heading = escape(shorten(", ".join(body.values), 40))
    table = plain_table(heading, *(["truth"] if truth is not None else []), "estimate", "95% interval")
    for place, label in list(enumerate(body.labels))[:_MOST]:
        low, high = (None if ends is None else ends[place] for ends in (body.low, body.high))
        interval = (
            "unknown" if low is None or high is None else f"{percent(max(low, 0.0))} to {percent(min(high, 1.0))}"
        )
        shares = [*([] if truth is None else [truth[place]]), body.value[place]]
        style = "dim" if low is None or low <= 0 else None
        table.add_row(escape(shorten(label, 40)), *map(percent, shares), interval, style=style)
    return table


def _remarks(bodies: Sequence[MarginalBody], released: FieldMarginals | None) -> str:
    remarks = []
    if released is not None and (pair := released.goes_together()) is not None:
        values = " and ".join(f"{field} {value}" for field, value in zip(pair.fields, pair.values, strict=True))
        remarks.append(
            f"{values} go together most: {percent(pair.share)} have both ({percent(max(pair.low, 0.0))} to "
            f"{percent(min(pair.high, 1.0))}), and {percent(pair.expected)} would if the two were independent."
        )
    if unknown := next((body for body in bodies if body.interval == "unknown"), None):
        left = unknown.left_out
        remarks.append("Where the interval is unknown, nobody reported on these fields together.")
        if left is not None:
            off = percent(max(left.squared, 0.0) ** 0.5)
            remarks.append(f"{left.marginals} marginals that were reported on came out {off} off without their reports "
                           "(root of the summed squares).")  # fmt: skip
    if any(len(body.labels) > _MOST for body in bodies):
        remarks.append(f"Tables end after {_MOST} rows; --json has all.")
    return " ".join(remarks)
