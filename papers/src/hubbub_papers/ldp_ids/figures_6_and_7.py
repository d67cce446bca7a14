"""Figures 6 and 7 and Table 2: people, fluctuation, and communication."""

from collections.abc import Mapping, Sequence
from typing import Any

from hubbub.mechanisms.frequency.adaptive import adaptive
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.ldp_ids.sources import NEEDS, STEPS, Source, binary, linear, real, replay, sine, synthetic
from hubbub_papers.ldp_ids.sweep import (
    BITS,
    FILTERED,
    METHODS,
    MRE,
    MSE,
    MethodSetting,
    Place,
    Runs,
    StreamPanel,
    StreamStudy,
    error_cells,
    mean,
    sweep,
    verdicts,
)
from hubbub_papers.real_streams import flights_stream
from hubbub_papers.result import Claim

STEPS_6 = 300
SIZES = (25_000, 50_000, 100_000, 200_000)
DEVIATIONS = (0.001, 0.002, 0.004, 0.008)
SPEEDS = (0.005, 0.01, 0.02, 0.05)
SETTING = MethodSetting(1.0, 20)
OURS = tuple(method + FILTERED for method in ("LBD", "LBA", "LPD", "LPA"))
MOVED = ("LSP", "LBD", "LBA", "LPD", "LPA")
"""The methods whose squared error depends on how the stream moves."""
Panels = Mapping[str, Mapping[float, Source]]


@reproduction(
    "ren-2022-ldpids-figure-6", title="MRE by population and by how fast the stream moves, eps = 1, w = 20", repeats=3
)
def figure_6(context: Context, steps: int = STEPS_6) -> Reproduced:
    """LNS and Sin; the population changes, the process does not."""
    panels: Panels = {
        "LNS, n": {n: binary(context, f"LNS, n = {n:,}", linear(context, steps), n) for n in SIZES},
        "Sin, n": {n: binary(context, f"Sin, n = {n:,}", sine(steps), n) for n in SIZES},
        "LNS, sqrt Q": {q: binary(context, f"LNS, sqrt Q = {q:g}", linear(context, steps, q)) for q in DEVIATIONS},
        "Sin, b": {b: binary(context, f"Sin, b = {b:g}", sine(steps, b)) for b in SPEEDS},
    }

    def cells(runs: Runs, source: Source, setting: MethodSetting, methods: Sequence[str]) -> list[Cell]:
        remark = source.remark(f"runs: {context.repeats}, {setting}", steps=steps)
        return error_cells(runs, source, setting, methods, row=source.name, remark=remark)

    drawn = []
    for title, sources in panels.items():
        name, axis = title.replace("sqrt Q", "$\\sqrt{Q}$").split(", ")
        drawn.append(StreamPanel(name, axis, {x: (source, SETTING) for x, source in sources.items()}))
    return StreamStudy(drawn, lambda some: _claims_6(some, panels), cells, others=OURS).run(context, columns=2)


def _claims_6(runs: Runs, panels: Panels) -> list[Claim]:
    def error(title: str, x: float, method: str, column: int = MRE) -> float:
        return mean(runs, panels[title][x].name, method, SETTING, column)

    claims = []
    for title in ("LNS, n", "Sin, n"):
        fall = {m: error(title, SIZES[-1], m) / error(title, SIZES[0], m) for m in METHODS}
        worst = max(fall, key=lambda m: fall[m])
        statement = f"{title.split(', ')[0]}: error falls with n, MRE at {SIZES[-1]:,} to {SIZES[0]:,}"
        claims.append(Claim(statement, fall[worst], below=1, note=f"the largest of all methods: {worst}"))
    for title, xs, slow in (("LNS, sqrt Q", DEVIATIONS, DEVIATIONS[:2]), ("Sin, b", SPEEDS, SPEEDS[:2])):
        name, what = title.split(", ")
        for column, measure, methods in ((MRE, "MRE", METHODS), (MSE, "MSE", MOVED)):
            rise = {m: error(title, xs[-1], m, column) / error(title, xs[0], m, column) for m in methods}
            least = min(rise, key=rise.__getitem__)
            statement = f"{name}: error grows with {what}, {measure} at {xs[-1]:g} to {xs[0]:g}"
            claims.append(Claim(statement, rise[least], above=1, note=f"the least of {', '.join(methods)}: {least}"))
        for x in slow:
            best = min(error(title, x, m) for m in METHODS if m != "LSP")
            claims.append(
                Claim(f"{name}, {what} = {x:g}: MRE, LSP to the best other", error(title, x, "LSP") / best, below=1)
            )
        fast = xs[-1]
        for method in ("LPD", "LPA"):
            lead = error(title, fast, "LSP") / error(title, fast, method)
            claims.append(Claim(f"{name}, {what} = {fast:g}: MRE, LSP to {method}", lead, above=1))
            ratio = max(error(title, x, method + FILTERED, MSE) / error(title, x, "LPU", MSE) for x in xs)
            claims.append(Claim(f"{name}: MSE, {method}{FILTERED} to LPU, the largest", ratio, below=1.3))
            for x, bound in ((xs[0], {"below": 1.0}), (fast, {"above": 1.0})):
                for column, measure in ((MRE, "MRE"), (MSE, "MSE")):
                    ratio = error(title, x, method, column) / error(title, x, "LPU", column)
                    statement = f"{name}, {what} = {x:g}: {measure}, {method} to LPU"
                    claims.append(Claim(statement, ratio, **bound))  # type: ignore[arg-type]
    return claims


EPSILONS = (0.5, 1.0, 2.0, 4.0)
WINDOWS = (10, 20, 30, 50)
USUAL = MethodSetting(1.0, 20)
ADAPTIVE = ("LBD", "LBA", "LPD", "LPA")
Places = Mapping[str, Mapping[float, Place]]  # by what changes, then by its value


@reproduction("ren-2022-ldpids-figure-7", title="Communication bits per device and step, LNS", repeats=3)
def figure_7(context: Context, steps: int = STEPS_6) -> Reproduced:
    """What changes is one of n, sqrt Q, eps and w; the others stay at 200,000, 0.0025, 1 and 20."""
    usual = binary(context, "LNS", linear(context, steps))
    places: Places = {
        "n": {n: (binary(context, f"LNS, n = {n:,}", linear(context, steps), n), USUAL) for n in SIZES},
        "sqrt Q": {q: (binary(context, f"LNS, sqrt Q = {q:g}", linear(context, steps, q)), USUAL) for q in DEVIATIONS},
        "eps": {epsilon: (usual, MethodSetting(epsilon, 20)) for epsilon in EPSILONS},
        "w": {float(w): (usual, MethodSetting(1.0, w)) for w in WINDOWS},
    }

    def cells(runs: Runs, source: Source, setting: MethodSetting, methods: Sequence[str]) -> list[Cell]:
        row, remark = f"{source.name}, {setting}", source.remark(f"runs: {context.repeats}", steps=steps)
        return [Cell(row, m, None, mean(runs, source.name, m, setting, BITS), remark) for m in methods]

    axes = {"sqrt Q": "$\\sqrt{Q}$", "eps": "$\\epsilon$"}
    panels = [StreamPanel("", axes.get(what, what), values) for what, values in places.items()]
    study = StreamStudy(panels, lambda some: _claims_7(some, places), cells, column=BITS)
    return study.run(context, columns=2, y="bits per device and step")


def _claims_7(runs: Runs, places: Places) -> list[Claim]:
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


SHORT = 190  # steps of the real streams with many devices
SETTINGS = (MethodSetting(1.0, 20), MethodSetting(2.0, 20), MethodSetting(2.0, 40))

PRINTED: dict[tuple[str, MethodSetting], tuple[float, ...]] = {
    ("LNS", SETTINGS[0]): (1.0, 0.1, 1.5585, 1.3410, 0.1, 0.0912, 0.0804),
    ("Sin", SETTINGS[0]): (1.0, 0.1, 1.5516, 1.3380, 0.1, 0.0913, 0.0806),
    ("Log", SETTINGS[0]): (1.0, 0.1, 1.5572, 1.3284, 0.1, 0.0915, 0.0803),
    ("LNS", SETTINGS[1]): (1.0, 0.1, 1.5500, 1.3540, 0.1, 0.0934, 0.0825),
    ("Sin", SETTINGS[1]): (1.0, 0.1, 1.5410, 1.3580, 0.1, 0.0933, 0.0828),
    ("Log", SETTINGS[1]): (1.0, 0.1, 1.5540, 1.3368, 0.1, 0.0937, 0.0822),
    ("LNS", SETTINGS[2]): (1.0, 0.05, 1.5420, 1.3395, 0.05, 0.0485, 0.0410),
    ("Sin", SETTINGS[2]): (1.0, 0.05, 1.5268, 1.3656, 0.05, 0.0484, 0.0411),
    ("Log", SETTINGS[2]): (1.0, 0.05, 1.4832, 1.3148, 0.05, 0.0490, 0.0414),
}
"""The synthetic columns as printed, in the order of `METHODS`."""

ELSEWHERE = {"Taxi": (886, 5), "Foursquare": (447, 77), "Taobao": (432, 118)}
"""The steps and values of the paper's real streams. The bits of `NEEDING_NO_DATA` depend on nothing else.

Taobao has 117 categories; the table's 118 bits are with a value for "no click yet". The text gives it 1,440 steps, but
both of the table's LSP are those of 432. No number of steps gives Foursquare's three LSP.
"""
NEEDING_NO_DATA: dict[str, tuple[tuple[float, float, float], ...]] = {
    "LBU": ((3.0, 77.0, 118.0),) * 3,
    "LSP": ((0.2032, 4.0208, 6.0602), (0.2032, 3.9431, 6.0602), (0.1038, 2.0048, 3.0301)),
    "LPU": ((0.1998, 3.9, 5.9496), (0.1998, 3.9, 5.9496), (0.0999, 1.95, 2.9748)),
}
"""Their columns as printed: by method, a row for each of `SETTINGS`."""


def bits_by_definition(method: str, steps: int, values: int, setting: MethodSetting) -> float:
    """Bits per device and step of a method that asks the same of every stream.

    LBU has a report of everybody at every step. LSP asks everybody for a report at every w-th step, LPU a w-th of the
    devices at every step: a bit from the server for each report that it asks for.
    """
    epsilon = setting.epsilon / (setting.w if method == "LBU" else 1)
    report = adaptive(epsilon=epsilon, domain=values).report_bits
    if method == "LBU":
        return float(report)
    return (report + 1) * (-(-steps // setting.w) / steps if method == "LSP" else 1 / setting.w)


def _by_definition() -> list[Cell]:
    cells = []
    for method, rows in NEEDING_NO_DATA.items():
        for setting, row in zip(SETTINGS, rows, strict=True):
            for (name, stream), printed in zip(ELSEWHERE.items(), row, strict=True):
                how = "by definition: {} steps, {} values".format(*stream)
                ours = bits_by_definition(method, *stream, setting)
                cells.append(Cell(method, f"{name} {setting}", printed, ours, how))
    return cells


@reproduction("ren-2022-ldpids-table-2", title="Communication bits per device and step", repeats=3, needs=NEEDS)
def table_2(context: Context, steps: int = STEPS) -> Reproduced:
    """The bits of the reports, and one bit from the server to every device that it asks for an extra report."""
    sources = [
        *synthetic(context, steps),
        *real(context, steps=steps, resampled_steps=min(steps, SHORT)),
        replay(context, "Aircraft by destination", flights_stream("dest").first(steps)),
    ]
    runs = sweep(context, [(source, setting) for source in sources for setting in SETTINGS])
    cells = []
    for source in sources:
        for setting in SETTINGS:
            printed = PRINTED.get((source.name, setting), (None,) * len(METHODS))
            cells += [
                Cell(
                    method,
                    f"{source.name} {setting}",
                    paper,
                    mean(runs, source.name, method, setting, BITS),
                    source.remark(f"runs: {context.repeats}", steps=steps),
                )
                for method, paper in zip(METHODS, printed, strict=True)
            ]
    return [*cells, *_by_definition(), *verdicts(bits_claims, runs)], None


def bits_claims(runs: Runs) -> list[Claim]:
    """How near our bits are to the printed ones, of the adaptive methods, whose bits depend on the data.

    The bits of the other methods, and that population division needs fewer bits, follow from their definitions.
    """
    claims = []
    for method in ADAPTIVE:
        deviations = {
            (source, setting): float(runs[source, method, setting][:, BITS].mean()) / row[METHODS.index(method)] - 1
            for (source, setting), row in PRINTED.items()
        }
        worst = max(deviations, key=lambda place: abs(deviations[place]))
        note = f"{worst[0]} {worst[1]}, of nine printed"
        statement = f"{method}: the bits furthest from the printed ones are off by"
        claims.append(Claim(statement, abs(deviations[worst]), below=0.1, note=note))
    return claims
