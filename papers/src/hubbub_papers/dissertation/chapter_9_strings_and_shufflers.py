"""Figure 9.4 and Table 9.3: strings of shuffled reports, and what PEOS costs."""

import time
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.collection.shuffle_route import HomomorphicKey
from hubbub.core.errors import HubbubError
from hubbub.random.source import Random
from hubbub.shuffle.device_shares import encrypt
from hubbub.shuffle.dgk import DGKPrivate
from hubbub.shuffle.in_memory import shares_of, shuffle_in_memory
from hubbub.shuffle.masks import mask_chunk
from hubbub.shuffle.oblivious import SEED_BYTES, combine, split
from hubbub.shuffle.onion import OnionKey, peel, shuffle_onions, wrap
from hubbub_papers.baselines.heavy_hitters.population import BitPopulation
from hubbub_papers.baselines.heavy_hitters.tree_hist import drawn_shares, reported_shares, shuffled_tree_hist
from hubbub_papers.baselines.shuffled import COMPARATORS, NUMERICAL, HistogramMethod, HistogramSetting
from hubbub_papers.dissertation.chapter_4_methods import DATA, OTHER_DATA
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, draw_methods, finish, legend_below
from hubbub_papers.result import Claim, joined, judged, means
from hubbub_papers.top_scores import hits

DELTA, K = 1e-9, 32
CENTRAL = (0.2, 0.4, 0.6, 0.8, 1.0)
SHUFFLED = ("SH", "AUE", "RAP", "SOLH")
LOCAL = ("OLH", "Had")
POPULATIONS = ("Query", "Short names")
BOUNDS = ("formulas of the chapter", "numerical bounds")
Make = Callable[[HistogramSetting], HistogramMethod | None]
_METHODS: list[tuple[str, str, Make]] = [
    *((BOUNDS[0], name, COMPARATORS[name]) for name in (*SHUFFLED, *LOCAL)),
    *((BOUNDS[1], name, make) for name, make in NUMERICAL.items()),
]
Key = tuple[str, str, str, float]  # data, bounds, method, central epsilon


class WithoutNoise:
    """A histogram method that returns the true shares.

    With it TreeHist loses strings only because it keeps no more than 32 prefixes a round.
    """

    def shares(self, counts: NDArray[np.int64], rng: Random) -> NDArray[np.float64]:
        """The true shares."""
        return np.asarray(counts / counts.sum())

    def error(self, counts: NDArray[np.int64]) -> float:
        """The expected error, which is 0."""
        return 0.0


@reproduction(
    "wang-2021-analyzing-figure-9.4",
    title="Top 32 strings by TreeHist in 6 rounds of 8 bits: the share that is found, by the central epsilon",
    repeats=5,
    needs=("words", "names"),
)
def figure_9_4(context: Context) -> Reproduced:
    """Shuffled methods divide epsilon and delta by the rounds, local ones divide the people."""

    def run_once(data: str, run: int) -> dict[Key, float]:
        population = DATA[data](context, context.rng.child("9.4", data, run))
        shares = {}
        for central, (bounds, name, make) in product(CENTRAL, _METHODS):
            key = (data, bounds, name, central)
            share = found_share(population, central, make, context.rng.child("9.4", *map(str, key), run), name)
            if share is not None:
                shares[key] = share
        return shares

    runs = context.measure(POPULATIONS, run_once)
    figure, panels = canvas(len(POPULATIONS), 2, width=5.0)
    for panel, (data, bounds) in zip(panels, product(POPULATIONS, BOUNDS), strict=True):
        sources = {name: BOUNDS[0] if name in LOCAL else bounds for name in (*SHUFFLED, *LOCAL)}
        lines = {name: [runs.get((data, source, name, e)) for e in CENTRAL] for name, source in sources.items()}
        draw_methods(panel, CENTRAL, lines)
        finish(panel, "central $\\epsilon$", "share of the top 32 found", f"{data}, {bounds}", log="")
    legend_below(figure, panels[:2], columns=6)
    cells = [
        Cell(f"{data}, eps_c = {central:g}", name, None, mean, f"{bounds}; {OTHER_DATA[data]}")
        for (data, bounds, name, central), mean in means(runs).items()
    ]
    cells += [_without_noise(context, data) for data in POPULATIONS]
    return cells + judged(_claims, runs) + [_real(context)], figure


def found_share(
    population: BitPopulation, central: float, make: Make, rng: Random, name: str, *, real: bool = False
) -> float | None:
    """The share of the true top 32 that is found; None if the method does not apply."""
    strings = shuffled_tree_hist(
        population,
        k=K,
        epsilon=central,
        delta=DELTA,
        make=make,
        rng=rng,
        divided=name in LOCAL,
        shares=reported_shares if real else drawn_shares,
    )
    return None if strings is None else hits(strings, population.ranked(K)) / K


def _without_noise(context: Context, data: str) -> Cell:
    population = DATA[data](context, context.rng.child("9.4", data, 0))
    share = found_share(population, 1.0, lambda _: WithoutNoise(), context.rng, "exact")
    assert share is not None
    return Cell(data, "without noise", None, share, "what keeping 32 prefixes a round leaves of the top 32")


def _real(context: Context) -> Cell:
    population = DATA["Query"](context, context.rng.child("9.4", "Query", 0))
    rng = context.rng.child("9.4", "real")
    share = found_share(population, 1.0, NUMERICAL["SOLH"], rng, "SOLH", real=True)
    assert share is not None
    return Cell("Query, eps_c = 1", "SOLH, real reports", None, share, "numerical bounds; every report made, one run")


def _claims(runs: RunScores[Key]) -> list[Claim]:
    claims = []
    for data in POPULATIONS:
        shares = {key[1:]: mean for key, mean in means(runs).items() if key[0] == data}
        local = max(shares[BOUNDS[0], name, 1.0] for name in LOCAL)
        for bounds in BOUNDS:
            better = shares[bounds, "SOLH", 1.0] - local
            claims.append(Claim(f"{data}, eps_c = 1: SOLH finds more than OLH and Had, {bounds}", better, above=0))
        worse = local - shares[BOUNDS[0], "SH", 1.0]
        claims.append(Claim(f"{data}, eps_c = 1: SH finds less than the local ones", worse, above=0))
        ours = shares[BOUNDS[1], "SOLH", 0.4] - shares[BOUNDS[0], "SOLH", 0.4]
        claims.append(Claim(f"{data}, eps_c = 0.4: SOLH finds more by numerical bounds", ours, above=0, note="ours"))
    return claims


MILLION = 1_000_000
PRINTED = {
    ("SS", 3): (0.24, 416, 49, 224, 49, 128),
    ("SS", 7): (0.49, 800, 50, 416, 49, 128),
    ("PEOS", 3): (1.6, 400, 0.2, 429.8, 65, 392),
    ("PEOS", 7): (1.6, 432, 0.7, 3293.3, 65, 408),
}
SIZES = {("SS", 3): 10_000, ("SS", 7): 10_000, ("PEOS", 3): 100_000, ("PEOS", 7): 10_000}
_SAMPLE = 200
OTHER_CIPHER = (
    "another cipher: X25519 and AES-128-GCM, 48 bytes a layer; the paper's ElGamal on secp256r1 and AES-128-CBC add 96"
)
FRESH = (
    "with fresh noise whenever ciphertexts are handed on, without which the server can follow them; the paper has none"
)


class ShuffleCosts(NamedTuple):
    """The rows of the table: costs of one report for the user, of a million reports for the others."""

    user_ms: float
    user_bytes: float
    shuffler_seconds: float
    shuffler_megabytes: float
    server_seconds: float
    server_megabytes: float


@reproduction("wang-2021-analyzing-table-9.3", title="Cost of SS and PEOS for a user, a shuffler and the server")
def table_9_3(context: Context) -> tuple[list[Cell], None]:
    """The paper's machine used 32 threads; its seconds are printed, and not compared."""
    cells = []
    for (method, shufflers), printed in PRINTED.items():
        n = context.size(SIZES[method, shufflers], least=100)
        reports = context.rng.child(method, shufflers).uint64(n)
        costs = (sequential_costs if method == "SS" else oblivious_costs)(reports, shufflers, context.rng)
        note = f"measured at {n:,} reports; CPU seconds of all cores, the paper's of 32 threads"
        row = f"{method}, r = {shufflers}"
        named = zip(ShuffleCosts._fields, printed, costs, strict=True)
        for name, paper, ours in named:
            fresh = FRESH if name == "shuffler_seconds" else ""
            remark = joined(note, OTHER_CIPHER if method == "SS" else fresh)
            cells.append(Cell(row, name.replace("_", " "), paper, ours, remark))
    return cells, None


def sequential_costs(reports: NDArray[np.uint64], shufflers: int, rng: Random) -> ShuffleCosts:
    """The costs of onion encryption, in one process; every layer is removed."""
    keys = [OnionKey.generate() for _ in range(shufflers + 1)]
    route, times = [key.public for key in keys], MILLION / len(reports)
    start = time.process_time()
    onions = [wrap(report.tobytes(), route, "table 9.3") for report in reports]
    user = time.process_time() - start
    size, start, sent = len(onions[0]), time.process_time(), 0
    for place, key in enumerate(keys[:-1]):
        rest = route[place + 1 :]
        turn = shuffle_onions(onions, key, "table 9.3", place=place, rest=rest, least=1, rng=rng.child(place))
        onions = turn.inside
        sent += sum(map(len, onions))
    shuffled, received = (time.process_time() - start) / shufflers, sum(map(len, onions))
    start = time.process_time()
    received_reports = peel(onions, keys[-1], "table 9.3", place=shufflers).inside
    server = time.process_time() - start
    _check_same(reports, np.frombuffer(b"".join(received_reports), dtype=np.uint64))
    megabytes = (sent / shufflers * times / 1e6, received * times / 1e6)
    return ShuffleCosts(1000 * user / len(reports), size, shuffled * times, megabytes[0], server * times, megabytes[1])


def oblivious_costs(reports: NDArray[np.uint64], shufflers: int, rng: Random) -> ShuffleCosts:
    """The costs of PEOS: of the shufflers on average, with the masks that they make before a batch is closed."""
    key = DGKPrivate.generate()
    user, size = user_cost(key, shufflers, rng)
    shares = shares_of(reports, shufflers, key.public, rng.child("shares"))
    seeds = [rng.child("seed", shuffler).bytes(SEED_BYTES) for shuffler in range(shufflers)]
    mask_chunk(key.public, seeds[0], 0)  # makes the tables of powers
    run = shuffle_in_memory(shares, seeds, key.public)
    start = time.process_time()
    combined = combine(run.results, len(reports), key)
    server = time.process_time() - start
    _check_same(reports, combined.reports)
    times, sent = MILLION / len(reports), sum(len(body) for *_, body in run.transcript) / shufflers
    received = sum(map(len, run.results))
    seconds = sum(run.seconds) / shufflers
    return ShuffleCosts(1000 * user, size, seconds * times, sent * times / 1e6, server * times, received * times / 1e6)


def user_cost(key: DGKPrivate, shufflers: int, rng: Random) -> tuple[float, float]:
    """The seconds that a report takes to divide and encrypt, and the bytes of its shares."""
    numbers = {name: hex(getattr(key.public, name))[2:] for name in ("modulus", "g", "h")}
    public = HomomorphicKey(**numbers, subgroup_bits=key.public.subgroup_bits)
    start = time.process_time()
    for _ in range(_SAMPLE):
        parts = split(rng.uint64(1), shufflers, rng)
        encrypted = encrypt(int(parts[-1][0]), public)
    seconds = (time.process_time() - start) / _SAMPLE
    return seconds, 8 * (shufflers - 1) + len(encrypted)


def _check_same(sent: NDArray[np.uint64], received_reports: NDArray[np.uint64]) -> None:
    if not np.array_equal(np.sort(sent), np.sort(received_reports)):
        raise HubbubError("what came out of the shuffle is not what was sent")
