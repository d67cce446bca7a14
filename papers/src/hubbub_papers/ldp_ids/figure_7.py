"""Figure 7: bits a device and step on LNS, by population, speed, epsilon and window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hubbub_papers.claims import Claim
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.ldp_ids.sources import binary, linear
from hubbub_papers.ldp_ids.style import draw, panels_of, with_legend
from hubbub_papers.ldp_ids.sweep import BITS, METHODS, MethodSetting, Place, Runs, mean, sweep, verdicts

STEPS = 300
SIZES = (25_000, 50_000, 100_000, 200_000)
DEVIATIONS = (0.001, 0.002, 0.004, 0.008)
EPSILONS = (0.5, 1.0, 2.0, 4.0)
WINDOWS = (10, 20, 30, 50)
USUAL = MethodSetting(1.0, 20)
ADAPTIVE = ("LBD", "LBA", "LPD", "LPA")
Places = Mapping[str, Mapping[float, Place]]  # by what changes, then by its value


@reproduction("ldp-ids-figure-7", title="Communication bits a device and step, LNS", repeats=3)
def figure_7(context: Context, steps: int = STEPS) -> Reproduced:
    """What changes is one of n, sqrt Q, eps and w; the others stay at 200,000, 0.0025, 1 and 20."""
    usual = binary(context, "LNS", linear(context, steps))
    places: Places = {
        "n": {n: (binary(context, f"LNS, n = {n:,}", linear(context, steps), n), USUAL) for n in SIZES},
        "sqrt Q": {q: (binary(context, f"LNS, sqrt Q = {q:g}", linear(context, steps, q)), USUAL) for q in DEVIATIONS},
        "eps": {epsilon: (usual, MethodSetting(epsilon, 20)) for epsilon in EPSILONS},
        "w": {float(w): (usual, MethodSetting(1.0, w)) for w in WINDOWS},
    }
    runs = sweep(context, list(dict.fromkeys(place for values in places.values() for place in values.values())))
    figure, axes = panels_of(list(places), columns=2)
    cells = []
    for what, values in places.items():
        bits = {m: [mean(runs, source.name, m, at, BITS) for source, at in values.values()] for m in METHODS}
        axis = {"sqrt Q": "$\\sqrt{Q}$", "eps": "$\\epsilon$"}.get(what, what)
        draw(axes[what], list(values), bits, x=axis, y="bits a device and step", title="")
        for source, setting in values.values():
            remark = source.remark(f"runs: {context.repeats}", steps=steps)
            row = f"{source.name}, {setting}"
            cells += [Cell(row, m, None, mean(runs, source.name, m, setting, BITS), remark) for m in METHODS]
    return list(dict.fromkeys(cells)) + verdicts(lambda some: _claims(some, places), runs), with_legend(figure)


def _claims(runs: Runs, places: Places) -> list[Claim]:
    def growth(what: str, method: str) -> float:
        ends = [list(places[what].values())[end] for end in (0, -1)]
        low, high = (mean(runs, source.name, method, setting, BITS) for source, setting in ends)
        return high / low

    def claim(what: str, method: str, **bounds: Any) -> Claim:
        low, *_, high = places[what]
        return Claim(f"{method}: bits at {what} = {high:g} to {low:g}", growth(what, method), **bounds)

    return [
        *(claim("n", method, paper="slightly less", below=1) for method in ADAPTIVE),
        *(claim("sqrt Q", method, paper="slightly more", above=1) for method in ADAPTIVE),
        *(claim("eps", method, paper="nearly the same", above=0.9, below=1.1) for method in ("LBU", "LBD", "LBA")),
        *(claim("eps", method, above=1) for method in ("LPD", "LPA")),
        claim("w", "LBU", paper="unchanged", above=0.999, below=1.001),
        *(claim("w", method, below=1) for method in METHODS if method != "LBU"),
    ]
