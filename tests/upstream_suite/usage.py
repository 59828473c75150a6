"""Serves the metrics API as custom resources: the use of pods whose containers stress processors."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from chaos.world import DEFINITIONS
from e2e.polls import eventually
from e2e.speaker import Speaker
from roadstead.schemas.quantities import amounts

Obj = dict[str, Any]

GROUP, API = "metrics.k8s.io", "/apis/metrics.k8s.io/v1beta1"
APPLY = "application/apply-patch+yaml"

#: Seconds between two measurements.
PERIOD_S = 5.0


def definition(kind: str, plural: str, scope: str) -> Obj:
    """A kind of the metrics API as a custom resource of which all fields are kept."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{GROUP}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, played"},
        },
        "spec": {"group": GROUP, "scope": scope, "names": names, "versions": [version]},
    }


def used_milli(container: Obj) -> int:
    """Milli-cores that a container uses: all it may if it stresses processors, else 0."""
    if not any(each.startswith("-cpu=") for each in container.get("args", ())):
        return 0
    return amounts(container["resources"]["limits"])["cpu"]


async def serve_usage(speaker: Speaker, nodes: Collection[str], running: Mapping[str, Obj]) -> None:
    """Write the usage of nodes and of their pods again and again.

    Args:
        speaker: Speaks to the API server.
        nodes: Their names.
        running: The pods, by uid; changes meanwhile.
    """
    for kind, plural, scope in (("NodeMetrics", "nodes", "Cluster"), ("PodMetrics", "pods", "Namespaced")):
        await speaker.install(DEFINITIONS, definition(kind, plural, scope))
        await eventually(partial(speaker.request, "GET", f"{API}/{plural}"), lambda one: one.status == 200)
    while True:
        used = dict.fromkeys(nodes, 0)
        for pod in list(running.values()):
            (container,) = pod["spec"]["containers"]
            milli = used_milli(container)
            used[pod["spec"]["nodeName"]] += milli
            path = f"{API}/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
            containers = [{"name": container["name"], "usage": _usage(milli)}]
            await _write(speaker, path, "PodMetrics", {"containers": containers})
        for node, milli in used.items():
            await _write(speaker, f"{API}/nodes/{node}", "NodeMetrics", {"usage": _usage(milli)})
        await asyncio.sleep(PERIOD_S)


def _usage(milli: int) -> Obj:
    return {"cpu": f"{milli}m", "memory": "64Mi"}


async def _write(speaker: Speaker, path: str, kind: str, measured: Obj) -> None:
    head = {"apiVersion": f"{GROUP}/v1beta1", "kind": kind, "window": f"{PERIOD_S:.0f}s"}
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    body = {**head, "metadata": {"name": path.rpartition("/")[2]}, "timestamp": moment, **measured}
    answer = await speaker.request("PATCH", path, body, sends=APPLY, fieldManager="metrics", force="true")
    if answer.status not in {403, 404}:  # the namespace of a pod may go first
        answer.accepted()
