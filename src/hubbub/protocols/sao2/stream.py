"""The conversation: what is asked at each step, and what is released of it."""

from __future__ import annotations

import numpy as np

from hubbub.core.estimate import Estimate
from hubbub.protocols.ask import MAIN, Release
from hubbub.protocols.driver import Protocol, ask_once
from hubbub.protocols.memory import Memory
from hubbub.protocols.sao2.answers import Answers, Plan

__all__ = ["sao2_stream"]


def sao2_stream(plan: Plan, *, answers: Answers | None = None, memory: Memory | None = None) -> Protocol:
    """A release a step of the means of all entries, from asks that were published once.

    A sketch that answers an ask holds the signs that the devices of its level said at that step, and as its n how many
    of them have *enrolled* since the last: n adds up to all devices, silent ones included. After the last step nothing
    more is asked, and releases say that nothing is known.

    Parameters
    ----------
    plan
        What is asked.
    answers
        Where to gather what is heard: it answers other questions than the release's, at any time.
    memory
        Where to remember it: a stream can stop and go on.

    Example:
        >>> from hubbub import Random
        >>> from hubbub.protocols.driver import converse
        >>> from hubbub.protocols.sao2 import OnlineDevice, Sao2
        >>> rng, devices = Random(seed=1), {}
        >>> def answer(ask):  # of each level 5,000 people, all on from the start
        ...     device, n = OnlineDevice(ask.view, ask.mechanism), 5_000
        ...     heard = ask.mechanism.empty() if ask.view in devices else device.client.enrolled(n)
        ...     state = devices.get(ask.view) or device.enroll(n, rng)
        ...     devices[ask.view], said = device.step(state, ask.step, np.ones(n), rng)
        ...     return heard + device.client.heard(said, ask.step // ask.view.span - 1)
        >>> answers = Answers(plan := Sao2(epsilon=3.0, dimension=1, steps=4, changes=2))
        >>> releases = converse(sao2_stream(plan, answers=answers), answer, steps=4)
        >>> [round(float(release.estimate.value[0]), 1) for release in releases]
        [1.0, 1.0, 1.0, 1.0]
        >>> answers.range(2, 4).value.round().tolist()
        [3.0]
    """
    memory = memory or Memory()
    answers = memory.keep("answers", answers if answers is not None else Answers(plan))
    unknown = Estimate(np.zeros(plan.dimension), np.full(plan.dimension, np.inf), 0, bias="heuristic")
    while answers.step < plan.steps:
        step, heard = answers.step + 1, False
        for ask in plan.asks(step):
            sketch = yield from ask_once(ask)
            answers.hear(plan.part_of(ask), sketch)
            heard = heard or bool(sketch.counts.any())
        known = plan.online or step == plan.steps
        yield Release(
            step=step,
            estimates={MAIN: answers.latest(step) if known else unknown},
            published=heard,
            spent=plan.spent(step),
            n=answers.population,
        )
        answers.step = step  # not before: a step without asks must not be remembered ahead of its release
    while True:
        yield Release(
            step=answers.step + 1, estimates={MAIN: unknown}, published=False, spent=0.0, n=answers.population
        )
        answers.step += 1
