"""A collector that asks the same devices again and again, and averages what each of them says."""

from collections.abc import Iterator

import numpy as np

from hubbub.attacks.forging import guesses, scores
from hubbub.attacks.outcome import Attack, AttackOutcome, AttackSetting, guess_bound, of_guesses
from hubbub.authoring.toml import load_collection
from hubbub.core.reports import Floats, Ints, Reports
from hubbub.mechanisms.base import Mechanism, ReportFormat
from hubbub.mechanisms.frequency.basic_rappor import BasicRappor
from hubbub.mechanisms.frequency.loloha import Loloha, toeplitz
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Conversation, Release
from hubbub.questions.collection import Collection
from hubbub.random.integers import unpack
from hubbub.random.source import Random
from hubbub.simulate.conversation import signed_ledgers
from hubbub.simulate.devices import ArrayStream
from hubbub.simulate.fleet import Fleet
from hubbub.simulate.ledgers import Ledgers

SIZE = 8
STEPS = 24
_ANSWERS = 4
"""How many answers of the question the lifetime limit allows."""


def small_collection(question: str, *, user: float) -> Collection:
    """A collection of one question about one of eight values, with a lifetime limit."""
    names = ", ".join(f'"v{code}"' for code in range(SIZE))
    return load_collection(
        f"""
        name = "averaged"
        version = 1
        title = "What do devices say again and again?"
        [schedule]
        step = "1h"
        lateness = "10m"
        [privacy]
        event = 20.0
        user = {user}
        minimum_batch = 100
        planned_devices = 100_000
        [fields.value]
        kind = "categorical"
        names = [{names}]
        [questions.asked]
        field = "value"
        {question}
        """
    )


def gathered(
    collection: Collection, name: str, values: Ints, rng: Random, *, steps: int, ledgers: Ledgers | None = None
) -> list[tuple[Ask, Reports]]:
    """What a collector holds of the same devices, whose values stay: the reports of each step in which all answered,
    a row for each device.
    """
    batches: list[tuple[Ask, Reports]] = []
    terms, stream = collection.terms[name], ArrayStream(np.tile(values, (steps, 1)), domain=SIZE)
    ledgers = signed_ledgers(collection, values.size) if ledgers is None else ledgers
    fleet = Fleet(stream, rng, ledgers=ledgers)
    conversation = Conversation(collection.protocol(name), rounds=terms.rounds, parts=terms.parts)
    while (message := conversation.message) is not None:
        if isinstance(message, Release):
            if message.step == steps:
                break
            conversation.listen()
            continue
        (ask,) = conversation.asks
        now = int(collection.round_times(name, 0, ask.step - 1, conversation.round)[0])
        pieces = []
        for devices in fleet.on_arc(ask.cohort):
            reports = fleet.reports(ask, devices, now=now, account=terms.account, question=name)
            pieces.append((devices, Reports.concat(list(reports))))
        arrived = Reports.concat([reports for _, reports in sorted(pieces, key=lambda piece: piece[0].start)])
        if len(arrived) == values.size:
            batches.append((ask, arrived))
        conversation.reply_all([ask.mechanism.accumulate(arrived)])
    return batches


def memo_scores(mechanism: ReportFormat, reports: Reports) -> Floats:
    """How much each report (row) of a memo speaks for each code (column)."""
    if isinstance(mechanism, BasicRappor):
        return np.asarray(unpack(reports.private["bits"], SIZE), dtype=np.float64)
    assert isinstance(mechanism, Loloha)
    functions, answers = (np.asarray(reports.public["function"]), np.asarray(reports.private["bucket"]))
    return np.asarray(toeplitz(functions[:, None], np.arange(SIZE), mechanism.buckets) == answers[:, None], dtype=float)


def _run(setting: AttackSetting) -> Iterator[AttackOutcome]:
    n = min(setting.people, 20_000)
    values = setting.rng("values").below(SIZE, n).astype(np.int64)
    limit = _ANSWERS * setting.epsilon
    fresh = small_collection(f'kind = "histogram"\nepsilon = {setting.epsilon}\nmechanism = "GRR"', user=limit)
    for case, ledgers, bound, note in (
        (f"fresh reports, a ledger of {_ANSWERS} answers, asked {STEPS} times", None, guess_bound(limit, SIZE), ""),
        (f"fresh reports, no ledger, asked {STEPS} times", Ledgers(n, []), None, "what the ledger prevents"),
    ):
        batches = gathered(fresh, "asked", values, setting.rng(case), steps=STEPS, ledgers=ledgers)
        total = np.zeros((n, SIZE))
        for ask, reports in batches:
            assert isinstance(ask.mechanism, Mechanism)
            total += scores(ask.mechanism, reports, SIZE)
        right = int((guesses(total, setting.rng("ties")) == values).sum())
        yield of_guesses(f"{case}: {len(batches)} answers", right, n, bound, note)
    permanent = 2 * setting.epsilon
    for memo in ("BasicRappor", "Loloha"):
        question = f'kind = "memo"\nepsilon = {setting.epsilon}\npermanent = {permanent}\nmechanism = "{memo}"'
        collection = small_collection(question, user=200.0)
        batches = gathered(collection, "asked", values, setting.rng(memo), steps=STEPS)
        total = np.zeros((n, SIZE))
        for ask, reports in batches:
            total += memo_scores(ask.mechanism, reports)
        right = int((guesses(total, setting.rng("ties", memo)) == values).sum())
        note = f"the value stays: its permanent answer spends {permanent:g} for life"
        case = f"{memo}, asked {STEPS} times: {len(batches)} answers"
        yield of_guesses(case, right, n, guess_bound(permanent, SIZE), note)


ATTACK = Attack(
    title="A collector asks every device the same again and again, and averages its answers.",
    promise="The device's ledger: a guess of one of d values is right in at most e^E / (e^E + d - 1) of cases, E what "
    "the device may spend for life; of a value that stays, E is what its memo spends.",
    quantity="guesses of a device's value that are right",
    run=_run,
)
