"""Figure 11: other stream algorithms, with budget division and with population division."""

from __future__ import annotations

from hubbub.simulate.devices import RESAMPLED
from hubbub_papers.claims import Claim
from hubbub_papers.harness import Context, Reproduced, reproduction
from hubbub_papers.ldp_ids.sources import replay, synthetic
from hubbub_papers.ldp_ids.style import look, panels_of, with_legend
from hubbub_papers.ldp_ids.sweep import MRE, MSE, MethodSetting, Runs, error_cells, mean, sweep, verdicts
from hubbub_papers.plots import finish
from hubbub_papers.real_streams import flights_stream, taxi_stream

STEPS = 400
SETTING = MethodSetting(1.0, 30)
ALGORITHMS = ("A", "DSAT", "RescueDP", "FAST", "PeGaSus")
PAIRS = {name: ("LBA", "LPA") if name == "A" else (f"LB-{name}", f"LP-{name}") for name in ALGORITHMS}
METHODS = tuple(method for pair in PAIRS.values() for method in pair)
OURS = {"FAST": "w-event form: ours", "PeGaSus": "w-event form: ours"}


@reproduction(
    "ldp-ids-figure-11",
    title="MRE of other stream algorithms, eps = 1, w = 30",
    repeats=3,
    needs=("flights", "taxi"),
)
def figure_11(context: Context, steps: int = STEPS) -> Reproduced:
    """Binary streams: the synthetic ones, and whether a real device has any event."""
    sources = [
        *synthetic(context, steps),
        replay(context, "Aircraft", flights_stream().busy().first(steps)),
        replay(context, f"Aircraft, {RESAMPLED:,}", flights_stream().resampled().busy().first(steps)),
        replay(context, "NYC taxi", taxi_stream().busy().first(steps)),
        replay(context, f"NYC taxi, {RESAMPLED:,}", taxi_stream().resampled().busy().first(steps)),
    ]
    runs = sweep(context, [(source, SETTING) for source in sources], methods=METHODS)
    figure, panels = panels_of([source.name for source in sources])
    cells = []
    for source in sources:
        panel = panels[source.name]
        for place, (name, pair) in enumerate(PAIRS.items()):
            remark = source.remark(f"runs: {context.repeats}", OURS.get(name, ""), steps=steps)
            cells += error_cells(runs, source, SETTING, pair, row=source.name, remark=remark)
            for method in pair:
                error = mean(runs, source.name, method, SETTING, MRE)
                panel.plot([place], [error], **{**look(method), "linestyle": "none", "markersize": 8})
        finish(panel, "", "MRE", source.title)
        panel.set_xticks(range(len(PAIRS)), ["LBA, LPA", *ALGORITHMS[1:]], fontsize=8)
    return cells + verdicts(_claims, runs), with_legend(figure)


def _claims(runs: Runs) -> list[Claim]:
    claims = []
    for name in dict.fromkeys(source for source, _, _ in runs):
        for budget, population in PAIRS.values():
            for column, what in ((MRE, "MRE"), (MSE, "MSE")):
                lead = mean(runs, name, population, SETTING, column) / mean(runs, name, budget, SETTING, column)
                claims.append(Claim(f"{name}: {what}, {population} to {budget}", lead, below=1))
        spreads = []
        for side in (1, 0):
            errors = [mean(runs, name, pair[side], SETTING, MRE) for pair in PAIRS.values()]
            spreads.append(max(errors) / min(errors))
        statement = f"{name}: methods differ less by population than by budget, largest to least MRE"
        claims.append(Claim(statement, spreads[0] / spreads[1], below=1))
    return claims
