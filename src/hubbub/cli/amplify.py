"""`hubbub amplify`: what a local epsilon is worth once reports are shuffled."""

from typing import Annotated

import typer

from hubbub.cli.options import AsJson, fields_of, mechanism_of
from hubbub.cli.output import emit, page, plain_table, spec_text

_DOMAIN = 1024


def amplify(
    context: typer.Context,
    mechanism: Annotated[str, typer.Option("--mechanism", "-m", help="A mechanism, such as OLH.")],
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="What one report may spend.")],
    n: Annotated[int, typer.Option("--n", "-n", help="How many reports are shuffled.")],
    delta: Annotated[float, typer.Option("--delta", help="The delta of the central guarantee.")] = 1e-6,
    domain: Annotated[
        int | None, typer.Option("--domain", "-d", help="How many values there are.", show_default=str(_DOMAIN))
    ] = None,
    fakes: Annotated[int, typer.Option("--fakes", min=0, help="Reports that shufflers add, drawn uniformly.")] = 0,
    times: Annotated[int, typer.Option("--times", min=1, help="In how many batches a person has a report.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Say what shuffling n reports guarantees: the smallest epsilon that is proved, and by which bound.

    Every field of the mechanism is an option, such as --dimension 128 --sparsity 8 of NetSub.
    """
    from hubbub.mechanisms import MECHANISMS
    from hubbub.privacy.accountant import accounted
    from hubbub.privacy.amplify import bounds

    given, known = fields_of(context.args), MECHANISMS.usable()
    local = mechanism_of(mechanism, epsilon=epsilon, domain=domain, default=_DOMAIN, given=given, known=known)
    every = sorted(bounds(local, n=n, delta=delta, fakes=fakes), key=lambda bound: bound.epsilon)
    together = accounted(local, n=n, delta=delta, times=times, fakes=fakes) if times > 1 else None
    if as_json:
        several = {} if together is None else {"times": times, "together": together.to_dict()}
        emit({**every[0].to_dict(), **several, "spec": local.spec()})
        return
    table = plain_table("bound", "epsilon", "delta", left=["bound"])
    for bound in every:
        table.add_row(bound.method, f"{bound.epsilon:.5g}", f"{bound.delta:g}")
    console = page()
    console.print(table)
    console.print()
    but = f", plus a delta of {every[0].delta:g}" if every[0].delta else ""
    console.print(
        f"For an observer who sees {n:,} reports of {type(local).__name__} only after they were shuffled, replacing "
        f"one report changes no probability by more than a factor of e^{every[0].epsilon:.4g}{but}. Before the "
        f"shuffle, a report is protected only by its local epsilon of {local.effective_epsilon:.4g}.",
        markup=False,
    )
    if together is not None:
        text = f"In {times:,} batches together: epsilon {together.epsilon:.4g}, delta {together.delta:g}"
        console.print(f"{text} ({together.method}).", markup=False)
    if local.whole_reports:
        text = (
            "All reports of a device in a horizon are one report here. Only devices that are in every batch count, "
            "each on a level by chance; the bound is that of the level where it is worst."
        )
        console.print(text, markup=False)
    if every[0].one_batch:
        text = (
            "This holds for one batch only: a device remembers what it drew for its first report, so that its reports "
            "in a second batch can be linked to it. Across batches only the local epsilons hold."
        )
        console.print(text, markup=False)
    console.print(f"\n{spec_text(local)}", markup=False)
