"""The scene of a test: a namespace, nodes, policies and a scheduler name of its own.

All tests share one cluster, which may be a real one; so everything bears the scene's name, pods select the
scene's nodes, and rebalancing looks at the scene's namespace only. Nodes have no machines: their kubelets are
played through the API, in the same way on any control plane.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from e2e.kubelet import START_S, Kubelets
from e2e.polls import LAST_PACE_S, PATIENCE_S, eventually
from e2e.speaker import MERGE, Speaker
from plimsoll.leadership.election import RELEASED_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from e2e.operator_process import Operator

Obj = dict[str, Any]

POLICIES = "/apis/plimsoll.dev/v1alpha1/schedulingpolicies"
LABEL = "plimsoll.dev/scene"
LEASES = "/apis/coordination.k8s.io/v1/leases"
FINISHED = {"Predicted", "Settled", "Returned", "Blocked", "Failed", "Cancelled"}


@dataclass(slots=True)
class Scene:
    """One test's part of the cluster."""

    speaker: Speaker
    name: str = field(default_factory=lambda: f"scene-{uuid.uuid4().hex[:8]}")
    start_s: float = START_S  #: seconds that a pod takes from being bound to Running
    _made: list[str] = field(default_factory=list)
    _kubelets: Kubelets = field(init=False)

    def __post_init__(self) -> None:
        """Give the scene kubelets."""
        self._kubelets = Kubelets(self.speaker, self.name, start_s=self.start_s)

    @property
    def scheduler(self) -> str:
        """The scheduler name of the scene's pods."""
        return self.name

    def path(self, plural: str, api: str = "/api/v1") -> str:
        """A collection of the scene's namespace."""
        return f"{api}/namespaces/{self.name}/{plural}"

    @property
    def records_path(self) -> str:
        """The collection of the scene's Eviction records."""
        return self.path("evictions", "/apis/plimsoll.dev/v1alpha1")

    # -- making --------------------------------------------------------------------------------------

    async def begin(self) -> Scene:
        """Make the namespace and start the kubelets."""
        await self.make(
            "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}}
        )
        self.speaker.begin(self._kubelets.play())
        return self

    async def end(self) -> None:
        """Leave nothing behind, policies first: they must not mend what is being taken away."""
        for path in reversed(self._made):
            await self.speaker.request("DELETE", path)
        await self.speaker.request("DELETE", self.path("pods"), gracePeriodSeconds="0")

    async def make(self, collection: str, obj: Obj) -> Obj:
        """Create an object that goes when the scene ends."""
        made = (await self.speaker.request("POST", collection, obj)).accepted()
        if "/namespaces/" not in collection:
            self.remember(f"{collection}/{obj['metadata']['name']}")
        return made

    def remember(self, path: str) -> None:
        """Delete what is at this path when the scene ends."""
        self._made.append(path)

    async def node(
        self,
        suffix: str,
        *,
        cpu: str = "4",
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
        allocatable: Mapping[str, str] | None = None,
        runs_pods: bool = True,
        readies_pods: bool = True,
        is_up: bool = True,
    ) -> str:
        """Add a node and wait until it is ready; its name. One that is not up has no kubelet yet."""
        name = f"{self.name}-{suffix}"
        room = {"cpu": cpu, "memory": "16Gi", "pods": "50", **(allocatable or {})}
        document = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, LABEL: self.name, **(labels or {})},
            },
            "spec": {"taints": list(taints)} if taints else {},
            "status": {"capacity": room, "allocatable": room},
        }
        await self.make("/api/v1/nodes", document)
        status = {"status": {"capacity": room, "allocatable": room}}
        path = f"/api/v1/nodes/{name}"
        (await self.speaker.request("PATCH", f"{path}/status", status, sends=MERGE)).accepted()
        if not is_up:
            return name
        await self.start_kubelet(name)

        async def not_ready() -> list[str]:
            taints = (await self.speaker.request("GET", path)).accepted()["spec"].get("taints", ())
            return [each["key"] for each in taints if each["key"] == "node.kubernetes.io/not-ready"]

        await eventually(not_ready, lambda found: not found)
        if not readies_pods:
            self._kubelets.unready.add(name)
        if not runs_pods:
            self._kubelets.leave(name)
        return name

    async def start_kubelet(self, name: str) -> None:
        """Let a node speak from now on."""
        await self._kubelets.register(name)

    async def run_pods_of(self, node: str) -> None:
        """A node whose pods waited takes them up."""
        await self._kubelets.come_back(node)

    async def change_node(self, name: str, change: Obj) -> None:
        """Merge a change into a node."""
        (await self.speaker.request("PATCH", f"/api/v1/nodes/{name}", change, sends=MERGE)).accepted()

    async def policy(self, spec: Obj, suffix: str = "policy", **query: str) -> str:
        """Apply a policy; its name."""
        name = f"{self.name}-{suffix}"
        kind = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "SchedulingPolicy"}
        document = {**kind, "metadata": {"name": name}, "spec": spec}
        (await self.speaker.request("POST", POLICIES, document, **query)).accepted()
        self._made.append(f"{POLICIES}/{name}")
        return name

    async def change_policy(self, name: str, spec: Obj) -> None:
        """Merge a change into a policy's spec."""
        answer = await self.speaker.request("PATCH", f"{POLICIES}/{name}", {"spec": spec}, sends=MERGE)
        answer.accepted()

    async def scheduling(self) -> str:
        """The smallest policy there is, for the scene's scheduler name."""
        name = await self.policy({"scheduling": {"schedulerName": self.scheduler}}, "scheduler")
        await self.until_condition(name, "Ready", "True")
        return name

    def rebalancing(self, *strategies: str | Obj, mode: str = "Enforce", **more: Any) -> Obj:
        """The spec of a policy that runs strategies on the scene each second."""
        return {
            "scope": {
                "namespaces": {"include": [self.name]},
                "nodeSelector": {"matchLabels": {LABEL: self.name}},
            },
            "rebalancing": {
                "mode": mode,
                "schedule": {"intervalSeconds": 1},
                "strategies": [{"name": each} if isinstance(each, str) else each for each in strategies],
                **more,
            },
        }

    def pod_spec(self, *, cpu: str = "100m", memory: str = "64Mi", **more: Any) -> Obj:
        """The spec of a pod of the scene."""
        return {
            "schedulerName": self.scheduler,
            "nodeSelector": {LABEL: self.name},
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "app",
                    "image": "registry.k8s.io/pause:3.10",
                    "resources": {"requests": {"cpu": cpu, "memory": memory}},
                }
            ],
            **more,
        }

    async def pod(self, name: str, *, labels: Mapping[str, str] | None = None, **spec: Any) -> Obj:
        """Create a pod."""
        metadata: Obj = {"name": name, "labels": dict(labels or {})}
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": self.pod_spec(**spec)}
        return await self.make(self.path("pods"), document)

    async def deployment(
        self,
        name: str,
        replicas: int,
        labels: Any = None,
        rollout: Obj | None = None,
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> Obj:
        """Create a Deployment and wait until its pods run; ``rollout`` are further fields of its own spec."""
        metadata = {"labels": {"app": name, **(labels or {})}, "annotations": dict(annotations or {})}
        template = {"metadata": metadata, "spec": self.pod_spec(**spec)}
        document = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": template,
                **(rollout or {}),
            },
        }
        made = await self.make(self.path("deployments", "/apis/apps/v1"), document)
        await self.until_running(replicas, app=name)
        return made

    async def placed_by_hand(self, name: str, replicas: int, node: str, **spec: Any) -> None:
        """Create a Deployment, and place its pods as their scheduler."""
        creating = asyncio.create_task(self.deployment(name, replicas, **spec))
        for pod in await eventually(lambda: self.pods(app=name), lambda pods: len(pods) == replicas):
            metadata = {"name": pod["metadata"]["name"]}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": {"name": node}}
            path = self.path(f"pods/{metadata['name']}/binding")
            (await self.speaker.request("POST", path, binding)).accepted()
        await creating

    async def budget(self, name: str, app: str, **spec: Any) -> None:
        """Create a PodDisruptionBudget and wait until the control plane has counted."""
        document = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
        }
        path = self.path("poddisruptionbudgets", "/apis/policy/v1")
        await self.make(path, document)

        async def counted() -> int:
            found = (await self.speaker.request("GET", f"{path}/{name}")).accepted()
            healthy: int = found.get("status", {}).get("currentHealthy", 0)
            return healthy

        await eventually(counted)

    async def crash(self, operator: Operator) -> None:
        """Kill the leader and release its lease, as it would itself: the next process need not wait."""
        operator.kill()
        for lease in await self.items(LEASES):
            name, namespace = lease["metadata"]["name"], lease["metadata"]["namespace"]
            if name == "plimsoll":
                path = LEASES.replace("leases", f"namespaces/{namespace}/leases/{name}")
                released = {"spec": {"holderIdentity": "", "leaseDurationSeconds": RELEASED_S}}
                (await self.speaker.request("PATCH", path, released, sends=MERGE)).accepted()

    # -- looking -------------------------------------------------------------------------------------

    async def items(self, path: str, **query: str) -> list[Obj]:
        """The objects of a collection."""
        listed: list[Obj] = (await self.speaker.request("GET", path, **query)).accepted()["items"]
        return listed

    async def pods(self, **labels: str) -> list[Obj]:
        """The scene's pods that bear these labels."""
        chosen = {"labelSelector": ",".join(f"{key}={value}" for key, value in labels.items())}
        return await self.items(self.path("pods"), **(chosen if labels else {}))

    async def a_pod(self, name: str) -> Obj:
        """One pod."""
        return (await self.speaker.request("GET", self.path(f"pods/{name}"))).accepted()

    async def node_of(self, name: str) -> str:
        """The node of a pod, "" when it has none."""
        return str((await self.a_pod(name))["spec"].get("nodeName", ""))

    async def until_bound(self, name: Any) -> str:
        """Wait until a pod has a node; its name."""
        return await eventually(lambda: self.node_of(name))

    async def running(self, **labels: str) -> list[str]:
        """The nodes of the pods that run and stay, sorted."""
        return sorted(
            pod["spec"]["nodeName"]
            for pod in await self.pods(**labels)
            if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        )

    async def until_running(self, count: int, **labels: str) -> list[str]:
        """Wait until so many pods run; their nodes."""
        return await eventually(lambda: self.running(**labels), lambda nodes: len(nodes) == count)

    async def condition(self, pod: str, kind: str = "PodScheduled") -> Obj:
        """A condition of a pod, empty when it has none of the kind."""
        conditions = (await self.a_pod(pod))["status"].get("conditions") or ()
        return next((each for each in conditions if each["type"] == kind), {})

    async def events(self, regarding: str, reason: str) -> list[Obj]:
        """Events of one reason on an object of the scene."""
        return [
            each
            for each in await self.items(self.path("events", "/apis/events.k8s.io/v1"))
            if each["regarding"]["name"] == regarding and each["reason"] == reason
        ]

    async def warnings(self, policy: str, reason: str) -> list[Obj]:
        """Warning events of one reason on a policy."""
        return [
            each
            for each in await self.items("/apis/events.k8s.io/v1/events")
            if (each["regarding"]["name"], each["reason"], each["type"]) == (policy, reason, "Warning")
        ]

    async def policy_status(self, name: str) -> Obj:
        """What the operator says of a policy."""
        status: Obj = (await self.speaker.request("GET", f"{POLICIES}/{name}")).accepted().get("status", {})
        return status

    async def until_condition(self, policy: str, kind: str, status: str, reason: str = "") -> Obj:
        """Wait until a condition of a policy is so, for its present generation."""

        async def found() -> Obj:
            document = (await self.speaker.request("GET", f"{POLICIES}/{policy}")).accepted()
            for each in document.get("status", {}).get("conditions") or ():
                if each["type"] == kind:
                    return {
                        **each,
                        "is_present": each["observedGeneration"] == document["metadata"]["generation"],
                    }
            return {}

        return await eventually(
            found,
            lambda one: (
                one
                and one["is_present"]
                and one["status"] == status
                and (not reason or one["reason"] == reason)
            ),
        )

    async def runs(self, policy: str, count: int) -> Obj:
        """Wait until so many further runs of a policy have ended; its status after them."""
        status: Obj = {}
        seen = (await self.policy_status(policy)).get("lastRun", {}).get("startTime")
        for _ in range(count):
            deadline = time.monotonic() + PATIENCE_S
            # A run that is under way writes its status, too, when one of its moves is verified.
            while not (run := status.get("lastRun") or {}).get("completionTime") or run["startTime"] == seen:
                assert time.monotonic() < deadline, f"{policy} does not run: {status}"
                await asyncio.sleep(LAST_PACE_S)
                status = await self.policy_status(policy)
            seen = status["lastRun"]["startTime"]
        return status

    async def records(self) -> list[Obj]:
        """The scene's Eviction records."""
        return await self.items(self.records_path)

    async def answer(self, record: Obj, value: str = "true") -> None:
        """Say of a proposal whether it is to be carried out."""
        change = {"metadata": {"annotations": {"plimsoll.dev/approved": value}}}
        path = f"{self.records_path}/{record['metadata']['name']}"
        (await self.speaker.request("PATCH", path, change, sends=MERGE)).accepted()

    async def phases(self) -> list[str]:
        """The phases of the scene's records, sorted."""
        return sorted(record.get("status", {}).get("phase", "") for record in await self.records())

    async def until_finished(self, count: int) -> list[Obj]:
        """Wait until so many records exist and all are finished."""

        def finished(records: list[Obj]) -> bool:
            return len(records) >= count and all(
                record.get("status", {}).get("phase") in FINISHED for record in records
            )

        return await eventually(self.records, finished)

    async def until_one_is_finished(self) -> Obj:
        """Wait for the first finished record of a policy that tries again; others may be under way."""

        async def finished() -> list[Obj]:
            return [each for each in await self.records() if each.get("status", {}).get("phase") in FINISHED]

        found = await eventually(finished)
        return min(found, key=lambda each: str(each["metadata"]["creationTimestamp"]))
