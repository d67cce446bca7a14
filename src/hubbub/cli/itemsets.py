"""`hubbub itemsets`: which items a private study of some sets would have found, and which of them together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli.options import AsJson, Epsilon, FreshSeed, Truth
from hubbub.cli.output import emit, found_rows, found_table, page, percent, plain_table, progress, shorten

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.table import Table

    from hubbub.protocols.itemsets.findings import Findings, Rule, RuleNumber

_MOST, _RULES = 20, 12
_NAME = 34


def itemsets(
    file: Annotated[
        Path,
        typer.Argument(
            help="A .dat or .txt file with a set in each line; or CSV, TSV, JSON lines or Parquet.", show_default=False
        ),
    ],
    epsilon: Epsilon,
    k: Annotated[int, typer.Option("--k", "-k", help="How many itemsets to look for.")] = 32,
    column: Annotated[
        str | None, typer.Option("--column", "-c", help="The column that names items.", show_default=False)
    ] = None,
    person: Annotated[
        str | None,
        typer.Option("--person", help="The column that names the person of a row.", show_default="a row is a person"),
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option("--separator", help="What stands between the items of a set.", show_default="white space"),
    ] = None,
    items_only: Annotated[bool, typer.Option("--items", help="Look for items alone.")] = False,
    truth: Truth = False,
    seed: FreshSeed = None,
    as_json: AsJson = False,
) -> None:
    """Which items are held most often, and which of them together?

    Each set belongs to one person, who answers once, as in a study on their device. People are in five groups, each of
    which is asked another question. Rules tell how many of those who hold some items also hold others.
    """
    from hubbub.random.source import Random
    from hubbub.rehearse.itemsets import find_itemsets, read_sets, true_shares

    with progress(file.name) as follow:
        follow(0, 2, "reading")
        labels, people = read_sets(file, column=column, person=person, separator=separator)
        follow(1, 2, f"asking {len(people):,} people")
        findings = find_itemsets(people, k=k, epsilon=epsilon, rng=Random(seed=seed), itemsets=not items_only)
    shares = true_shares(people, findings.sets) if truth else None
    if as_json:
        return emit({"epsilon": epsilon, **_answer(findings, labels, shares)})
    page().print(
        found_table(_rows(findings, labels, shares)[:_MOST], "held", f"{len(people):,} people, epsilon {epsilon:g}"),
        *([_rules_table(findings.rules, labels)] if findings.rules else []),
        _remarks(findings),
        sep="\n",
    )
    return None


def _answer(findings: Findings, labels: tuple[str, ...], truth: NDArray[np.float64] | None) -> dict[str, object]:
    rows = _rows(findings, labels, truth)
    sets = [
        {"items": [labels[item] for item in items], **{key: row[key] for key in row if key != "value"}}
        for items, row in zip(findings.sets, rows, strict=True)
    ]
    rules = [
        {
            "given": [labels[item] for item in rule.given],
            "then": [labels[item] for item in rule.then],
            **{name: getattr(rule, name)._asdict() for name in ("support", "confidence", "lift")},
        }
        for rule in findings.rules
    ]
    return {
        "k": findings.k,
        "n": findings.reports,
        "bias": findings.estimate.bias,
        "stopped": findings.stopped,
        "smallest_named_share": findings.smallest_named_share,
        "expected_false_positives": findings.false_positives,
        "itemsets": sets,
        "rules": rules,
    }


def _name(items: tuple[int, ...], labels: tuple[str, ...]) -> str:
    return " + ".join(labels[item] for item in items)


def _rows(findings: Findings, labels: tuple[str, ...], truth: NDArray[np.float64] | None) -> list[dict[str, object]]:
    names = (_name(items, labels) for items in findings.sets)
    return found_rows(names, findings.estimate, None if truth is None else truth.tolist())


def _rules_table(rules: list[Rule], labels: tuple[str, ...]) -> Table:
    from rich.markup import escape

    def within(number: RuleNumber, text: Any) -> str:
        return f"{text(number.value)} ({text(number.low)} to {text(number.high)})"

    table = plain_table("who has", "also has", "confidence", "lift", left=["also has"], title="\nRules\n")
    for rule in rules[:_RULES]:
        table.add_row(
            escape(shorten(_name(rule.given, labels), _NAME // 2)),
            escape(shorten(_name(rule.then, labels), _NAME // 2)),
            within(rule.confidence, lambda share: f"{100 * share:.0f}%"),
            within(rule.lift, lambda times: f"{times:.2f}"),
            style=None if rule.lift.low > 1 or rule.lift.high < 1 else "dim",
        )
    return table


def _remarks(findings: Findings) -> str:
    remarks = [f"Stopped: {findings.stopped}."] if findings.stopped else []
    more, more_rules = max(len(findings.sets) - _MOST, 0), max(len(findings.rules) - _RULES, 0)
    if more:
        remarks.append(f"{more:,} more itemsets and {more_rules:,} more rules are in --json.")
    remarks.append(
        "Intervals take into account that the largest were selected, and hold whatever large sets contain. Itemsets "
        f"not clearly above zero, and rules whose lift may be 1, are dim. About {findings.false_positives:.1f} of "
        "those listed are expected to be noise."
    )
    if findings.smallest_named_share >= 1:
        remarks.append("With so few people and this epsilon, usually no item is found.")
    elif findings.smallest_named_share:
        named = percent(findings.smallest_named_share)
        remarks.append(f"Usually not found: items that fewer than {named} of people would name if each named one.")
    return "\n" + " ".join(remarks)
