"""Training a model together: in each round devices send randomised updates of the public model; their mean moves it."""

from collections.abc import Callable, Sequence

import numpy as np

from hubbub.core.estimate import Estimate
from hubbub.core.reports import Floats
from hubbub.mechanisms.ternary.gradients import Gradients
from hubbub.mechanisms.ternary.ternary import TernaryMechanism
from hubbub.protocols.ask import Arc, Ask
from hubbub.protocols.driver import Protocol, Release, ask_once
from hubbub.protocols.views.update import Update, model_bytes, model_weights

ARITHMETIC = 1
"""The version of the protocol: it rises with every change of what is asked or released."""
UPDATE, MODEL = "update", "model"
"""The names of the two estimates of a release: the mean update of the round, and the model that it led to."""

Optimiser = Callable[[Floats, Estimate], Floats]
"""Takes the weights and the estimated mean update; returns the next weights. It must not depend on anything else that
changes between two runs of a program, and should work entry by entry: a server that restarts repeats it, and the model
must be the same bit for bit."""


def descent(*, step_size: float, momentum: float = 0.0) -> Optimiser:
    """Go `step_size` times the mean update, and of the way before it the part `momentum` again."""
    way: Floats | None = None

    def move(weights: Floats, update: Estimate) -> Floats:
        nonlocal way
        way = update.value * step_size + (0.0 if way is None else way * momentum)
        return np.asarray(weights + way)

    return move


def train(
    mechanism: TernaryMechanism,
    *,
    clip: float,
    arcs: Sequence[Arc],
    optimiser: Optimiser,
    weights: Floats | None = None,
    groups: int = 1,
) -> Protocol:
    """A study with one round for each arc, whose devices send their updates of the model so far.

    Each round ends with a release: the mean update of its devices, and the model after it. The model's weights are
    rounded to the 32 bits in which devices get them. A round that nobody answered leaves the model as it is. The
    variance of an update is that of devices drawn at random from any number of them.

    Parameters
    ----------
    mechanism
        The mechanism of the reports, which knows the dimension and the sparsity.
    clip
        The largest entry of an update.
    arcs
        Who is asked, round by round.
    optimiser
        What to do with the mean update.
    weights
        The model at the beginning; zeros unless given.
    groups
        How many equal groups devices are in, of which one is asked.
    """
    d, s = mechanism.dimension, mechanism.sparsity
    weights = np.zeros(d) if weights is None else np.asarray(weights, dtype=np.float64)
    gradients = Gradients(scale=clip, sparsity=s)
    for arc in arcs:
        content = model_bytes(weights)
        view = Update.of(content, dimension=d, sparsity=s, clip=clip)
        sketch = yield from ask_once(Ask(mechanism=mechanism, step=0, view=view, cohort=arc))
        update = Estimate(np.zeros(d), np.full(d, np.inf), 0, kind="quantity")
        weights = model_weights(content)
        if sketch.n:
            update = gradients.estimate(mechanism.estimate(sketch))
            weights = model_weights(model_bytes(optimiser(weights, update)))
        model = Estimate(weights, np.full(d, np.inf), sketch.n, kind="quantity", bias="heuristic")
        yield Release(
            step=0,
            estimates={UPDATE: update, MODEL: model},
            published=sketch.n > 0,
            spent=1 / len(arcs),
            n=sketch.n / arc.share * groups,
        )
