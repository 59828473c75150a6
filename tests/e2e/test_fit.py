"""plimsoll fit says of a Deployment what the operator does when it is applied: counts, nodes, message."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from cli.commands import say
from e2e.polls import eventually
from plimsoll.snapshots.reader import read

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e


def a_deployment(scene: Scene, name: str, replicas: int) -> Obj:
    """Pods of 900m on the scene's nodes; the requests follow from limits."""
    spec = scene.pod_spec()
    spec["containers"][0]["resources"] = {"limits": {"cpu": "900m", "memory": "64Mi"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": scene.name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }


async def fitted(document: Obj, kubeconfig: Path, folder: Path) -> tuple[int, dict[str, Any]]:
    """The exit code and the answer for its only workload."""
    file = folder / "deployment.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    words = ("fit", "-f", str(file), "--kubeconfig", str(kubeconfig), "-o", "json")
    said = await asyncio.to_thread(say, *words)
    (answer,) = json.loads(said.out)["workloads"]
    return said.code, answer


async def applied(scene: Scene, document: Obj, placed: int) -> tuple[dict[str, int], set[str]]:
    """The Deployment's pods by node, and the messages of those without one, once all were tried."""
    await scene.make(scene.path("deployments", "/apis/apps/v1"), document)
    name, replicas = document["metadata"]["name"], document["spec"]["replicas"]

    async def tried() -> list[tuple[str, str]]:
        return [
            (each["spec"].get("nodeName", ""), condition.get("message", ""))
            for each in await scene.pods(app=name)
            for condition in each.get("status", {}).get("conditions", ())
            if condition["type"] == "PodScheduled"
        ]

    found = await eventually(
        tried, lambda pods: len(pods) == replicas and sum(1 for node, _ in pods if node) >= placed
    )
    return dict(Counter(node for node, _ in found if node)), {why for node, why in found if not node}


async def test_a_deployment_gets_the_places_that_fit_names(
    scene: Scene, defined: Path, tmp_path: Path
) -> None:
    """Nodes of different sizes, so that there are no ties; first with room for all, then not."""
    for suffix, cpu in (("a", "4"), ("b", "3"), ("c", "2")):
        await scene.node(suffix, cpu=cpu)
    await scene.scheduling()
    for name, replicas, code in (("some", 3, 0), ("many", 9, 2)):
        document = a_deployment(scene, name, replicas)

        exit_code, said = await fitted(document, defined, tmp_path)
        nodes, messages = await applied(scene, document, said["placed"])

        assert (exit_code, said["ties"] if not code else 0) == (code, 0)
        assert nodes == {each["node"]: each["pods"] for each in said["nodes"]}
        assert messages == ({said["obstacle"]["message"]} if code else set())
    assert said["placed"] == 6


async def test_a_job_gets_the_rack_that_fit_names(scene: Scene, defined: Path, tmp_path: Path) -> None:
    """As the group that the policy derives, in the larger rack; then no rack is left, and fit says so."""
    rack = "example.com/rack"
    for suffix in ("a0", "b0", "b1"):
        await scene.node(suffix, cpu="2", labels={rack: f"{scene.name}-{suffix[0]}"})
    spec = {"scheduling": {"schedulerName": scene.scheduler, "groups": {"derive": "Automatic"}}}
    await scene.until_condition(await scene.policy(spec, "scheduler"), "Ready", "True")
    template = {"metadata": {}, "spec": {**scene.pod_spec(cpu="900m"), "restartPolicy": "Never"}}
    job: Obj = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "train",
            "namespace": scene.name,
            "annotations": {"plimsoll.dev/required-topology": rack},
        },
        "spec": {"parallelism": 4, "completions": 4, "completionMode": "Indexed", "template": template},
    }

    code, said = await fitted(job, defined, tmp_path)
    await scene.make(scene.path("jobs", "/apis/batch/v1"), job)
    nodes = await scene.until_running(4)
    later, none = await fitted({**job, "metadata": {**job["metadata"], "name": "more"}}, defined, tmp_path)
    file = tmp_path / "cluster.json.gz"
    await asyncio.to_thread(say, "snapshot", "save", str(file), "--kubeconfig", str(defined))

    assert (code, said["group"]) == (0, f"Job {scene.name}/train")
    assert said["domains"] == [{"label": rack, "value": f"{scene.name}-b", "pods": 4}]
    assert Counter(nodes) == {each["node"]: each["pods"] for each in said["nodes"]}
    assert (later, none["placed"], none["domains"]) == (2, 0, [])
    assert len(read([file]).objects["jobs.batch"]) == 1
