"""`hubbub plan --central-epsilon`: a mechanism for reports that are shuffled, and who must collude to see what."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    from hubbub.core.spec import Json
    from hubbub.mechanisms.frequency.oracle import FrequencyOracle
    from hubbub.privacy.amplification.choose_fakes import FakesChoice

_SHOWN = 6
_MOST_LOCAL = 20.0


def plan_shuffled(
    *,
    domain: int,
    n: int,
    epsilon: float,
    delta: float,
    colluding: float | None,
    fakes: int | None,
    most_local: float | None,
    as_json: bool,
) -> None:
    """Print the mechanisms that keep to the targets, the best first, and the three epsilons of the best."""
    from hubbub.cli.output import emit, page
    from hubbub.cli.tables import plain_table
    from hubbub.privacy.amplification.adversaries import adversaries

    if fakes is not None and fakes < 0:
        raise InvalidValue("--fakes", fakes, "at least 0")
    choices = _choices(domain, n, epsilon, delta, colluding, fakes, _MOST_LOCAL if most_local is None else most_local)
    best = choices[0]
    left = adversaries(best.mechanism, n=n, delta=delta, fakes=best.fakes)
    if as_json:
        rows: list[dict[str, Json]] = [_row(choice, choice is best) for choice in choices]
        return emit({"domain": domain, "n": n, "mechanisms": rows, "against": left.to_dict()})
    fewest = f", and epsilon {colluding:g} if all other people collude" if colluding is not None else ""
    title = f"{domain:,} values, {n:,} reports, epsilon {epsilon:g} and delta {delta:g} once shuffled{fewest}\n"
    table = plain_table("mechanism", "local epsilon", "fakes", "stderr", "bytes", "", left=[""], title=title)
    for choice in choices[:_SHOWN]:
        row = _row(choice, choice is best)
        table.add_row(
            _named(choice.mechanism),
            f"{choice.mechanism.effective_epsilon:.4g}",
            f"{choice.fakes:,}",
            f"{100 * math.sqrt(choice.variance):.3g}%",
            str(row["bytes"]),
            "picked" if choice is best else "",
            style="bold green" if choice is best else None,
        )
    page().print(table)
    page().print(f"\nWith {_named(best.mechanism)}, a person's report is protected\n", markup=False)
    for sentence in left.sentences():
        page().print(f"- {sentence}", markup=False)
    return None


def _choices(
    domain: int,
    n: int,
    epsilon: float,
    delta: float,
    colluding: float | None,
    fakes: int | None,
    most_local: float,
) -> list[FakesChoice]:
    from hubbub.privacy.amplification.choose import choose_shuffled
    from hubbub.privacy.amplification.choose_fakes import FakesChoice, choose_with_fakes

    if colluding is None and not fakes:
        plain = choose_shuffled(domain=domain, n=n, epsilon=epsilon, delta=delta, most_local=most_local)
        return [FakesChoice(choice.mechanism, 0, choice.variance) for choice in plain]
    return choose_with_fakes(
        domain=domain, n=n, epsilon=epsilon, delta=delta, colluding=colluding, most_local=most_local, fakes=fakes
    )


def _row(choice: FakesChoice, picked: bool) -> dict[str, Json]:
    return {
        "mechanism": type(choice.mechanism).__name__,
        "buckets": getattr(choice.mechanism, "buckets", None),
        "local_epsilon": choice.mechanism.effective_epsilon,
        "fakes": choice.fakes,
        "stderr": math.sqrt(choice.variance),
        "bytes": -(-choice.mechanism.report_bits // 8),
        "picked": picked,
    }


def _named(mechanism: FrequencyOracle) -> str:
    buckets = getattr(mechanism, "buckets", None)
    return type(mechanism).__name__ if buckets is None else f"{type(mechanism).__name__}, {buckets:,} buckets"
