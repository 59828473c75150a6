"""The kubelets of a scene's nodes, played through the API, so that any control plane will do.

Bound pods are admitted if they fit, run and become ready, and leave when they are deleted. Nodes say that
they are ready, and go on saying so. What is written is worded as the development cluster's kubelets word it.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from e2e.speaker import STRATEGIC
from roadstead.kubelets import pods
from roadstead.kubelets.claims import resources_of_node
from roadstead.kubelets.nodes import address_of, pod_address, registered
from roadstead.schemas.quantities import Amounts, amounts, pod_requests

if TYPE_CHECKING:
    from e2e.speaker import Answer, Speaker

Obj = dict[str, Any]

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
#: Seconds from being bound to Running, the longest from being deleted to gone, and between heartbeats.
START_S, LONGEST_GRACE_S, RENEW_S = 0.1, 1.0, 10.0
FINISHED = {"Succeeded", "Failed"}


@dataclass(slots=True)
class Kubelet:
    """What one node has, and what its pods were given, by uid."""

    number: int
    allocatable: Amounts
    admitted: dict[str, Amounts] = field(default_factory=dict)
    deferred: dict[str, Obj] = field(default_factory=dict)  #: pods whose resizes wait for room, by uid

    def lacks(self, wanted: Amounts, of: str = "") -> str:
        """The first resource of which there is not enough left for a pod, "" when all fits."""
        others = (taken for uid, taken in self.admitted.items() if uid != of)
        used = sum((Counter(taken) for taken in others), Counter())
        return next(
            (
                name
                for name, amount in wanted.items()
                if amount and used[name] + amount > self.allocatable.get(name, 0)
            ),
            "",
        )


@dataclass(slots=True)
class Kubelets:
    """The kubelets of one namespace's pods, "" for all namespaces, on the nodes that were registered."""

    speaker: Speaker
    namespace: str
    _kubelets: dict[str, Kubelet] = field(default_factory=dict)
    unready: set[str] = field(default_factory=set)  #: nodes whose pods run and never become ready
    start_s: float = START_S  #: seconds from being bound to Running
    _away: dict[str, Kubelet] = field(default_factory=dict)
    _leaving: set[str] = field(default_factory=set)
    _started: int = 0

    async def register(self, name: str) -> None:
        """Say of a node that it is ready, now and from now on, and take up pods that it has already.

        A node may get pods before it is ready: without the admission plugin that taints new nodes, schedulers
        see nothing against it.
        """
        node = (await self.speaker.request("GET", f"/api/v1/nodes/{name}")).accepted()
        number, earlier = len(self._kubelets), self._kubelets.get(name)
        status = registered(node, number, time.time())
        self._kubelets[name] = Kubelet(number, amounts(status["allocatable"]))
        if earlier is not None:  # a node of this name; a pod that it has begun to start is not started twice
            self._kubelets[name].admitted.update(earlier.admitted)
        path = f"/api/v1/nodes/{name}/status"
        (await self.speaker.request("PATCH", path, {"status": status}, sends=STRATEGIC)).accepted()
        self.speaker.begin(self._beat(node))
        await self._take_up(name)

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods" if self.namespace else "/api/v1/pods"

    def leave(self, name: str) -> None:
        """Let a node's pods wait where they are bound; the node goes on saying that it is ready."""
        self._away[name] = self._kubelets.pop(name)

    async def come_back(self, name: str) -> None:
        """Take up the pods that waited, and all that follow."""
        self._kubelets[name] = self._away.pop(name)
        await self._take_up(name)

    async def _take_up(self, name: str) -> None:
        """Look at the pods of a node that were bound before anybody listened."""
        listed = await self.speaker.request("GET", self._pods)
        for pod in listed.accepted()["items"]:
            if pod["spec"].get("nodeName") == name:
                self._look("MODIFIED", pod)

    async def play(self) -> None:
        """Follow the pods, for as long as somebody speaks."""
        while True:
            listed = (await self.speaker.request("GET", self._pods)).accepted()
            for pod in listed["items"]:
                self._look("MODIFIED", pod)
            version = listed["metadata"]["resourceVersion"]
            with suppress(TimeoutError):  # the HTTP client ends each response after minutes
                await self._follow(version)

    async def _follow(self, version: str) -> None:
        """Look at what happens to the pods after a version, until the watch ends."""
        async with aclosing(self.speaker.watch(self._pods, version)) as events:  # type: ignore[type-var] # known in this test
            async for event in events:
                if event["type"] == "ERROR":
                    break
                self._look(event["type"], event["object"])

    def _look(self, kind: str, pod: Obj) -> None:
        """Take up a pod that is new or deleted, forget one that is gone or has ended."""
        kubelet = self._kubelets.get(pod["spec"].get("nodeName", ""))
        if kubelet is None:
            return
        uid = pod["metadata"]["uid"]
        if kind == "DELETED" or pod["status"].get("phase") in FINISHED:
            kubelet.admitted.pop(uid, None)
            kubelet.deferred.pop(uid, None)
            for waiting in list(kubelet.deferred.values()):
                self._resize(waiting, kubelet)
        elif uid not in kubelet.admitted and "deletionTimestamp" not in pod["metadata"]:
            self._admit(pod, kubelet)
        elif kubelet.admitted.get(uid) != resources_of_node(pod, pod_requests(pod), kubelet.allocatable):
            self._resize(pod, kubelet)
        elif pods.has_stale_readiness(pod):
            ready = pod["spec"]["nodeName"] not in self.unready
            status = pods.with_readiness(pod, time.time(), ready=ready)
            self.speaker.begin(self._tell(pod, status))
        if kind != "DELETED" and "deletionTimestamp" in pod["metadata"] and uid not in self._leaving:
            self._leaving.add(uid)
            self.speaker.begin(self._let_go(pod))

    def _admit(self, pod: Obj, kubelet: Kubelet) -> None:
        """Start a pod, or refuse it: a scheduler that over-commits a node is found out."""
        wanted = resources_of_node(pod, pod_requests(pod), kubelet.allocatable)
        if pod["status"].get("phase") == "Running":  # since before its node came back
            kubelet.admitted[pod["metadata"]["uid"]] = wanted
            return
        if lacking := kubelet.lacks(wanted):
            message = f"Node didn't have enough resource: {lacking}"
            status = pods.refused(pod, f"OutOf{lacking}", message, time.time())
            self.speaker.begin(self._tell(pod, status))
            return
        kubelet.admitted[pod["metadata"]["uid"]] = wanted
        self.speaker.begin(self._run(pod, kubelet.number))

    def _resize(self, pod: Obj, kubelet: Kubelet) -> None:
        """Grant what a pod's only container asks for, or say that it waits (KEP 1287)."""
        uid, (container,) = pod["metadata"]["uid"], pod["spec"]["containers"]
        wanted = resources_of_node(pod, pod_requests(pod), kubelet.allocatable)
        pending = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
        if kubelet.lacks(wanted, uid):
            if uid in kubelet.deferred:
                return
            kubelet.deferred[uid] = pod
            granted = {**container["resources"]["requests"], "cpu": f"{kubelet.admitted[uid]['cpu']}m"}
            conditions = [pending]
        else:
            kubelet.admitted[uid] = wanted
            kubelet.deferred.pop(uid, None)
            granted, conditions = container["resources"]["requests"], [{**pending, "$patch": "delete"}]
        shown = {"name": container["name"], "resources": {"requests": granted}, "allocatedResources": granted}
        self.speaker.begin(self._tell(pod, {"containerStatuses": [shown], "conditions": conditions}))

    async def _run(self, pod: Obj, number: int) -> None:
        await asyncio.sleep(self.start_s)
        self._started += 1
        address = pod_address(self._started)
        ready = pod["spec"]["nodeName"] not in self.unready
        status = pods.running(pod, address_of(number), address, time.time(), ready=ready)
        for container, shown in zip(pod["spec"]["containers"], status["containerStatuses"], strict=True):
            shown["resources"] = container.get("resources", {})  # without it API servers refuse a resize
        await self._tell(pod, status)
        await self._live({**pod, "status": status})

    async def _live(self, pod: Obj) -> None:
        """What a pod's containers do from now on: they run."""

    async def _tell(self, pod: Obj, status: Obj) -> None:
        """Write a pod's status; conditions of others stay as they are now."""
        gates = {each["conditionType"] for each in pod["spec"].get("readinessGates") or ()}
        theirs = {"PodScheduled", "DisruptionTarget"} | gates
        own = [each for each in status.get("conditions", ()) if each["type"] not in theirs]
        change = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {**status, "conditions": own}}
        of_pod = f"{_path(pod)}/status"
        _unless_gone(await self.speaker.request("PATCH", of_pod, change, sends=STRATEGIC))

    async def _let_go(self, pod: Obj) -> None:
        """Confirm that a deleted pod has ended."""
        metadata = pod["metadata"]
        await asyncio.sleep(min(metadata.get("deletionGracePeriodSeconds") or 0, LONGEST_GRACE_S))
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": metadata["uid"]},
        }
        _unless_gone(await self.speaker.request("DELETE", _path(pod), options))

    async def _beat(self, node: Obj) -> None:
        """Renew a node's Lease again and again; a node that falls silent is declared lost."""
        metadata = node["metadata"]
        owner = {"apiVersion": "v1", "kind": "Node", "name": metadata["name"], "uid": metadata["uid"]}
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": metadata["name"], "ownerReferences": [owner]},
        }
        while True:
            moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            spec = {"holderIdentity": metadata["name"], "leaseDurationSeconds": 40, "renewTime": moment}
            path = f"{LEASES}/{metadata['name']}"
            answer = await self.speaker.request("PATCH", path, {"spec": spec}, sends=STRATEGIC)
            if answer.status == 404:
                answer = await self.speaker.request("POST", LEASES, {**lease, "spec": spec})
            _unless_gone(answer)
            await asyncio.sleep(RENEW_S)


def _path(pod: Obj) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _unless_gone(answer: Answer) -> None:
    """A pod may go, or be replaced by one of its name, before its kubelet comes to speak."""
    is_another = answer.status == 422 and "metadata.uid" in answer.message
    if answer.status not in {404, 409} and not is_another:
        answer.accepted()
