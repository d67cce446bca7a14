"""`hubbub itemsets`: which items a private study of some sets would have found, and which of them together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli.options import AsJson, Epsilon

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.table import Table

    from hubbub.protocols.itemsets.findings import Findings
    from hubbub.protocols.itemsets.rules import Rule, RuleNumber

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
        typer.Option("--person", help="The column that says whose a row is.", show_default="a row is a person"),
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option("--separator", help="What stands between the items of a set.", show_default="white space"),
    ] = None,
    items_only: Annotated[bool, typer.Option("--items", help="Look for items alone.")] = False,
    truth: Annotated[bool, typer.Option("--truth", help="Show the truth beside: whoever has the file has it.")] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", help="For a repeatable result.", show_default="drawn anew")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Which items are held most often, and which of them together?

    Each set is a person's, who answers once, as in a study on their device: one of five groups, each asked another
    question. Rules say of those who hold some items how many hold others too.
    """
    from hubbub.cli.output import emit, page, progress
    from hubbub.core.random import Random
    from hubbub.simulate.find_itemsets import find_itemsets, true_shares
    from hubbub.simulate.read_sets import read_sets

    with progress(file.name) as follow:
        follow(0, 2, "reading")
        labels, people = read_sets(file, column=column, person=person, separator=separator)
        follow(1, 2, f"asking {len(people):,} people")
        found = find_itemsets(people, k=k, epsilon=epsilon, rng=Random(seed=seed), itemsets=not items_only)
    shares = true_shares(people, found.sets) if truth else None
    if as_json:
        return emit({"epsilon": epsilon, **_answer(found, labels, shares)})
    page().print(
        _table(found, labels, shares, f"{len(people):,} people, epsilon {epsilon:g}"),
        *([_rules_table(found.rules, labels)] if found.rules else []),
        _remarks(found),
        sep="\n",
    )
    return None


def _answer(found: Findings, labels: tuple[str, ...], truth: NDArray[np.float64] | None) -> dict[str, Any]:
    value, low, high = found.estimate.possible()
    sets = [
        {
            "items": [labels[item] for item in items],
            "estimate": float(value[place]),
            "low": float(low[place]),
            "high": float(high[place]),
            **({} if truth is None else {"truth": float(truth[place])}),
        }
        for place, items in enumerate(found.sets)
    ]
    rules = [
        {
            "given": [labels[item] for item in rule.given],
            "then": [labels[item] for item in rule.then],
            **{name: getattr(rule, name)._asdict() for name in ("support", "confidence", "lift")},
        }
        for rule in found.rules
    ]
    return {
        "k": found.k,
        "n": found.heard,
        "bias": found.estimate.bias,
        "stopped": found.stopped,
        "smallest_named_share": found.smallest_named_share,
        "expected_false_positives": found.false_positives,
        "itemsets": sets,
        "rules": rules,
    }


def _name(items: tuple[int, ...], labels: tuple[str, ...]) -> str:
    return " + ".join(labels[item] for item in items)


def _table(found: Findings, labels: tuple[str, ...], truth: NDArray[np.float64] | None, title: str) -> Table:
    from rich.markup import escape

    from hubbub.cli.output import percent, shorten
    from hubbub.cli.tables import plain_table

    told = ["held"] if truth is None else ["held", "truth"]
    table = plain_table(*told, "estimate", "95% interval", title=f"{title}\n")
    value, low, high = found.estimate.possible()
    for place, items in list(enumerate(found.sets))[:_MOST]:
        cells = [escape(shorten(_name(items, labels), _NAME))] + ([] if truth is None else [percent(truth[place])])
        cells += [percent(value[place]), f"{percent(low[place])} to {percent(high[place])}"]
        table.add_row(*cells, style=None if low[place] > 0 else "dim")
    return table


def _rules_table(rules: list[Rule], labels: tuple[str, ...]) -> Table:
    from rich.markup import escape

    from hubbub.cli.output import shorten
    from hubbub.cli.tables import plain_table

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


def _remarks(found: Findings) -> str:
    from hubbub.cli.output import percent

    said = [f"Stopped: {found.stopped}."] if found.stopped else []
    more = max(len(found.sets) - _MOST, 0)
    said += (
        [f"{more:,} more itemsets and {max(len(found.rules) - _RULES, 0):,} more rules are in --json."] if more else []
    )
    said.append(
        "Intervals allow for the largest having been chosen. What cannot be told from none, and rules whose lift may "
        f"be 1, are dim. Of what is listed, {found.false_positives:.1f} are expected to be noise alone."
    )
    if found.smallest_named_share >= 1:
        said.append("Not found: any item, as a rule, with so few people and this epsilon.")
    elif found.smallest_named_share:
        said.append(
            f"Not found: items of less than {percent(found.smallest_named_share)} of what people name "
            "if each names one of theirs."
        )
    return "\n" + " ".join(said)
