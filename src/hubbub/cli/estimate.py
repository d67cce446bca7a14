"""`hubbub estimate`: what the sketches of `hubbub fold` say, or what a collection of a column would have said."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hubbub.cli import output
from hubbub.cli.options import ADAPTIVE, AsJson, FreshSeed, Plot, named
from hubbub.core.errors import InvalidValue, at

if TYPE_CHECKING:
    from rich.table import Table

    from hubbub.consistency.guide import Choice, Purpose
    from hubbub.core.estimate import Estimate
    from hubbub.rehearse.estimate import ColumnResult

_MOST, _FEW = 20, 5
_BAR, _NAME = 14, 20
_RARE = 1e-12


def estimate(
    file: Annotated[
        Path,
        typer.Argument(
            help="Sketches that `hubbub fold` wrote; with --column, a CSV, TSV, JSON lines or Parquet file.",
            show_default=False,
        ),
    ],
    column: Annotated[
        str | None, typer.Option("--column", "-c", help="The column to collect.", show_default=False)
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", "-e", help="What one report may spend.", show_default=False)
    ] = None,
    mechanism: Annotated[
        str, typer.Option("--mechanism", "-m", help="How each row is randomised, such as OLH.")
    ] = "adaptive",
    purpose: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="single|frequent|set",
            help="Make the shares consistent, for single values, the most frequent ones, or sums over sets.",
        ),
    ] = None,
    consistency: Annotated[
        str | None,
        typer.Option(
            "--consistency",
            metavar="METHOD",
            help="Make the shares consistent by a method: norm-sub, power-ns, ...; base-cut:10 keeps the 10 highest.",
            show_default=False,
        ),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="VALUE,VALUE,...",
            help="The share of some values together; of several sets, as often. The method that errs least for them on "
            "a synthetic population makes the shares consistent, unless one is named.",
            show_default=False,
        ),
    ] = None,
    plot: Plot = None,
    seed: FreshSeed = None,
    question: Annotated[
        str | None, typer.Option("--question", help="Of sketches: which question.", show_default="all")
    ] = None,
    step: Annotated[int | None, typer.Option("--step", help="Of sketches: which step.", show_default="all")] = None,
    forged: Annotated[
        float | None,
        typer.Option(
            "--forged",
            metavar="PART",
            help="Of sketches: also intervals that hold even if up to this part of the reports is forged.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What do these sketches say, or what would a private collection of this column have estimated?

    Of a column, each row is a person, whose value is randomised as on their device. The truth is shown next to the
    estimate, because whoever has the file knows it.
    """
    if column is None:
        if any(option is not None for option in (epsilon, purpose, consistency, sets, plot, seed)):
            allowed = "--column NAME: sketches take --question, --step, --forged and --json alone"
            raise InvalidValue("column", None, allowed)
        return _from_sketches(file, question, step, forged, as_json=as_json)
    if forged is not None:
        raise InvalidValue("forged", forged, "sketches: of a column, no report is forged")
    if epsilon is None:
        raise InvalidValue("epsilon", None, "--epsilon NUMBER, which the reports on the column spend")
    from hubbub.consistency.guide import consistent_rows, method_named
    from hubbub.rehearse.estimate import collect_column

    output.check_plot(plot)
    chosen = _oracle(mechanism)
    method = _method(purpose, consistency)
    with output.progress(str(column)) as follow:
        result = collect_column(file, column, epsilon=epsilon, mechanism=chosen, seed=seed, progress=follow)
    sets_asked = _sets(result, sets or [])
    choice = _choice(result, sets_asked, seed) if sets_asked and method is None else None
    method = choice.method if choice is not None else method
    threshold = result.mechanism.threshold(result.n)
    shown = output.rows(result.estimate, result.truth, threshold)
    fixed = None
    if method is not None:
        fixed = consistent_rows(result.estimate, method_named(method), len(result.labels))
    if plot is not None:
        title = f"{result.column}: {result.n:,} reports through {type(result.mechanism).__name__}, epsilon {epsilon:g}"
        top = shown[:_MOST]
        output.save_plot(output.figure(top, [row.value for row in top], threshold, title), plot)
    if as_json:
        answer = _answer(result, shown, fixed, method, threshold)
        return output.emit(
            {**answer, **(_set_answers(result, sets_asked, method, choice) if method and sets_asked else {})}
        )
    remarks = _remarks(shown, threshold)
    if method is not None and fixed is not None:
        remarks += _compared(result, fixed, method)
    output.page().print(_table(result, shown[:_MOST], fixed), remarks, sep="\n")
    if method is not None and sets_asked:
        output.page().print("", _set_table(result, sets_asked, method, choice), sep="\n")
    return None


def _sets(result: ColumnResult, texts: list[str]) -> dict[str, list[float]]:
    """Each set of values, and the weight of every label in it."""
    sets = {text: {value.strip() for value in text.split(",")} for text in texts}
    for values in sets.values():
        for value in sorted(values.difference(result.labels)):
            raise InvalidValue("set", value, f"values of the column {result.column}, joined by commas")
    return {text: [float(label in values) for label in result.labels] for text, values in sets.items()}


def _choice(result: ColumnResult, sets: dict[str, list[float]], seed: int | None) -> Choice:
    """The method that errs least for these sets on a synthetic population."""
    from hubbub.consistency.guide import choose_method
    from hubbub.random.source import Random

    return choose_method(result.mechanism, result.estimate, [*sets.values()], rng=Random(seed=seed).child("choice"))


def _set_answers(
    result: ColumnResult, sets: dict[str, list[float]], method: str, choice: Choice | None
) -> dict[str, object]:
    """The share of each set: the truth, the estimate with its interval, and the consistent one."""
    import numpy as np

    from hubbub.consistency.guide import answer

    weights = np.array([*sets.values()])
    raw = result.estimate.linear(weights)
    columns = (weights @ result.truth, *raw.possible(), answer(result.estimate, weights, method).value)
    names = ("set", "truth", "estimate", "low", "high", "consistent")
    rows = zip(sets, *(column.tolist() for column in columns), strict=True)
    tried = None if choice is None else {name: error**0.5 for name, error in choice.errors.items()}
    return {"sets": [dict(zip(names, row, strict=True)) for row in rows], "tried": tried}


def _set_table(result: ColumnResult, sets: dict[str, list[float]], method: str, choice: Choice | None) -> Table:
    from rich.markup import escape

    why = "" if choice is None else ", which errs least on a synthetic population"
    title = f"Sets of values; consistent by {method}{why}\n"
    table = output.plain_table("set", "truth", "estimate", "95% interval", "consistent", title=title)
    rows: Any = _set_answers(result, sets, method, choice)["sets"]
    for row in rows:
        low, high = output.percent(row["low"]), output.percent(row["high"])
        shares = (output.percent(row[name]) for name in ("truth", "estimate"))
        table.add_row(
            escape(output.shorten(row["set"], _NAME)), *shares, f"{low} to {high}", output.percent(row["consistent"])
        )
    return table


def _from_sketches(file: Path, question: str | None, step: int | None, forged: float | None, *, as_json: bool) -> None:
    """Print what is estimated from each sketch of a file, and whether its reports look forged."""
    from hubbub.alarms.forged import suspicion
    from hubbub.backends.folding import Folded

    folded = Folded.from_bytes(file.read_bytes())
    keys = [key for key in sorted(folded.sketches) if question in (None, key.question) and step in (None, key.step)]
    if not keys:
        present = sorted({f"{key.question}, step {key.step}" for key in folded.sketches})
        raise InvalidValue("sketches", "none of them", f"a question and step of the file: {'; '.join(present[:20])}")
    answers = []
    for key in keys:
        mechanism = folded.mechanisms[key.spec_id]
        with at(f"{key.question}, step {key.step}"):
            estimate = folded.estimate(key)
        places = [int(place) for place in estimate.top(len(estimate))]
        values = output.found_rows(estimate.names(), estimate, None, possible=estimate.kind == "share")
        influence = None if forged is None else mechanism.influence()
        if forged is not None and influence is not None:
            low, high = influence.honest(estimate, forged)
            if estimate.kind == "share":
                low, high = low.clip(0.0, 1.0), high.clip(0.0, 1.0)
            for place, row in enumerate(values):
                row |= {"forged_low": float(low[place]), "forged_high": float(high[place])}
        found = suspicion(mechanism, folded.sketches[key]) if folded.candidates_of(key) is None else None
        looks = None if found is None else found._asdict()
        answer: dict[str, object] = {**key._asdict(), "mechanism": type(mechanism).__name__}
        answer |= {"epsilon": mechanism.epsilon, "n": estimate.n, "bias": estimate.bias, "kind": estimate.kind}
        answers.append({**answer, "forged": forged, "looks": looks, "rows": [values[place] for place in places]})
        if not as_json:
            ask = f"{key.question}, step {key.step}" + (f", run {key.run}" if key.run else "")
            ask += f", round {key.round}, part {key.part}" if (key.round, key.part) != (1, 0) else ""
            title = f"{ask}: {estimate.n:,} reports through {type(mechanism).__name__}, epsilon {mechanism.epsilon:g}"
            shown = [values[place] for place in places[: _MOST if len(keys) == 1 else _FEW]]
            output.page().print(output.found_table(shown, "value", title, shares=estimate.kind == "share"))
            if forged is not None and influence is None:
                output.say("how far forged reports can move these is not known")
            if found is not None:
                chance = f"{found.p_value:.2g}" if found.p_value >= _RARE else f"less than {_RARE:g}"
                output.page().print(
                    f"\nGenuine reports look as odd as these with a chance of {chance}: {found.oddity}."
                )
    if as_json:
        output.emit({"sketches": answers, "left_out": folded.left_out})
    elif folded.left_out:
        output.say(f"left out: {', '.join(f'{rows:,} {reason}' for reason, rows in folded.left_out.items())}")


def _method(purpose: str | None, consistency: str | None) -> str | None:
    """The name of the method to make shares consistent by; None for none."""
    from hubbub.consistency.guide import guideline, method_named

    if purpose is None:
        if consistency is not None:
            method_named(consistency, "consistency")
        return consistency
    if consistency is not None:
        raise InvalidValue("consistency", consistency, "nothing next to --for, which names a method by its purpose")
    return guideline(cast("Purpose", named("for", purpose, ("single", "frequent", "set"))))


def _oracle(name: str) -> str | None:
    """The registered name; None for adaptive."""
    from hubbub.mechanisms import MECHANISMS
    from hubbub.mechanisms.frequency.oracle import FrequencyOracle

    oracles = [known for known, kind in MECHANISMS.usable().items() if issubclass(kind, FrequencyOracle)]
    chosen = named("mechanism", name, [ADAPTIVE, *oracles])
    return None if chosen == ADAPTIVE else chosen


def _consistent(result: ColumnResult, fixed: Estimate | None) -> dict[str, tuple[float, float, float]]:
    """The consistent share of each value, and the ends of its interval."""
    if fixed is None:
        return {}
    columns = (numbers.tolist() for numbers in fixed.possible())
    return dict(zip(result.labels, zip(*columns, strict=True), strict=True))


def _compared(result: ColumnResult, fixed: Estimate, name: str) -> str:
    """Whether consistent shares are nearer to the truth, which the file knows."""
    import numpy as np

    from hubbub.consistency.guide import method_named

    before, after = (np.square(estimate.value - result.truth) for estimate in (result.estimate, fixed))
    method, nearer, further = method_named(name), int((after < before).sum()), int((after > before).sum())
    ratio = f", {after.sum() / before.sum():.2f} of that of the estimates in all" if before.sum() > 0 else ""
    return (
        f"\nConsistent shares by {method.title}: {method.does}. Their squared error is {after.sum():.2g}{ratio}; "
        f"{nearer:,} values are nearer to the truth, and {further:,} further from it."
    )


def _answer(
    result: ColumnResult, shown: list[output.ShareRow], fixed: Estimate | None, method: str | None, threshold: float
) -> dict[str, object]:
    share = _consistent(result, fixed)
    names = ("consistent", "consistent_low", "consistent_high")
    return {
        "column": result.column,
        "n": result.n,
        "missing": result.missing,
        "domain": len(result.labels),
        "mechanism": type(result.mechanism).__name__,
        "epsilon": result.mechanism.epsilon,
        "effective_epsilon": result.mechanism.effective_epsilon,
        "spec_id": result.mechanism.spec_id,
        "bias": result.estimate.bias,
        "consistency": method,
        "threshold": threshold,
        "rows": [{**row._asdict(), **dict(zip(names, share.get(row.value, [None] * 3), strict=True))} for row in shown],
    }


def _table(result: ColumnResult, shown: list[output.ShareRow], fixed: Estimate | None) -> Table:
    from rich.markup import escape

    name = type(result.mechanism).__name__
    title = f"{escape(result.column)}: {result.n:,} reports through {name}, epsilon {result.mechanism.epsilon:g}\n"
    extra = [] if fixed is None else ["consistent"]
    table = output.plain_table("value", "truth", "estimate", "95% interval", *extra, "", left=[""], title=title)
    share = _consistent(result, fixed)
    width = _BAR if fixed is None else _BAR - 4
    most = max(max(row.estimate, row.truth) for row in shown)
    for row in shown:
        estimate, low, high = (
            min(max(number, 0.0), 1.0) for number in (row.estimate, row.low, row.high)
        )  # as `possible`
        fields = [escape(output.shorten(row.value, _NAME)), output.percent(row.truth), output.percent(estimate)]
        fields.append(f"{output.percent(low)} to {output.percent(high)}")
        fields += [output.percent(share[row.value][0])] if share else []
        fields.append(output.painted(row.estimate, most, width, mark=row.truth))
        table.add_row(*fields, style=None if row.significant else "dim")
    return table


def _remarks(shown: list[output.ShareRow], threshold: float) -> str:
    significant = sum(row.significant for row in shown)
    more = f"{len(shown) - _MOST:,} more values are not shown. " if len(shown) > _MOST else ""
    dim = "; the others are dim" if significant < len(shown) else ""
    return (
        f"\n{more}{significant:,} of {len(shown):,} values rise above {output.percent(threshold)}, which chance "
        f"alone passes in one run of twenty{dim}. The diamond is the truth, which a real collection does not know."
    )
