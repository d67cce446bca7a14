"""Figure 9: where to clip numbers with a long tail before their mean is streamed."""

from __future__ import annotations

from collections.abc import Sequence

from hubbub_papers.claims import Claim
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.ldp_ids.numbers import FORMS, delays, percentile, source
from hubbub_papers.ldp_ids.sources import OTHER
from hubbub_papers.ldp_ids.style import draw, panels_of, with_legend
from hubbub_papers.ldp_ids.sweep import MRE, MethodSetting, Runs, mean, sweep, verdicts

STEPS = 264
PERCENTS = (100.0, 99.5, 98.0, 90.0, 75.0, 50.0)
EPSILONS = (0.5, 1.0, 2.0, 4.0)
METHODS = ("LSP", "LPU", "LPD", "LPA")
SETTINGS = {epsilon: MethodSetting(epsilon, 20) for epsilon in EPSILONS}


@reproduction("ldp-ids-figure-9", title="MRE of means by clipping threshold, w = 20", repeats=3, needs=("flights3m",))
def figure_9(context: Context, steps: int = STEPS) -> Reproduced:
    """Errors are relative to the mean of the unclipped numbers: the bias of clipping counts as error."""
    sources = {}
    for form in FORMS:
        stream = delays(form, steps)
        for percent in PERCENTS:
            threshold = percentile(stream, percent)
            name = f"{form}, clipped at p{percent:g} = {threshold:g} minutes"
            sources[form, percent] = source(context, name, form, stream, threshold)
    runs = sweep(context, [(s, at) for s in sources.values() for at in SETTINGS.values()], methods=METHODS)
    figure, panels = panels_of([clipped.name for clipped in sources.values()], columns=len(PERCENTS))
    cells = []
    for clipped in sources.values():
        errors = {m: [mean(runs, clipped.name, m, setting, MRE) for setting in SETTINGS.values()] for m in METHODS}
        title = clipped.name.replace(", ", f" ({OTHER})\n", 1)
        draw(panels[clipped.name], EPSILONS, errors, x="$\\epsilon$", y="MRE", title=title)
        floor = f"means below {clipped.floor:g} minutes count as {clipped.floor:g}"
        remark = clipped.remark(f"runs: {context.repeats}", "percentiles of the delays above 0", floor)
        for setting in SETTINGS.values():
            for method in METHODS:
                error = mean(runs, clipped.name, method, setting, MRE)
                cells.append(Cell(f"{clipped.name}, {setting}: MRE", method, None, error, remark))
    names = {form: [sources[form, percent].name for percent in PERCENTS] for form in FORMS}
    claims = verdicts(lambda some: [claim for form in FORMS for claim in _claims(some, form, names[form])], runs)
    return cells + claims, with_legend(figure)


def _claims(runs: Runs, form: str, names: Sequence[str]) -> list[Claim]:
    claims = []
    whole, _, p98, *_, least = names
    for method in METHODS:
        error = {(name, e): mean(runs, name, method, s, MRE) for name in names for e, s in SETTINGS.items()}
        gain = error[whole, 1.0] / error[p98, 1.0]
        paper = "up to 10,000 on Taobao-Price, whose p100 is 6,258 times p98"
        claims.append(Claim(f"{form}: {method}, eps = 1: MRE, p100 to p98", gain, paper=paper, above=1))
        best = min(names, key=lambda name: error[name, 4.0])
        harm = error[least, 4.0] / error[best, 4.0]
        statement = f"{form}: {method}, eps = 4: too low a threshold harms again, MRE of the lowest to the best"
        claims.append(Claim(statement, harm, above=1, note=f"best: {best.partition('clipped at ')[2]}"))
    return claims
