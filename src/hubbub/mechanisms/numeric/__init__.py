"""Mean mechanisms: one file a mechanism."""

from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.numeric.hybrid import Hybrid
from hubbub.mechanisms.numeric.piecewise import Piecewise
from hubbub.mechanisms.numeric.rounding import StochasticRounding

MECHANISMS: tuple[type[Mechanism], ...] = (StochasticRounding, Piecewise, Hybrid)
