"""Measures the CPU seconds of carrying out many evictions of one run, and their growth.

    PYTHONPATH=tools python benchmarks/evictions.py [--evictions 1000,2000,10000]

PodLifeTime by planner Upstream on 300 nodes with five pods for each eviction. The operator's own parts plan,
write records and evict; only the API server is played, within the process, and costs nearly nothing.
"""

import argparse
import gc
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from cpu_profile import CPUProfile
from output import append

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.framework.descheduling.measurements import Measurements
from plimsoll.model.columns.cluster import Cluster
from plimsoll.testing.builders import a_node, a_pod
from recordings.server import RecordedServer

NODES = 300
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PODS_FOR_EACH = 5
REPLICAS = 20
LEAST = 0.04
"""Smallest share of the time of a function that is listed."""

POLICY = {
    "metadata": {"name": "lifetime"},
    "spec": {
        "rebalancing": {
            "mode": "Enforce",
            "planner": "Upstream",
            "strategies": [{"name": "PodLifeTime", "args": {"maxPodLifeTimeSeconds": 3600}}],
            "limits": dict.fromkeys(("total", "perNode", "perNamespace", "perWorkload", "perMinute"), "100%"),
        }
    },
}


def a_cluster(evictions: int) -> Cluster:
    """One pod in five is old, of owners with twenty pods each."""
    cluster = Cluster()
    for number in range(NODES):
        cluster.set_node(a_node(f"n{number}", cpu="1000", memory="4Ti", pods=1000))
    for number in range(PODS_FOR_EACH * evictions):
        app, age_s = number // REPLICAS, 7200 if number % PODS_FOR_EACH == 0 else 60
        name, began = f"p{number}", NOW - timedelta(seconds=age_s)
        pod = a_pod(name, owner=f"ReplicaSet/a{app}", labels={"app": f"a{app}"}, node=f"n{number % NODES}")
        metadata = msgspec.structs.replace(pod.metadata, creation_timestamp=began)
        status = msgspec.structs.replace(pod.status, start_time=began)
        pod = msgspec.structs.replace(pod, metadata=metadata, status=status)
        cluster.place(cluster.templates.info(pod), pod.node_name)
    return cluster


def main() -> None:
    """Print a line for each number of evictions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evictions", default="1000,2000,10000")
    parser.add_argument("--profile", type=int, default=0, help="print so many functions by CPU time")
    parser.add_argument("--profile-output", type=Path, help="append each as a line of JSON")
    parser.add_argument("--output", type=Path, help="append each result as a line of JSON")
    options = parser.parse_args()
    print(f"{'evictions':>9} {'CPU s':>8} {'ms each':>8}")
    for wanted in map(int, options.evictions.split(",")):
        cluster = a_cluster(wanted)
        server = RecordedServer(cluster, (), NOW, measurements=Measurements(), refusing={}, terminates=False)
        policy = SchedulingPolicy.model_validate(POLICY)
        gc.collect()
        gc.freeze()
        profile, began = CPUProfile(), time.process_time()
        if options.profile:
            evicted = len(profile.of(lambda: server.rebalance(policy)))  # noqa: B023 - called here
        else:
            evicted = len(server.rebalance(policy))
        seconds = time.process_time() - began
        if evicted != wanted:
            raise SystemExit(f"{evicted} of {wanted} pods were evicted")
        print(f"{evicted:9} {seconds:8.2f} {seconds / evicted * 1e3:8.2f}", flush=True)
        append(options.output, evictions=evicted, cpu_s=seconds, each_ms=seconds / evicted * 1e3)
        for name, total, own in profile.rows(options.profile):
            if total >= LEAST:
                print(f"  {name:66} {total:6.1%} {own:6.1%}")
                append(options.profile_output, function=name, total=total, own=own)


if __name__ == "__main__":
    main()
