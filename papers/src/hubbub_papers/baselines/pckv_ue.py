"""PCKV-UE: sample one entry, and report it by unary encoding over d positions."""

from dataclasses import dataclass

from hubbub_papers.baselines.three_way import ThreeWay


@dataclass(frozen=True, kw_only=True)
class PCKVUE(ThreeWay):
    """Means and frequencies of sparse ternary vectors: +, - or nothing at every position, one entry of s sampled.

    The sampled entry is said with probability a = 1/2, then rightly with e^eps/(e^eps + 1); every other position with
    b = 2/(e^eps + 3), its sign a fair coin. The worst ratio of probabilities is exactly e^eps, sampling included. The
    error of the mean is about 8 d s^2 / (n eps^2): s times that of Collision and ExSub.

    Parameters
    ----------
    epsilon
        What one report may spend.
    dimension, sparsity
        The length d of the vectors, and how many entries s of one may differ from 0.
    false, reverse, true
        Of 2^32, how often each sign is said where nothing was sampled, and the wrong and the right one where something
        was; 0 chooses them.

    Example:
        >>> from hubbub import Random
        >>> pckv = PCKVUE(epsilon=2.0, dimension=4, sparsity=2)
        >>> reports = pckv.randomize([{0: 1, 2: -1}] * 50_000, Random(seed=1))
        >>> pckv.estimate(pckv.accumulate(reports)).value.round(1)[[0, 2]].tolist()
        [1.0, -1.0]

    References
    ----------
    Gu et al., 2020; S. Wang, Li, Li et al., 2023, section 3.1. Ours: the stubs stay on the device, which tells less and
    costs nothing.
    """

    def _resolve(self) -> None:
        self._resolve_shape()
        self._resolve_shares()

    @property
    def entries(self) -> int:
        return 1
