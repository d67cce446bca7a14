"""A kind whose view and mechanism do not fit is refused by `check`, and by devices: silence would tell a value."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from hubbub.authoring import check, load_collection
from hubbub.authoring.answerable import answers, codes_of
from hubbub.authoring.toml import EXAMPLE, read_collection
from hubbub.client.answer import admit
from hubbub.client.documents import ClientRefusal, PublishedAsk
from hubbub.collection.admits import admits
from hubbub.collection.safety import UnsafeCollection
from hubbub.core.domain import Ordinal, Sets, Strings
from hubbub.mechanisms import BROWSERS_HAVE, browsers_lack
from hubbub.mechanisms.sets.psfo import PSFO
from hubbub.protocols.statistic import Frequencies
from hubbub.protocols.views.basic import Among, View, Whole
from hubbub.questions import QUESTIONS, Setting, Shape, StatisticQuestion
from hubbub.questions.histogram import HistogramQuestion
from tests.shared.asks import first_ask
from tests.vectors import make_admits


@dataclass(frozen=True)
class FirstRaises(View):
    """A view of another package that has no result for one value."""

    def __call__(self, values: Any) -> Any:
        if 0 in list(values):
            raise ValueError("none")
        return values


def kind(sizes: int, view: View) -> type[StatisticQuestion]:
    @dataclass(frozen=True, kw_only=True)
    class Misfit(StatisticQuestion):
        """Asks for a number of codes of a field of two values and "(none)"."""

        kind = "misfit"

        def statistic(self):
            return Frequencies(sizes, view=view)

        def labels(self):
            return None

        def shape(self):
            return Shape(form="shares", size=sizes)

    return Misfit


TEXT = EXAMPLE.replace('kind = "histogram"', 'kind = "misfit"')


@pytest.mark.parametrize(
    ("sizes", "view", "says"),
    [
        (3, Whole(), None),
        (4, Whole(), None),
        (2, Whole(), "devices refuse what it asks (mechanism)"),
        (2, Among((0, 1)), "devices refuse what it asks (mechanism)"),
        (3, Among((0, 1)), None),
        (3, FirstRaises(), "does not take what its view gives of 0: a device that holds it would fall silent"),
    ],
)
def test_a_kind_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch, sizes: int, view: View, says: str | None):
    monkeypatch.setitem(QUESTIONS, "misfit", kind(sizes, view))
    errors = [finding for finding in check(read_collection(TEXT)) if finding.level == "error"]
    if says is None:
        assert errors == []
        return
    assert [finding.where for finding in errors] == ["questions.popular"]
    assert says in errors[0].text
    with pytest.raises(UnsafeCollection, match=r"questions\.popular"):
        load_collection(TEXT)


def test_a_device_refuses_it_before_it_reads_a_value(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(QUESTIONS, "misfit", kind(2, Whole()))
    collection = read_collection(TEXT)
    ask = replace(first_ask(collection.protocol("popular")), step=7)
    with pytest.raises(ClientRefusal, match="mechanism"):
        admit(collection, PublishedAsk("popular", ask), 7)


OF_ONE_FIELD = [case for case in make_admits.fitting() if not case[2].measured]


@pytest.mark.parametrize("case", OF_ONE_FIELD, ids=lambda case: case[0])
def test_what_the_vectors_admit_is_what_has_an_answer_for_every_value(case: tuple[Any, ...]):
    name, _, _, domain = case
    terms, ask = next((terms, ask) for other, terms, ask, _ in make_admits.signed() if other == name)
    admitted = admits(terms, ask, fields={"theme": domain}) is None
    # Examples of texts are short, and a stream of changes takes a code that it does not know for none.
    total = isinstance(domain, Strings) or name == "changes of 2 values"
    assert answers(ask, codes_of(domain)) == admitted or (not admitted and total)


# -- what browsers can answer ---------------------------------------------------------------------------------------


def test_the_list_of_what_browsers_have_is_that_of_their_client():
    source = (Path(__file__).parents[2] / "clients/js/src/mechanisms.ts").read_text()
    known = source.partition("const KNOWN")[2].partition("};")[0]
    assert set(re.findall(r"^  (\w+): \[", known, re.MULTILINE)) == BROWSERS_HAVE


@pytest.mark.parametrize("name", ["PGR", "RHR", "CMS", "HCMS", "BitFlips", "OLH"])
def test_a_mechanism_that_browsers_do_not_have_is_a_warning(name: str):
    collection = load_collection(EXAMPLE.replace('kind = "histogram"', f'kind = "histogram"\nmechanism = "{name}"'))
    warned = [finding.text for finding in check(collection) if "browsers" in finding.text]
    assert [name in text for text in warned] == [True] * (name not in BROWSERS_HAVE)


def test_the_oracle_inside_of_a_mechanism_counts_and_a_histogram_of_sets_takes_none_that_browsers_lack():
    assert list(browsers_lack(PSFO(epsilon=1.0, domain=Sets(Ordinal(9), 2), oracle="Hadamard"))) == ["Hadamard"]
    sets = Sets(Ordinal(1 << 20), most=2)
    held = HistogramQuestion(field="held", epsilon=1.0).bound(Setting("q", {"held": sets}, 3600))
    assert held.made_by() in BROWSERS_HAVE
