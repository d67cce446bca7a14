"""The hot loops of a curator: consistent noise in a tree, published values, products with a Toeplitz matrix.

Consistent noise in a tree, in integers: the two passes of Hay et al., with rounding independent of the data.

Nodes are stored level by level, the root first. A node's children stand together. Both passes only ever scale the
difference between a node and the sum of its children, which the true sums leave as it is. So true sums plus consistent
noise is exactly what the passes would make of true sums plus noise: post-processing, to the last bit.

The values that a curator publishes: noisy sums of blocks of clipped values, and predictions between them.

At the end of a block its noisy sum is known. Before that, the smoother's prediction is published for every value, and
for the last one what is then missing: the published values of a block add up to its noisy sum. One value at a time and
all values at once run the same loop, in the same order.

Products with a Toeplitz matrix whose entries are sums of a few powers, in memory of one number for each power.

The weights are l_0 = 1 and l_k = sum_j weight_j rate_j^k. `multiply` gives (l * w)_t, `divide` solves (l * q)_t = s_t.
"""

import numpy as np

from hubbub.core.reports import Floats, Ints
from hubbub.kernels.compile import inline, kernel, unchecked


def make_consistent(nodes: Ints, fan_out: int, layers: int) -> Ints:
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


FINE = 1 << 12
"""Noise is consistent to this part of a cell."""

SMOOTHERS = ("recent", "mean", "median", "moving", "exponential")
"""How the next block is predicted; a smoother's place here is its number in the kernel."""

_TOGETHER = 2048
"""Values that are rounded at a time: they fit into the L1 cache."""

_RECENT, _MEAN, _MEDIAN, _MOVING, _EXPONENTIAL = range(len(SMOOTHERS))


def publish_values(
    values: Floats,
    theta: float,
    cells: int,
    noise: Ints,
    block: int,
    place: int,
    partial: int,
    smoother: str,
    weight: float,
    memory: Floats,
    history: Floats,
) -> tuple[Floats, int]:
    """Publish values of one tree from `place` on; return them and the sum of the block that is open, in cells.

    Parameters
    ----------
    values
        Numbers of at least 0; those above theta count as theta.
    theta, cells
        The threshold, and into how many cells it is divided.
    noise
        Of every block of the tree, in parts of a cell.
    block, place, partial
        Values a block, values of this tree that were published, the sum of the open block in cells.
    smoother, weight
        One of `SMOOTHERS`; what the exponential smoother gives to the newest block.
    memory
        The prediction, the number of blocks so far, their mean: changed in place.
    history
        The means of the last blocks, for smoothers that need them: changed in place.
    """
    out = np.empty(values.size)
    code = SMOOTHERS.index(smoother)
    partial = _publish(values, theta, cells, noise, block, place, partial, code, weight, memory, history, out)
    return out, int(partial)


@inline
def _remember(mean, smoother, weight, memory, history):
    """Take a finished block into account, and predict the next (appendix D)."""
    if smoother == _RECENT:
        memory[0] = mean
    elif smoother == _MEAN:  # the initial guess counts as a block
        memory[2] += (mean - memory[2]) / (memory[1] + 1)
        memory[0] = memory[2]
    else:
        memory[0] = weight * mean + (1 - weight) * memory[0]


@inline
def _remember_the_last(mean, smoother, weight, memory, history):
    """The same for a smoother that needs the last blocks."""
    count = np.int64(memory[1])
    history[(count - 1) % history.size] = mean
    means = history[: min(count, history.size)]
    memory[0] = np.median(means) if smoother == _MEDIAN else means.mean()


def _rows(remember):
    """A loop for each way to remember: a call that the loop may make takes four times as long as all else in it."""

    @unchecked
    def publish_rows(
        parts, sum_of_block, missing, noise, block, to_value, published, smoother, weight, memory, history
    ):
        """Publish blocks, one a row, or a part of one block, of which `missing` values are to come."""
        width = parts.shape[1]
        for row in range(parts.shape[0]):
            prediction, sum_of_row = memory[0], np.int64(0)
            for i in range(width):  # two loops: each vectorises, and both at once do not
                sum_of_row += parts[row, i]
            for i in range(width):
                published[row, i] = prediction
            sum_of_block += sum_of_row
            if width == missing:
                total = (sum_of_block * FINE + noise[row]) * to_value
                published[row, width - 1] = total - prediction * (block - 1)
                memory[1] += 1
                remember(total / block, smoother, weight, memory, history)
                sum_of_block = np.int64(0)
        return sum_of_block

    return publish_rows


_publish_rows, _publish_rows_by_the_last = _rows(_remember), _rows(_remember_the_last)


@kernel
def _publish(values, theta, cells, noise, block, place, partial, smoother, weight, memory, history, out):
    to_cells, to_value = cells / theta, theta / cells / FINE
    leaf, inside = place // block, place % block
    rounded = np.empty(max(_TOGETHER // block, 1) * block, dtype=np.int64)
    start, sum_of_block = 0, np.int64(partial)
    while start < values.size:
        rows, width = 1, min(block - inside, values.size - start)
        if width == block:
            rows = min(rounded.size, values.size - start) // block
        stop = start + rows * width
        _round(values[start:stop], theta, to_cells, rounded[: stop - start])
        parts, published = rounded[: stop - start].reshape(rows, width), out[start:stop].reshape(rows, width)
        missing, noises = block - inside, noise[leaf:]
        if smoother in (_MEDIAN, _MOVING):
            sum_of_block = _publish_rows_by_the_last(
                parts, sum_of_block, missing, noises, block, to_value, published, smoother, weight, memory, history
            )
        else:
            sum_of_block = _publish_rows(
                parts, sum_of_block, missing, noises, block, to_value, published, smoother, weight, memory, history
            )
        leaf, inside = (leaf + rows, 0) if inside + width == block else (leaf, inside + width)
        start = stop
    return sum_of_block


@inline
def _round(values, theta, to_cells, rounded):
    """Clip values, and round them to cells: of many values at once, because a block may have few."""
    for i in range(rounded.size):
        value = values[i] if values[i] < theta else theta
        # At most `cells`: the product is off by some 1e-16 of it, and half a cell is what is rounded down.
        rounded[i] = np.int64(value * to_cells + 0.5)


def divide(sums: Floats, weights: Floats, rates: Floats, memory: Floats) -> Floats:
    """q with q_t + sum_j weight_j rate_j memory_j = s_t; the memory, sums of q by powers, is changed in place."""
    out = np.empty(sums.size)
    _divide(sums, weights, rates, memory, out)
    return out


def multiply(numbers: Floats, weights: Floats, rates: Floats, memory: Floats) -> Floats:
    """w_t + sum_j weight_j rate_j memory_j; the memory, sums of w by powers, is changed in place."""
    out = np.empty(numbers.size)
    _multiply(numbers, weights, rates, memory, out)
    return out


@kernel
def _divide(sums, weights, rates, memory, out):
    for t in range(sums.size):
        before = 0.0
        for j in range(rates.size):
            memory[j] *= rates[j]
            before += weights[j] * memory[j]
        number = sums[t] - before
        out[t] = number
        for j in range(rates.size):
            memory[j] += number


@kernel
def _multiply(numbers, weights, rates, memory, out):
    for t in range(numbers.size):
        total = numbers[t]
        for j in range(rates.size):
            memory[j] *= rates[j]
            total += weights[j] * memory[j]
            memory[j] += numbers[t]
        out[t] = total
