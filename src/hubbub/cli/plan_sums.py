"""`hubbub plan --of sums`: which counter for running sums, or for sums of ranges, by a trusted curator."""

from __future__ import annotations

from typing import Literal

from hubbub.cli.output import emit, page

QUERIES: dict[str, Literal["prefixes", "ranges"]] = {"sums": "prefixes", "ranges": "ranges"}
"""What is asked for, and its name in `choose_counter`."""
_WORDS = {"sums": "Running sums", "ranges": "Sums between two random positions"}
_RHO_OF = "zCDP: (epsilon, delta) with delta above 0; weaker than pure epsilon, which implies it"


def plan_sums(*, of: str, n: int, epsilon: float, as_json: bool) -> None:
    """Print the error of both counters under pure epsilon, and under the rho that it implies."""
    from hubbub.cli.tables import plain_table
    from hubbub.core.random import Random
    from hubbub.curator.choose import choose_counter

    rho, rng = epsilon**2 / 2, Random(seed="plan sums")  # simulated noise: nothing of anybody is in it
    pure = choose_counter(n, queries=QUERIES[of], epsilon=epsilon, rng=rng)
    gaussian = choose_counter(n, queries=QUERIES[of], rho=rho, rng=rng)
    if as_json:
        setting = {"n": n, "of": of}
        return emit(
            [
                {
                    "counter": choice.name,
                    "guarantee": choice.guarantee,
                    "stderr": choice.on_paper**0.5,
                    "measured": choice.measured**0.5,
                    "picked": choice is choices[0],
                    **setting,
                }
                for choices in (pure, gaussian)
                for choice in choices
            ]
        )
    title = f"{_WORDS[of]} of {n:,} values that a curator has; errors in multiples of the threshold\n"
    table = plain_table("counter", "stderr", "measured", "guarantee", "", left=["guarantee", ""], title=title)
    for choices in (pure, gaussian):
        best = choices[0]
        for choice in choices:
            note = "picked" if choice is best else f"{(choice.on_paper / best.on_paper) ** 0.5:.2g} times"
            style = "bold green" if choice is best else None
            numbers = (f"{number**0.5:.3g}" for number in (choice.on_paper, choice.measured))
            table.add_row(choice.name, *numbers, choice.guarantee, note, style=style)
    page().print(
        table,
        f"\nUnder pure epsilon: {pure[0].name}. Under rho: {gaussian[0].name}.\n{_RHO_OF}.\n"
        "The hierarchy has fan-out 16 and consistency; measured is simulated noise.",
    )
    return None
