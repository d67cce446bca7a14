"""The hot loops of estimators: column sums of bits, the Walsh-Hadamard transform, LASSO, and EM for square waves."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hubbub.core.reports import Array, Floats, Ints
from hubbub.kernels.compile import in_threads, kernel, readonly, unchecked

ROW = 256  # bytes of a row that is long enough
BLOCK = 1 << 15  # rows before the 16-bit counters are emptied
SLICE = 1 << 24  # bytes, some 5 ms: less is not worth a thread


def column_sums(packed: Array, weights: Ints | None = None) -> Ints:
    """Sum each bit over the rows; bit b of byte c is column 8 c + b."""
    packed = readonly(packed, np.uint8)
    rows_at_once = ROW // max(1, packed.shape[1]) if weights is None else 1
    if rows_at_once > 1 and len(packed) >= rows_at_once:
        # Short rows are counted several as one, so that the inner loop is long enough to vectorise.
        whole = len(packed) // rows_at_once * rows_at_once
        long = column_sums(packed[:whole].reshape(whole // rows_at_once, -1))
        return np.asarray(long.reshape(rows_at_once, -1).sum(axis=0) + column_sums(packed[whole:]))
    weighing = None if weights is None else readonly(weights, np.int64)

    def count(start: int, stop: int) -> Ints:
        sums = np.zeros((8, packed.shape[1]), dtype=np.int64)
        if weighing is None:
            _count(packed[start:stop], sums)
        else:
            _weigh(packed[start:stop], weighing[start:stop], sums)
        return sums

    sums = in_threads(count, len(packed), max(1, SLICE // max(1, packed.shape[1])))
    return np.ascontiguousarray(sums.T).reshape(-1)


@kernel
def _count(packed, sums):
    n, width = packed.shape
    planes = np.zeros((8, width), dtype=np.uint16)  # one plane per bit: the inner loop vectorises over bytes
    for start in range(0, n, BLOCK):
        for row in range(start, min(start + BLOCK, n)):
            for bit in range(8):
                for c in range(width):
                    planes[bit, c] += np.uint16((packed[row, c] >> np.uint8(bit)) & np.uint8(1))
        for bit in range(8):
            for c in range(width):
                sums[bit, c] += np.int64(planes[bit, c])
                planes[bit, c] = 0


@kernel
def _weigh(packed, weights, sums):
    n, width = packed.shape
    for row in range(n):
        weight = weights[row]
        for bit in range(8):
            for c in range(width):
                sums[bit, c] += weight * np.int64((packed[row, c] >> np.uint8(bit)) & np.uint8(1))


Number = TypeVar("Number", np.int64, np.float64)


def walsh_hadamard(x: NDArray[Number]) -> NDArray[Number]:
    """The sums over r of x[r] (-1)^popcount(r & v), for every v; the length is a power of two."""
    out = x.copy()
    _transform(out)
    return out


@kernel
def _transform(x):
    size = x.size
    step = 1
    while step * 4 <= size:  # two levels a pass: half the trips through memory
        for start in range(0, size, 4 * step):
            a, b = x[start : start + step], x[start + step : start + 2 * step]
            c, d = x[start + 2 * step : start + 3 * step], x[start + 3 * step : start + 4 * step]
            for i in range(step):
                s, t, u, v = a[i] + b[i], a[i] - b[i], c[i] + d[i], c[i] - d[i]
                a[i], b[i], c[i], d[i] = s + u, t + v, s - u, t - v
        step *= 4
    if step < size:
        for i in range(step):
            s, t = x[i] + x[i + step], x[i] - x[i + step]
            x[i], x[i + step] = s, t


def nonnegative_lasso(
    rows: Array, scale: Floats, target: Floats, penalty: Floats, *, sweeps: int = 2000, tolerance: float = 1e-7
) -> Floats:
    """Minimise |target - X b|^2 / 2 + penalty . b over b >= 0.

    Column c of X holds `scale[r]` at each row r of `rows[c]`; a row of -1 means none.
    """
    solution = np.zeros(len(rows))
    residual = np.array(target, dtype=np.float64)
    _descend(np.ascontiguousarray(rows, dtype=np.int64), scale, residual, penalty, sweeps, tolerance, solution)
    return solution


@kernel
def _descend(rows, scale, residual, penalty, sweeps, tolerance, solution):
    count, depth = rows.shape
    norms = np.zeros(count)
    for c in range(count):
        for k in range(depth):
            if rows[c, k] >= 0:
                norms[c] += scale[rows[c, k]] ** 2
    for _ in range(sweeps):
        largest = 0.0
        for c in range(count):
            if norms[c] == 0.0:
                continue
            slope = 0.0
            for k in range(depth):
                if rows[c, k] >= 0:
                    slope += scale[rows[c, k]] * residual[rows[c, k]]
            change = max(0.0, solution[c] + (slope - penalty[c]) / norms[c]) - solution[c]
            if change != 0.0:
                solution[c] += change
                for k in range(depth):
                    if rows[c, k] >= 0:
                        residual[rows[c, k]] -= change * scale[rows[c, k]]
                largest = max(largest, abs(change) * np.sqrt(norms[c]))
        if largest < tolerance:
            break


MOST = 50_000
_EVERY = 16  # logarithms cost as much as an iteration: the likelihood is looked at once in this number of iterations


def most_likely(
    counts: Ints, *, band: int, near: float, far: float, smoothing: float, tolerance: float
) -> tuple[Floats, int]:
    """The shares of the points that explain the counts of the cells best, and how many iterations they took.

    Point x makes each of the cells x to x + band - 1 as likely as `near`, and every other as likely as `far`. After an
    iteration a share of `smoothing` moves from every point to each of its neighbours: 0 is plain EM, the paper's EMS
    has 1/4. It ends when the log-likelihood of all reports changes by less than `tolerance` an iteration.
    """
    points = len(counts) - band + 1
    shares = np.full(points, 1.0 / points)
    total = float(counts.sum())
    frequencies = counts / total
    steps = _iterate(frequencies, band, near, far, smoothing, tolerance / total, MOST, shares)
    return shares / shares.sum(), int(steps)


@unchecked
def _mix(below, above, floor, gain, frequencies, mixed, ratio):
    """What each cell's probability is, and how many times as often it was seen."""
    for y in range(mixed.size):
        mixed[y] = floor + gain * (above[y] - below[y])
        ratio[y] = frequencies[y] / mixed[y]


@unchecked
def _move(shares, below, above, floor, gain, moved):
    for x in range(moved.size):
        moved[x] = shares[x] * (floor + gain * (above[x] - below[x]))


@unchecked
def _smooth(moved, smoothing, shares):
    """Let every point give a part of its share to its neighbours, and an end of the line to itself."""
    last = moved.size - 1
    left, middle, right, inner = moved[:-2], moved[1:-1], moved[2:], shares[1:-1]
    for x in range(inner.size):
        inner[x] = middle[x] + smoothing * (left[x] + right[x] - 2 * middle[x])
    first, end = moved[min(1, last)], moved[max(last - 1, 0)]
    shares[0] = moved[0] + smoothing * (moved[0] + first - 2 * moved[0])
    shares[last] = moved[last] + smoothing * (end + moved[last] - 2 * moved[last])


@kernel
def _iterate(frequencies, band, near, far, smoothing, tolerance, most, shares):
    # Sums from left to right are the only loops whose iterations wait for each other; the others vectorise, because
    # each reads slices from 0 on and divides only what is known to be positive.
    points, cells, gain = shares.size, frequencies.size, near - far
    padded = np.zeros(
        points + 2 * band - 1
    )  # the sums below each point; 0 before the first, their total behind the last
    below, behind = padded[band - 1 : band + points], padded[band + points :]
    mixed, ratio, pull = np.zeros(cells), np.zeros(cells), np.zeros(cells + 1)
    moved = np.zeros(points)
    before = -np.inf
    for step in range(most):
        total = 0.0
        for x in range(points):
            total += shares[x]
            below[x + 1] = total
        for x in range(behind.size):
            behind[x] = total
        _mix(padded[:cells], padded[band:], far * total, gain, frequencies, mixed, ratio)
        if step % _EVERY == 0:
            likelihood = 0.0
            for y in range(cells):
                if frequencies[y] > 0:
                    likelihood += frequencies[y] * np.log(mixed[y])
            if abs(likelihood - before) < tolerance * _EVERY:
                return step
            before = likelihood
        total = 0.0
        for y in range(cells):
            total += ratio[y]
            pull[y + 1] = total
        _move(shares, pull[:points], pull[band:], far * total, gain, moved)
        if smoothing == 0.0:
            shares[:] = moved
        else:
            _smooth(moved, smoothing, shares)
    return most
