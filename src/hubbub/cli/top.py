"""`hubbub top`: the most common values of a column, as a private study would find them that has no list of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.options import AsJson, Epsilon, FreshSeed, Truth
from hubbub.cli.output import emit, found_rows, found_table, page, percent, progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hubbub.core.estimate import Estimate
    from hubbub.rehearse.top import TopValues

_MOST = 32


def top(
    file: Annotated[Path, typer.Argument(help="A CSV, TSV, JSON lines or Parquet file.", show_default=False)],
    column: Annotated[str, typer.Option("--column", "-c", help="The column to search.", show_default=False)],
    epsilon: Epsilon,
    k: Annotated[int, typer.Option("--k", "-k", help="How many values to look for.")] = 32,
    longest: Annotated[int, typer.Option("--longest", help="How many UTF-8 bytes a value may have.")] = 20,
    threshold: Annotated[
        float | None,
        typer.Option("--threshold", help="Keep only values of at least this share.", show_default="the best k"),
    ] = None,
    query_limit: Annotated[
        int, typer.Option("--query-limit", help="How many candidates may be tested.", show_default="2^20")
    ] = 1 << 20,
    truth: Truth = False,
    seed: FreshSeed = None,
    as_json: AsJson = False,
) -> None:
    """Which values are the most common, if nobody lists them beforehand?

    Each row is a person, who answers once, as in a study on their device: with the first bits of their value, whose
    number depends on the person's group. Group by group, the server extends the most common beginnings.
    """
    from hubbub.random.source import Random
    from hubbub.rehearse.top import find_top_in_column

    with progress(str(column)) as follow:
        result = find_top_in_column(
            file,
            column,
            k=k,
            epsilon=epsilon,
            longest=longest,
            threshold=threshold,
            query_limit=query_limit,
            rng=Random(seed=seed),
            progress=follow,
        )
    shares = result.truth if truth else None
    if as_json:
        return emit({"column": column, "n": result.n, "missing": result.missing, **_answer(result.findings, shares)})
    groups = len(result.findings.plan.lengths)
    people = f"{result.n:,} people, {groups} groups" if groups > 1 else f"{result.n:,} people"
    title = f"{column}: {people}, epsilon {epsilon:g}"
    tables = (
        []
        if result.findings.stopped
        else [found_table(_rows(result.findings.estimate, shares)[:_MOST], "value", title)]
    )
    page().print(*tables, _remarks(result.findings), sep="\n")
    return None


def _rows(estimate: Estimate, truth: Mapping[str, float] | None = None) -> list[dict[str, object]]:
    names = estimate.labels or ()
    return found_rows(names, estimate, None if truth is None else [truth.get(name, 0.0) for name in names])


def _answer(findings: TopValues, truth: Mapping[str, float] | None) -> dict[str, object]:
    from hubbub.protocols.heavy_hitters.pem import ABSENT

    plan, absent = findings.plan, findings.release.estimates.get(ABSENT)
    return {
        "k": plan.k,
        "epsilon": plan.oracle.epsilon,
        "effective_epsilon": plan.oracle.effective_epsilon,
        "lengths": list(plan.lengths),
        "threshold": plan.threshold,
        "stopped": findings.stopped,
        "smallest_share": findings.smallest_share,
        "expected_false_positives": findings.false_positives,
        "items": [] if findings.stopped else _rows(findings.estimate, truth),
        "absent": [] if absent is None else _rows(absent),
    }


def _remarks(findings: TopValues) -> str:
    if findings.stopped:
        return f"Nothing was found: {findings.stopped}."
    more = max(len(findings.estimate) - _MOST, 0)
    return (
        f"\n{f'{more:,} more values are in --json. ' if more else ''}"
        "Intervals take into account that the largest were selected; values that are not clearly above zero are dim. "
        f"About {findings.false_positives:.1f} of those listed are expected to be noise. "
        f"{_lost(findings.smallest_share)}, and texts of over {findings.plan.encoding.bits // 8} bytes."
    )


def _lost(share: float) -> str:
    if share >= 1:
        return "Usually not found: any value, with so few people and this epsilon"
    return f"Usually not found: values that fewer than {percent(share)} hold"
