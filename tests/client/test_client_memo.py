"""Values that persist: a memo for life, debited once, and no silence that reveals a change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hubbub as hb
from hubbub.client.store import StoredState
from hubbub.collection import ManualClock
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.memoised import Memoised
from tests.client.device import MEMO, answers, begin, device, live, seeded
from tests.client.local_server import LocalServer, survey

LARGE = MEMO.replace("size = 6", "size = 5000").replace("user = 7.0", "user = 100.0")
MIXED = MEMO.replace("user = 7.0", "user = 12.0") + (
    '\n[fields.theme]\nkind = "categorical"\nnames = ["light", "dark"]\n'
    '\n[questions.popular]\nkind = "histogram"\nfield = "theme"\nepsilon = 0.5\n'
)


def memo_mechanism(server: LocalServer) -> Memoised:
    question = server.collection.questions["page"]
    mechanism = question.mechanism_for(server.collection.setting("page"))
    assert isinstance(mechanism, Memoised)
    return mechanism


def reports_of(server: LocalServer, last: int) -> list[Reports]:
    mechanism = memo_mechanism(server)
    assert isinstance(mechanism, Mechanism)
    read = mechanism.read_bare
    return [read(r) for reports in list(server.reports.values())[-last:] for r in reports.values()]


def likelihoods(mechanism: hb.BasicRappor, memos: dict[int, bytes], reports: list[Reports]) -> dict[int, float]:
    """How likely the reports are from each permanent answer."""
    keep, lift = (t / (1 << mechanism.width) for t in (mechanism.keep, mechanism.lift))
    bits = np.unpackbits(np.concatenate([r.private["bits"] for r in reports]), axis=1, bitorder="little")
    likelihood = {}
    for key, answer in memos.items():
        own = np.unpackbits(np.frombuffer(answer, np.uint8), bitorder="little")
        rates = np.where(own == 1, keep, lift)[: mechanism.size]
        reported = bits[:, : mechanism.size]
        likelihood[key] = float(np.log(np.where(reported == 1, rates, 1 - rates)).sum())
    return likelihood


def test_each_new_value_costs_the_permanent_epsilon_and_repeats_cost_nothing(folder: Path) -> None:
    server, clock = LocalServer(survey(MEMO)), ManualClock()
    cost = memo_mechanism(server).permanent_event().spent
    with device(folder, server, clock) as client:
        paid = []
        for step, home in enumerate([3, 3, 3, 1, 3, 1, 1, 5, 3, 5], start=5):
            assert live(client, server, clock, step, home) == 1
            paid.append(client.status().spent)
        assert paid == [cost * k for k in (1, 1, 1, 2, 2, 2, 2, 3, 3, 3)]
        assert client.status().memos == {"page": 3}
        assert client.status().counts == {"sent": 10}
    assert server.tally == {"accepted": 10}


def test_the_value_stays_until_another_is_recorded(folder: Path) -> None:
    server, clock = LocalServer(survey(MEMO)), ManualClock()
    with device(folder, server, clock) as client:
        live(client, server, clock, 5, 4)
        for step in range(6, 9):
            assert live(client, server, clock, step, None) == 1
        assert answers(client).keys() == {4}


def test_a_device_that_recorded_nothing_answers_too(folder: Path) -> None:
    server, clock = LocalServer(survey(MEMO)), ManualClock()
    with device(folder, server, clock) as client:
        assert live(client, server, clock, 5, None) == 1
        assert answers(client).keys() == {6}  # "(none)"


def test_when_the_budget_is_gone_it_goes_on_from_the_last_memo(folder: Path) -> None:
    server, clock = LocalServer(survey(MEMO)), ManualClock()
    mechanism = memo_mechanism(server)
    assert isinstance(mechanism, hb.BasicRappor)
    cost = mechanism.permanent_event().spent
    with device(folder, server, clock, rng=seeded(5)) as client:
        for step, home in enumerate([0, 1, 2, 0, 1], start=5):  # three values: 6 of 7
            live(client, server, clock, step, home)
        memos = answers(client)
        for step in range(10, 130):
            assert live(client, server, clock, step, 4) == 1  # never silent
        assert client.status().spent == 3 * cost
        assert answers(client) == memos
        # 120 reports of 7 bits tell the three answers apart; from which they were made is the last used, that of 1.
        likely = likelihoods(mechanism, memos, reports_of(server, 120))
        assert max(likely, key=lambda key: likely[key]) == 1
        assert sorted(likely.values())[-1] > sorted(likely.values())[-2] + 10
        live(client, server, clock, 130, 0)  # a value that has a memo is answered from it again
        assert client.status().spent == 3 * cost


def test_memos_survive_restarts(folder: Path) -> None:
    server, clock = LocalServer(survey(MEMO)), ManualClock()
    memos: list[dict[int, bytes]] = []
    for step in range(5, 12):
        with device(folder, server, clock) as client:
            live(client, server, clock, step, step % 2)
            memos.append(answers(client))
    assert memos[1] == memos[-1]
    assert memos[0] == {1: memos[-1][1]}


def test_a_large_domain_costs_at_most_g_epsilon_whatever_its_values_do(folder: Path) -> None:
    server, clock = LocalServer(survey(LARGE)), ManualClock()
    mechanism = memo_mechanism(server)
    assert isinstance(mechanism, hb.Loloha)
    rng = seeded(2)
    with device(folder, server, clock) as client:
        for step in range(5, 65):
            assert live(client, server, clock, step, int(rng.below(5000, 1)[0])) == 1
        status = client.status()
        assert status.memos == {"page": mechanism.buckets}  # 60 values of 5000 meet all four buckets, but once in 10^7
        assert status.spent == mechanism.buckets * mechanism.permanent_event().spent
        assert status.spent <= mechanism.buckets * 2 * UNITS_PER_EPSILON
    functions = {int(report.public["function"][0]) for report in reports_of(server, 60)}
    assert len(functions) == 1  # one hash function for life


def test_one_report_a_step_whatever_is_asked(folder: Path) -> None:
    from dataclasses import replace

    from hubbub.protocols.ask import CIRCLE, Arc

    server, clock = LocalServer(survey(MEMO)), ManualClock()
    with device(folder, server, clock) as client:
        begin(server, clock, 5)
        _, ask = server.open["page"]
        for start in range(6):
            server.publish_asks([("page", replace(ask, cohort=Arc(start, CIRCLE)))], 5, clock.now() + 100)
            client.tick()
            clock.advance(200)
        assert client.status().queued == 1


def test_changes_do_not_silence_other_questions(folder: Path) -> None:
    """Two devices, one whose values change: the histogram's account is the same on both."""
    counts = []
    for number, homes in enumerate([[3] * 30, list(range(6)) * 5]):
        server, clock = LocalServer(survey(MIXED)), ManualClock()
        with device(folder / str(number), server, clock) as client:
            reports = []
            for step, home in enumerate(homes, start=5):
                begin(server, clock, step)
                client.record("home", home)
                client.tick()
                client.upload()
                reports.append(sorted(name for name, (_, ask) in server.open.items() if server.reports.get(ask.ask_id)))
            counts.append(reports)
            assert client.status().spent <= 12 * UNITS_PER_EPSILON
    assert counts[0] == counts[1]
    assert counts[0][0] == ["page", "popular"]
    assert counts[0][-1] == ["page"]  # the histogram has spent its part; the memo goes on


def test_two_fields_alike_have_memos_of_their_own(folder: Path) -> None:
    desk = MEMO[MEMO.index("[questions.page]") :].replace("page", "desk").replace('"home"', '"work"')
    twins = MEMO.replace("user = 7.0", "user = 20.0") + f'\n[fields.work]\nkind = "ordinal"\nsize = 6\n\n{desk}'
    server, clock = LocalServer(survey(twins)), ManualClock()
    assert server.collection.questions["desk"].field == "work"
    cost = memo_mechanism(server).permanent_event().spent
    with device(folder, server, clock) as client:
        begin(server, clock, 5)
        client.record("home", 3)
        client.record("work", 3)
        client.tick()
        assert client.status().memos == {"page": 1, "desk": 1}
        assert client.status().spent == 2 * cost  # one permanent answer for both would tell that they are equal


@pytest.mark.parametrize("damaged", [b"", b"\xc1", b"\x93\x01", b"\x80"], ids=["empty", "no bytes", "cut off", "none"])
def test_a_state_that_cannot_be_read_is_refused_and_the_rest_is_told_and_answered(folder: Path, damaged: bytes) -> None:
    clock = ManualClock()
    server = LocalServer(survey(MIXED))
    client = device(folder, server, clock)
    assert live(client, server, clock, 8, 3) == 2
    spent = client.status().spent
    account = server.collection.terms["page"].account
    with client._store.transaction():
        client._store.set_state(account, client._store.stream(account) or "", StoredState(damaged or b"\x00"))
    assert "page" not in client.status().memos
    assert live(client, server, clock, 9, 3) == 1
    assert client.status().counts["refused: state"] == 1
    assert client.status().spent - spent < UNITS_PER_EPSILON, "only the other question was paid for"
    client.close()
