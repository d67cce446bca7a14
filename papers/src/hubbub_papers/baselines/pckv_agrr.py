"""PCKV-AGRR: PCKV-GRR that uses up what the sampling saves."""

from dataclasses import dataclass

from hubbub.mechanisms.weights import TWO_64
from hubbub.random.integers import ceil_div, exp_floor
from hubbub_papers.baselines.pckv_grr import PCKVGRR


@dataclass(frozen=True, kw_only=True)
class PCKVAGRR(PCKVGRR):
    """Means and frequencies of sparse ternary vectors, in one symbol: amplified by sampling.

    PCKV-GRR with E' = s (e^eps - 1) + 1 in place of e^eps: over the sampling of one of s entries a report then spends
    eps exactly. Every held symbol has e^eps/Omega and every other 1/Omega, Omega = s e^eps + 2 d: Collision without
    hashing, one bucket a symbol. The error of the mean is about 4 d^2 / (n eps^2): good where d is not much larger than
    s e^eps.

    Parameters
    ----------
    epsilon
        What one report may spend.
    dimension, sparsity
        The length d of the vectors, and how many entries s of one may differ from 0.
    other
        Of 2^64, the share of each symbol that was not sampled; 0 chooses it.

    Example:
        >>> from hubbub import Random
        >>> pckv = PCKVAGRR(epsilon=2.0, dimension=4, sparsity=2)
        >>> reports = pckv.randomize([{0: 1, 2: -1}] * 20_000, Random(seed=1))
        >>> pckv.estimate(pckv.accumulate(reports)).value.round(1)[[0, 2]].tolist()
        [1.0, -1.0]

    References
    ----------
    Gu et al., 2020 (section 5); S. Wang, Li, Li et al., 2023, section 3.1. The PCKV-GRR of S. Wang, Li, Xin et al.,
    2023, close to the best at small d, is this one.
    """

    def _least_other(self) -> int:
        # E' + options - 1, with one s of E' against the stubs.
        return ceil_div(TWO_64, self.sparsity * (exp_floor(self.epsilon) - 1) + self.options)
