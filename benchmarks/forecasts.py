"""Counts how often a real kube-scheduler places replacements where Plimsoll expects them.

    make bench-forecasts KUBE=FOLDER ARGS="--moves 200"

FOLDER holds etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl. kube-scheduler places
all pods; the operator moves some of them (``scope.otherSchedulers``). kube-scheduler runs without a
configuration; with ``--packs`` it prefers nodes with little room. With ``--described`` a suspended policy,
converted from that configuration, says so to Plimsoll. Sixteen nodes of two sizes in three zones, forty
Deployments with requests of several sizes. Nodes get a taint in turn, and lose it again; with ``--churn``
Deployments are scaled meanwhile, so that the cluster changes between a plan and the replacement. Kubelets are
played. Printed are the replacements on the expected node, on one with an equal score, and on any other, of
all moves whose replacement got a node.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from chaos.world import NODES, POLICIES
from e2e.conftest import define
from e2e.kubelet import Kubelets
from e2e.speaker import MERGE, Speaker
from roadstead.kubelets.nodes import make_node
from upstream_suite.stage import Stage, stage

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
RECORDS = "/apis/plimsoll.dev/v1alpha1/evictions"
TAINT = {"key": "example.com/maintenance", "effect": "NoSchedule"}

#: Numbers of nodes and Deployments, and seconds for which a node has its taint, and between two.
NODES_MADE, APPS, TAINTED_S, BETWEEN_S = 16, 40, 12.0, 4.0

PACKS: dict[str, Any] = {
    "schedulerName": "default-scheduler",
    "pluginConfig": [
        {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}},
    ],
}

POLICY: dict[str, Any] = {
    "apiVersion": "plimsoll.dev/v1alpha1",
    "kind": "SchedulingPolicy",
    "metadata": {"name": "forecasts"},
    "spec": {
        "scope": {"otherSchedulers": ["default-scheduler"]},
        "rebalancing": {
            "mode": "Enforce",
            "schedule": {"intervalSeconds": 3},
            "limits": {"total": 20, "perNode": 20, "perNamespace": 20, "perMinute": 120},
            "evictor": {"minPodAge": "1s"},
            "strategies": [
                {"name": "RemovePodsViolatingNodeTaints"},
                {
                    "name": "RemovePodsViolatingTopologySpreadConstraint",
                    "args": {"constraints": ["DoNotSchedule", "ScheduleAnyway"]},
                },
                {"name": "RemoveDuplicates"},
            ],
        },
    },
}


def deployment(number: int, draw: random.Random) -> dict[str, Any]:
    """A Deployment of eight pods; every third spreads over zones."""
    labels = {"app": f"app-{number}"}
    requests = {
        "cpu": draw.choice(["100m", "250m", "500m"]),
        "memory": draw.choice(["128Mi", "512Mi", "1Gi"]),
    }
    spec: dict[str, Any] = {
        "containers": [{"name": "main", "image": "app", "resources": {"requests": requests}}],
        "terminationGracePeriodSeconds": 0,
    }
    if number % 3 == 0:
        spread = {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "ScheduleAnyway",
        }
        spec["topologySpreadConstraints"] = [{**spread, "labelSelector": {"matchLabels": labels}}]
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"app-{number}"},
        "spec": {"replicas": 8, "selector": {"matchLabels": labels}, "template": template},
    }


def converted(configuration: dict[str, Any]) -> dict[str, Any]:
    """The suspended policy that ``plimsoll convert`` makes of a configuration."""
    command = [sys.executable, "-m", "plimsoll", "convert", "-", "--suspended", "-o", "json"]
    done = subprocess.run(  # noqa: S603 - our own command
        command, input=json.dumps(configuration), capture_output=True, text=True, check=True, timeout=60
    )
    (policy,) = json.loads(done.stdout)["policies"]
    return dict(policy)


async def taint_in_turn(speaker: Speaker, names: list[str]) -> None:
    """One node after another has a taint for a while."""
    while True:
        for name in names:
            for taints in ([TAINT], []):
                body = {"spec": {"taints": taints}}
                (await speaker.request("PATCH", f"{NODES}/{name}", body, sends=MERGE)).accepted()
                await asyncio.sleep(TAINTED_S if taints else BETWEEN_S)


async def scale(speaker: Speaker, draw: random.Random) -> None:
    """Every two seconds a Deployment gets another number of pods."""
    while True:
        path = f"{DEPLOYMENTS}/app-{draw.randrange(APPS)}"
        body = {"spec": {"replicas": draw.randint(4, 12)}}
        (await speaker.request("PATCH", path, body, sends=MERGE)).accepted()
        await asyncio.sleep(2.0)


async def landings(speaker: Speaker) -> Counter[str]:
    """Where the replacements of all moves went so far."""
    found: Counter[str] = Counter()
    for record in (await speaker.request("GET", RECORDS)).accepted()["items"]:
        spec, status = record["spec"], record.get("status", {})
        landed = status.get("replacement", {}).get("node")
        if landed is None:
            found[f"without a replacement: {status.get('phase')}"] += 1
        elif landed == spec.get("targetNode"):
            found["expected node"] += 1
        else:
            found["equal node" if landed in spec.get("equalTargets", ()) else "other node"] += 1
    return found


def placed(found: Counter[str]) -> int:
    """Moves whose replacement has a node."""
    return sum(found[each] for each in ("expected node", "equal node", "other node"))


async def measure(
    on: Stage, moves: int, limit_s: float, seed: int, *, churn: bool, packs: bool, described: bool
) -> Counter[str]:
    """Move until so many replacements have nodes, or the time is over."""
    speaker, draw = on.speaker, random.Random(seed)
    kubelets, names = Kubelets(speaker, ""), [f"node-{number:02}" for number in range(NODES_MADE)]
    for number, name in enumerate(names):
        node = make_node(name, cpu=("8", "16")[number % 2], zone=f"zone-{'abc'[number % 3]}")
        (await speaker.request("POST", NODES, node)).accepted()
        await kubelets.register(name)
    speaker.begin(kubelets.play())
    await define(speaker)
    began = time.monotonic()
    async with on.kube_scheduler(PACKS if packs else None):
        for number in range(APPS):
            (await speaker.request("POST", DEPLOYMENTS, deployment(number, draw))).accepted()
        await asyncio.sleep(20.0)
        await speaker.install(POLICIES, POLICY)
        if described:
            await speaker.install(POLICIES, converted(on.configuration(PACKS)))
        async with on.operator():
            speaker.begin(taint_in_turn(speaker, names))
            if churn:
                speaker.begin(scale(speaker, draw))
            found: Counter[str] = Counter()
            while placed(found) < moves and time.monotonic() - began < limit_s:
                await asyncio.sleep(5.0)
                found = await landings(speaker)
                print(f"{time.monotonic() - began:.0f} s {dict(found)}", file=sys.stderr, flush=True)
    return found


async def run(given: argparse.Namespace) -> int:
    """Measure once; print the counts as JSON."""
    with tempfile.TemporaryDirectory(prefix="forecasts-") as folder:
        async with stage(given.programs, given.programs, Path(folder)) as on:
            found = await measure(
                on,
                given.moves,
                given.limit,
                given.seed,
                churn=given.churn,
                packs=given.packs,
                described=given.described,
            )
            version = (await on.speaker.request("GET", "/version")).accepted()["gitVersion"]
    hits, of = found["expected node"] + found["equal node"], placed(found)
    print(
        json.dumps(
            {
                "kube-scheduler": version,
                "churn": given.churn,
                "packs": given.packs,
                "described": given.described,
                **found,
                "hits": hits,
                "of": of,
            }
        )
    )
    return 0 if of >= given.moves else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=Path, required=True)
    parser.add_argument("--moves", type=int, default=200)
    parser.add_argument("--limit", type=float, default=900.0, help="seconds")
    parser.add_argument("--seed", type=int, default=44)
    parser.add_argument("--churn", action="store_true", help="scale Deployments meanwhile")
    parser.add_argument("--packs", action="store_true", help="kube-scheduler scores by MostAllocated")
    parser.add_argument("--described", action="store_true", help="a suspended policy says so")
    sys.exit(asyncio.run(run(parser.parse_args())))
