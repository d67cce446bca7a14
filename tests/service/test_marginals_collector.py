"""A marginals question at a collector: any marginal and records by the API, the page and SQL, after a restart too."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from hubbub.authoring import load_collection
from hubbub.protocols.ask import Ask
from hubbub.protocols.marginals.calm import CALM, MarginalCounts
from hubbub.questions.marginals import MarginalsQuestion
from hubbub.service.rounds.releases import released_marginals, told_release
from tests.service.web import AUTHORIZED, problem, site
from tests.shared.in_process import Crowd, World, places_of
from tests.shared.loopback import Loopback
from tests.shared.small_collections import collection_text

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

YES_NO = {"kind": "categorical", "names": ["no", "yes"]}
TEXT = collection_text(
    "homes",
    "Homes",
    schedule={"step": "1h", "lateness": "10s"},
    privacy={"event": 4.0, "minimum_batch": 100},
    fields={"car": YES_NO, "dog": YES_NO, "rooms": {"kind": "ordinal", "size": 3}, "step": YES_NO},
    questions={
        "homes": {"kind": "marginals", "fields": ["car", "dog", "rooms"], "epsilon": 3.0, "people": 20_000},
        "pools": {
            "kind": "marginals",
            "fields": ["car", "step"],
            "marginals": ["car", "step"],
            "epsilon": 1.0,
            "people": 20_000,
        },
    },
)
HOMES = load_collection(TEXT)
N, STEP, HOUR = 20_000, 7, 3600
PATH = "/v1/collections/homes/questions"


def people(n: int = N) -> np.ndarray:
    """Dogs go with cars, rooms with cars; a tenth has recorded nothing of each field but `step`."""
    draws = np.random.default_rng(3)
    rows = np.zeros(n, dtype=[(name, "i8") for name in ("car", "dog", "rooms", "step")])
    rows["car"] = draws.integers(0, 2, n)
    rows["dog"] = np.where(draws.random(n) < 0.8, rows["car"], draws.integers(0, 2, n))
    rows["rooms"] = np.where(draws.random(n) < 0.6, rows["car"] * 2, draws.integers(0, 3, n))
    for name, nothing in (("car", 2), ("dog", 2), ("rooms", 3)):
        rows[name] = np.where(draws.random(n) < 0.1, nothing, rows[name])
    return rows


class Homes(NamedTuple):
    """A collector that has heard one step, and requests to it."""

    world: World
    client: Loopback
    asks: list[Ask]

    def get(self, path: str, question: str = "homes") -> Any:
        return self.client.get(f"{PATH}/{question}/{path}", headers=AUTHORIZED)


@pytest.fixture(scope="module")
def homes() -> Iterator[Homes]:
    world = World(HOMES, STEP * HOUR)
    asks = [opened.ask for opened in world.open if opened.question == "homes"]
    assert Crowd(places_of(N), people()).send_all(world.collector) == 2 * N
    world.begin().at((STEP + 1) * HOUR + 11)  # another collector goes on before the step ends
    with site(world.collector, pages=True) as client:
        yield Homes(world, client, asks)


def test_any_marginal_by_the_api_with_intervals_where_devices_reported_on_it(homes: Homes) -> None:
    body = homes.get("marginal?of=dog&of=car").json()
    assert list(body["values"]) == ["car", "dog"]  # in the order of the question
    assert body["values"]["dog"] == ["no", "yes", "(none)"]
    assert body["labels"][:2] == ["no, no", "no, yes"]
    assert (body["interval"], body["least"], body["left_out"]) == ("known", None, None)
    truth = np.bincount(people()["car"] * 3 + people()["dog"], minlength=9) / N
    low, value, high = (np.array(body[key]) for key in ("low", "value", "high"))
    assert sum(value) == pytest.approx(1.0)
    assert (value >= 0).all()
    reach = (high - low) / 2  # nine intervals at five standard errors and more: missed once in a million times
    assert (np.abs(value - truth) < 2.6 * reach).all()
    assert 6000 < body["n"] < 7400  # the third of the devices that reported on it
    all_three = homes.get("marginal?of=car&of=dog&of=rooms&level=0.9").json()
    assert (all_three["interval"], all_three["low"], all_three["bias"]) == ("unknown", None, "heuristic")
    assert all(low <= value <= high for low, value, high in zip(
        all_three["least"], all_three["value"], all_three["most"], strict=True))  # fmt: skip
    assert all_three["left_out"]["marginals"] == 3
    assert 0.01 < all_three["left_out"]["squared"] < 0.1  # a pair is put together from two others that share no field


@pytest.mark.parametrize(
    ("path", "question", "status", "words"),
    [
        ("marginal", "homes", 400, "of: got ''"),
        ("marginal?of=car&of=car", "homes", 400, "different fields, of car, dog, rooms"),
        ("marginal?of=step", "homes", 400, "different fields, of car, dog, rooms"),
        ("marginal?of=car&step=3", "homes", 404, "no such release"),
        ("records?n=0", "homes", 400, "from 1 to 100,000 records"),
        ("records?of=step", "homes", 400, "different fields"),
        ("difference?of=no&minus=yes", "homes", 404, "not by group"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_the_reason(
    homes: Homes, path: str, question: str, status: int, words: str
) -> None:
    answer = homes.get(path, question)
    assert answer.status_code == status
    assert words in answer.text


def test_records_have_the_released_distribution(homes: Homes) -> None:
    body = homes.get("records?n=20000&of=dog&of=car").json()
    assert body["fields"] == ["dog", "car"]
    share = np.mean([record == ["yes", "yes"] for record in body["records"]])
    released = homes.get("marginal?of=car&of=dog").json()
    assert share == pytest.approx(released["value"][4], abs=0.02)  # 5.6 standard errors
    assert len(homes.get("records").json()["records"]) == 1000


def test_sql_counts_what_the_marginals_say(homes: Homes) -> None:
    def rows(query: str) -> Any:
        answer = homes.client.request("POST", f"{PATH}/homes/sql", content=f'{{"sql": "{query}"}}',
                                      headers={**AUTHORIZED, "Content-Type": "application/json"})  # fmt: skip
        assert answer.status_code == 200, answer.text
        return answer.json()

    value = homes.get("marginal?of=car&of=dog").json()["value"]
    counted = rows("SELECT dog, COUNT(*) FROM homes WHERE car = 'yes' GROUP BY dog")
    assert [row[1]["value"] for row in counted["rows"]] == pytest.approx([N * share for share in value[3:6]])
    either = rows("SELECT COUNT(*) FROM homes WHERE car = 'yes' OR dog IS NULL")["rows"][0][0]
    assert either["value"] == pytest.approx(N * (sum(value[3:6]) + value[2] + value[8]))
    assert either["low"] < either["value"] < either["high"]
    unknown = rows("SELECT COUNT(*) FROM homes WHERE car = 'yes' AND dog = 'yes' AND rooms = 1")
    assert (unknown["bias"], unknown["rows"][0][0]["low"]) == ("heuristic", "-inf")
    assert "nobody reported on car, dog, rooms together" in unknown["notes"][0]
    assert "reported on together" in rows("EXPLAIN SELECT COUNT(*) FROM homes WHERE car = 'no'")["explain"]
    page = homes.client.request("POST", "/results/homes/homes", content="sql=SELECT+COUNT(*)+FROM+homes",
                                headers={"Content-Type": "application/x-www-form-urlencoded"})  # fmt: skip
    assert "20,000" in page.text


def test_the_page_says_what_goes_together_and_draws_any_marginal(homes: Homes) -> None:
    text = homes.client.get("/results/homes/homes").text
    assert "go together most" in text
    assert "Shares of car, dog together" in text
    chosen = homes.client.get("/results/homes/homes?of=car&of=dog&of=rooms").text
    assert "Shares of car, dog, rooms together" in chosen
    assert "its error is not known" in chosen
    assert "came out" in chosen
    assert "different fields" in homes.client.get("/results/homes/homes?of=nothing").text
    assert "go together most" in homes.client.get("/results/homes").text
    # Car and pool are reported on one at a time: nothing is known of them together.
    assert "No two values are clearly more often together" in homes.client.get("/results/homes/pools").text


def test_too_few_reports_are_withheld() -> None:
    world = World(HOMES, STEP * HOUR)
    Crowd(places_of(150), people(150)).send_all(world.collector)
    world.at((STEP + 1) * HOUR + 11)
    with site(world.collector, pages=True) as client:
        refused = client.get(f"{PATH}/homes/marginal?of=car", headers=AUTHORIZED)
        assert (refused.status_code, problem(refused)) == (409, "withheld")
        assert "at least 100 are needed" in refused.text
        assert "Withheld" in client.get("/results/homes/homes").text


def test_a_release_says_what_the_library_says_of_the_same_reports(homes: Homes) -> None:
    """What is stored loses nothing. The library knows how many reported in all, a release a third of that."""
    question = HOMES.questions["homes"]
    assert isinstance(question, MarginalsQuestion)
    released = released_marginals(question, told_release(homes.world.rows("homes")[-1]))
    assert released is not None
    views = question.plan().marginals
    calm = CALM(3.0, question.sizes, views, "adaptive")
    crowd = Crowd(places_of(N), people())
    part_of = {part.view: view for part, view in zip(question.parts(), views, strict=True)}
    synopsis = calm.estimate(MarginalCounts({part_of[ask.view]: crowd.answer(ask) for ask in homes.asks}))
    for places in ((0,), (0, 1), (1, 2), (0, 1, 2)):
        assert released.synopsis.table(places) == pytest.approx(synopsis.table(places), abs=1e-4)
        own, others = (each.marginal(places).interval() for each in (released.synopsis, synopsis))
        assert np.array(own) == pytest.approx(np.array(others), abs=2e-3)


def test_a_field_may_be_called_step(homes: Homes) -> None:
    """Of tables, a step is compared with dates; marginals have no column of steps."""
    asked = json.dumps({"sql": "SELECT COUNT(*) FROM pools WHERE step = 'yes'"})
    answer = homes.client.request("POST", f"{PATH}/pools/sql", content=asked, headers=AUTHORIZED)
    assert answer.status_code == 200, answer.text
