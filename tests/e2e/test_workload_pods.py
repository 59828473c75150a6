"""The pods that plimsoll fit places are those that the cluster makes of the manifest."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from e2e.polls import eventually
from plimsoll.inspection.manifests.documents import read_manifests
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.workload import PriorityClass

if TYPE_CHECKING:
    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e

NOW = datetime(2026, 1, 31, tzinfo=UTC)

#: Labels that controllers give values that differ each time.
DRAWN = {
    "pod-template-hash",
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
    "controller-revision-hash",
}

PATHS = {"Deployment": "/apis/apps/v1", "StatefulSet": "/apis/apps/v1", "Job": "/apis/batch/v1"}


def a_workload(scene: Scene, kind: str) -> Obj:
    """With what is defaulted: limits, ports of the host, a priority class, tolerations."""
    spec = scene.pod_spec(
        hostNetwork=True,
        priorityClassName=scene.name,
        tolerations=[{"key": "node.kubernetes.io/unreachable", "operator": "Exists"}],
        restartPolicy="Never" if kind == "Job" else "Always",
        schedulingGates=[{"name": "example.org/never"}],
    )
    spec["containers"] = [
        {
            "name": "app",
            "image": "app",
            "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"memory": "64Mi"}},
        }
    ]
    labels = {"app": kind.lower()}
    body: dict[str, Any] = {"template": {"metadata": {"labels": labels}, "spec": spec}}
    if kind != "Job":
        body |= {"replicas": 1, "selector": {"matchLabels": labels}}
    metadata = {"name": kind.lower(), "namespace": scene.name}
    return {
        "apiVersion": PATHS[kind].removeprefix("/apis/"),
        "kind": kind,
        "metadata": metadata,
        "spec": body,
    }


def comparable(pod: Pod) -> tuple[Any, set[str], str]:
    """What decisions read of a pod: its spec without mounted tokens, its labels, the kind of its owner."""
    spec = msgspec.structs.replace(
        pod.spec,
        volumes=(),
        containers=tuple(msgspec.structs.replace(each, restart_policy="") for each in pod.spec.containers),
        termination_grace_period_seconds=None,
    )
    owner = pod.metadata.controller
    return spec, set(pod.labels) - DRAWN, owner.kind if owner else ""


@pytest.mark.parametrize("kind", list(PATHS))
async def test_a_pod_is_what_the_cluster_makes_of_it(scene: Scene, kind: str) -> None:
    """Field by field, as far as the scheduler reads them."""
    document = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": scene.name},
        "value": 7,
    }
    await scene.make("/apis/scheduling.k8s.io/v1/priorityclasses", document)
    manifest = a_workload(scene, kind)
    classes = {scene.name: convert(PriorityClass, document)}
    objects = ClusterObjects(priority_classes=classes)

    (foreseen,) = read_manifests([manifest], scene.name, objects).workloads
    await scene.make(scene.path(f"{kind.lower()}s", PATHS[kind]), manifest)
    (made,) = await eventually(lambda: scene.pods(app=kind.lower()))

    assert comparable(foreseen.pod(0, NOW)) == comparable(convert(Pod, made))
