"""People with several values: at most some of each enter, and all of them together spend at most epsilon."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.core.errors import InvalidValue
from hubbub.curator.people import epsilon_of_value, first_of_each
from hubbub.curator.tops import ToPS


@given(epsilon=st.floats(0.01, 10.0), per_person=st.integers(1, 60))
def test_all_values_of_a_person_together_spend_at_most_epsilon(epsilon: float, per_person: int) -> None:
    part = epsilon_of_value(epsilon, per_person)
    assert Fraction(part) * per_person <= Fraction(epsilon)
    assert part == pytest.approx(epsilon / per_person, rel=1e-12)


@pytest.mark.parametrize("watch", [0.0, 0.1])
def test_what_a_person_spends_is_exact(watch: float) -> None:
    """Of values that find the threshold, that are published, and that are watched, in any mixture."""
    tops = ToPS(epsilon=epsilon_of_value(1.0, 3), bound=10.0, holdout=64, max_range=256, watch=watch)
    assert 3 * tops.exact_epsilon <= 1
    assert float(3 * tops.exact_epsilon) == pytest.approx(1.0, rel=1e-4)


@given(people=st.lists(st.integers(-3, 3), max_size=40), per_person=st.integers(1, 4))
def test_the_first_values_of_each_enter(people: list[int], per_person: int) -> None:
    entered = first_of_each(np.array(people, dtype=np.int64), per_person).tolist()
    assert entered == [people[:place].count(person) < per_person for place, person in enumerate(people)]


@pytest.mark.parametrize(("epsilon", "per_person", "field"), [(0.0, 1, "epsilon"), (1.0, 0, "per_person")])
def test_bad_settings_are_named(epsilon: float, per_person: int, field: str) -> None:
    with pytest.raises(InvalidValue, match=f"^{field}:"):
        epsilon_of_value(epsilon, per_person)
