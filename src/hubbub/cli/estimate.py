"""`hubbub estimate`: what a private collection of a column would have estimated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hubbub.cli.options import AsJson, Epsilon, FreshSeed, Plot

if TYPE_CHECKING:
    from rich.table import Table

    from hubbub.cli.output import ShareRow
    from hubbub.consistency.guide import Purpose
    from hubbub.core.estimate import Estimate
    from hubbub.rehearse.estimate import ColumnResult

_MOST = 20
_BAR, _NAME = 14, 20


def estimate(
    file: Annotated[Path, typer.Argument(help="A CSV, TSV, JSON lines or Parquet file.", show_default=False)],
    column: Annotated[str, typer.Option("--column", "-c", help="The column to collect.", show_default=False)],
    epsilon: Epsilon,
    mechanism: Annotated[
        str, typer.Option("--mechanism", "-m", help="How each row is randomised, such as OLH.")
    ] = "adaptive",
    purpose: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="single|frequent|set",
            help="Make the shares consistent, for single values, the most frequent ones, or sums over sets.",
        ),
    ] = None,
    plot: Plot = None,
    seed: FreshSeed = None,
    as_json: AsJson = False,
) -> None:
    """What would a private collection of this column have estimated?

    Each row is a person, whose value is randomised as on their device. The truth is shown next to the estimate, because
    whoever has the file knows it.
    """
    from hubbub.cli import output
    from hubbub.cli.options import named
    from hubbub.cli.output import check_plot, emit, page, progress, save_plot
    from hubbub.consistency import consistent
    from hubbub.rehearse.estimate import collect_column

    check_plot(plot)
    chosen = _oracle(mechanism)
    use = None if purpose is None else cast("Purpose", named("for", purpose, ("single", "frequent", "set")))
    with progress(str(column)) as follow:
        result = collect_column(file, column, epsilon=epsilon, mechanism=chosen, seed=seed, progress=follow)
    threshold = result.mechanism.threshold(result.n)
    shown = output.rows(result.estimate, result.truth, threshold)
    fixed = None if use is None else consistent(result.estimate, for_=use)
    if plot is not None:
        title = f"{result.column}: {result.n:,} reports through {type(result.mechanism).__name__}, epsilon {epsilon:g}"
        top = shown[:_MOST]
        save_plot(output.figure(top, [row.value for row in top], threshold, title), plot)
    if as_json:
        return emit(_answer(result, shown, fixed, use, threshold))
    page().print(_table(result, shown[:_MOST], fixed), _remarks(shown, threshold), sep="\n")
    return None


def _oracle(name: str) -> str | None:
    """The registered name; None for adaptive."""
    from hubbub.cli.options import ADAPTIVE, named
    from hubbub.mechanisms import MECHANISMS
    from hubbub.mechanisms.frequency.oracle import FrequencyOracle

    oracles = [known for known, kind in MECHANISMS.usable().items() if issubclass(kind, FrequencyOracle)]
    chosen = named("mechanism", name, [ADAPTIVE, *oracles])
    return None if chosen == ADAPTIVE else chosen


def _consistent(result: ColumnResult, fixed: Estimate | None) -> dict[str, float | None]:
    if fixed is None:
        return dict.fromkeys(result.labels)
    return dict(zip(result.labels, fixed.value.tolist(), strict=True))


def _answer(
    result: ColumnResult, shown: list[ShareRow], fixed: Estimate | None, purpose: str | None, threshold: float
) -> dict[str, Any]:
    share = _consistent(result, fixed)
    return {
        "column": result.column,
        "n": result.n,
        "missing": result.missing,
        "domain": len(result.labels),
        "mechanism": type(result.mechanism).__name__,
        "epsilon": result.mechanism.epsilon,
        "effective_epsilon": result.mechanism.effective_epsilon,
        "spec_id": result.mechanism.spec_id,
        "bias": result.estimate.bias,
        "for": purpose,
        "threshold": threshold,
        "rows": [{**row._asdict(), "consistent": share[row.value]} for row in shown],
    }


def _table(result: ColumnResult, shown: list[ShareRow], fixed: Estimate | None) -> Table:
    from rich.markup import escape

    from hubbub.cli.output import painted, percent, plain_table, shorten

    name = type(result.mechanism).__name__
    title = f"{escape(result.column)}: {result.n:,} reports through {name}, epsilon {result.mechanism.epsilon:g}\n"
    extra = [] if fixed is None else ["consistent"]
    table = plain_table("value", "truth", "estimate", "95% interval", *extra, "", left=[""], title=title)
    share = _consistent(result, fixed)
    width = _BAR if fixed is None else _BAR - 4
    most = max(max(row.estimate, row.truth) for row in shown)
    for row in shown:
        estimate, low, high = (
            min(max(number, 0.0), 1.0) for number in (row.estimate, row.low, row.high)
        )  # as `possible`
        fields = [escape(shorten(row.value, _NAME)), percent(row.truth), percent(estimate)]
        fields.append(f"{percent(low)} to {percent(high)}")
        fixed_share = share[row.value]
        fields += [] if fixed_share is None else [percent(fixed_share)]
        fields.append(painted(row.estimate, most, width, mark=row.truth))
        table.add_row(*fields, style=None if row.significant else "dim")
    return table


def _remarks(shown: list[ShareRow], threshold: float) -> str:
    from hubbub.cli.output import percent

    significant = sum(row.significant for row in shown)
    more = f"{len(shown) - _MOST:,} more values are not shown. " if len(shown) > _MOST else ""
    dim = "; the others are dim" if significant < len(shown) else ""
    return (
        f"\n{more}{significant:,} of {len(shown):,} values rise above {percent(threshold)}, which chance alone passes "
        f"in one run of twenty{dim}. The diamond is the truth, which a real collection does not know."
    )
