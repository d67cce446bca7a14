"""`hubbub plan`: which mechanism, how many people, what epsilon, for what error."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from hubbub.cli.options import AsJson, Epsilon, Forged, N, Plot
from hubbub.cli.plan_file import plan_file
from hubbub.cli.plan_table import plan_table
from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    from hubbub.mechanisms.frequency.oracle import FrequencyOracle
    from hubbub.planning.plan import Plan
    from hubbub.planning.predict import Prediction
    from hubbub.planning.shuffled import FakesChoice
    from hubbub.planning.sparse import TernaryRow

__all__ = ["app"]

_GREEN = "bold green"


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


Domain = Annotated[int, typer.Option("--domain", "-d", help="How many values there are.", show_default=False)]


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
    from hubbub.cli.output import check_plot, emit, page, save_plot
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
    _print_table(
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
    style = _GREEN if row.picked else None if note[0].isdigit() or note[0] in "+-" else "dim"
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
    from hubbub.cli.output import emit
    from hubbub.core.domain import Ordinal, Sets
    from hubbub.planning.predict import FORGED, part_text
    from hubbub.planning.sets import plan_sets

    forged = FORGED if forged is None else forged
    plan = plan_sets(domain=Sets(Ordinal(domain), most), n=n, epsilon=epsilon, held=held, forged=forged)
    if as_json:
        setting = {"domain": domain, "most": most, "held": plan.held, "n": n, "epsilon": epsilon, "forged": forged}
        return emit([{**row.to_dict(), **setting} for row in plan.rows])
    return _print_table(
        f"Sets of at most {most:,} of {domain:,} items, {plan.held:.4g} on average\n"
        f"{n:,} reports, epsilon {epsilon:.4g}\n",
        ("mechanism", "stderr", f"{part_text(forged)} forged", "bytes", ""),
        (
            (
                _GREEN if row.picked else None,
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
    epsilon: Epsilon,
    of: Annotated[str, typer.Option("--of", metavar="mean|frequency", help="What is wanted of each entry.")] = "mean",
    as_json: AsJson = False,
) -> None:
    """The mean of each entry of sparse vectors of -1, 0 and 1, and key-value data."""
    from hubbub.cli.output import emit
    from hubbub.planning.sparse import compare_ternary

    if of not in ("mean", "frequency"):
        raise InvalidValue("--of", of, "mean or frequency")
    rows = compare_ternary(epsilon=epsilon, dimension=domain, sparsity=sparsity, n=n, of=of)  # type: ignore[arg-type]
    best = rows[0]
    if best.error is None:
        raise InvalidValue("--sparsity", sparsity, best.why)
    if as_json:
        setting = {"domain": domain, "sparsity": sparsity, "n": n, "epsilon": epsilon, "of": of}
        return emit([{**row.to_dict(), **setting, "picked": row is best} for row in rows])
    return _print_table(
        f"{domain:,} entries, at most {sparsity:,} not 0; {n:,} reports, epsilon {epsilon:.4g}: each entry's {of}\n",
        ("mechanism", "stderr", "bits", ""),
        (_sparse_cells(row, best, domain) for row in rows),
        f"{best.mechanism} has the smallest error of the {of}, if everyone has {sparsity:,} entries.",
    )


def _sparse_cells(row: TernaryRow, best: TernaryRow, domain: int) -> tuple[str | None, Sequence[str]]:
    bits = "-" if row.bits is None else f"{row.bits:,}"
    if row.error is None or best.error is None:
        return "dim", (row.mechanism, "-", bits, "refused" if row.bits is None else row.why)
    note = "picked" if row is best else f"{row.error / best.error:.2f} times the squared error"
    return _GREEN if row is best else None, (row.mechanism, f"{math.sqrt(row.error / domain):.3g}", bits, note)


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
    from hubbub.cli.output import emit
    from hubbub.rehearse.numbers import GOALS, compare_numbers

    rows = compare_numbers(epsilon=epsilon, n=n, goal=of)
    best = rows[0]
    if as_json:
        setting = {"n": n, "epsilon": epsilon, "of": of}
        return emit([{**row.to_dict(), **setting, "picked": row is best} for row in rows])
    notes = ["picked", *(f"{row.error / best.error:.2g} times" for row in rows[1:])]
    return _print_table(
        f"A {of} of numbers, {n:,} reports, epsilon {epsilon:.4g}; of a skewed crowd, measured\n",
        ("way", "error", "bytes", ""),
        (
            (_GREEN if row is best else None, (row.way, f"{100 * row.error:.3g}%", f"{row.bytes}", note))
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
    from hubbub.cli.output import emit, page, plain_table
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
    what = "Sums between two random positions" if ranges else "Running sums"
    title = f"{what} of {n:,} values that a curator has; errors in multiples of the threshold\n"
    table = plain_table("counter", "stderr", "measured", "guarantee", "", left=["guarantee", ""], title=title)
    for best, *others in (pure, gaussian):
        for choice in (best, *others):
            note = "picked" if choice is best else f"{(choice.on_paper / best.on_paper) ** 0.5:.2g} times"
            errors = (f"{number**0.5:.3g}" for number in (choice.on_paper, choice.measured))
            style = _GREEN if choice is best else None
            table.add_row(choice.name, *errors, choice.guarantee, note, style=style)
    page().print(
        table,
        f"\nUnder pure epsilon: {pure[0].name}. Under rho: {gaussian[0].name}.\n{_RHO_OF}.\n"
        "The hierarchy has fan-out 16 and consistency; measured is simulated noise.",
    )
    return None


app.command("table")(plan_table)

_SHOWN = 6


@app.command()
def shuffled(
    domain: Domain,
    n: N,
    central: Annotated[
        float, typer.Option("--central-epsilon", help="What the shuffled batch may spend.", show_default=False)
    ],
    delta: Annotated[float, typer.Option("--delta", help="The delta of all guarantees.")] = 1e-6,
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="The most that one report may spend.")] = 20.0,
    collusion: Annotated[
        float | None,
        typer.Option("--collusion-epsilon", help="The most if the server and all other people collude."),
    ] = None,
    fakes: Annotated[
        int | None, typer.Option("--fakes", help="How many fakes shufflers add.", min=0, show_default="searched")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Shares of values, if reports are shuffled: which mechanism errs least within a central epsilon."""
    from hubbub.cli.output import emit, page
    from hubbub.planning.shuffled import adversaries, choose_with_fakes

    setting: dict[str, Any] = {"domain": domain, "n": n, "epsilon": central, "delta": delta, "most_local": epsilon}
    if collusion is None and not fakes:
        choices = _without_fakes(setting)
    else:
        choices = choose_with_fakes(**setting, colluding=collusion, fakes=fakes)
    best = choices[0]
    left = adversaries(best.mechanism, n=n, delta=delta, fakes=best.fakes)
    if as_json:
        rows = [_shuffled_row(choice, choice is best) for choice in choices]
        return emit({"domain": domain, "n": n, "mechanisms": rows, "against": left.to_dict()})
    colluding = f", and epsilon {collusion:g} if all other people collude" if collusion is not None else ""
    _print_table(
        f"{domain:,} values, {n:,} reports, epsilon {central:g} and delta {delta:g} once shuffled{colluding}\n",
        ("mechanism", "local epsilon", "fakes", "stderr", "bytes", ""),
        (_shuffled_cells(choice, choice is best) for choice in choices[:_SHOWN]),
        f"With {_named(best.mechanism)}, a person's report is protected\n",
    )
    for sentence in left.sentences():
        page().print(f"- {sentence}", markup=False)
    return None


def _without_fakes(setting: dict[str, Any]) -> list[FakesChoice]:
    from hubbub.planning.shuffled import FakesChoice, choose_shuffled

    return [FakesChoice(choice.mechanism, 0, choice.variance) for choice in choose_shuffled(**setting)]


def _shuffled_row(choice: FakesChoice, picked: bool) -> dict[str, Any]:
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
    return _GREEN if picked else None, (_named(choice.mechanism), *cells, "picked" if picked else "")


def _named(mechanism: FrequencyOracle) -> str:
    buckets = getattr(mechanism, "buckets", None)
    return type(mechanism).__name__ if buckets is None else f"{type(mechanism).__name__}, {buckets:,} buckets"


def _print_table(
    title: str, headings: Sequence[str], rows: Iterable[tuple[str | None, Sequence[str]]], text: str
) -> None:
    """Print one row per choice, each with its style, and a text below."""
    from hubbub.cli.output import page, plain_table

    table = plain_table(*headings, left=[""], title=title)
    for style, cells in rows:
        table.add_row(*cells, style=style)
    page().print(table)
    page().print(f"\n{text}", markup=False)
