"""Tables 4.1 to 4.3 and Figure 4.1: thresholds, and how many of the top 16 PEM finds, by the number of groups."""

import math
from collections.abc import Mapping
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from hubbub.protocols.heavy_hitters.pem import sensitivity_threshold
from hubbub.protocols.heavy_hitters.prefixes import Integers, PrefixPlan, prefix_lengths
from hubbub.rehearse.top import run_plan
from hubbub_papers.baselines.heavy_hitters.prefixes import search_prefixes
from hubbub_papers.dissertation.chapter_4_methods import DRAWN, NEEDS, OTHER_DATA, coded
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, finish
from hubbub_papers.result import Claim, judged
from hubbub_papers.top_scores import hits

PRINTED = {
    (1.0, 32, 4): (0.119629, 0.137374, 0.144731, 0.154686),
    (1.0, 32, 5): (0.037832, 0.043285, 0.045536, 0.048738),
    (1.0, 32, 6): (0.011960, 0.013674, 0.014388, 0.015396),
    (1.0, 32, 7): (0.003781, 0.004322, 0.004546, 0.004866),
    (1.0, 48, 4): (0.149492, 0.163341, 0.168102, 0.178922),
    (1.0, 48, 5): (0.047267, 0.051595, 0.052936, 0.056182),
    (1.0, 48, 6): (0.014937, 0.016314, 0.016738, 0.017751),
    (1.0, 48, 7): (0.004723, 0.005158, 0.005294, 0.005610),
    (1.0, 64, 4): (0.174594, 0.186712, 0.192771, 0.199696),
    (1.0, 64, 5): (0.055144, 0.058866, 0.060857, 0.062761),
    (1.0, 64, 6): (0.017426, 0.018599, 0.019218, 0.019845),
    (1.0, 64, 7): (0.005510, 0.005881, 0.006077, 0.006271),
    (1.0, 128, 4): (0.250765, 0.258555, 0.261585, 0.267211),
    (1.0, 128, 5): (0.079250, 0.081804, 0.082799, 0.084400),
    (1.0, 128, 6): (0.025056, 0.025844, 0.026164, 0.026683),
    (1.0, 128, 7): (0.007923, 0.008173, 0.008272, 0.008437),
    (2.0, 32, 4): (0.053054, 0.060933, 0.064084, 0.068286),
    (2.0, 32, 5): (0.016788, 0.019178, 0.020202, 0.021646),
    (2.0, 32, 6): (0.005302, 0.006063, 0.006376, 0.006825),
    (2.0, 32, 7): (0.001677, 0.001916, 0.002016, 0.002158),
    (2.0, 48, 4): (0.066447, 0.072487, 0.074325, 0.078790),
    (2.0, 48, 5): (0.020964, 0.022907, 0.023511, 0.024903),
    (2.0, 48, 6): (0.006623, 0.007235, 0.007424, 0.007865),
    (2.0, 48, 7): (0.002094, 0.002287, 0.002347, 0.002488),
    (2.0, 64, 4): (0.077477, 0.082466, 0.085355, 0.088244),
    (2.0, 64, 5): (0.024456, 0.026111, 0.026977, 0.027844),
    (2.0, 64, 6): (0.007728, 0.008248, 0.008527, 0.008800),
    (2.0, 64, 7): (0.002443, 0.002608, 0.002694, 0.002781),
    (2.0, 128, 4): (0.111353, 0.115030, 0.116080, 0.118706),
    (2.0, 128, 5): (0.035144, 0.036247, 0.036746, 0.037508),
    (2.0, 128, 6): (0.011111, 0.011463, 0.011599, 0.011835),
    (2.0, 128, 7): (0.003513, 0.003624, 0.003668, 0.003741),
}
"""The table as it is printed: (epsilon, m, the power of ten of n) a row, g = 1 to 4 the columns."""
K_4_1 = 16
_NOTE = f"k times the text's d, so T = 1/k: d = k (k 2^(s_g - s_(g-1)) - k), k = {K_4_1}, which the table does not say"
_NEAR = {4: 0.009, 5: 0.004, 6: 0.0012, 7: 0.0008}
"""By the power of ten of n, how far a printed number may be from the formula: those of small n are less precise."""


def last_threshold(epsilon: float, bits: int, n: int, groups: int) -> float:
    """Psi of the last group, n people being divided into groups as in section 4.3.2; one group tests all 2^m values.

    With more groups the text's number of candidates, k 2^(s_g - s_(g-1)) - k, is taken times k: that is what the table
    has, and what T = 1/k gives.
    """
    sigma = math.sqrt(4 * math.exp(epsilon)) / (math.exp(epsilon) - 1)
    if groups == 1:
        return sensitivity_threshold(sigma, 2.0**bits, n)
    lengths = prefix_lengths(bits, K_4_1, groups)
    candidates = K_4_1 * 2.0 ** (lengths[-1] - lengths[-2]) - K_4_1
    return sensitivity_threshold(sigma, K_4_1 * candidates, n // groups)


@reproduction("wang-2021-analyzing-table-4.1", title="The threshold Psi of the last group, by epsilon, m, n and g")
def table_4_1(context: Context) -> Reproduced:
    """The formula at the table's settings, and how far the printed numbers are from it."""
    cells = [
        Cell(
            f"eps = {epsilon:g}, m = {bits}, n = 10^{power}",
            f"g = {groups}",
            printed,
            last_threshold(epsilon, bits, 10**power, groups),
            "Definition 4.3.1" if groups == 1 else _NOTE,
        )
        for (epsilon, bits, power), row in PRINTED.items()
        for groups, printed in enumerate(row, start=1)
    ]
    return cells + [claim.cell() for claim in _claims_4_1()], None


@reproduction("wang-2021-analyzing-figure-4.1", title="The threshold Psi of the last group, by g")
def figure_4_1(context: Context) -> Reproduced:
    """Psi for more groups, n = 10^6."""
    figure, panels = canvas(1, 2)
    cells = []
    numbers_of_groups = range(1, 9)
    for panel, epsilon in zip(panels, (1.0, 2.0), strict=True):
        for bits in (32, 48, 64, 128):
            heights = [last_threshold(epsilon, bits, 10**6, groups) for groups in numbers_of_groups]
            panel.plot(numbers_of_groups, heights, marker="o", markersize=4, label=f"m = {bits}")
            cells += [
                Cell(f"eps = {epsilon:g}, m = {bits}", f"g = {groups}", None, height, _NOTE)
                for groups, height in zip(numbers_of_groups, heights, strict=True)
            ]
        finish(panel, "groups g", "$\\Psi$ of the last group", f"$\\epsilon$ = {epsilon:g}, n = $10^6$", log="")
    panels[0].legend(fontsize=8, frameon=False)
    return cells, figure


def _claims_4_1() -> list[Claim]:
    claims = []
    for power, near in _NEAR.items():
        ratios = [
            last_threshold(epsilon, bits, 10**power, groups) / printed
            for (epsilon, bits, of), row in PRINTED.items()
            if of == power
            for groups, printed in enumerate(row, start=1)
        ]
        furthest = max(ratios, key=lambda ratio: abs(ratio - 1))
        statement = f"n = 10^{power}, g = 1 to 4: the formula to the table, furthest"
        claims.append(Claim(statement, furthest, above=1 - near, below=1 + near))
    rises = min(b / a for row in PRINTED.values() for a, b in pairwise(row))
    ours = [[last_threshold(e, m, 10**p, groups) for groups in range(1, 5)] for e, m, p in PRINTED]
    note = f"the least ratio of Psi at g + 1 to g; {rises:.3f} in the table"
    rising = min(b / a for row in ours for a, b in pairwise(row))
    return [*claims, Claim("Psi rises with g", rising, "when g increases, theta increases", above=1.0, note=note)]


PRINTED_4_2 = {
    ("URL", 1.0): (6.4, 4.7, 4.1, 4.0),
    ("URL", 2.0): (14.3, 12.8, 11.4, 8.5),
    ("Query", 1.0): (4.2, 4.1, 4.0, 3.6),
    ("Query", 2.0): (8.5, 7.8, 6.9, 7.2),
}
"""The averages as printed, for g = 1 to 4; "Query" is AOL."""
PRINTED_4_3 = {
    ("URL", 1.0): (6.4, 6.8, 8.2, 8.4),
    ("URL", 2.0): (14.3, 13.9, 13.4, 13.3),
    ("Query", 1.0): (4.2, 4.6, 5.0, 5.2),
    ("Query", 2.0): (8.5, 8.1, 9.0, 9.4),
}
"""The same where the last group extends the true prefixes."""
K_4_2, BITS = 16, 32
_REPORTED_GROUPS = 4
"""The number of groups at which one more run is made of real reports."""
Key = tuple[str, float, int]  # population, epsilon, groups
Runs = RunScores[Key]


@reproduction("wang-2021-analyzing-table-4.2", title="Top 16 found by PEM, m = 32, by g", repeats=10, needs=NEEDS)
def table_4_2(context: Context) -> Reproduced:
    """Averages of runs, and one run of real reports."""
    runs = _measured(context, known=False)
    reported = [
        Cell(
            f"{data}, eps = {epsilon:g}",
            f"g = {_REPORTED_GROUPS}, one run of real reports",
            None,
            float(_on_reports(context, data, epsilon)),
            "every report made and every candidate's support counted",
        )
        for data, epsilon in PRINTED_4_2
    ]
    return _cells(context, runs, PRINTED_4_2) + reported + judged(_claims_4_2, runs), None


@reproduction(
    "wang-2021-analyzing-table-4.3",
    title="Top 16 found by PEM's last group from true prefixes",
    repeats=10,
    needs=NEEDS,
)
def table_4_3(context: Context) -> Reproduced:
    """Averages of runs in which the last group's candidates extend the prefixes of the true top 16."""
    return _cells(context, _measured(context, known=True), PRINTED_4_3), None


def _measured(context: Context, *, known: bool) -> dict[Key, NDArray[np.float64]]:
    def run_once(data: str, run: int) -> dict[Key, int]:
        population = coded(context, data, context.rng.child("tables 4.2 and 4.3", data, run))
        truth, scores = population.ranked(K_4_2), {}
        for epsilon, groups in product((1.0, 2.0), range(1, 5)):
            rng = context.rng.child("tables 4.2 and 4.3", data, run, str(epsilon), groups, str(known))
            lengths = prefix_lengths(BITS, K_4_2, groups)
            top = search_prefixes(population, lengths, k=K_4_2, epsilon=epsilon, rng=rng, known=known)
            scores[data, epsilon, groups] = hits(top.values, truth)
        return scores

    return context.measure(("URL", "Query"), run_once)


def _on_reports(context: Context, data: str, epsilon: float) -> int:
    population = coded(context, data, context.rng.child("tables 4.2 and 4.3", data, 0))
    plan = PrefixPlan(encoding=Integers(BITS), k=K_4_2, epsilon=epsilon, groups=_REPORTED_GROUPS)
    rng = context.rng.child("tables 4.2 and 4.3", data, str(epsilon), "reports")
    top = run_plan(plan, population.values[population.people].astype(np.int64), rng)
    return 0 if top.stopped else hits([int(value) for value in top.values], population.ranked(K_4_2))


def _cells(context: Context, runs: Runs, printed: Mapping[tuple[str, float], tuple[float, ...]]) -> list[Cell]:
    return [
        Cell(
            f"{data}, eps = {epsilon:g}",
            f"g = {groups}",
            printed[data, epsilon][groups - 1],
            float(hits_of_runs.mean()),
            f"sd {hits_of_runs.std():.2g}; runs averaged: {context.repeats}; {OTHER_DATA[data]}; "
            f"random codes of 32 bits; {DRAWN}",
        )
        for (data, epsilon, groups), hits_of_runs in runs.items()
    ]


def _claims_4_2(runs: Runs) -> list[Claim]:
    return [
        Claim(f"{data}, eps = {epsilon:g}: found at g = 4 to g = 1", _ratio(runs, data, epsilon), below=1.0)
        for data, epsilon in PRINTED_4_2
    ]


def _ratio(runs: Runs, data: str, epsilon: float) -> float:
    most = float(runs[data, epsilon, 1].mean())
    return float(runs[data, epsilon, 4].mean()) / most if most else 1.0
