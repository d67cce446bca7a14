"""Every mechanism, at a typical size: what a report costs a device that makes it and a server that adds it up."""

from collections.abc import Iterator

from measure import Result, cpu_seconds

import hubbub as hb
from hubbub.checks import some_values
from hubbub.core.errors import HubbubError
from hubbub.mechanisms import randomizers
from hubbub.mechanisms.base import Mechanism

TYPICAL: tuple[dict[str, object], ...] = (
    {"domain": 1024},
    {"dimension": 512, "sparsity": 8},
    {"domain": 128, "size": 4},
    {"low": 0.0, "high": 100.0},
    {"dimension": 256},
)
"""The sizes that are tried, the first that a mechanism takes; otherwise its largest example is measured."""
CLIENT, SERVER = ": making a report", ": adding up a report"


def typical(kind: type[Mechanism]) -> tuple[Mechanism, str]:
    """A mechanism of a typical size at epsilon 1, and the size in words."""
    for size in TYPICAL:
        try:
            return kind(epsilon=1.0, **size), ", ".join(f"{name} {value:g}" for name, value in size.items())  # type: ignore[call-arg, str-format]
        except (TypeError, HubbubError):
            continue
    *_, last = kind.examples()
    return last, "an example"


def mechanisms(quick: bool) -> Iterator[Result]:
    """Batches of reports, in CPU nanoseconds a report."""
    for name, kind in sorted(randomizers().items()):
        if kind.__module__.partition(".")[0] != "hubbub":
            continue
        mechanism, size = typical(kind)
        n, rng = 4_000 if quick else 20_000, hb.Random(seed=1)
        values = some_values(mechanism, n, rng)
        reports = mechanism.randomize(values, rng)
        turns = {
            CLIENT: lambda mechanism=mechanism, values=values, rng=rng: mechanism.randomize(values, rng),
            SERVER: lambda mechanism=mechanism, reports=reports: mechanism.accumulate(reports),
        }
        best = cpu_seconds(turns, repeats=2 if quick else 5)
        for side, seconds in best.items():
            label = f"{name} ({size}; {mechanism.report_bytes} bytes){side}"
            yield Result(what=label, unit="ns", ours=1e9 * seconds / n)
