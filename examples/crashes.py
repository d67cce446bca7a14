"""How often an app crashes on each version of the system, from simulated devices that answer examples/crashes.toml.

    python examples/crashes.py

Each device sends one report of its system and of whether the app crashed, together, at epsilon 1. Nobody learns what a
device recorded; the estimates have an interval for every system, and for the difference of two systems.
"""

from pathlib import Path

import numpy as np

from hubbub import Random
from hubbub.authoring import load_collection
from hubbub.simulate.conversation import run_question
from hubbub.simulate.devices import ArrayStream
from hubbub.statistics.ratios import Ratios

SYSTEMS = {"13": (0.5, 0.04), "14": (0.35, 0.12), "15": (0.1, 0.05), "(none)": (0.05, 0.05)}
"""The share of devices on each system, and the share of these on which the app crashed."""


def people(n: int) -> np.ndarray:
    """The values of n devices, as codes."""
    rng = np.random.default_rng(1)
    shares, rates = np.array(list(SYSTEMS.values())).T
    values = np.zeros(n, dtype=[("os", "i8"), ("crashed", "i8")])
    values["os"] = rng.choice(len(shares), n, p=shares)
    values["crashed"] = rng.random(n) < rates[values["os"]]
    return values


def main(n: int = 200_000, seed: int = 1) -> dict[str, tuple[float, float, float]]:
    """Ask n devices for one day; for each system, and for "14 minus 13", the true rate and the ends of the interval."""
    collection = load_collection(Path(__file__).with_name("crashes.toml"))
    values = people(n)
    (release,) = run_question(collection, "crashes", ArrayStream(values[None, :]), Random(seed=seed), steps=1)
    estimate = release.estimate
    assert isinstance(estimate, Ratios)
    assert estimate.labels is not None
    value, low, high = estimate.possible()
    places = {name: estimate.labels.index(f"{name}: yes") for name in SYSTEMS}
    rates = {name: float(np.mean(values["crashed"][values["os"] == code])) for code, name in enumerate(SYSTEMS)}
    intervals = {name: (rates[name], float(low[place]), float(high[place])) for name, place in places.items()}
    print(f"{n:,} devices, epsilon {collection.questions['crashes'].epsilon:g}: the crash rate on")
    for name, place in places.items():
        print(f"  {name:6} {value[place]:6.1%}   {low[place]:6.1%} to {high[place]:6.1%}   truth {rates[name]:6.1%}")
    difference = estimate.difference(places["14"], places["13"])
    intervals["14 minus 13"] = rates["14"] - rates["13"], difference.low, difference.high
    print(f"  14 minus 13: {difference.value:+.1%}, {difference.low:+.1%} to {difference.high:+.1%}")
    return intervals


if __name__ == "__main__":
    main()
