"""The methods that chapter 6 compares with CALM, and CALM itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import comb, prod
from typing import Protocol

import numpy as np

from hubbub.consistency.marginals import Attributes, cell_of, project, true_table
from hubbub.consistency.normalise import project_simplex
from hubbub.core.errors import InvalidValue
from hubbub.core.event import epsilon_of, units_of
from hubbub.core.reports import Floats, Ints
from hubbub.mechanisms.frequency.adaptive import adaptive
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.protocols.marginals.calm import OracleChoice, release_marginals
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.drawing import generator

Answers = dict[Attributes, Floats]


@dataclass(frozen=True, eq=False)
class MarginalTask:
    """The task of a method: records, the budget of a person, and the marginals to estimate.

    `sizes` has the number of values of each attribute, `epsilon` is the budget of all reports of a person together, and
    `k` is the number of attributes of a marginal.
    """

    records: Ints
    sizes: tuple[int, ...]
    epsilon: float
    k: int
    queries: Sequence[Attributes]

    def shape(self, attributes: Attributes) -> tuple[int, ...]:
        """The shape of the table of these attributes."""
        return tuple(self.sizes[column] for column in attributes)


class MarginalMethod(Protocol):
    """A function that estimates the marginals of a task."""

    def __call__(self, task: MarginalTask, rng: Random) -> Answers: ...


def calm(task: MarginalTask, rng: Random, choice: OracleChoice = "adaptive") -> Answers:
    """CALM, with the marginals that Algorithm 2 chooses, by GRR or OUE: the text's choice, and that of its rivals.

    References
    ----------
    Zhang et al., 2018; T. Wang, 2021, section 6.2.
    """
    synopsis = release_marginals(task.records, task.sizes, task.epsilon, k=task.k, rng=rng, choice=choice)
    return {query: synopsis.table(query) for query in task.queries}


def calm_with_subsets(task: MarginalTask, rng: Random) -> Answers:
    """CALM as collections run it: by subset selection where that errs less. Ours."""
    return calm(task, rng, "best")


def uniform(task: MarginalTask, rng: Random) -> Answers:
    """The uniform table, independent of the records."""
    return {query: np.full(task.shape(query), 1 / prod(task.shape(query))) for query in task.queries}


def no_noise(task: MarginalTask, rng: Random) -> Answers:
    """The true marginals, without any privacy."""
    return {query: true_table(task.records, query, task.sizes) for query in task.queries}


MOST_CELLS = 1 << 20


def full_contingency(task: MarginalTask, rng: Random) -> Answers:
    """FC: everybody reports their cell of the table of all attributes; a marginal is a sum of its cells (Eq 6.1).

    The supports of unary encoding are drawn from their distribution, which is the same as that of real reports.

    References
    ----------
    T. Wang, 2021, section 6.1.3.
    """
    everything = tuple(range(len(task.sizes)))
    cells = prod(task.sizes)
    if cells > MOST_CELLS:
        raise InvalidValue("sizes", cells, f"at most {MOST_CELLS:,} cells for FC")
    table = _shares(task, cell_of(task.records, everything, task.sizes), cells, rng).reshape(task.sizes)
    return {query: project(table, everything, query) for query in task.queries}


def all_marginals(task: MarginalTask, rng: Random) -> Answers:
    """AM: everybody reports their cell of one of all marginals of k attributes (Eq 6.2).

    Only people whose marginal is asked for are simulated. A marginal that nobody reported on is uniform.

    References
    ----------
    T. Wang, 2021, section 6.1.4.
    """
    queries = list(dict.fromkeys(task.queries))
    if any(len(query) != task.k for query in queries):
        raise InvalidValue("queries", queries, f"marginals of {task.k} attributes: AM answers no other")
    chosen = rng.below(comb(len(task.sizes), task.k), len(task.records))
    answers = {}
    for place, query in enumerate(queries):
        shape = task.shape(query)
        values = cell_of(task.records[chosen == place], query, task.sizes)
        shares = _shares(task, values, prod(shape), rng) if values.size else np.full(prod(shape), 1 / prod(shape))
        answers[query] = shares.reshape(shape)
    return answers


def _shares(task: MarginalTask, values: np.ndarray, cells: int, rng: Random) -> Floats:
    """Estimated shares of the cells, by the oracle with the smallest variance."""
    oracle = adaptive(epsilon=task.epsilon, domain=cells, most_bytes=MOST_CELLS)
    if isinstance(oracle, GRR):
        return np.asarray(oracle.estimate(oracle.accumulate(oracle.randomize(values, rng))).value)
    p, q = (float(rate) for rate in oracle.rates)
    held = np.bincount(values, minlength=cells)
    draws = generator(rng)
    supports = draws.binomial(held, p) + draws.binomial(values.size - held, q)
    return np.asarray((supports / values.size - q) / (p - q))


ROUNDS = 200
SETTLED = 1e-6


def expectation_maximisation(task: MarginalTask, rng: Random) -> Answers:
    """EM: GRR of every attribute with epsilon/m each, and the likeliest table of each marginal.

    The search begins at the unbiased table (by the inverse of every attribute's channel), projected onto the simplex.

    References
    ----------
    Fanti, Pihur and Erlingsson, 2016; Ren et al., 2018; T. Wang, 2021, section 6.1.6.
    """
    part = epsilon_of(units_of(task.epsilon) // len(task.sizes))
    channels, columns = [], []
    for column, size in enumerate(task.sizes):
        oracle = GRR(epsilon=part, domain=size)
        columns.append(oracle.randomize(task.records[:, column], rng).private["value"].astype(np.int64))
        p, q = (float(rate) for rate in oracle.rates)
        channels.append(np.full((size, size), q) + (p - q) * np.eye(size))
    reported = np.stack(columns, axis=1)
    answers = {}
    for query in task.queries:
        shape = task.shape(query)
        cells = cell_of(reported, query, task.sizes)
        observed = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape) / len(reported)
        own = [channels[column] for column in query]
        unbiased = _through([np.asarray(np.linalg.inv(channel), dtype=np.float64) for channel in own], observed)
        table = project_simplex(unbiased.ravel()).reshape(shape)
        table = 0.999 * table + 0.001 / table.size  # a share of 0 would stay 0
        for _ in range(ROUNDS):
            better = table * _through(own, observed / _through(own, table))  # channels are symmetric
            change = float(abs(better - table).max())
            table = better
            if change < SETTLED:
                break
        answers[query] = table
    return answers


def _through(channels: list[Floats], table: Floats) -> Floats:
    """The table after each axis went through its channel, a symmetric matrix: the first axis is moved behind the others
    as often as there are axes."""
    shape = table.shape
    for channel in channels:
        table = table.reshape(len(channel), -1).T @ channel
    return table.reshape(shape)


class BinaryEncoding:
    """Each attribute of d values as ceil(log2 d) bits, the highest first."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self.widths = tuple((size - 1).bit_length() for size in sizes)

    def encode(self, records: Ints) -> Ints:
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

    References
    ----------
    Cormode, Kulkarni and Srivastava, 2018; T. Wang, 2021, section 6.1.5.
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
    wide = encoding.most_bits(task.k)
    synopsis = release_marginals(bits, sizes, task.epsilon, k=wide, rng=rng, choice="adaptive")
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
