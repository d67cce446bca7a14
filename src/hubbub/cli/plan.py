"""`hubbub plan`: which mechanism, how many people, what epsilon, for what error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from hubbub.cli.options import AsJson, Domain, Epsilon, Forged, N, Plot
from hubbub.cli.output import PICKED, check_plot, emit, page, plain_table, print_table, save_plot
from hubbub.cli.plan_file import plan_file
from hubbub.cli.plan_shuffled import plan_shuffled
from hubbub.cli.plan_table import plan_table
from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    from hubbub.planning.plan import Plan
    from hubbub.planning.predict import Prediction
    from hubbub.planning.sparse import TernaryRow

__all__ = ["app"]

_MOST_LOCAL = 20.0


class FileOrCommand(TyperGroup):
    """A group in which `plan mine.toml` is short for `plan file mine.toml`. A word that is not a file is a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        first = args[0] if args else ""
        command = not first or first in ctx.help_option_names or (first.isalpha() and not Path(first).exists())
        return super().parse_args(ctx, args if command or first in self.commands else ["file", *args])


app = typer.Typer(cls=FileOrCommand, subcommand_metavar="FILE | COMMAND [OPTIONS]")
app.command("file")(plan_file)


@app.callback(invoke_without_command=True)
def plan(context: typer.Context) -> None:
    """Compare every mechanism before anything is collected, or read a collection's file.

    With a collection's FILE: what its questions will tell. Otherwise a command says what will be asked for.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def shares(
    domain: Domain,
    n: Annotated[int | None, typer.Option("--n", "-n", help="How many people report.")] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", "-e", help="What one report may spend.")] = None,
    stderr: Annotated[float | None, typer.Option("--stderr", help="The standard error wanted, of a share.")] = None,
    most_bytes: Annotated[int | None, typer.Option("--most-bytes", help="The largest report acceptable.")] = None,
    forged: Forged = None,
    most_shift: Annotated[
        float | None, typer.Option("--most-shift", help="How far forged reports may move a share: 0.05 is 5 points.")
    ] = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """The share of people that has each value, one value per person.

    Two of --n, --epsilon and --stderr are given; the third is computed.
    """
    from hubbub.planning.plan import plan as compare
    from hubbub.planning.predict import FORGED, part_text

    check_plot(plot)
    forged = FORGED if forged is None else forged
    setting: dict[str, Any] = {"most_bytes": most_bytes, "forged": forged, "most_shift": most_shift}
    comparison = compare(domain=domain, n=n, epsilon=epsilon, stderr=stderr, **setting)
    if plot is not None:
        save_plot(comparison.plot().figure, plot)
    if as_json:
        used = {"domain": domain, "n": comparison.n, "epsilon": comparison.epsilon, "forged": forged}
        return emit([{**row.to_dict(), **used} for row in comparison.rows])
    part = part_text(forged)
    print_table(
        f"{domain:,} values, {comparison.n:,} reports, epsilon {comparison.epsilon:.4g}\n",
        ("mechanism", "stderr", "detectable", f"{part} forged", "bytes", "server", ""),
        (_share_cells(row, comparison) for row in comparison.rows),
        f"{comparison.why}\n\n{part} forged: how far a share can be moved if {part} of all reports are forged.",
    )
    for warning in comparison.warnings:
        page().print(f"Warning: {warning}", style="yellow")
    return None


def _share_cells(row: Prediction, comparison: Plan) -> tuple[str | None, Sequence[str]]:
    """The style of a row, and its cells: shares in percent, work in operations per report."""
    numbers = ["-" if share is None else f"{100 * share:.3g}%" for share in (row.stderr, row.detectable, row.shift)]
    numbers += ["-" if number is None else f"{number:,.4g}" for number in (row.bytes, row.server)]
    note = _share_note(row, comparison)
    style = "picked" if row.picked else None if note[0].isdigit() or note[0] in "+-" else "dim"
    return style, (row.mechanism, *numbers, note)


def _share_note(row: Prediction, comparison: Plan) -> str:
    if row.picked:
        return "picked"
    if row.stderr is None:
        return "refused" if row.bytes is None else "no formula"
    if row.bias != "none":
        return "heuristic"
    if not comparison.request.fits(row.bytes):
        return "too large"
    if not comparison.request.tolerates(row.shift):
        return "moved far"
    more = row.stderr / comparison.stderr - 1
    return f"{100 * more:+.0f}%" if more < 1 else f"{1 + more:.2g} times"


@app.command()
def sets(
    domain: Annotated[int, typer.Option("--domain", "-d", help="How many items there are.", show_default=False)],
    most: Annotated[int, typer.Option("--most", help="How many items a person may hold.", show_default=False)],
    n: N,
    epsilon: Epsilon,
    held: Annotated[
        float | None,
        typer.Option("--held", help="How many items people hold on average.", show_default="half of --most"),
    ] = None,
    forged: Forged = None,
    as_json: AsJson = False,
) -> None:
    """The share of people that holds each item, several items per person."""
    from hubbub.core.domain import Ordinal, Sets
    from hubbub.planning.predict import FORGED, part_text
    from hubbub.planning.sets import plan_sets

    forged = FORGED if forged is None else forged
    plan = plan_sets(domain=Sets(Ordinal(domain), most), n=n, epsilon=epsilon, held=held, forged=forged)
    if as_json:
        setting = {"domain": domain, "most": most, "held": plan.held, "n": n, "epsilon": epsilon, "forged": forged}
        return emit([{**row.to_dict(), **setting} for row in plan.rows])
    return print_table(
        f"Sets of at most {most:,} of {domain:,} items, {plan.held:.4g} on average\n"
        f"{n:,} reports, epsilon {epsilon:.4g}\n",
        ("mechanism", "stderr", f"{part_text(forged)} forged", "bytes", ""),
        (
            (
                "picked" if row.picked else None,
                (row.mechanism, f"{100 * row.stderr:.3g}%", f"{100 * row.shift:.3g}%", f"{row.bytes:,}", row.why),
            )
            for row in plan.rows
        ),
        f"{plan.picked} has the smallest error of an item's share, on average over the items.",
    )


@app.command()
def sparse(
    domain: Annotated[int, typer.Option("--domain", "-d", help="How many entries a vector has.", show_default=False)],
    sparsity: Annotated[
        int, typer.Option("--sparsity", "-s", help="How many entries are not 0, at most.", show_default=False)
    ],
    n: N,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", "-e", help="What one report may spend.", show_default=False)
    ] = None,
    of: Annotated[str, typer.Option("--of", metavar="mean|frequency", help="What is wanted of each entry.")] = "mean",
    central: Annotated[
        float | None, typer.Option("--central-epsilon", help="If reports are shuffled: what the batch may spend.")
    ] = None,
    delta: Annotated[float, typer.Option("--delta", help="The delta of the shuffled batch.")] = 1e-6,
    as_json: AsJson = False,
) -> None:
    """The mean of each entry of sparse vectors of -1, 0 and 1, and key-value data."""
    from hubbub.planning.minimax import absolute_floor, largest_floor, shares_floor, squared_floor
    from hubbub.planning.sparse import compare_ternary

    if of not in ("mean", "frequency"):
        raise InvalidValue("--of", of, "mean or frequency")
    if epsilon is None and central is None:
        raise InvalidValue("--epsilon", "nothing", "a number, or --central-epsilon if reports are shuffled")
    most = _MOST_LOCAL if epsilon is None else epsilon
    vectors = {"dimension": domain, "sparsity": sparsity, "n": n}
    rows = compare_ternary(epsilon=most, **vectors, of=of, central_epsilon=central, delta=delta)  # type: ignore[arg-type]
    best = rows[0]
    if best.error is None or best.effective_epsilon is None:
        raise InvalidValue("--sparsity", sparsity, best.why)
    floors = {
        name: floor(epsilon=best.effective_epsilon, **vectors) if of == "mean" else None
        for name, floor in (("floor", squared_floor), ("absolute", absolute_floor), ("largest", largest_floor))
    }
    if of == "frequency":
        floors["floor"] = shares_floor(epsilon=best.effective_epsilon, size=domain, most=sparsity, n=n)
    if as_json:
        setting = {"domain": domain, "sparsity": sparsity, "n": n, "epsilon": most, "of": of, "floor": floors["floor"]}
        setting |= {"absolute_floor": floors["absolute"], "largest_floor": floors["largest"]}
        setting |= {} if central is None else {"central_epsilon": central, "delta": delta}
        return emit([{**row.to_dict(), **setting, "picked": row is best} for row in rows])
    spent = f"epsilon {most:.4g}" if central is None else f"epsilon {central:g} and delta {delta:g} once shuffled"
    text = f"{best.mechanism} has the smallest error of the {of}, if everyone has {sparsity:,} entries."
    text += "" if best.within is None else f" With a probability of 95%, no mean is off by more than {best.within:.2g}."
    squared, absolute, largest = floors.values()
    if squared is not None:
        text += (
            f" No mechanism of its local epsilon has less than {math.sqrt(squared / domain):.2g} for every crowd, the "
            "drawing of people included"
        )
        if absolute is not None and largest is not None:
            text += f"; nor a mean absolute error below {absolute / domain:.2g}, or in the worst entry one below "
            text += f"{largest:.2g}"
        text += "."
    return print_table(
        f"{domain:,} entries, at most {sparsity:,} not 0; {n:,} reports, {spent}: each entry's {of}\n",
        ("mechanism", "local epsilon", "stderr", "bits", ""),
        (_sparse_cells(row, best, domain) for row in rows),
        text,
    )


def _sparse_cells(row: TernaryRow, best: TernaryRow, domain: int) -> tuple[str | None, Sequence[str]]:
    bits, spent = ("-" if number is None else f"{number:,.4g}" for number in (row.bits, row.effective_epsilon))
    if row.error is None or best.error is None:
        return "dim", (row.mechanism, spent, "-", bits, "refused" if row.bits is None else row.why)
    note = "picked" if row is best else f"{row.error / best.error:.2f} times the squared error"
    return "picked" if row is best else None, (row.mechanism, spent, f"{math.sqrt(row.error / domain):.3g}", bits, note)


@app.command()
def numbers(
    n: N,
    epsilon: Epsilon,
    of: Annotated[
        str, typer.Option("--of", metavar="distribution|median|tail", help="What is wanted of the numbers.")
    ] = "distribution",
    as_json: AsJson = False,
) -> None:
    """The distribution, the median or the tail of a number: which way to ask for it, as measured by a simulation."""
    from hubbub.rehearse.numbers import GOALS, compare_numbers

    rows = compare_numbers(epsilon=epsilon, n=n, goal=of)
    best = rows[0]
    if as_json:
        setting = {"n": n, "epsilon": epsilon, "of": of}
        return emit([{**row.to_dict(), **setting, "picked": row is best} for row in rows])
    notes = ["picked", *(f"{row.error / best.error:.2g} times" for row in rows[1:])]
    return print_table(
        f"A {of} of numbers, {n:,} reports, epsilon {epsilon:.4g}; of a skewed crowd, measured\n",
        ("way", "error", "bytes", ""),
        (
            ("picked" if row is best else None, (row.way, f"{100 * row.error:.3g}%", f"{row.bytes}", note))
            for row, note in zip(rows, notes, strict=True)
        ),
        f"The error is {GOALS[of]}, as a part of the range.",
    )


_RHO_OF = "zCDP: (epsilon, delta) with delta above 0; weaker than pure epsilon, which implies it"


@app.command()
def sums(
    n: Annotated[int, typer.Option("--n", "-n", help="How many values the stream has.", show_default=False)],
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="What one value may spend.", show_default=False)],
    ranges: Annotated[
        bool, typer.Option("--ranges", help="Sums between two random positions, instead of running sums.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """The running sums of a stream that a curator has, under pure epsilon and under the rho that it implies."""
    from hubbub.planning.sums import choose_counter
    from hubbub.random.source import Random

    rho, rng = epsilon**2 / 2, Random(seed="plan sums")  # simulated noise: nothing of anybody is in it
    pure = choose_counter(n, queries="ranges" if ranges else "prefixes", epsilon=epsilon, rng=rng)
    gaussian = choose_counter(n, queries="ranges" if ranges else "prefixes", rho=rho, rng=rng)
    if as_json:
        return emit(
            [
                {
                    "counter": choice.name,
                    "guarantee": choice.guarantee,
                    "stderr": choice.on_paper**0.5,
                    "measured": choice.measured**0.5,
                    "picked": choice is choices[0],
                    "n": n,
                    "of": "ranges" if ranges else "sums",
                }
                for choices in (pure, gaussian)
                for choice in choices
            ]
        )
    quantity = "Sums between two random positions" if ranges else "Running sums"
    title = f"{quantity} of {n:,} values that a curator has; errors in multiples of the threshold\n"
    table = plain_table("counter", "stderr", "measured", "guarantee", "", left=["guarantee", ""], title=title)
    for best, *others in (pure, gaussian):
        for choice in (best, *others):
            note = "picked" if choice is best else f"{(choice.on_paper / best.on_paper) ** 0.5:.2g} times"
            errors = (f"{number**0.5:.3g}" for number in (choice.on_paper, choice.measured))
            style = PICKED if choice is best else None
            table.add_row(choice.name, *errors, choice.guarantee, note, style=style)
    page().print(
        table,
        f"\nUnder pure epsilon: {pure[0].name}. Under rho: {gaussian[0].name}.\n{_RHO_OF}.\n"
        "The hierarchy has fan-out 16 and consistency; measured is simulated noise.",
    )
    return None


app.command("table")(plan_table)
app.command("shuffled")(plan_shuffled)
