"""Methods on the bits of attributes: FT, which reports a Fourier coefficient, and BE, which is CALM on bits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations
from math import comb

import numpy as np

from hubbub.consistency.marginals import Attributes, Codes, Floats
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.protocols.marginals.calm import release_marginals
from hubbub.random.source import Random
from hubbub_papers.baselines.marginals.method import Answers, MarginalTask


class BinaryEncoding:
    """Each attribute of d values as ceil(log2 d) bits, the highest first."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self.widths = tuple((size - 1).bit_length() for size in sizes)

    def encode(self, records: Codes) -> Codes:
        """Records of bits."""
        columns = [
            records[:, column] >> shift & 1
            for column, width in enumerate(self.widths)
            for shift in reversed(range(width))
        ]
        return np.stack(columns, axis=1)

    def bits(self, attributes: Attributes) -> Attributes:
        """The bits of some attributes."""
        starts = np.concatenate([[0], np.cumsum(self.widths)]).tolist()
        return tuple(chain.from_iterable(range(starts[column], starts[column + 1]) for column in attributes))

    def decode(self, table: Floats, attributes: Attributes) -> Floats:
        """The table of attributes from that of their bits; codes that no value has are cut off."""
        whole = table.reshape([1 << self.widths[column] for column in attributes])
        return whole[tuple(slice(self.sizes[column]) for column in attributes)]

    def most_bits(self, k: int) -> int:
        """How many bits k attributes have at most."""
        return sum(sorted(self.widths)[-k:])


def fourier(task: MarginalTask, rng: Random) -> Answers:
    """FT: everybody reports one Fourier coefficient (a parity of some bits) by a direct answer (Eq 6.3).

    All parities of up to as many bits as k attributes have are equally likely. People whose coefficient no query needs
    are not simulated; a coefficient that nobody reported on is 0.
    """
    encoding = BinaryEncoding(task.sizes)
    bits = encoding.encode(task.records)
    most = encoding.most_bits(task.k)
    wanted = sorted({parity for query in task.queries for parity in _parities(encoding.bits(query))})
    number = sum(comb(bits.shape[1], size) for size in range(1, most + 1))
    chosen = rng.below(number, len(bits))
    order = np.argsort(chosen, kind="stable")
    ends = np.searchsorted(chosen[order], np.arange(len(wanted) + 1))
    oracle = GRR(epsilon=task.epsilon, domain=2)
    p, q = (float(rate) for rate in oracle.rates)
    coefficients: dict[Attributes, float] = {(): 1.0}
    for place, parity in enumerate(wanted):
        people = order[ends[place] : ends[place + 1]]
        if people.size:
            odd = bits[people][:, parity].sum(axis=1) % 2
            reported = float(oracle.randomize(odd, rng).private["value"].mean())
            coefficients[parity] = 1 - 2 * (reported - q) / (p - q)
        else:
            coefficients[parity] = 0.0
    return {query: encoding.decode(_inverse(encoding.bits(query), coefficients), query) for query in task.queries}


def binary_calm(task: MarginalTask, rng: Random) -> Answers:
    """BE: CALM on the bits of the attributes; codes that no value has are left out."""
    encoding = BinaryEncoding(task.sizes)
    bits = encoding.encode(task.records)
    sizes = [2] * bits.shape[1]
    synopsis = release_marginals(bits, sizes, task.epsilon, k=encoding.most_bits(task.k), rng=rng)
    answers = {}
    for query in task.queries:
        table = encoding.decode(synopsis.table(encoding.bits(query)), query)
        answers[query] = table / max(table.sum(), 1e-12)
    return answers


def _parities(bits: Attributes) -> list[Attributes]:
    return [parity for size in range(1, len(bits) + 1) for parity in combinations(bits, size)]


def _inverse(bits: Attributes, coefficients: dict[Attributes, float]) -> Floats:
    """The table of some bits from its coefficients: the inverse of the Hadamard transform."""
    table = np.zeros((2,) * len(bits))
    for parity in [(), *_parities(bits)]:
        table[tuple(int(bit in parity) for bit in bits)] = coefficients[parity]
    for axis in range(len(bits)):
        even, odd = np.take(table, 0, axis), np.take(table, 1, axis)
        table = np.stack([even + odd, even - odd], axis) / 2
    return table
