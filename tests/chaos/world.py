"""The world of a run: nodes, Deployments with budgets, and policies, made and changed over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import aiohttp
import yaml

from e2e.speaker import MERGE, STRATEGIC, Answer, Speaker
from promises.commits import Obj
from roadstead.kubelets import pods
from roadstead.kubelets.nodes import address_of, make_node, pod_address, registered

if TYPE_CHECKING:
    from chaos.features import Features

NAMESPACE, SCHEDULER = "plimsoll-chaos", "plimsoll"

#: Our policies, by the names that the simulation's features know.
MADE = SERVES, TIDIES, RENEWS = "serve", "tidy", "renew"
NODES = "/api/v1/nodes"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
RECORDS = f"/apis/plimsoll.dev/v1alpha1/namespaces/{NAMESPACE}/evictions"
POLICIES = "/apis/plimsoll.dev/v1alpha1/schedulingpolicies"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NODE_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/plimsoll"

#: The label of our nodes, which our pods select.
OURS = {"plimsoll.dev/chaos": "yes"}

#: A policy that replaces pods as long as faults last: every few seconds some are old.
RENEWAL: Obj = {
    "mode": "Enforce",
    "schedule": {"intervalSeconds": 4},
    "strategies": [{"name": "PodLifeTime", "args": {"maxPodLifeTimeSeconds": 15}}],
    "limits": {"total": 3},
    "evictor": {"minPodAge": "1s", "minReplicas": 1},
}

#: Seconds that one request of ours may take, until a kind must be served, and of the kubelets' rounds.
PATIENCE_S, SERVED_S, ROUND_S, BEAT_S = 20.0, 60.0, 0.4, 10.0

#: What a request of ours may meet while faults happen.
#: Conditions of a pod that its kubelet does not write.
THEIRS = frozenset(("PodScheduled", "DisruptionTarget"))

BROKEN = (aiohttp.ClientError, OSError, TimeoutError)


class World:
    """What a run has made in a cluster, and changes.

    Args:
        plays_kubelets: Whether pods and nodes of ours have kubelets only here.

    Attributes:
        nodes: Names of our nodes.
        apps: Names of our Deployments.
        silent: Nodes whose kubelet does not beat.
    """

    def __init__(self, speaker: Speaker, random: Random, *, plays_kubelets: bool) -> None:
        self._speaker = speaker
        self._random = random
        self._plays = plays_kubelets
        self.nodes: list[str] = []
        self.apps: list[str] = []
        self.silent: set[str] = set()
        self._started = 0

    async def ask(self, method: str, path: str, body: Obj | None = None, sends: str = "") -> Answer:
        """One request, past all proxies; 0 where the API server does not answer."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                kind = sends or ("application/json" if method != "PATCH" else MERGE)
                return await self._speaker.request(method, path, body, sends=kind)
        except BROKEN as exc:
            return Answer(0, {"message": repr(exc)})

    async def items(self, path: str) -> list[Obj]:
        """The objects of a collection; none where the API server does not answer."""
        found: list[Obj] = (await self.ask("GET", path)).body.get("items") or []
        return found

    # -- made --------------------------------------------------------------------------------------------

    async def make(self, nodes: int, apps: int, features: Features) -> None:
        """Everything.

        Raises:
            RuntimeError: An operator runs there already.
        """
        lease = (await self.ask("GET", LEASE)).body
        if holder := (lease.get("spec") or {}).get("holderIdentity"):
            raise RuntimeError(f"this is no test cluster: {holder} leads there")
        folder = Path(__file__).parents[2] / "crds"
        for path in sorted(folder.glob("*.yaml")):
            definition = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
            await self._speaker.install(DEFINITIONS, definition)
        await self._served(POLICIES)
        await self._served("/apis/plimsoll.dev/v1alpha1/evictions")
        if names := {each["metadata"]["name"] for each in await self.items(POLICIES)} & set(MADE):
            raise RuntimeError(f"this is no test cluster: it has policies {', '.join(sorted(names))}")
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        await self._speaker.install("/api/v1/namespaces", {**namespace, "spec": {}})
        for number in range(nodes):
            await self.add_node(f"chaos-{number + 1}")
        for name, spec in (
            (SERVES, {"scheduling": {"schedulerName": SCHEDULER}}),
            (TIDIES, {"rebalancing": self._rebalancing()}),
            (RENEWS, {"rebalancing": RENEWAL}),
        ):
            kind = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "SchedulingPolicy"}
            await self._speaker.install(POLICIES, {**kind, "metadata": {"name": name}, "spec": spec})
        await features.begin()
        for number in range(apps):
            await self.add_app(f"app-{number + 1}")

    async def _served(self, path: str) -> None:
        deadline = time.monotonic() + SERVED_S
        while (answer := await self.ask("GET", path)).status != 200:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} is not served: {answer.message}")
            await asyncio.sleep(0.2)

    def _rebalancing(self) -> Obj:
        low, high = {"cpu": 30, "pods": 100}, {"cpu": 50, "pods": 100}
        return {
            "mode": "Enforce",
            "planner": "Proven",
            "schedule": {"intervalSeconds": self._random.choice((5, 8))},
            "strategies": [
                {"name": "RemoveDuplicates"},
                {"name": "RemovePodsViolatingNodeTaints"},
                {"name": "LowNodeUtilization", "args": {"thresholds": low, "targetThresholds": high}},
            ],
            "evictor": {"minPodAge": "1s", "minReplicas": 1},
        }

    async def add_node(self, name: str) -> None:
        """One node more, or again."""
        cpu = self._random.choice(("3", "4", "6"))
        zone = f"zone-{self._random.choice('abc')}"
        node = make_node(name, cpu=cpu, memory="16Gi", pods=20, zone=zone, labels=OURS)
        answer = await self.ask("POST", NODES, {"apiVersion": "v1", "kind": "Node", **node})
        if answer.status == 201 and self._plays:
            status = registered(answer.body, len(self.nodes), time.time())
            status = {**node["status"], **status}
            await self.ask("PATCH", f"{NODES}/{name}/status", {"status": status}, STRATEGIC)
        if name not in self.nodes:
            self.nodes.append(name)

    async def add_app(self, name: str) -> None:
        """A Deployment, and for some a PodDisruptionBudget."""
        random, labels = self._random, {"app": name}
        wants = {
            "cpu": random.choice(("100m", "300m", "500m", "800m", "1200m")),
            "memory": random.choice(("64Mi", "256Mi", "1Gi")),
        }
        container = {"name": "main", "image": "registry.example/app:1", "resources": {"requests": wants}}
        spec: Obj = {"schedulerName": SCHEDULER, "containers": [container], "nodeSelector": OURS}
        spec["terminationGracePeriodSeconds"] = random.choice((0, 1, 2))
        await self._speaker.install(
            DEPLOYMENTS,
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "spec": {
                    "replicas": random.randint(1, 6),
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": spec},
                },
            },
        )
        self.apps.append(name)
        if random.random() < 0.6:
            await self._speaker.install(
                BUDGETS,
                {
                    "apiVersion": "policy/v1",
                    "kind": "PodDisruptionBudget",
                    "metadata": {"name": name, "namespace": NAMESPACE},
                    "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels}},
                },
            )

    async def clear(self) -> None:
        """Take away what a run has made, policies first; the definitions stay."""
        for name in reversed(MADE):
            await self.ask("DELETE", f"{POLICIES}/{name}")
        for name in self.apps:
            await self.ask("DELETE", f"{DEPLOYMENTS}/{name}")
            await self.ask("DELETE", f"{BUDGETS}/{name}")
        await self.ask("DELETE", PODS, {"gracePeriodSeconds": 0})
        await self.ask("DELETE", RECORDS)
        await self.ask("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
        for name in self.nodes:
            await self.ask("DELETE", f"{NODES}/{name}")
            await self.ask("DELETE", f"{NODE_LEASES}/{name}")

    # -- kubelets ----------------------------------------------------------------------------------------

    async def play_kubelets(self) -> None:
        """Let pods start and end, and nodes say that they are there, until cancelled."""
        beaten = 0.0
        while True:
            now = time.monotonic()
            if now - beaten >= BEAT_S:
                beaten = now
                for name in self.nodes:
                    if name not in self.silent:
                        await self._beat(name)
            with contextlib.suppress(KeyError):  # half of an answer
                for pod in await self.items(PODS):
                    await self._tend(pod)
            await asyncio.sleep(ROUND_S)

    async def _tend(self, pod: Obj) -> None:
        """What its kubelet does next for a pod."""
        node, meta, status = pod["spec"].get("nodeName"), pod["metadata"], pod.get("status") or {}
        if node not in self.nodes:
            return
        path, uid = f"{PODS}/{meta['name']}", {"uid": meta["uid"]}
        if "deletionTimestamp" in meta:
            options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
            await self.ask("DELETE", path, {**options, "preconditions": uid})
        elif status.get("phase", "Pending") == "Pending":
            self._started += 1
            address = pod_address(self._started)
            told = pods.running(pod, address_of(self.nodes.index(node)), address, time.time(), ready=True)
            own = [
                each
                for each in told["conditions"]
                if each["type"] not in ("PodScheduled", "DisruptionTarget")
            ]
            change = {"metadata": uid, "status": {**told, "conditions": own}}
            await self.ask("PATCH", f"{path}/status", change, STRATEGIC)

    async def _beat(self, name: str) -> None:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": moment}
        answer = await self.ask("PATCH", f"{NODE_LEASES}/{name}", {"spec": spec})
        if answer.status == 404:
            lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}
            await self.ask("POST", NODE_LEASES, {**lease, "spec": spec})
