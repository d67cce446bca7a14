"""Everybody's value from many answers: sums over random groups of people, solved like equations."""

from collections.abc import Iterator

import numpy as np

from hubbub.attacks.outcome import Attack, AttackOutcome, AttackSetting, guess_bound, of_guesses
from hubbub.core.domain import Ordinal
from hubbub.core.errors import needs
from hubbub.core.reports import Bools
from hubbub.query.memory_table import MemoryTable
from hubbub.query.schema import PrivateColumn, PublicColumn, TableSchema

PEOPLE = 48
QUERIES = 96


def _run(setting: AttackSetting) -> Iterator[AttackOutcome]:
    with needs("sql"):
        from hubbub.query.engine import QueryEngine

    right, runs = 0, min(setting.runs, 6)
    schema = TableSchema(
        "people", (PrivateColumn("ill", Ordinal(2)),), (PublicColumn("number", "BIGINT"),), epsilon=setting.epsilon
    )
    for run in range(runs):
        rng = setting.rng(run)
        truth = np.asarray(rng.below(2, PEOPLE) == 1)
        reports = schema.randomize(truth.astype(np.int64)[:, None], rng)
        engine = QueryEngine(MemoryTable(schema, reports, {"number": list(range(PEOPLE))}), consistent=False)
        groups: Bools = np.asarray(rng.below(2, QUERIES * PEOPLE) == 1).reshape(QUERIES, PEOPLE)
        answers = np.empty(QUERIES)
        for row, group in enumerate(groups):
            numbers = ", ".join(map(str, np.flatnonzero(group)))
            query = f"SELECT COUNT(*) FROM people WHERE number IN ({numbers}) AND ill = 1"  # noqa: S608 - numbers
            answers[row] = engine.sql(query).value().value
        solved = np.linalg.lstsq(groups.astype(np.float64), answers, rcond=None)[0]
        right += int(((solved > 0.5) == truth).sum())
    case = f"{QUERIES} counts over random groups of {PEOPLE} people, in SQL"
    yield of_guesses(case, right, runs * PEOPLE, guess_bound(setting.epsilon, 2), "every answer from the same reports")


ATTACK = Attack(
    title="An analyst asks for sums over many groups of people, and solves for each person's value (Dinur and Nissim).",
    promise="Answers are functions of reports, each of which spent epsilon once: however many queries, a person's "
    "value of two is guessed right in at most e^epsilon / (1 + e^epsilon) of cases.",
    quantity="people whose value is found",
    run=_run,
)
