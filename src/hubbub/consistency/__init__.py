"""Consistency: post-processing that makes shares at least 0 and their sum 1. Each function returns a new estimate.

The results are biased, and marked so (`bias` is "consistent"), except those of `norm`. The variance stays that of the
estimate before.
"""

from hubbub.consistency.guide import METHODS, Choice, ConsistencyMethod, answer, choose_method, consistent
from hubbub.consistency.likelihood import PowerLaw, mle_apx, power, power_ns
from hubbub.consistency.normalise import (
    base_cut,
    base_pos,
    norm,
    norm_cut,
    norm_mul,
    norm_sub,
    post_pos,
    project_capped_simplex,
    project_simplex,
)
from hubbub.consistency.signs import capped, capped_signs, clip_means, conditional_means

__all__ = [
    "METHODS",
    "Choice",
    "ConsistencyMethod",
    "PowerLaw",
    "answer",
    "base_cut",
    "base_pos",
    "capped",
    "capped_signs",
    "choose_method",
    "clip_means",
    "conditional_means",
    "consistent",
    "mle_apx",
    "norm",
    "norm_cut",
    "norm_mul",
    "norm_sub",
    "post_pos",
    "power",
    "power_ns",
    "project_capped_simplex",
    "project_simplex",
]
