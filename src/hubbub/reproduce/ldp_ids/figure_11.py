"""Figure 11: other stream algorithms, by budget and by population."""

from __future__ import annotations

from hubbub.reproduce.claims import Claim
from hubbub.reproduce.harness import Cell, Context, Reproduced, reproduction
from hubbub.reproduce.ldp_ids.sources import FLOOR, binary, length, linear, logistic, replay, sine
from hubbub.reproduce.ldp_ids.style import finished, look, panels_of
from hubbub.reproduce.ldp_ids.sweep import MRE, MSE, MethodSetting, Runs, mean, sweep, verdicts
from hubbub.reproduce.plots import finish
from hubbub.simulate.event_stream import RESAMPLED
from hubbub.simulate.real_streams import flights_stream, taxi_stream

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
        binary(context, "LNS", linear(context, steps)),
        binary(context, "Sin", sine(steps)),
        binary(context, "Log", logistic(steps)),
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
            for method in pair:
                relative, squared = (mean(runs, source.name, method, SETTING, column) for column in (MRE, MSE))
                panel.plot([place], [relative], **{**look(method), "linestyle": "none", "markersize": 8})
                made = "" if source.note else length(steps)
                remark = source.remark(made, f"runs: {context.repeats}", OURS.get(name, ""))
                floored = f"{remark}; shares below {FLOOR:g} count as {FLOOR:g}"
                cells.append(Cell(f"{source.name}: MRE", method, None, relative, floored))
                cells.append(Cell(f"{source.name}: MSE", method, None, squared, remark))
        finish(panel, "", "MRE", source.title)
        panel.set_xticks(range(len(PAIRS)), ["LBA, LPA", *ALGORITHMS[1:]], fontsize=8)
    return cells + verdicts(_claims, runs), finished(figure)


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
