"""Figure 10: means of normal numbers by the speed of the stream, and of numbers clipped at a private threshold."""

from __future__ import annotations

from collections.abc import Mapping

from hubbub.protocols.driver import Protocol
from hubbub.protocols.window.clipping import clipped_means
from hubbub.simulate.conversation import StreamRun
from hubbub_papers.claims import Claim
from hubbub_papers.harness import Context, Reproduced, reproduction
from hubbub_papers.ldp_ids import numbers
from hubbub_papers.ldp_ids.sources import Process, Source, length_note, linear, normal, sine
from hubbub_papers.ldp_ids.style import draw, panels_of, with_legend
from hubbub_papers.ldp_ids.sweep import (
    METHODS,
    MRE,
    MSE,
    PAIRS,
    MethodSetting,
    Place,
    Runs,
    error_cells,
    mean,
    options_of,
    plain,
    scores,
    start,
    sweep,
    verdicts,
)

STEPS = 120
REAL_STEPS = 264
DEVIATIONS = (0.001, 0.002, 0.004, 0.008)
SPEEDS = (0.005, 0.01, 0.02, 0.05)
EPSILONS = (0.5, 1.0, 2.0, 4.0)
WINDOWS = (10, 20, 30, 50)
USUAL = MethodSetting(1.0, 20)
BOUND, FLOOR = 20.0, 0.01
Places = Mapping[str, Mapping[float, Place]]  # by panel, then by what changes


@reproduction("ldp-ids-figure-10", title="MRE of means, eps = 1, w = 20", repeats=1, needs=("flights3m",))
def figure_10(context: Context, steps: int = STEPS, real_steps: int = REAL_STEPS) -> Reproduced:
    """LNS-Con and Sin-Con by their speed, and minutes late by eps and w, the threshold searched privately."""

    def moving(name: str, process: Process) -> Source:
        return normal(context, name, process, bound=BOUND, floor=FLOOR)

    late, rare = (
        numbers.source(context, form, form, numbers.delays(form, real_steps), numbers.MOST) for form in numbers.FORMS
    )
    places: Places = {
        "LNS-Con": {q: (moving(f"LNS-Con, sqrt Q = {q:g}", linear(context, steps, q)), USUAL) for q in DEVIATIONS},
        "Sin-Con": {b: (moving(f"Sin-Con, b = {b:g}", sine(steps, b)), USUAL) for b in SPEEDS},
        f"{late.title}, w = 20": {e: (late, MethodSetting(e, 20)) for e in EPSILONS},
        f"{late.title}, eps = 1": {float(w): (late, MethodSetting(1.0, w)) for w in WINDOWS},
        f"{rare.title}, w = 20": {e: (rare, MethodSetting(e, 20)) for e in EPSILONS},
    }
    axes = ("$\\sqrt{Q}$", "b", "$\\epsilon$", "w", "$\\epsilon$")
    unique = list(dict.fromkeys(place for values in places.values() for place in values.values()))
    runs = sweep(context, unique, score=_score, begin=_begin)
    figure, panels = panels_of(list(places), columns=3)
    cells = []
    for (title, values), axis in zip(places.items(), axes, strict=True):
        errors = {m: [mean(runs, source.name, m, at, MRE) for source, at in values.values()] for m in METHODS}
        draw(panels[title], list(values), errors, x=axis, y="MRE", title=title)
    for source, setting in unique:
        clipped = source.name in numbers.FORMS
        searched = "each method searches its threshold with a tenth of the window; measured after 2w steps"
        remark = source.remark(searched if clipped else length_note(steps), f"runs: {context.repeats}")
        floor = f"means below {source.floor:g} count as {source.floor:g}"
        cells += error_cells(
            runs, source, setting, METHODS, row=f"{source.name}, {setting}", remark=remark, floor=floor
        )
    return cells + verdicts(lambda some: _claims(some, places), runs), with_legend(figure)


def _begin(source: Source, method: str, setting: MethodSetting) -> Protocol:
    if source.name in numbers.FORMS:
        options = options_of(method, setting)
        return clipped_means(plain(method), epsilon=setting.epsilon, w=setting.w, most=numbers.MOST, **options)
    return start(source, method, setting)


def _score(source: Source, method: str, setting: MethodSetting, run: StreamRun) -> list[float]:
    searched = 2 * setting.w if source.name in numbers.FORMS else 0
    return scores(source, method, setting, numbers.after(run, searched))


def _claims(runs: Runs, places: Places) -> list[Claim]:
    claims = []
    for title, values in places.items():
        clipped = all(source.name in numbers.FORMS for source, _ in values.values())
        both = "; what clipping takes away is in both errors" if clipped else ""
        for population, budget in PAIRS:
            ratios = {
                x: mean(runs, source.name, population, setting, MSE) / mean(runs, source.name, budget, setting, MSE)
                for x, (source, setting) in values.items()
            }
            worst = max(ratios, key=lambda x: ratios[x])
            statement = f"{title}: population beats budget, MSE, {population} to {budget}"
            claims.append(Claim(statement, ratios[worst], below=1, note=f"the largest, at {worst:g}{both}"))
    for title in ("LNS-Con", "Sin-Con"):
        ends = [list(places[title].values())[end] for end in (0, -1)]
        for method in ("LSP", "LPD", "LPA"):
            slow, fast = (mean(runs, source.name, method, setting, MSE) for source, setting in ends)
            statement = f"{title}: error grows with the stream's speed as in figure 6, MSE of {method}"
            claims.append(Claim(statement, fast / slow, above=1))
    return claims
