"""Train a model on people's records without seeing one: rounds of a federated mean, in both trusts.

The people of Adult, a census, are dealt to 100,000 simulated devices; each has the record of one of them. In each of 50
rounds a fiftieth of the devices look at the public model, work out at home how it should change to predict their own
income, and send one randomised report of that. The rounds are those of a question of kind "vector", asked by the code
that a collector runs and answered by the code that devices run. Each device reports once. Run it with
`python examples/federated.py`.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import hubbub as hb
from hubbub.authoring import load_collection
from hubbub.data import Table, adult
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Conversation, converse
from hubbub.protocols.federated import descent
from hubbub.protocols.views.update import Update, model_bytes, model_weights
from hubbub.questions.collection import Collection
from hubbub.random.source import Random

TRAINING = 32_561  # the rows of the training file come first
CLASSES = ("workclass", "education", "marital_status", "occupation", "relationship", "race", "sex")
NUMBERS = {"age": (25, 30, 35, 40, 45, 50, 55, 60, 65), "hours_per_week": (20, 35, 40, 45, 50, 60)}
NUMBERS |= {"capital_gain": (1, 5000, 7000), "capital_loss": (1, 1800, 2000)}
DELTA = 1e-6
TEXT = """
name = "learn"
version = 1
title = "Who earns more?"

[schedule]
step = "1d"
lateness = "1h"

[privacy]
user = 8.0

[fields.change]
kind = "vector"
dimension = {dimension}

[questions.income]
kind = "vector"
field = "change"
epsilon = {epsilon}
start = 2026-12-01T00:00:00Z
rounds = {rounds}
sparsity = 6
clip = 0.5
step_size = 4.0
momentum = 0.8
"""


class People(NamedTuple):
    """Records as rows of 0 and 1, and whether the income is above 50,000 dollars."""

    features: np.ndarray
    rich: np.ndarray

    def some(self, rows: np.ndarray) -> "People":
        """Some of the people."""
        return People(self.features[rows], self.rich[rows])


class Row(NamedTuple):
    """One row of the printed table: a way to train, what it guarantees, and its accuracy on the test file."""

    trained: str
    local: float | None
    central: float | None
    accuracy: float


def people(table: Table) -> People:
    """A column for every class of seven fields, and for every interval of four numbers; and one that is always 1."""
    columns = [np.ones(len(table["income"]))]
    for name in CLASSES:
        labels, codes = table.codes(name)
        columns += [codes == code for code in range(labels.size)]
    for name, borders in NUMBERS.items():
        cells = np.searchsorted(borders, table[name], side="right")
        columns += [cells == cell for cell in range(len(borders) + 1)]
    return People(np.stack(columns, axis=1).astype(float), table["income"] == ">50K")


def update(content: bytes, who: People) -> np.ndarray:
    """What each device works out from the public model: how far its guess was off, for each column of its record."""
    chance = 1 / (1 + np.exp(-who.features @ model_weights(content)))
    return np.asarray((who.rich - chance)[:, None] * who.features)


def answers(ask: Ask, who: People, places: np.ndarray, rng: Random) -> hb.Sketch:
    """The reports of the devices that are asked, added up."""
    assert isinstance(ask.view, Update)
    assert isinstance(ask.mechanism, Mechanism)
    assert ask.view.content is not None
    rows = update(ask.view.content, who.some(ask.cohort.holds(places)))
    return ask.mechanism.accumulate(ask.mechanism.randomize(ask.view.look(rows, rng), rng))


def private(collection: Collection, who: People, rng: Random) -> Iterator[np.ndarray]:
    """The models of a run of the collection's question, round by round."""
    places = rng.uint32(len(who.rich))
    for release in converse(collection.protocol("income"), lambda ask: answers(ask, who, places, rng)):
        yield release.estimates["model"].value


def plain(rounds: int, who: People) -> Iterator[np.ndarray]:
    """The models if the server has all records, and uses a part of them in each round, unchanged."""
    move = descent(step_size=4.0, momentum=0.8)
    weights = np.zeros(who.features.shape[1])
    for rows in np.array_split(np.arange(len(who.rich)), rounds):
        mean = update(model_bytes(weights), who.some(rows)).mean(axis=0)
        weights = move(weights, hb.Estimate(mean, np.zeros(len(mean)), len(rows), kind="quantity"))
        yield weights


def accuracy(models: Iterator[np.ndarray], test: People) -> float:
    """How often the mean of the models of the second half of the rounds is right."""
    path = list(models)
    weights = np.mean(path[len(path) // 2 :], axis=0)
    return float(((test.features @ weights > 0) == test.rich).mean())


def main(n: int = 100_000, rounds: int = 50, epsilons: tuple[float, ...] = (8.0, 4.0, 2.0), runs: int = 5) -> list[Row]:
    """Train on n devices several times; print mean accuracies, beside those without privacy and of "always no"."""
    everyone = people(adult())
    test = everyone.some(np.arange(TRAINING, len(everyone.rich)))
    dimension = everyone.features.shape[1]
    found: dict[tuple[str, float | None, float | None], list[float]] = {}
    for run in range(runs):
        rng = Random(seed=run)  # a simulation; a device leaves the seed out
        dealt = everyone.some(rng.below(TRAINING, n))
        found.setdefault(("no privacy", None, None), []).append(accuracy(plain(rounds, dealt), test))
        for epsilon in epsilons:
            collection = load_collection(TEXT.format(dimension=dimension, epsilon=epsilon, rounds=rounds))
            (ask,) = Conversation(collection.protocol("income")).asks
            central = hb.amplify(ask.mechanism, n=n // rounds, delta=DELTA).epsilon
            trusts: tuple[tuple[str, float | None], ...] = (("each report seen", None), ("shuffled", central))
            for trust, bound in trusts:
                models = private(collection, dealt, rng.child(trust, str(epsilon)))
                found.setdefault((trust, epsilon, bound), []).append(accuracy(models, test))
    rows = [Row("always no", None, None, float((~test.rich).mean()))]
    rows += [
        Row(trained, local, central, float(np.mean(scores))) for (trained, local, central), scores in found.items()
    ]
    print(f"{n:,} devices dealt from {TRAINING:,} people, {rounds} rounds, {dimension} weights; mean of {runs} runs")
    print(f"{'':18}{'local epsilon':>15}{'of the batch':>14}{'accuracy':>10}")
    for row in rows:
        of_batch = "" if row.central is None else f"{row.central:.2f}"
        print(f"{row.trained:18}{row.local or '':>15}{of_batch:>14}{row.accuracy:>10.3f}")
    print(f"of the batch: the epsilon of {n // rounds:,} shuffled reports, with delta {DELTA:g}")
    return rows


if __name__ == "__main__":
    main()
