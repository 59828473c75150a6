"""Plays the controllers of Argo Rollouts and of OpenKruise's CloneSets, as far as they scale.

A Rollout has one ReplicaSet, which the control plane runs. A CloneSet has pods of its own, and deletes them
in the order of a ReplicaSet, as OpenKruise does (``pkg/controller/cloneset/utils/pod_sorter.go``).
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from e2e.polls import eventually
from e2e.speaker import MERGE
from plimsoll.model.kinds.scaled_workloads import SCALED
from roadstead.controllers.pod_state import deletion_rank, is_ready

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from e2e.scene import Obj, Scene

LOOSE: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
PACE_S = 0.1


def definition(kind: str) -> Obj:
    """The CustomResourceDefinition of a kind, without its schema."""
    known = SCALED[kind]
    group, _, version = known.api_version.partition("/")
    replicas = "HPAReplicas" if kind == "Rollout" else "replicas"
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": f".status.{replicas}"}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": LOOSE}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{known.plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": known.plural, "kind": kind},
            "versions": [{**served, "subresources": {"status": {}, "scale": scale}}],
        },
    }


class Played:
    """One object with its controller.

    Attributes:
        path: Of the object.
        name: Its name, and the label ``app`` of its pods.
    """

    def __init__(self, scene: Scene, kind: str, replicas: int) -> None:
        self.scene, self.kind, self.replicas = scene, kind, replicas
        self.name = kind.lower()
        known = SCALED[kind]
        self.api_version = known.api_version
        self.collection = scene.path(known.plural, f"/apis/{known.api_version}")
        self.path = f"{self.collection}/{self.name}"

    async def make(self) -> None:
        """Define the kind, and create the object."""
        await self.scene.make(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(self.kind)
        )

        async def served() -> bool:
            return (await self.scene.speaker.request("GET", self.collection)).status == 200

        await eventually(served)
        document: Obj = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {"name": self.name},
            "spec": {"replicas": self.replicas},
        }
        await self.scene.make(self.collection, document)

    async def found(self) -> Obj:
        """The object."""
        found: Obj = (await self.scene.speaker.request("GET", self.path)).accepted()
        return found

    @asynccontextmanager
    async def controlled(self) -> AsyncIterator[None]:
        """Within this context its controller runs; its pods run at the beginning."""
        task = asyncio.create_task(self._run())
        try:
            await self.scene.until_running(self.replicas, app=self.name)
            yield
        finally:
            task.cancel()
            (result,) = await asyncio.gather(task, return_exceptions=True)
            assert isinstance(result, asyncio.CancelledError), result

    async def _run(self) -> None:
        while True:
            found = await self.found()
            status = await (self._as_rollout(found) if self.kind == "Rollout" else self._as_clone_set(found))
            status["observedGeneration"] = found["metadata"]["generation"]
            if self.kind == "Rollout":
                status["observedGeneration"] = str(status["observedGeneration"])
            if status != found.get("status"):
                await self._merge(f"{self.path}/status", {"status": status})
            await asyncio.sleep(PACE_S)

    async def _as_rollout(self, found: Obj) -> Obj:
        api = "/apis/apps/v1"
        sets = [
            each
            for each in await self.scene.items(self.scene.path("replicasets", api))
            if each["metadata"]["name"] == f"{self.name}-1"
        ]
        wanted = found["spec"]["replicas"]
        if not sets:
            template = self._template(found)
            document: Obj = {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {"name": f"{self.name}-1", "ownerReferences": [self._reference(found)]},
                "spec": {
                    "replicas": wanted,
                    "selector": {"matchLabels": {"app": self.name}},
                    "template": template,
                },
            }
            await self.scene.make(self.scene.path("replicasets", api), document)
            return {}
        (own,) = sets
        if own["spec"]["replicas"] != wanted:
            await self._merge(
                self.scene.path(f"replicasets/{self.name}-1", api), {"spec": {"replicas": wanted}}
            )
        counts = own.get("status", {})
        has, ready = counts.get("replicas", 0), counts.get("availableReplicas", 0)
        return {
            **dict.fromkeys(("replicas", "updatedReplicas", "HPAReplicas"), has),
            "availableReplicas": ready,
            "stableRS": "1",
            "currentPodHash": "1",
            "phase": "Healthy" if has == ready == wanted else "Progressing",
        }

    async def _as_clone_set(self, found: Obj) -> Obj:
        path, wanted = self.scene.path("pods"), found["spec"]["replicas"]
        pods = await self.scene.pods(app=self.name)
        active = [each for each in pods if "deletionTimestamp" not in each["metadata"]]
        for _ in range(wanted - len(active)):
            template = self._template(found)
            metadata = {
                **template["metadata"],
                "generateName": f"{self.name}-",
                "ownerReferences": [self._reference(found)],
            }
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
            (await self.scene.speaker.request("POST", path, pod)).accepted()
        for each in sorted(active, key=lambda pod: deletion_rank(pod, 0))[: max(len(active) - wanted, 0)]:
            (await self.scene.speaker.request("DELETE", f"{path}/{each['metadata']['name']}")).accepted()
        ready = sum(map(is_ready, active))
        return {
            **dict.fromkeys(("replicas", "updatedReplicas"), len(active)),
            **dict.fromkeys(("readyReplicas", "availableReplicas"), ready),
        }

    def _template(self, found: Obj) -> Obj:
        return {"metadata": {"labels": {"app": found["metadata"]["name"]}}, "spec": self.scene.pod_spec()}

    def _reference(self, found: Obj) -> Obj:
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": found["metadata"]["uid"],
            "controller": True,
        }

    async def _merge(self, path: str, change: Any) -> None:
        (await self.scene.speaker.request("PATCH", path, change, sends=MERGE)).accepted()
