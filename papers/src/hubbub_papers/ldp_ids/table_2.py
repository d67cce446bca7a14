"""Table 2: the bits sent in both directions, per device and step."""

from __future__ import annotations

from hubbub_papers.claims import Claim
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.ldp_ids.sources import NEEDS, STEPS, real, replay, synthetic
from hubbub_papers.ldp_ids.sweep import BITS, METHODS, MethodSetting, Runs, mean, sweep, verdicts
from hubbub_papers.real_streams import flights_stream

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


@reproduction("ldp-ids-table-2", title="Communication bits a device and step", repeats=1, needs=NEEDS)
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
    return cells + verdicts(_claims, runs), None


ADAPTIVE = ("LBD", "LBA", "LPD", "LPA")


def _claims(runs: Runs) -> list[Claim]:
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
        note = f"{worst[0]} {worst[1]}, of nine printed; the bound is ours"
        statement = f"{method}: the bits furthest from the printed ones are off by"
        claims.append(Claim(statement, abs(deviations[worst]), below=0.1, note=note))
    return claims
