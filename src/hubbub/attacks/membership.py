"""Was it this value? An adversary who knows everybody else decides between two values of one person."""

import math
from collections.abc import Iterator

import numpy as np

from hubbub.attacks.averaging import small_collection
from hubbub.attacks.outcome import Attack, AttackOutcome, AttackSetting, of_guesses
from hubbub.core.reports import Bools
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.privacy.amplify import amplify
from hubbub.protocols.driver import Conversation
from hubbub.random.source import Random

TRIES = 20_000
OTHERS = 999
DELTA = 1e-6


def _rate(epsilon: float, delta: float = 0.0) -> float:
    """How often a guess between two equally likely values is right, of (epsilon, delta)-private answers."""
    return (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))


def _single(oracle: FrequencyOracle, truth: Bools, rng: Random) -> int:
    """The collector, who sees the report of the person."""
    reports = oracle.randomize(truth.astype(np.int64), rng)
    score = oracle.log_prob(reports, [0, 1])
    return int(((score[:, 1] > score[:, 0]) == truth).sum())


def _released(oracle: FrequencyOracle, truth: Bools, others: int, rng: Random) -> int:
    """Whoever reads the release, and knows the values of all others (each has value 2)."""
    right = 0
    for value in truth:
        sketch = oracle.accumulate(oracle.randomize([int(value)] + [2] * others, rng))
        estimate = oracle.estimate(sketch).value
        right += int((estimate[1] > estimate[0]) == bool(value))
    return right


def _run(setting: AttackSetting) -> Iterator[AttackOutcome]:
    for name in ("GRR", "OUE"):
        text = f'kind = "histogram"\nepsilon = {setting.epsilon}\nmechanism = "{name}"'
        oracle = Conversation(small_collection(text, user=200.0).protocol("asked")).asks[0].mechanism
        assert isinstance(oracle, FrequencyOracle)
        rng = setting.rng(name)
        truth = np.asarray(rng.below(2, TRIES) == 1)
        right = _single(oracle, truth, rng)
        yield of_guesses(f"{name}: the collector, from the report itself", right, TRIES, _rate(setting.epsilon))
        few = truth[: TRIES // 10]
        central = amplify(oracle, n=OTHERS + 1, delta=DELTA)
        right = _released(oracle, few, OTHERS, rng)
        case = f"{name}: from the release of {OTHERS + 1} people, with all others known"
        note = f"the bound is that of `hubbub amplify`: epsilon {central.epsilon:.3f}, delta {DELTA:g}"
        yield of_guesses(case, right, few.size, _rate(central.epsilon, DELTA), note)


ATTACK = Attack(
    title="An adversary who knows everybody else's value decides which of two values a person has.",
    promise="Whoever sees the report is right in at most e^epsilon / (1 + e^epsilon) of cases; whoever sees only the "
    "numbers of n people, in no more than the (epsilon, delta) of `hubbub amplify` allows.",
    quantity="guesses that are right",
    run=_run,
)
