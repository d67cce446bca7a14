"""Consistent noise in a tree, in integers: the two passes of Hay et al., with rounding independent of the data.

Nodes are stored level by level, the root first. A node's children stand together. Both passes only ever scale the
difference between a node and the sum of its children, which the true sums leave as it is. So true sums plus consistent
noise is exactly what the passes would make of true sums plus noise: post-processing, to the last bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.kernels.compile import kernel


def make_consistent(nodes: NDArray[np.int64], fan_out: int, layers: int) -> NDArray[np.int64]:
    """Make the nodes consistent in place, and return the leaves: each node is then the sum of its children."""
    _bottom_up(nodes, fan_out, layers)
    _top_down(nodes, fan_out, layers)
    return nodes[nodes.size - fan_out ** (layers - 1) :]


@kernel
def _bottom_up(nodes, fan_out, layers):
    """Eq 10: a node of height l becomes itself and the sum of its children, weighted by their precision."""
    width = fan_out ** (layers - 2) if layers > 1 else 0
    first = (width - 1) // (fan_out - 1)
    above, below = 1, fan_out + 1  # (b^(l-1) - 1)/(b - 1) and (b^l - 1)/(b - 1), from l = 2
    for _ in range(layers - 1):
        child = first + width
        for node in range(first, first + width):
            total = np.int64(0)
            for k in range(child, child + fan_out):
                total += nodes[k]
            child += fan_out
            difference = nodes[node] - total
            whole = difference // below
            rest = difference - whole * below
            nodes[node] -= whole * above + (rest * above + below // 2) // below
        above, below = below, below * fan_out + 1
        width //= fan_out
        first = (width - 1) // (fan_out - 1)


@kernel
def _top_down(nodes, fan_out, layers):
    """Eq 11: what a node differs from its children's sum by is divided among them."""
    width, first = 1, 0
    for _ in range(layers - 1):
        child = first + width
        for node in range(first, first + width):
            total = np.int64(0)
            for k in range(child, child + fan_out):
                total += nodes[k]
            difference = nodes[node] - total
            each = difference // fan_out
            rest = difference - each * fan_out
            for k in range(fan_out):
                nodes[child + k] += each + (1 if k < rest else 0)
            child += fan_out
        first += width
        width *= fan_out
