"""Every mechanism, by name."""

from hubbub.mechanisms import frequency, memo, numeric, ternary
from hubbub.mechanisms.base import Mechanism

MECHANISMS: dict[str, type[Mechanism]] = {
    kind.__name__: kind for kind in (*frequency.MECHANISMS, *memo.MECHANISMS, *numeric.MECHANISMS, *ternary.MECHANISMS)
}
"""The registry: what `from_spec` can build and `hubbub.checks` is applied to."""
