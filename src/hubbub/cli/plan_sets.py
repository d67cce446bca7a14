"""`hubbub plan --sets`: which mechanism for what share holds each item of a set."""

from __future__ import annotations

from hubbub.cli.output import emit, page


def print_set_plan(
    *, domain: int, most: int, held: float | None, n: int, epsilon: float, forged: float, as_json: bool
) -> None:
    """Print the exact error of every mechanism at one setting, and which to use."""
    from hubbub.cli.tables import plain_table
    from hubbub.core.domain import Ordinal, Sets
    from hubbub.privacy.plan_sets import plan_sets
    from hubbub.privacy.poisoning import part_text

    plan = plan_sets(domain=Sets(Ordinal(domain), most), n=n, epsilon=epsilon, held=held, forged=forged)
    if as_json:
        setting = {"domain": domain, "sets": most, "held": plan.held, "n": n, "epsilon": epsilon, "forged": forged}
        return emit([{**row.to_dict(), **setting} for row in plan.rows])
    people = f"Sets of at most {most:,} of {domain:,} items, {plan.held:.4g} on average"
    title = f"{people}\n{n:,} reports, epsilon {epsilon:.4g}\n"
    table = plain_table("mechanism", "stderr", f"{part_text(forged)} forged", "bytes", "", left=[""], title=title)
    for row in plan.rows:
        numbers = f"{100 * row.stderr:.3g}%", f"{100 * row.shift:.3g}%", f"{row.bytes:,}"
        table.add_row(row.mechanism, *numbers, row.why, style="bold green" if row.picked else None)
    page().print(table, f"\n{plan.picked} has the smallest error of an item's share, on average over the items.")
    return None
