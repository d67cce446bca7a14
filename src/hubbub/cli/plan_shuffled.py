"""`hubbub plan shuffled`: which mechanism errs least, if reports are shuffled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from hubbub.cli.options import AsJson, Domain, N
from hubbub.cli.output import emit, page, print_table

if TYPE_CHECKING:
    from hubbub.mechanisms.frequency.oracle import FrequencyOracle
    from hubbub.planning.shuffled import FakesChoice

_SHOWN = 6


def plan_shuffled(
    domain: Domain,
    n: N,
    central: Annotated[
        float, typer.Option("--central-epsilon", help="What the shuffled batch may spend.", show_default=False)
    ],
    delta: Annotated[float, typer.Option("--delta", help="The delta of all guarantees.")] = 1e-6,
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="The most that one report may spend.")] = 20.0,
    collusion: Annotated[
        float | None, typer.Option("--collusion-epsilon", help="The most if the server and all other people collude.")
    ] = None,
    fakes: Annotated[
        int | None, typer.Option("--fakes", help="How many fakes shufflers add.", min=0, show_default="searched")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Shares of values, if reports are shuffled: which mechanism errs least within a central epsilon."""
    from hubbub.planning.shuffled import FakesChoice, adversaries, choose_shuffled, choose_with_fakes, share_costs
    from hubbub.shuffle.report_numbers import has_numbers

    if collusion is None and not fakes:
        best_first = choose_shuffled(domain=domain, n=n, epsilon=central, delta=delta, most_local=epsilon)
        choices = [FakesChoice(choice.mechanism, 0, choice.variance) for choice in best_first]
    else:
        choices = choose_with_fakes(
            domain=domain, n=n, epsilon=central, delta=delta, most_local=epsilon, colluding=collusion, fakes=fakes
        )
    best = choices[0]
    left = adversaries(best.mechanism, n=n, delta=delta, fakes=best.fakes)
    if as_json:
        rows = [_shuffled_row(choice, choice is best) for choice in choices]
        return emit({"domain": domain, "n": n, "mechanisms": rows, "against": left.to_dict()})
    colluding = f", and epsilon {collusion:g} if all other people collude" if collusion is not None else ""
    print_table(
        f"{domain:,} values, {n:,} reports, epsilon {central:g} and delta {delta:g} once shuffled{colluding}\n",
        ("mechanism", "local epsilon", "fakes", "stderr", "bytes", ""),
        (_shuffled_cells(choice, choice is best) for choice in choices[:_SHOWN]),
        f"With {_named(best.mechanism)}, a person's report is protected\n",
    )
    for sentence in left.sentences():
        page().print(f"- {sentence}", markup=False)
    if has_numbers(best.mechanism):
        page().print(f"\n{share_costs(n + best.fakes)}", markup=False)
    return None


class ShuffledPlanRow(TypedDict):
    """A mechanism for shuffled reports, as JSON."""

    mechanism: str
    buckets: int | None
    local_epsilon: float
    fakes: int
    stderr: float
    bytes: int
    picked: bool


def _shuffled_row(choice: FakesChoice, picked: bool) -> ShuffledPlanRow:
    return {
        "mechanism": type(choice.mechanism).__name__,
        "buckets": getattr(choice.mechanism, "buckets", None),
        "local_epsilon": choice.mechanism.effective_epsilon,
        "fakes": choice.fakes,
        "stderr": math.sqrt(choice.variance),
        "bytes": -(-choice.mechanism.report_bits // 8),
        "picked": picked,
    }


def _shuffled_cells(choice: FakesChoice, picked: bool) -> tuple[str | None, Sequence[str]]:
    row = _shuffled_row(choice, picked)
    cells = (f"{row['local_epsilon']:.4g}", f"{choice.fakes:,}", f"{100 * row['stderr']:.3g}%", str(row["bytes"]))
    return "picked" if picked else None, (_named(choice.mechanism), *cells, "picked" if picked else "")


def _named(mechanism: FrequencyOracle) -> str:
    buckets = getattr(mechanism, "buckets", None)
    return type(mechanism).__name__ if buckets is None else f"{type(mechanism).__name__}, {buckets:,} buckets"
