"""Time the other libraries on named jobs, and print JSON. Run by the interpreter of their own environment.

Each is called as its documentation does: one call a report. multi-freq-ldpy's aggregator clips and normalises; here it
is stopped before that, at the raw support counts. `held` is what the library says of value 0, so that the caller can
check that the job was done.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import multi_freq_ldpy.pure_frequency_oracles.LH as multi_lh
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client
from pure_ldp.frequency_oracles.direct_encoding import DEClient
from pure_ldp.frequency_oracles.hadamard_mechanism import HadamardMechClient, HadamardMechServer
from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer
from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
from pure_ldp.frequency_oracles.unary_encoding import UEClient

EPSILON = 1.0
PURE, MULTI = "pure-ldp 1.2.0", "multi-freq-ldpy 0.2.5"
Measured = dict[str, dict[str, float]]
multi_lh.MI = lambda counts, n, p, q: counts


def same(value: int) -> int:
    return value


def cpu(job: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    best, result = float("inf"), None
    for _ in range(repeats):
        start = time.process_time()
        result = job()
        best = min(best, time.process_time() - start)
    return best, result


def clients(randomizers: dict[str, Callable[[int], Any]], values: list[int], repeats: int) -> Measured:
    def everyone(randomize: Callable[[int], Any]) -> None:
        for value in values:
            randomize(value)

    for randomize in randomizers.values():
        randomize(0)  # multi-freq-ldpy compiles some of its clients
    return {
        name: {"cpu": cpu(lambda run=randomize: everyone(run), repeats)[0]} for name, randomize in randomizers.items()
    }


def olh_client(values: list[int], d: int) -> Measured:
    pure = LHClient(EPSILON, d, use_olh=True, index_mapper=same)
    return clients({PURE: pure.privatise, MULTI: lambda v: multi_lh.LH_Client(v, d, EPSILON)}, values, 3)


def oue_client(values: list[int], d: int) -> Measured:
    pure = UEClient(EPSILON, d, use_oue=True, index_mapper=same)
    return clients({PURE: pure.privatise, MULTI: lambda v: UE_Client(v, d, EPSILON)}, values, 2)


def grr_client(values: list[int], d: int) -> Measured:
    pure = DEClient(EPSILON, d, index_mapper=same)
    return clients({PURE: pure.privatise, MULTI: lambda v: GRR_Client(v, d, EPSILON)}, values, 3)


def olh_server(values: list[int], d: int) -> Measured:
    client = LHClient(EPSILON, d, use_olh=True, index_mapper=same)
    reports = [client.privatise(value) for value in values]
    server = LHServer(EPSILON, d, use_olh=True, index_mapper=same)
    pure, _ = cpu(lambda: server.aggregate_all(reports), 1)
    reports = [multi_lh.LH_Client(value, d, EPSILON) for value in values]
    multi, counts = cpu(lambda: multi_lh.LH_Aggregator_MI(reports, d, EPSILON), 1)
    return {
        PURE: {"cpu": pure, "held": float(server.aggregated_data[0])},
        MULTI: {"cpu": multi, "held": float(counts[0])},
    }


def hadamard_server(values: list[int], d: int) -> Measured:
    response = HadamardResponseServer(EPSILON, d, index_mapper=same)
    client = HadamardResponseClient(EPSILON, d, response.get_hash_funcs(), index_mapper=same)
    mechanism = HadamardMechServer(EPSILON, d, 1, index_mapper=same)
    other = HadamardMechClient(EPSILON, d, 1, index_mapper=same)
    measured = {}
    for name, server, reports in (
        (f"{PURE}, Hadamard response", response, [client.privatise(value) for value in values]),
        (f"{PURE}, Hadamard mechanism", mechanism, [list(other.privatise(value)) for value in values]),
    ):

        def serve(server: Any = server, reports: list[Any] = reports) -> float:
            server.reset()
            server.aggregate_all(reports)
            return float(server.estimate(0, suppress_warnings=True))

        seconds, held = cpu(serve, 5)
        measured[name] = {"cpu": seconds, "held": held}
    return measured


JOBS = {job.__name__: job for job in (olh_client, oue_client, grr_client, olh_server, hadamard_server)}

if __name__ == "__main__":
    n, d = int(sys.argv[2]), int(sys.argv[3])
    values = [value // 2 % d if value % 2 else 0 for value in range(n)]
    print(json.dumps(JOBS[sys.argv[1]](values, d)))
