"""`hubbub plan --of distribution`: which way to ask for the distribution of a number."""

from __future__ import annotations

from hubbub.cli.output import emit, page


def plan_numbers(*, goal: str, n: int, epsilon: float, as_json: bool) -> None:
    """Print the measured error of every way, and which to use."""
    from hubbub.cli.tables import plain_table
    from hubbub.simulate.numbers import GOALS, compare_numbers

    rows = compare_numbers(epsilon=epsilon, n=n, goal=goal)
    best = rows[0]
    if as_json:
        setting = {"n": n, "epsilon": epsilon, "of": goal}
        return emit([{**row.to_dict(), **setting, "picked": row is best} for row in rows])
    title = f"A {goal} of numbers, {n:,} reports, epsilon {epsilon:.4g}; of a skewed crowd, measured\n"
    table = plain_table("way", "error", "bytes", "", left=[""], title=title)
    for row in rows:
        note = "picked" if row is best else f"{row.error / best.error:.2g} times"
        style = "bold green" if row is best else None
        table.add_row(row.way, f"{100 * row.error:.3g}%", f"{row.bytes}", note, style=style)
    page().print(table, f"\nThe error is {GOALS[goal]}, as a part of the range.")
    return None
