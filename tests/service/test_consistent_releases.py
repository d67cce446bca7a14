"""Consistent shares next to the raw ones: by the API and on the page, computed from what is stored, by every method."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from hubbub.authoring import load_collection
from hubbub.authoring.toml import read_collection
from hubbub.consistency import METHODS, answer, consistent
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise
from hubbub.random.source import Random
from hubbub.service.rounds.eras import difference
from hubbub.service.rounds.releases import told_release
from tests.dashboard.pages_outline import Outline
from tests.service.web import AUTHORIZED, site
from tests.shared.in_process import World, send_values
from tests.shared.loopback import Loopback
from tests.shared.small_collections import collection_text

NAMES = [f"page {k}" for k in range(12)]
QUESTIONS: dict[str, dict[str, Any]] = {
    "pages": {"kind": "histogram", "field": "page", "epsilon": 1.0, "consistency": "auto"},
    "ages": {"kind": "histogram", "field": "age", "epsilon": 1.0, "consistency": "auto"},
    "plain": {"kind": "histogram", "field": "page", "epsilon": 1.0, "mechanism": "OLH"},
    "stream": {"kind": "stream", "field": "page", "epsilon": 1.0, "method": "LPU", "w": 2, "consistency": "auto"},
    "groups": {"kind": "histogram", "field": "page", "by": ["side"], "epsilon": 1.0, "consistency": "auto"},
    "mean": {"kind": "mean", "field": "years", "epsilon": 1.0},
}
FIELDS: dict[str, dict[str, Any]] = {
    "page": {"kind": "categorical", "names": NAMES},
    "age": {"kind": "ordinal", "size": 20},
    "side": {"kind": "categorical", "names": ["left", "right"]},
    "years": {"kind": "numeric", "low": 0, "high": 100, "cells": 10},
}
SITE = load_collection(
    collection_text(
        schedule={"step": "1h", "lateness": "10s"},
        privacy={"event": 8.0, "minimum_batch": 100},
        fields=FIELDS,
        questions=QUESTIONS,
    )
)
N, STEP, HOUR = 3000, 7, 3600
PATH = "/v1/collections/survey/questions"


class Heard(NamedTuple):
    """A collector that has heard one step, and requests to it."""

    world: World
    client: Loopback

    def get(self, question: str, **query: str) -> Any:
        text = "&".join(f"{name}={value}" for name, value in query.items())
        return self.client.get(f"{PATH}/{question}/releases/latest?{text}", headers=AUTHORIZED)


def people() -> np.ndarray:
    draws = np.random.default_rng(4)
    rows = np.zeros(N, dtype=[(name, "i8") for name in FIELDS])
    weights = 0.5 ** np.arange(12)
    rows["page"] = draws.choice(12, N, p=weights / weights.sum())
    rows["age"] = draws.binomial(19, 0.3, N)
    rows["side"] = draws.integers(0, 2, N)
    rows["years"] = 30
    return rows


@pytest.fixture(scope="module")
def heard() -> Iterator[Heard]:
    world, rng = World(SITE, STEP * HOUR), Random(seed=3)
    for opened in world.open:
        rows: Any = people()
        if opened.question != "groups":
            rows = rows[QUESTIONS[opened.question]["field"]]
        send_values(world.collector, opened, opened.ask.view(rows), rng)
    world.at((STEP + 1) * HOUR + 11)
    with site(world.collector, pages=True) as client:
        yield Heard(world, client)


def estimate_of(body: dict[str, Any]) -> Estimate:
    """What any reader can make of a release: the four numbers of the noise, and those that are mostly 0."""
    return Estimate(body["value"], body["variance"], body["n"], body["bias"], noise=Noise(**body["noise"]))


@pytest.mark.parametrize(
    ("question", "method"),
    [("pages", "base-cut"), ("ages", "power-ns"), ("stream", "norm-sub"), ("groups", "norm-sub")],
)
def test_auto_is_the_method_for_what_the_page_shows_of_the_question(heard: Heard, question: str, method: str) -> None:
    body = heard.get(question).json()
    told = body["consistent"]
    assert told["method"] == method
    raw, shares, low, high = (
        np.array(numbers) for numbers in (body["value"], *map(told.get, ("value", "low", "high")))
    )
    assert shares.shape == raw.shape
    assert (shares >= 0).all()
    assert (low <= shares).all()
    assert (shares <= high).all()
    # The raw interval, as far as it is possible, is inside.
    assert (low <= np.clip(body["low"], 0, 1)).all()
    assert (high >= np.clip(body["high"], 0, 1)).all()
    if method != "base-cut":
        rows = shares.reshape(-1, 13) if question == "groups" else shares[None]
        assert rows.sum(axis=1) == pytest.approx(1.0)
    assert body["estimates"][next(iter(body["estimates"]))]["consistent"] == told


@pytest.mark.parametrize("name", [*METHODS, "base-cut:3"])
def test_whoever_reads_a_release_can_compute_every_method_from_what_the_api_sends(heard: Heard, name: str) -> None:
    body = heard.get("plain", consistency=name).json()
    raw = estimate_of(body)
    mine = answer(raw, np.eye(len(raw)), name) if name == "post-pos" else consistent(raw, method=name)
    assert body["consistent"]["value"] == pytest.approx(mine.value.tolist(), abs=1e-12)
    truth = np.bincount(people()["page"], minlength=13) / N
    # Eleven methods, 13 values: missed at four standard errors once in a thousand seeds.
    assert (np.abs(raw.value - truth) < 4 * raw.stderr).all()


def test_the_raw_estimate_is_what_it_would_be_without(heard: Heard) -> None:
    stored = heard.world.rows("ages")[-1]
    assert "consistent" not in stored.payload
    for name in ("ages", "plain"):
        with_key, without = (heard.get(name, consistency=method).json() for method in ("norm-sub", "none"))
        assert "consistent" not in without
        for body in (with_key, *with_key["estimates"].values()):
            body.pop("consistent")
        assert with_key == without
    assert "consistent" not in heard.get("plain").json()
    of_many = heard.client.get(f"{PATH}/ages/releases", headers=AUTHORIZED).json()["releases"]
    assert of_many[-1] == heard.get("ages").json()


@pytest.mark.parametrize(
    ("question", "method", "words"),
    [
        ("stream", "mle-apx", "the noise of these shares is not known"),
        ("groups", "power-ns", "the noise of these shares is not known"),
        ("mean", "norm-sub", "answers of kind mean have no consistent form"),
        ("plain", "best", "one of auto, none, base, base-pos"),
        ("plain", "base-cut:0", "base-cut:K keeps the K highest"),
    ],
)
def test_what_cannot_be_made_consistent_is_refused_with_the_reason(
    heard: Heard, question: str, method: str, words: str
) -> None:
    refused = heard.get(question, consistency=method)
    assert refused.status_code == 400
    assert words in refused.text


def test_withheld_and_unanswered_releases_have_no_consistent_shares(heard: Heard) -> None:
    row, question = heard.world.rows("ages")[-1], SITE.questions["ages"]
    withheld = told_release(row._replace(withheld="too few"), question=question)
    assert withheld.value is None
    payload = {**json.loads(row.payload), "n": 0}
    for told in (withheld, told_release(row._replace(payload=json.dumps(payload)), question=question)):
        assert not told.consistent
        assert not next(iter(told.estimates.values())).consistent


def test_the_page_shows_both_in_one_table_and_says_how(heard: Heard) -> None:
    page = heard.client.get("/results/survey/pages", headers=AUTHORIZED).text
    rows = Outline(page).bars()
    assert "Base-Cut: estimates that chance may explain become 0" in page
    body = heard.get("pages").json()
    largest = int(np.argmax(body["value"]))
    cells = [cell.text for cell in rows[body["labels"][largest]].all("td")]
    assert cells[1].startswith(cells[2])  # far above chance: both are the same
    plain = heard.client.get("/results/survey/plain", headers=AUTHORIZED).text
    assert "onsistent" not in Outline(plain).all("main")[0].text
    ordered = heard.client.get("/results/survey/ages", headers=AUTHORIZED).text
    assert ordered.count('class="consistent" d="M') == 21 * 2  # in the columns, and in the table below
    groups = heard.client.get("/results/survey/groups", headers=AUTHORIZED).text
    assert "Norm-Sub" in groups


def test_another_method_is_not_another_question() -> None:
    asked = replace(SITE.questions["ages"], consistency="none")  # type: ignore[call-arg]
    later = replace(SITE, version=2, questions={**SITE.questions, "ages": asked})
    assert difference(SITE, later, "ages") is None
    assert later.terms == SITE.terms


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"consistency": "norm_sub"}, "'norm_sub'; allowed: one of auto, none, base,"),
        ({"field": "years", "kind": "mean", "consistency": "auto"}, "no such key"),
        ({"field": "years", "kind": "stream", "method": "LPU", "w": 2, "consistency": "auto"}, "are no shares"),
        ({"kind": "stream", "method": "LPU", "w": 2, "consistency": "power"}, "the noise of these shares is not known"),
        ({"field": "items", "consistency": "norm-sub"}, "base-cut:K: these shares need not add up to 1"),
    ],
)
def test_a_collection_says_which_methods_a_question_can_take(keys: dict[str, Any], words: str) -> None:
    items = {"kind": "sets", "most": 2, "items": {"kind": "ordinal", "size": 5}}
    text = collection_text(
        privacy={"event": 8.0, "minimum_batch": 100},
        fields={"page": FIELDS["page"], "years": FIELDS["years"], "items": items},
        questions={"asked": {"kind": "histogram", "field": "page", "epsilon": 1.0, **keys}},
    )
    with pytest.raises(InvalidValue, match=f"questions.asked.consistency: got .*{words}"):
        read_collection(text)
