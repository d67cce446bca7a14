"""Train a classifier on people's records without seeing one: federated logistic regression on Adult.

Each person takes part once. In every step a batch of them works out the gradient of their own record, makes it sparse
and ternary without bias (`hb.Gradients`), and sends one randomised report of it; the server learns the mean gradient of
the batch and nothing else. Run it with `python examples/gradients.py`.
"""

from typing import NamedTuple

import numpy as np

import hubbub as hb
from hubbub.data import Table, adult
from hubbub.mechanisms.ternary.ternary import TernaryMechanism
from hubbub.random.source import Random
from hubbub_papers.roc import auc, roc

TRAINING = 32_561  # the rows of the training file come first
NUMBERS = {"age": (40, 25), "education_num": (10, 4), "hours_per_week": (40, 20)}  # the middle, and what makes 1
CLASSES = ("marital_status", "occupation")
GRADIENTS = hb.Gradients(scale=0.5, sparsity=4)
RATE, MOMENTUM = 4.0, 0.9


class People(NamedTuple):
    """Records as numbers from -1 to 1, and whether the income is above 50,000 dollars."""

    features: np.ndarray
    rich: np.ndarray


def people(table: Table) -> People:
    """Three numbers, three yes or no, and a column for every marital status and occupation."""
    columns = [np.clip((table[name] - middle) / reach, -1, 1) for name, (middle, reach) in NUMBERS.items()]
    columns += [table["capital_gain"] > 0, table["capital_loss"] > 0, table["sex"] == "Male"]
    for name in CLASSES:
        labels, codes = table.codes(name)
        columns += [codes == code for code in range(labels.size)]
    return People(np.stack(columns, axis=1).astype(float), table["income"] == ">50K")


def gradients(weights: np.ndarray, who: People) -> np.ndarray:
    """What each person works out at home: (chance of being rich - whether they are) times their record."""
    chance = 1 / (1 + np.exp(-who.features @ weights))
    return (chance - who.rich)[:, None] * who.features


def mean_gradient(rows: np.ndarray, mechanism: TernaryMechanism | None, rng: Random) -> np.ndarray:
    """The mean that the server learns; the exact one without a mechanism."""
    if mechanism is None:
        return rows.mean(axis=0)
    reports = mechanism.randomize(GRADIENTS.ternary(rows, rng), rng)  # on the devices
    return GRADIENTS.estimate(mechanism.estimate(mechanism.accumulate(reports))).value


def train(who: People, batch: int, mechanism: TernaryMechanism | None, rng: Random) -> np.ndarray:
    """One pass over the people; the mean of the weights of the second half of it."""
    weights = speed = np.zeros(who.features.shape[1])
    steps = len(who.rich) // batch
    path = []
    for step in range(steps):
        some = slice(step * batch, (step + 1) * batch)
        own = gradients(weights, People(who.features[some], who.rich[some]))
        speed = MOMENTUM * speed + (1 - MOMENTUM) * mean_gradient(own, mechanism, rng)
        weights = weights - RATE * speed
        path.append(weights)
    return np.mean(path[steps // 2 :], axis=0)


def score(weights: np.ndarray, test: People) -> tuple[float, float]:
    """Accuracy, and the area under the ROC curve."""
    values = test.features @ weights
    return float(((values > 0) == test.rich).mean()), auc(*roc(values, test.rich, 0.5))


def main(
    n: int | None = None, epsilons: tuple[float, ...] = (1.0, 2.0, 4.0), batch: int = 1000, runs: int = 5
) -> list[tuple[str, float | None, float, float]]:
    """Train on everyone, or on n people drawn from them, several times, and print mean scores on the test file."""
    everyone = people(adult())
    test = People(everyone.features[TRAINING:], everyone.rich[TRAINING:])
    d, s = everyone.features.shape[1], GRADIENTS.sparsity
    methods: list[tuple[str, float | None, TernaryMechanism | None]] = [("no privacy", None, None)]
    for epsilon in epsilons:
        methods += [
            (kind.__name__, epsilon, kind(epsilon=epsilon, dimension=d, sparsity=s)) for kind in (hb.ExSub, hb.CoCo)
        ]
    found: dict[tuple[str, float | None], list[tuple[float, float]]] = {}
    for run in range(runs):
        rng = Random(seed=run)  # a simulation; a device leaves the seed out
        who = rng.permutation(TRAINING) if n is None else rng.below(TRAINING, n)
        trained = People(everyone.features[who], everyone.rich[who])
        for name, epsilon, mechanism in methods:
            weights = train(trained, batch, mechanism, rng.child(name, str(epsilon)))
            found.setdefault((name, epsilon), []).append(score(weights, test))
    rows = [("always no", None, *score(np.zeros(d), test))]
    rows += [(*key, *np.mean(scores, axis=0).tolist()) for key, scores in found.items()]
    who_said = f"{who.size:,} people{'' if n is None else ' (resampled)'}"
    print(f"{who_said}, {batch:,} a step, {d} numbers each, {s} of them sent; mean of {runs} runs")
    print(f"{'':12}{'epsilon':>8}{'accuracy':>10}{'AUC':>8}")
    for name, epsilon, accuracy, area in rows:
        print(f"{name:12}{epsilon or '':>8}{accuracy:>10.3f}{area:>8.3f}")
    return rows


if __name__ == "__main__":
    main()
    print()
    main(n=400_000, batch=4000, runs=3)
