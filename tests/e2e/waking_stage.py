"""The stage of the waking tests: one pod that waits, and a witness of what wakes it.

The witness reads the operator's own metrics: how many changes of a kind it has handled, and how many pods
entered a queue because of them. Both are counted in one breath, so that "handled, and no pod woken" needs
no waiting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from e2e.operator_process import summed
from e2e.polls import eventually
from e2e.speaker import MERGE

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from e2e.operator_process import Operator
    from e2e.scene import Obj, Scene

HANDLED = "plimsoll_scheduler_event_handling_duration_seconds_count"
INCOMING = "plimsoll_scheduler_queue_incoming_pods_total"
ATTEMPTS = "plimsoll_scheduler_schedule_attempts_total"
REJECTED = "plimsoll_scheduler_unschedulable_pods"


@dataclass(slots=True)
class Stage:
    """One scene with an operator that is looked at."""

    scene: Scene
    operator: Operator

    async def set_up(self, **node: Any) -> str:
        """A node that the operator knows to be ready; its name."""
        name = await self.scene.node("a", **node)
        await self.scene.scheduling()
        everything = [{"operator": "Exists"}]
        await self.scene.pod("canary", cpu="1m", tolerations=everything)
        await self.scene.until_bound("canary")
        await self.scene.until_running(1)
        return name

    async def running(self, name: str, **options: Any) -> None:
        """A pod that runs before anybody waits."""
        await self.scene.pod(name, **options)
        await self.scene.until_bound(name)
        await eventually(lambda: self.scene.a_pod(name), lambda pod: pod["status"].get("phase") == "Running")

    async def rejected(self, plugin: str, pod: str = "waits") -> None:
        """Wait until the pod is unschedulable, and this plugin is one of those that say so."""
        await eventually(lambda: self.scene.condition(pod), lambda one: one.get("status") == "False")
        wanted = {"plugin": plugin, "profile": self.scene.scheduler}
        await eventually(self.scraped, lambda page: summed(page, REJECTED, **wanted) == 1)

    async def scraped(self) -> str:
        """The operator's metrics."""
        return self.operator.ask("/metrics")[1]

    async def sleeps_through(self, event: str, change: Awaitable[Any]) -> None:
        """Make a change; the operator handles it as this event, and it wakes no pod."""
        before = await self.scraped()
        await change
        handled = summed(before, HANDLED, event=event)
        after = await eventually(self.scraped, lambda page: summed(page, HANDLED, event=event) > handled)
        assert summed(after, INCOMING, event=event) == summed(before, INCOMING, event=event)
        failed = {"result": "unschedulable", "profile": self.scene.scheduler}
        assert summed(after, ATTEMPTS, **failed) == summed(before, ATTEMPTS, **failed)

    async def wakes_at(self, event: str, change: Awaitable[Any], pod: str = "waits") -> None:
        """Make a change; the operator wakes the pod for this event, and binds it."""
        woken = self.operator.metric(INCOMING, event=event)
        await change
        await self.scene.until_bound(pod)
        assert self.operator.metric(INCOMING, event=event) > woken

    # -- changes -------------------------------------------------------------------------------------

    async def patch(self, path: str, change: Obj) -> None:
        """Merge a change into any object."""
        (await self.scene.speaker.request("PATCH", path, change, sends=MERGE)).accepted()

    async def node_spec(self, name: str, **spec: Any) -> None:
        """Change a node's spec."""
        await self.patch(f"/api/v1/nodes/{name}", {"spec": spec})

    async def node_labels(self, name: str, **labels: str | None) -> None:
        """Change a node's labels; an underscore represents a dash."""
        changed = {key.replace("_", "-"): value for key, value in labels.items()}
        await self.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": changed}})

    async def allocatable(self, name: str, **amounts: str) -> None:
        """Change what a node offers."""
        status = {"status": {"allocatable": amounts, "capacity": amounts}}
        await self.patch(f"/api/v1/nodes/{name}/status", status)

    async def pod_spec(self, name: str, **spec: Any) -> None:
        """Change a pod's spec."""
        await self.patch(self.scene.path(f"pods/{name}"), {"spec": spec})

    async def pod_labels(self, name: str, **labels: str) -> None:
        """Change a pod's labels."""
        await self.patch(self.scene.path(f"pods/{name}"), {"metadata": {"labels": labels}})

    async def delete(self, path: str) -> None:
        """Delete any object."""
        (await self.scene.speaker.request("DELETE", path)).accepted()

    async def delete_pod(self, name: str) -> None:
        """Delete a pod immediately."""
        path = self.scene.path(f"pods/{name}")
        (await self.scene.speaker.request("DELETE", path, gracePeriodSeconds="0")).accepted()

    # -- storage -------------------------------------------------------------------------------------

    async def volume(self, suffix: str, labels: dict[str, str] | None = None, **spec: Any) -> str:
        """A volume of a CSI driver, and the claim of the same suffix bound to it; the volume's name.

        Where there is a volume controller, it does what is done here: both end in the state in which it has
        nothing left to do, or an update of its own might wake the pod that is to sleep.
        """
        name = f"{self.scene.name}-{suffix}"
        uid = (await self.claim(suffix, volumeName=name))["metadata"]["uid"]
        reference = {
            "kind": "PersistentVolumeClaim",
            "namespace": self.scene.name,
            "name": suffix,
            "uid": uid,
        }
        volume: Obj = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "csi": {"driver": f"{self.scene.name}.example", "volumeHandle": name},
                "claimRef": reference,
                **spec,
            },
        }
        await self.scene.make("/api/v1/persistentvolumes", volume)
        bound = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}
        path = self.scene.path(f"persistentvolumeclaims/{suffix}")
        await self.patch(path, bound)
        await self.patch(f"/api/v1/persistentvolumes/{name}/status", {"status": {"phase": "Bound"}})
        size = {key: volume["spec"][key] for key in ("accessModes", "capacity")}
        await self.patch(f"{path}/status", {"status": {"phase": "Bound", **size}})
        return name

    async def claim(self, name: str, **spec: Any) -> Obj:
        """A claim."""
        return await self.scene.make(
            self.scene.path("persistentvolumeclaims"),
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": name},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "",
                    "resources": {"requests": {"storage": "1Gi"}},
                    **spec,
                },
            },
        )

    async def limit(self, node: str, count: int) -> None:
        """Say how many volumes of the scene's driver the node takes."""
        driver = {
            "name": f"{self.scene.name}.example",
            "nodeID": node,
            "topologyKeys": [],
            "allocatable": {"count": count},
        }
        path = f"/apis/storage.k8s.io/v1/csinodes/{node}"
        if (await self.scene.speaker.request("GET", path)).status == 200:
            await self.patch(path, {"spec": {"drivers": [driver]}})
            return
        document = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": node},
            "spec": {"drivers": [driver]},
        }
        await self.scene.make("/apis/storage.k8s.io/v1/csinodes", document)


def mounting(claim: str) -> list[Obj]:
    """The volumes of a pod that mounts a claim."""
    return [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]


def disk(name: str) -> list[Obj]:
    """The volumes of a pod that has a disk of its own to write to."""
    return [{"name": "disk", "gcePersistentDisk": {"pdName": name}}]


def listening(port: int) -> list[Obj]:
    """The containers of a pod that holds a port of its host."""
    return [
        {
            "name": "app",
            "image": "registry.k8s.io/pause:3.10",
            "ports": [{"containerPort": port, "hostPort": port}],
        }
    ]


def near(app: str, *, anti: bool = False) -> Obj:
    """The affinity of a pod that must, or must not, share a zone with an app."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "zone"}
    kind = "podAntiAffinity" if anti else "podAffinity"
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
