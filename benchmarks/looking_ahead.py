"""Measures plimsoll plan on a snapshot file of a large cluster, load included.

    python benchmarks/looking_ahead.py --nodes 5000 --pods 100000

The cluster is that of benchmarks/rebalancing.py: nodes of 16 cores in three zones, pods of twenty replicas an
application, thrown on the nodes unevenly, with a tenth of the applications spread over zones, a tenth that
forbids two on a node and a tenth that wants ssd; a policy with six strategies and the default limits. The
snapshot is written first, then ``plimsoll plan --from`` runs in processes of its own: CPU seconds, wall time
and peak memory of each, and the median. With --profile the functions that take longest are named.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from output import append

from plimsoll.snapshots import file
from plimsoll.snapshots.content import SnapshotContent
from rebalancing import REPLICAS, STRATEGIES, ZONE, wishes

if TYPE_CHECKING:
    from collections.abc import Iterator

#: When the snapshot was taken, in seconds since the epoch.
TAKEN = 1_767_225_600.0
CREATED = "2025-12-01T00:00:00Z"

Document = dict[str, Any]


def node_documents(count: int) -> Iterator[Document]:
    """Nodes as an API server has them."""
    room = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    for number in range(count):
        name = f"n{number:05}"
        labels = {
            "kubernetes.io/hostname": name,
            ZONE: "abc"[number % 3],
            "disk": "ssd" if number % 4 else "hdd",
        }
        taint = {"key": "maintenance", "effect": "NoSchedule"}
        yield {
            "metadata": {"name": name, "uid": name, "creationTimestamp": CREATED, "labels": labels},
            "spec": {"taints": [taint]} if number % 500 == 7 else {},
            "status": {
                "capacity": room,
                "allocatable": room,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }


def pod_documents(nodes: int, count: int, seed: int) -> Iterator[Document]:
    """Running pods as an API server has them."""
    rng = random.Random(seed)
    applications = max(1, count // REPLICAS)
    for number in range(count):
        app = number % applications
        node = f"n{int(nodes * rng.random() ** 1.5):05}"
        requests = {"cpu": f"{rng.choice([100, 250, 500, 1000])}m", "memory": "1Gi"}
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"a{app}", "uid": f"rs-{app}"}
        yield {
            "metadata": {
                "name": f"p{number}",
                "namespace": f"ns{app % 50}",
                "uid": f"uid-{number}",
                "creationTimestamp": CREATED,
                "labels": {"app": f"a{app}"},
                "ownerReferences": [{**owner, "controller": True}],
            },
            "spec": {
                "schedulerName": "plimsoll",
                "nodeName": node,
                "containers": [{"name": "main", "image": "app", "resources": {"requests": requests}}],
                **wishes(app),
            },
            "status": {
                "phase": "Running",
                "startTime": CREATED,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }


def policy_document() -> Document:
    """The policy that places the pods and rebalances them."""
    strategies = [{"name": name, "args": args} for name, args in STRATEGIES]
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": "benchmark", "creationTimestamp": CREATED},
        "spec": {
            "scheduling": {"schedulerName": "plimsoll"},
            "rebalancing": {"mode": "Enforce", "strategies": strategies},
        },
    }


def save(path: Path, nodes: int, pods: int, seed: int) -> int:
    """Write the snapshot; the size of the file in bytes."""

    def encoded(documents: Iterator[Document]) -> list[bytes]:
        return [json.dumps(each).encode() for each in documents]

    objects = {
        "nodes": encoded(node_documents(nodes)),
        "pods": encoded(pod_documents(nodes, pods, seed)),
        "schedulingpolicies": [json.dumps(policy_document()).encode()],
    }
    return file.save(SnapshotContent(TAKEN, "benchmarks/looking_ahead.py", objects), path, force=True)


def measured(path: Path) -> tuple[float, float, float, int]:
    """CPU seconds, wall seconds and peak MiB of one ``plimsoll plan``, and its moves."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-m", "plimsoll", "plan", "--from", str(path), "-o", "json"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=False)  # noqa: S603 - ours
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    moves = len(json.loads(done.stdout)["policies"][0]["moves"])
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, wall, after.ru_maxrss / 1024, moves


def profiled(path: Path) -> None:
    """Name the functions that take longest."""
    from plimsoll.commands.program import app  # noqa: PLC0415 - only for a profile

    profile = cProfile.Profile()
    try:
        profile.runcall(app, ["plan", "--from", str(path), "-o", "json"])
    except SystemExit:
        pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(40)


def main() -> None:
    """Write a snapshot, plan it several times, print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, help="left out, 20 a node")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="append the result as a line of JSON")
    parser.add_argument("--profile", action="store_true", help="in this process, with cProfile")
    given = parser.parse_args()
    pods = given.pods if given.pods is not None else REPLICAS * given.nodes

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cluster.plimsoll"
        size = save(path, given.nodes, pods, given.seed)
        print(f"{given.nodes} nodes, {pods} pods, a snapshot of {size / 2**20:.1f} MiB", flush=True)
        if given.profile:
            profiled(path)
            return
        found = []
        for _ in range(given.repeats):
            cpu, wall, peak, moves = measured(path)
            found.append((cpu, peak))
            print(f"{cpu:6.2f} s CPU {wall:6.2f} s wall {peak:6.0f} MiB {moves:3} moves", flush=True)
        cpu, peak = (statistics.median(figures) for figures in zip(*found, strict=True))
        print(f"{cpu:6.2f} s CPU, median of {given.repeats}")
        append(given.output, nodes=given.nodes, pods=pods, cpu_s=cpu, peak_mib=peak, moves=moves)


if __name__ == "__main__":
    main()
