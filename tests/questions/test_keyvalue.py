"""Key-value questions in the collection file, and what their numbers and intervals mean."""

from typing import Literal

import numpy as np
import pytest

from hubbub import Random
from hubbub.authoring import check
from hubbub.authoring.toml import EXAMPLE, read_collection
from hubbub.core.domain import KeyValue
from hubbub.core.errors import InvalidValue
from hubbub.questions.keyvalue import KeyNumbers, ternary_mechanisms

FIELD = '[fields.more]\nkind = "keyvalue"\nkeys = ["a", "b", "c"]\nlow = 0\nhigh = 10\nmost = 2\n'
QUESTION = '[questions.much]\nkind = "keyvalue"\nfield = "more"\nepsilon = 0.5\n'
PLANNED = "event = 1.5\nplanned_devices = 200_000"
TEXT = f"{EXAMPLE.replace('event = 1.0', PLANNED)}\n{FIELD}\n{QUESTION}"


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('["a", "b", "c"]', '["a", "b", "a"]', "fields.more.keys"),
        ('["a", "b", "c"]', '["a", 3]', "fields.more.keys"),
        ('["a", "b", "c"]', "[]", "fields.more.keys"),
        ("high = 10", "high = 0", "fields.more.high"),
        ("high = 10", "high = nan", "fields.more.high"),
        ("most = 2", "most = 4", "fields.more.most"),
        ("most = 2", "most = 0", "fields.more.most"),
        ("most = 2", "", "fields.more.most"),
        ("epsilon = 0.5", "epsilon = 0.5\nsparsity = 3", "questions.much.sparsity"),
        ("epsilon = 0.5", "epsilon = 0.5\nsparsity = 0", "questions.much.sparsity"),
        ("epsilon = 0.5", 'epsilon = 0.5\nmechanism = "GRR"', "questions.much.mechanism"),
        ("epsilon = 0.5", 'epsilon = 0.5\nmechanism = "PrivKV"', "questions.much.mechanism"),
        ("epsilon = 0.5", 'epsilon = 0.5\nof = "size"', "questions.much.of"),
        ('field = "more"', 'field = "theme"', "questions.much.field"),
        ('kind = "keyvalue"\nfield', 'kind = "histogram"\nfield', "questions.much.kind"),
        ('kind = "histogram"', 'kind = "histogram"\nsparsity = 1', "questions.popular.sparsity"),
    ],
)
def test_an_error_names_its_place(old: str, new: str, where: str) -> None:
    assert old in TEXT
    with pytest.raises(InvalidValue) as refused:
        read_collection(TEXT.replace(old, new))
    assert refused.value.field == where


def test_fewer_keys_than_may_be_held_is_a_warning() -> None:
    def warned(text: str) -> list[str]:
        findings = [finding for finding in check(read_collection(text)) if finding.where.startswith("questions.")]
        return [finding.where for finding in findings if finding.level != "note"]

    assert warned(TEXT) == []
    assert warned(TEXT.replace("epsilon = 0.5", "epsilon = 0.5\nsparsity = 1")) == ["questions.much.sparsity"]


def test_keys_that_go_or_come_are_named() -> None:
    def change(old: str, new: str) -> str:
        changed = read_collection(TEXT.replace(old, new).replace("version = 1", "version = 2"))
        texts = {finding.where: finding.text for finding in check(changed, against=read_collection(TEXT))}
        return texts["fields.more"]

    assert "no longer a, now also d" in change('"a", "b", "c"', '"b", "c", "d"')
    assert "low=0.0 high=10.0 most=2 to keyvalue low=0.0 high=20.0 most=2" in change("high = 10", "high = 20")


Asked = Literal["mean", "frequency", "conditional"]
ABLE = [name for name, kind in ternary_mechanisms().items() if "frequency" in kind.answers]


@pytest.mark.parametrize("ternary", [ABLE[0], *(pytest.param(name, marks=pytest.mark.slow) for name in ABLE[1:])])
@pytest.mark.parametrize("of", ["mean", "frequency", "conditional"])
def test_the_stated_variance_is_the_one_there_is(ternary: str, of: Asked) -> None:
    """Of 150 runs: the squared errors, in units of the stated variance, are 1 on average.

    They are chi-square with 150 degrees of freedom a key: their mean leaves 0.6 to 1.5 once in 20,000 times a key. With
    the variance of the signs' mean alone, the shares' part of it forgotten, it came to 1.7 and more.
    """
    statistic = KeyNumbers(KeyValue(tuple("abcd"), low=0.0, high=10.0, most=2), sparsity=2, of=of, ternary=ternary)
    people = [((0, 10.0), (1, 2.0)), ((0, 5.0),), ((1, 4.0), (2, 8.0)), ((2, 10.0),)] * 300
    truth = {"mean": [3.75, 1.5, 4.5], "frequency": [0.5, 0.5, 0.5], "conditional": [7.5, 3.0, 9.0]}[of]
    mechanism, rng, runs = statistic.mechanism(3 * 10**12), Random(seed=3), 150
    estimates = []
    for _ in range(runs):
        read = statistic.read(mechanism, mechanism.accumulate(mechanism.randomize(statistic.view(people), rng)))
        estimates.append((read.value[:3] - truth) ** 2 / read.variance[:3])
    ratio = np.mean(estimates, axis=0)
    assert ((ratio > 0.6) & (ratio < 1.5)).all(), ratio


def asking(low: float, high: float, of: Asked = "mean", keys: int = 40) -> KeyNumbers:
    domain = KeyValue(tuple(f"k{i}" for i in range(keys)), low=low, high=high, most=4)
    return KeyNumbers(domain, sparsity=4, of=of)


@pytest.mark.parametrize(
    ("epsilon", "low", "high", "of", "name"),
    [
        (1, -1.0, 1.0, "mean", "NetSeed"),  # no shares are needed, and every position is said
        (2, -1.0, 1.0, "mean", "NetSub"),
        (2, -1.0, 1.2, "mean", "NetSub"),  # here they hardly matter
        (2, 1.0, 5.0, "mean", "ExSub"),
        (1, -1.0, 1.0, "frequency", "ExSub"),
        (1, -1.0, 1.0, "conditional", "ExSub"),
    ],
)
def test_the_mechanism_is_the_one_of_the_smallest_error(epsilon, low, high, of, name) -> None:
    statistic, units, like = asking(low, high, of), epsilon * 10**12, np.zeros(40)
    assert type(statistic.mechanism(units)).__name__ == name
    able = [other for other, kind in ternary_mechanisms().items() if "frequency" in kind.answers]
    errors = {other: KeyNumbers(statistic.domain, 4, statistic.of, other).error(units, 1000, like) for other in able}
    if of != "conditional":  # whose error leaves the shares' part out
        assert statistic.error(units, 1000, like) <= min(errors.values()) * (1 + 1e-9)
    if name == "NetSeed":
        assert errors["NetSub"] < 0.8 * errors["ExSub"]
        net_sub = KeyNumbers(statistic.domain, 4, "mean", "NetSub").mechanism(units)
        assert statistic.mechanism(units).report_bytes < net_sub.report_bytes
    else:
        with pytest.raises(InvalidValue, match="mechanism"):
            KeyNumbers(KeyValue(("a", "b"), low=0.0, high=1.0, most=1), 1, statistic.of, "NetSeed")


def test_means_that_need_no_shares_are_read_without_them() -> None:
    """Real values, every position said: 100 runs, whose squared errors are 1 to 0.95 of the stated variance.

    Rounding is counted as the most it can be, 1 - mean^2 against a variance of 22: no more than 5% too much. Their mean
    over 8 keys has a standard error of 0.05.
    """
    statistic = asking(-2.0, 2.0, keys=8)
    people = [((0, 2.0), (1, -0.4)), ((0, 1.0), (3, 0.0))] * 300
    truth = np.array([1.5, -0.2, 0, 0, 0, 0, 0, 0])
    mechanism, rng = statistic.mechanism(10**12), Random(seed=3)
    assert mechanism.answers == ("mean",)
    estimates = []
    for _ in range(100):
        read = statistic.read(mechanism, mechanism.accumulate(mechanism.randomize(statistic.view(people), rng)))
        estimates.append((read.value - truth) ** 2 / read.variance)
    assert 0.65 < np.mean(estimates) < 1.2


def test_nothing_is_known_where_a_share_cannot_be_told_from_zero() -> None:
    domain = KeyValue(tuple(f"k{i}" for i in range(40)), low=1.0, high=5.0, most=1)
    statistic = KeyNumbers(domain, sparsity=1, of="conditional")
    mechanism = statistic.mechanism(10**12)
    reports = mechanism.randomize(statistic.view([((0, 4.0),)] * 3000), Random(seed=5))
    read = statistic.read(mechanism, mechanism.accumulate(reports))
    assert abs(read.value[0] - 4.0) < 1.0
    unknown = np.isnan(read.value)
    assert np.isinf(read.variance[unknown]).all()
    assert np.count_nonzero(unknown) >= 35  # of 39, each known by chance once in 40 times; fewer: once in 10^5 times
