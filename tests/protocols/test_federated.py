"""Training a model together: the view of an update, the generator, and a program with an optimiser of its own."""

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.domain.vector import Vector
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Floats
from hubbub.protocols.ask import EVERYONE, Ask, equal_arcs
from hubbub.protocols.driver import Release, converse
from hubbub.protocols.federated import descent, train
from hubbub.protocols.views.basic import View
from hubbub.protocols.views.update import Update, model_bytes, model_hash, model_weights

TARGET = np.array([0.5, -0.25, 0.0, 0.125])


def view(**changes: object) -> Update:
    return Update(**{"model": model_hash(b""), "dimension": 4, "sparsity": 2, "clip": 1.0, **changes})  # type: ignore[arg-type]


def test_a_vector_is_stored_by_its_entries() -> None:
    assert Vector(3).code(np.array([0, 2, -1])) == ((1, 2.0), (2, -1.0))
    assert Vector(3).missing() == ()


@pytest.mark.parametrize("value", [[1.0], [1.0, 2.0, float("nan")], "abc", None, [[1.0, 2.0, 3.0]], [1, [2], 3], 7])
def test_other_vectors_are_refused(value: object) -> None:
    with pytest.raises(InvalidValue, match="3 finite numbers"):
        Vector(3).code(value)


@pytest.mark.parametrize(
    "changes", [{"model": "abc"}, {"model": "G" * 64}, {"sparsity": 5}, {"clip": 0.0}, {"dimension": 1 << 17}]
)
def test_a_view_that_no_server_needs_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        view(**changes)


def test_the_view_names_its_model_and_is_signed_without_it() -> None:
    named = Update.of(b"weights", dimension=4, sparsity=2, clip=1)
    assert named.spec() == view(model=model_hash(b"weights")).spec()
    read = View.from_spec(named.spec())
    assert read == named
    assert (named.content, read.content) == (b"weights", None)


def test_an_update_is_shrunk_and_rounded_without_bias() -> None:
    pairs = [(0, 3.0), (1, -1.5), (3, 0.75)]
    np.testing.assert_allclose(view()([pairs]), [[1.0, -0.5, 0.0, 0.25]])
    rounded = view().look([pairs] * 40_000, hb.Random(seed=1))
    np.testing.assert_allclose(rounded.means(), [1.0, -0.5, 0.0, 0.25], atol=0.015)  # 6 standard errors
    assert ((rounded.entries >= 0).sum(axis=1) <= 2).all()


@pytest.mark.parametrize("value", [[], [(9, 1.0)], [(-1, 1.0)], [(0, float("nan"))], [(0, float("inf"))]])
def test_a_value_that_is_none_counts_as_zeros(value: list[tuple[int, float]]) -> None:
    rounded = view().look([value], hb.Random(seed=1))
    assert rounded.means().tolist() == [0.0] * 4


def mean_of_targets(ask: Ask, people: int = 3000) -> hb.Sketch:
    """What devices answer that all want to move the model to the target."""
    assert isinstance(ask.view, Update)
    assert ask.view.content is not None
    rows = np.tile(TARGET - model_weights(ask.view.content), (people, 1))
    seed = ask.view.model
    mechanism = ask.mechanism
    assert isinstance(mechanism, hb.NetSub)
    return mechanism.accumulate(mechanism.randomize(ask.view.look(rows, hb.Random(seed=seed)), hb.Random(seed=seed)))


def trained(**changes: object) -> list[Release]:
    mechanism = hb.NetSub(epsilon=4.0, dimension=4, sparsity=2)
    settings = {"clip": 1.0, "arcs": equal_arcs(8), "optimiser": descent(step_size=0.5), **changes}
    return list(converse(train(mechanism, **settings), mean_of_targets))  # type: ignore[arg-type]


def test_rounds_bring_the_model_to_where_the_devices_want_it() -> None:
    releases = trained()
    assert len(releases) == 8
    np.testing.assert_allclose(releases[-1].estimates["model"].value, TARGET, atol=0.1)
    first = releases[0].estimates["update"]
    assert (np.abs(first.value - TARGET) < 4 * first.stderr).all()
    assert first.n == 3000
    assert releases[0].n == pytest.approx(24_000)


def test_a_program_may_bring_an_optimiser_and_a_first_model() -> None:
    def stand_still(weights: Floats, update: Estimate) -> Floats:
        return weights

    (release,) = trained(arcs=[EVERYONE], optimiser=stand_still, weights=np.arange(4.0))
    assert release.estimates["model"].value.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_momentum_repeats_a_part_of_the_way() -> None:
    move = descent(step_size=2.0, momentum=0.5)
    update = Estimate(np.ones(1), np.zeros(1), 1, kind="quantity")
    first = move(np.zeros(1), update)
    assert [first.tolist(), move(first, update).tolist()] == [[2.0], [5.0]]


def test_a_round_that_nobody_answers_leaves_the_model() -> None:
    mechanism = hb.NetSub(epsilon=4.0, dimension=4, sparsity=2)
    protocol = train(mechanism, clip=1.0, arcs=equal_arcs(2), optimiser=descent(step_size=1.0))
    releases = list(converse(protocol, lambda ask: mechanism.empty()))
    assert [release.published for release in releases] == [False, False]
    assert not releases[-1].estimates["model"].value.any()
    assert np.isinf(releases[0].estimate.variance).all()


def test_a_model_comes_back_from_its_bytes() -> None:
    weights = np.array([0.1, -2.0])
    np.testing.assert_array_equal(model_weights(model_bytes(weights)), weights.astype(np.float32))
