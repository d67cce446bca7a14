"""Amplification by shuffling: how fast a bound is found, how tight it is, and both against Apple's published code.

That code (github.com/apple/ml-shuffling-amplification) is not installed by anything here. Where a copy is, the variable
ML_SHUFFLING_AMPLIFICATION names its folder; without it, only our own targets are judged.
"""

import importlib
import os
import sys
from collections.abc import Iterator
from types import ModuleType

from measure import Failure, Result, cpu_seconds, short

from hubbub import GRR, OLH, CoCo, Collision
from hubbub.mechanisms.base import Mechanism
from hubbub.privacy.amplify import amplify
from hubbub.privacy.binomial_tails import smallest_epsilon
from hubbub.privacy.shuffle_bounds import BlanketBound

FOLDER = "ML_SHUFFLING_AMPLIFICATION"
DELTA = 1e-6
_FINEST = 1 << 18
_ITERATIONS, _STEP = 10, 100  # as in their example


def amplification(quick: bool) -> Iterator[Result]:
    """CPU seconds of all bounds together at n = 1e5 and 1e9, and how far the best is above a much finer evaluation."""
    grr, repeats = GRR(epsilon=1.0, domain=8), 2 if quick else 5
    ours = amplify(grr, n=10**5, delta=DELTA)
    turns = {"ours": lambda: amplify(grr, n=10**5, delta=DELTA)}
    apple = _apple()
    if apple is not None:
        turns["apple"] = lambda: apple.numericalanalysis(10**5, 1.0, DELTA, _ITERATIONS, _STEP, True)
    spent = cpu_seconds(turns, repeats)
    what = "amplify, GRR, n=1e5, eps=1, delta=1e-6"
    if apple is None:
        yield Result(what=what, unit="s", ours=spent["ours"])
    else:
        yield Result.faster(what, spent["ours"], "Apple's example settings", spent["apple"], least=1.0)
        theirs = float(turns["apple"]())
        tighter = {"ours": ours.epsilon, "theirs": theirs, "ratio": theirs / ours.epsilon, "least": 1.0}
        yield Result(what="its epsilon", unit="", versus="Apple's upper bound", **tighter)
    billion = cpu_seconds({"ours": lambda: amplify(OLH(epsilon=2.0, domain=10**6), n=10**9, delta=1e-9)}, 2)["ours"]
    yield Result(what="amplify, OLH, n=1e9, eps=2, delta=1e-9", unit="s", ours=billion, most=1.0)
    for mechanism in (
        grr,
        OLH(epsilon=1.0, domain=1024),
        Collision(epsilon=1.0, dimension=50, sparsity=4),
        CoCo(epsilon=1.0, dimension=50, sparsity=4),
    ):
        for n in (10**3, 10**6) if quick else (10**3, 10**4, 10**5, 10**6):
            found, finest = amplify(mechanism, n=n, delta=DELTA).epsilon, _finest(mechanism, n)
            name = f"epsilon, {type(mechanism).__name__}, n={short(n)}"
            ratio = found / finest
            yield Result(what=name, unit="", ours=found, versus="2^18 blocks", theirs=finest, ratio=ratio, most=1.01)


def _finest(mechanism: Mechanism, n: int) -> float:
    """The blanket's epsilon with enough blocks: more change nothing."""
    blanket = mechanism.blanket()
    if blanket is None:
        raise Failure(f"{type(mechanism).__name__} has no blanket.")
    bound = BlanketBound(blanket, n, cells=_FINEST, tail=DELTA * 1e-9)
    epsilon = smallest_epsilon(bound, bound, DELTA, mechanism.effective_epsilon)
    if epsilon is None:
        raise Failure(f"{type(mechanism).__name__} is not amplified.")
    return epsilon


def _apple() -> ModuleType | None:
    folder = os.environ.get(FOLDER)
    if not folder:
        return None
    sys.path.insert(0, folder)
    try:
        return importlib.import_module("computeamplification")
    except ImportError:
        raise Failure(f"{FOLDER} names a folder without computeamplification.py.") from None
    finally:
        sys.path.remove(folder)
