"""`hubbub plan`: which mechanism, how many people, what epsilon, for what error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from hubbub.cli.options import AsJson, Plot
from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    from rich.table import Table

    from hubbub.planning.plan import Plan
    from hubbub.planning.predict import Prediction


class PlanMode(NamedTuple):
    """One thing that `hubbub plan` can do: the option that asks for it, and the options that go with it."""

    option: str
    needs: tuple[str, ...]
    takes: tuple[str, ...]


_MODES = (
    PlanMode("--central-epsilon", ("--domain", "--n"), ("--epsilon", "--delta", "--collusion-epsilon", "--fakes")),
    PlanMode("--column", ("--query", "--n", "--epsilon"), ("--unbiased",)),
    PlanMode("file", (), ("--forged",)),
    PlanMode("--sets", ("--domain", "--n", "--epsilon"), ("--held", "--forged")),
    PlanMode("--sparsity", ("--domain", "--n", "--epsilon"), ("--of",)),
    PlanMode("--of", ("--n", "--epsilon"), ()),
    PlanMode("--domain", (), ("--n", "--epsilon", "--stderr", "--most-bytes", "--forged", "--most-shift", "--plot")),
)
"""The first mode whose option is given is the one that is asked for."""
_BELONGS_TO = {
    "--delta": "--central-epsilon",
    "--collusion-epsilon": "--central-epsilon",
    "--fakes": "--central-epsilon",
    "--query": "--column",
    "--unbiased": "--column",
    "--held": "--sets",
}


def chosen_mode(given: dict[str, object]) -> str:
    """The option that says what is planned, from all options that are given, by name.

    Refuses options that do not go together, and asks for those that are missing.
    """
    from hubbub.questions.keys import NOTHING
    from hubbub.questions.words import listed

    for name, option in _BELONGS_TO.items():
        if name in given and option not in given:
            raise InvalidValue(name, given[name], f"only together with {option}")
    mode = next((mode for mode in _MODES if mode.option in given), None)
    if mode is None:
        raise InvalidValue("--domain", NOTHING, "how many values there are, or a collection's file")
    value = str(given["file"]) if mode.option == "file" else given[mode.option]
    if any(name not in given for name in mode.needs):
        raise InvalidValue(mode.option, value, f"only together with {listed(list(mode.needs))}")
    surplus = [name for name in given if name not in (mode.option, *mode.needs, *mode.takes)]
    if surplus:
        options = listed([*mode.needs, *mode.takes, "--json"])
        raise InvalidValue(surplus[0], given[surplus[0]], f"nothing: with {mode.option} go only {options}")
    return mode.option


_DELTA = 1e-6


def plan(
    file: Annotated[
        Path | None, typer.Argument(help="A collection (TOML): what its questions will tell.", show_default=False)
    ] = None,
    domain: Annotated[int | None, typer.Option("--domain", "-d", help="How many values there are.")] = None,
    n: Annotated[int | None, typer.Option("--n", "-n", help="How many people report.")] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", "-e", help="What one report may spend.")] = None,
    stderr: Annotated[float | None, typer.Option("--stderr", help="The standard error wanted, of a share.")] = None,
    sparsity: Annotated[
        int | None, typer.Option("--sparsity", "-s", help="Sparse vectors of --domain entries: how many are not 0.")
    ] = None,
    sets: Annotated[
        int | None, typer.Option("--sets", help="Sets of --domain items: how many a person may hold.")
    ] = None,
    held: Annotated[float | None, typer.Option("--held", help="Sets: how many items people hold on average.")] = None,
    of: Annotated[
        str | None,
        typer.Option(
            "--of",
            help="Sparse vectors: mean or frequency. A number: distribution, median or tail. A curator's stream: sums "
            "(running) or ranges.",
        ),
    ] = None,
    most_bytes: Annotated[int | None, typer.Option("--most-bytes", help="The largest report acceptable.")] = None,
    forged: Annotated[float | None, typer.Option("--forged", help="The part of reports that may be forged.")] = None,
    most_shift: Annotated[
        float | None, typer.Option("--most-shift", help="How far forged reports may move a share: 0.05 is 5 points.")
    ] = None,
    central: Annotated[
        float | None,
        typer.Option("--central-epsilon", help="Reports that are shuffled: what the shuffled batch may spend."),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option("--delta", help="Shuffled reports: the delta of all guarantees.", show_default=f"{_DELTA:g}"),
    ] = None,
    collusion: Annotated[
        float | None,
        typer.Option("--collusion-epsilon", help="Shuffled reports: the most if the server and all others collude."),
    ] = None,
    fakes: Annotated[
        int | None,
        typer.Option("--fakes", help="Shuffled reports: how many fakes shufflers add.", show_default="searched"),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", help="A table's private column, NAME:SIZE, or NAME:SIZE:words without an order."),
    ] = None,
    query: Annotated[
        list[str] | None,
        typer.Option("--query", help="A table: a box that will be asked for, age=30-40,state=3; age=50% is any half."),
    ] = None,
    unbiased: Annotated[
        bool, typer.Option("--unbiased", help="A table: only ways whose answers are unbiased.")
    ] = False,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Compare every mechanism before anything is collected, or read a collection's file.

    With a collection's FILE: what its questions will tell, at several numbers of devices.

    Without a file, what is planned depends on the options:

    --domain and two of --n, --epsilon, --stderr: shares of values; the third of these numbers is computed.

    --sparsity, --domain, --n, --epsilon: sparse vectors of -1, 0 and 1, and key-value data.

    --sets, --domain, --n, --epsilon: the share of people that holds each item of a set.

    --of distribution, median or tail, --n, --epsilon: how to ask for a number.

    --of sums or ranges, --n, --epsilon: how a curator adds up a stream of n values.

    --column and --query (each once or more), --n, --epsilon: how devices report private columns of a table.

    --central-epsilon, --domain, --n: which mechanism errs least if its reports are shuffled; --epsilon is then the most
    that one report may spend.
    """
    from hubbub.cli.output import check_plot, emit, page, save_plot
    from hubbub.planning.plan import plan as make
    from hubbub.planning.predict import FORGED

    options = {
        "file": file,
        "--domain": domain,
        "--n": n,
        "--epsilon": epsilon,
        "--stderr": stderr,
        "--sparsity": sparsity,
        "--sets": sets,
        "--held": held,
        "--of": of,
        "--most-bytes": most_bytes,
        "--forged": forged,
        "--most-shift": most_shift,
        "--central-epsilon": central,
        "--delta": delta,
        "--collusion-epsilon": collusion,
        "--fakes": fakes,
        "--column": column or None,
        "--query": query or None,
        "--unbiased": unbiased or None,
        "--plot": plot,
    }
    mode = chosen_mode({name: value for name, value in options.items() if value is not None})
    part = FORGED if forged is None else forged
    if mode == "--central-epsilon":
        from hubbub.cli.plan_file import plan_shuffled

        assert domain is not None
        assert n is not None
        assert central is not None
        return plan_shuffled(
            domain=domain,
            n=n,
            epsilon=central,
            delta=_DELTA if delta is None else delta,
            colluding=collusion,
            fakes=fakes,
            most_local=epsilon,
            as_json=as_json,
        )
    if file is not None:
        from hubbub.cli.plan_file import plan_file

        return plan_file(file, forged=part, as_json=as_json)
    if mode != "--domain":
        assert n is not None
        assert epsilon is not None
        setting: dict[str, Any] = {"n": n, "epsilon": epsilon, "as_json": as_json}
        if mode == "--column":
            from hubbub.cli.plan_others import plan_table

            return plan_table(columns=column or [], queries=query or [], unbiased=unbiased, **setting)
        if mode == "--sets":
            from hubbub.cli.plan_others import print_set_plan

            assert domain is not None
            assert sets is not None
            return print_set_plan(domain=domain, most=sets, held=held, forged=part, **setting)
        if mode == "--sparsity":
            from hubbub.cli.plan_others import plan_sparse

            assert domain is not None
            assert sparsity is not None
            return plan_sparse(domain=domain, sparsity=sparsity, of=of or "mean", **setting)
        from hubbub.cli.plan_others import QUERIES, plan_numbers, plan_sums

        assert of is not None
        return plan_sums(of=of, **setting) if of in QUERIES else plan_numbers(goal=of, **setting)
    check_plot(plot)
    assert domain is not None
    comparison = make(
        domain=domain,
        n=n,
        epsilon=epsilon,
        stderr=stderr,
        most_bytes=most_bytes,
        forged=part,
        most_shift=most_shift,
    )
    if plot is not None:
        save_plot(comparison.plot().figure, plot)
    if as_json:
        used = {"domain": domain, "n": comparison.n, "epsilon": comparison.epsilon, "forged": part}
        return emit([{**row.to_dict(), **used} for row in comparison.rows])
    page().print(_table(comparison, domain), f"\n{comparison.why}\n\n{_forged(comparison)}")
    for warning in comparison.warnings:
        page().print(f"Warning: {warning}", style="yellow")
    return None


def _forged(comparison: Plan) -> str:
    from hubbub.planning.predict import part_text

    part = part_text(comparison.request.forged)
    return f"{part} forged: how far a share can be moved if {part} of all reports are forged."


def _table(comparison: Plan, domain: int) -> Table:
    """The rows, in 80 columns: shares in percent, work in operations a report."""
    from hubbub.cli.output import plain_table
    from hubbub.planning.predict import part_text

    title = f"{domain:,} values, {comparison.n:,} reports, epsilon {comparison.epsilon:.4g}\n"
    forged = f"{part_text(comparison.request.forged)} forged"
    headings = ("mechanism", "stderr", "detectable", forged, "bytes", "server", "")
    table = plain_table(*headings, left=[""], title=title)
    for row in comparison.rows:
        numbers = ["-" if share is None else f"{100 * share:.3g}%" for share in (row.stderr, row.detectable, row.shift)]
        size, work = ("-" if number is None else f"{number:,.4g}" for number in (row.bytes, row.server))
        note = _note(row, comparison)
        style = "bold green" if row.picked else None if note[0].isdigit() or note[0] in "+-" else "dim"
        table.add_row(row.mechanism, *numbers, size, work, note, style=style)
    return table


def _note(row: Prediction, comparison: Plan) -> str:
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
