"""Each kind whose pods form a group by themselves: from its manifest to a running group.

The control plane makes the pods of the Job. The other controllers are played: pods are made with the labels
and owners that they give them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from e2e.conftest import DEFINITIONS, define
from e2e.polls import eventually, throughout
from e2e.scene import Scene
from e2e.speaker import speaking
from plimsoll.model.kinds.owned_group import OWNERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.operator_process import Operator
    from e2e.scene import Obj
    from e2e.speaker import Speaker
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,  # an operator on a cluster of its own, which has the kinds from the start
]

MANIFESTS: list[dict[str, Any]] = list(
    yaml.load_all(
        (Path(__file__).parent / "automatic_kinds.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
    )
)
LOOSE: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

#: The pods of each are three; the labels that its controller gives them beyond those of no interest here.
PODS = 3
LABELS = {
    "JobSet": {"jobset.sigs.k8s.io/jobset-name": "jobset"},
    "LeaderWorkerSet": {
        "leaderworkerset.sigs.k8s.io/name": "leaderworkerset",
        "leaderworkerset.sigs.k8s.io/group-index": "0",
    },
    "RayCluster": {"ray.io/cluster": "raycluster"},
}

#: What controls the pods, where it is not the owner itself.
BETWEEN = {"JobSet": ("batch/v1", "Job"), "LeaderWorkerSet": ("apps/v1", "StatefulSet")}


def definition(api_version: str, kind: str) -> Obj:
    """The CustomResourceDefinition of a kind, without its schema."""
    group, _, version = api_version.partition("/")
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": LOOSE}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": f"{kind.lower()}s", "kind": kind},
            "versions": [served],
        },
    }


def labels_of(kind: str, number: int) -> dict[str, str]:
    """The labels of a pod of the owner; the launcher of an MPIJob is the first."""
    found = {"app": kind.lower(), **LABELS.get(kind, {})}
    if kind.endswith("Job"):
        role = "launcher" if kind == "MPIJob" and not number else "worker"
        found |= {
            "training.kubeflow.org/job-name": kind.lower(),
            "training.kubeflow.org/job-role": role,
        }
    return found


def collection_of(manifest: Obj) -> str:
    """The collection of a kind in all namespaces."""
    return f"/apis/{manifest['apiVersion']}/{manifest['kind'].lower()}s"


async def define_kind(speaker: Speaker, manifest: Obj) -> None:
    """Install the definition of a kind, and wait until it is served."""
    await speaker.install(DEFINITIONS, definition(manifest["apiVersion"], manifest["kind"]))
    path = collection_of(manifest)
    await eventually(lambda: speaker.request("GET", path), lambda answer: answer.status == 200)


async def make_pods(scene: Scene, manifest: Obj, owner: Obj, numbers: range) -> None:
    """Some pods of an owner, as its controller makes them."""
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    for number in numbers:
        version, controller = BETWEEN.get(kind, (manifest["apiVersion"], kind))
        if kind == "MPIJob" and not number:
            version, controller = "batch/v1", "Job"
        reference = {"apiVersion": version, "kind": controller, "name": name, "controller": True}
        metadata = {
            "name": f"{name}-{number}",
            "labels": labels_of(kind, number),
            "ownerReferences": [{**reference, "uid": owner["metadata"]["uid"]}],
        }
        spec = {**scene.pod_spec(), "restartPolicy": "Never"}
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        await scene.make(scene.path("pods"), document)


async def running(scene: Scene) -> Counter[str]:
    """Pods that run, by kind."""
    return Counter(
        each["metadata"]["labels"]["app"]
        for each in await scene.pods()
        if each["status"].get("phase") == "Running"
    )


async def test_ten_kinds_come_from_their_manifests_to_running_groups(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> None:
    """None starts before its last pod is there."""
    assert {each["kind"] for each in MANIFESTS} == {each.kind for each in OWNERS}
    cluster = start_roadstead(nodes=0)
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        await asyncio.gather(*(define_kind(speaker, each) for each in MANIFESTS if each["kind"] != "Job"))
        operator = start_operator(cluster.kubeconfig)
        scene = await Scene(speaker).begin()
        await scene.node("n0")
        spec = {"scheduling": {"schedulerName": scene.scheduler, "groups": {"derive": "Automatic"}}}
        await scene.until_condition(await scene.policy(spec, "scheduler"), "Ready", "True")
        template = MANIFESTS[0]["spec"]["template"]
        template["spec"] = {**scene.pod_spec(), "restartPolicy": "Never"}
        owners = []
        for each in MANIFESTS:
            path = collection_of(each).rpartition("/")
            owners.append(await scene.make(scene.path(path[2], path[0]), each))
        made = list(zip(MANIFESTS, owners, strict=True))[1:]

        await asyncio.gather(*(make_pods(scene, *each, range(PODS - 1)) for each in made))
        await eventually(lambda: running(scene), lambda found: found["job"] == PODS)
        await throughout(lambda: running(scene), lambda found: found == {"job": PODS}, 2.0)
        await asyncio.gather(*(make_pods(scene, *each, range(PODS - 1, PODS)) for each in made))

        expected = Counter({each["kind"].lower(): PODS for each in MANIFESTS})
        await eventually(lambda: running(scene), lambda found: found == expected)
    assert operator.terminate() == 0, operator.said()
