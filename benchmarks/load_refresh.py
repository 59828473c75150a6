"""Measures the cost of a refresh of the load book, and its memory.

``python benchmarks/load_refresh.py [pods]``: pods on a twentieth as many nodes, each measured with noise
every thirty seconds, one pod leaving and one coming between two refreshes. Processor time, the best and the
median of twenty; memory is what Python allocated for the book, its histories and the latest readings.
"""

import gc
import sys
import time
import tracemalloc

import numpy as np

from plimsoll.load.readings import LoadReading, LoadReadings
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.usage.load_keeper import LoadKeeper

ROUNDS, WORKLOADS, SEED = 20, 500, 1


def a_web_pod(cluster: Cluster, number: int) -> PodInfo:
    """One of five hundred workloads' pods."""
    owner = f"StatefulSet/w{number % WORKLOADS}"
    return cluster.templates.info(a_pod(f"p{number}", owner=owner, cpu="500m", memory="1Gi"))


def readings(cluster: Cluster, now: float, chance: np.random.Generator) -> tuple[LoadReadings, LoadReadings]:
    """What nodes and pods use."""
    used = chance.integers(10**8, 10**9, (len(cluster.pods), 2)).tolist()
    return (
        LoadReadings.of(LoadReading(node.name, 10e9, 50e9, now) for node in cluster.nodes),
        LoadReadings.of(
            LoadReading(pod.key, cpu, memory, now)
            for pod, (cpu, memory) in zip(cluster.pods.values(), used, strict=True)
        ),
    )


def main(pods: int) -> None:
    """Measure and print."""
    cluster, chance = Cluster(), np.random.default_rng(SEED)
    for number in range(pods // 20):
        cluster.set_node(a_node(f"n{number}", cpu="32", memory="128Gi"))
    for number in range(pods):
        cluster.place(a_web_pod(cluster, number), f"n{number % len(cluster)}")
    gc.collect()
    tracemalloc.start()
    keeper, now = LoadKeeper(cluster), 1e6
    for _ in range(3):
        now += 30.0
        keeper.observe(now, *readings(cluster, now, chance))
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    spent, noted = [], []
    for turn in range(ROUNDS):
        now += 30.0
        cluster.displace(next(iter(cluster.pods)))
        cluster.place(a_web_pod(cluster, pods + turn), f"n{turn % len(cluster)}")
        found = readings(cluster, now, chance)
        began = time.process_time()
        noted.append(len(keeper.observe(now, *found)))
        spent.append(1e3 * (time.process_time() - began))
    spent.sort()
    print(
        f"{pods} pods, {len(cluster)} nodes: {spent[0]:.1f} ms at best, {spent[ROUNDS // 2]:.1f} ms median,"
        f" {held / 1e6:.1f} MB, {sum(noted) / ROUNDS:.0f} rows noted a refresh"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
