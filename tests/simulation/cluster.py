"""The cluster around the operator: API, controllers and kubelets of the development cluster."""

from __future__ import annotations

import asyncio
import datetime as dt
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import yaml

from roadstead.assembly import built_in_api, extended_handler
from roadstead.controllers import make_context, start_controllers
from roadstead.controllers.work_queue import WorkQueue
from roadstead.kubelets.kubelets import Kubelets, KubeletSettings
from roadstead.kubelets.nodes import make_node
from roadstead.server.metrics_api import MetricsApi
from roadstead.store.api import Write
from roadstead.store.subresources import bind
from roadstead.values.resources import Obj
from roadstead.values.status_errors import StatusError
from simulation.loop import VirtualLoop
from simulation.replica import EPOCH
from simulation.transport import TOKEN

NAMESPACE = "default"
SCHEDULER = "plimsoll"
ZONES = ("zone-a", "zone-b", "zone-c")

POLICIES = "schedulingpolicies.plimsoll.dev"
RECORDS = "evictions.plimsoll.dev"


@cache
def definitions() -> list[Obj]:
    """Our custom resource definitions."""
    folder = Path(__file__).parents[2] / "crds"
    return [
        yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
        for path in sorted(folder.glob("*.yaml"))
    ]


class SimulatedCluster:
    """An API with controllers and kubelets, and the objects that a run begins with."""

    def __init__(self, loop: VirtualLoop, random: Random) -> None:
        self._loop = loop
        self.random = random
        self.api = built_in_api(self.now, Random(random.getrandbits(64)))
        self.handler = extended_handler(self.api, TOKEN)
        self.queue = WorkQueue(lambda: EPOCH + loop.time())
        context = self.context = make_context(self.api, self.queue)
        for definition in definitions():
            self.api.create("customresourcedefinitions.apiextensions.k8s.io", definition)
        start_controllers(context, "*,-persistentvolume-binder")
        Kubelets(context, KubeletSettings(start_s=(0.1, 2.0))).start()
        MetricsApi(context).start()
        self._made = 0

    def now(self) -> dt.datetime:
        """The time of the API server."""
        return dt.datetime.fromtimestamp(EPOCH + self._loop.time(), dt.UTC)

    async def run(self) -> None:
        """Let controllers and kubelets work until cancelled."""
        await self.queue.run()

    # -- what is there -------------------------------------------------------------------------------------

    def objects(self, resource: str) -> list[Obj]:
        """All objects of a resource; none where it is not served."""
        try:
            return self.api.list(resource)
        except StatusError:
            return []

    def populate(self) -> None:
        """Nodes, workloads with budgets, single pods, and a policy that serves them."""
        random = self.random
        for _ in range(random.randint(3, 6)):
            self.add_node()
        self.api.create(POLICIES, policy("serve", scheduling={"schedulerName": SCHEDULER}))
        if random.random() < 0.8:
            self.api.create(POLICIES, policy("tidy", rebalancing=self._rebalancing()))
        crowd = random.choice((1, 1, 3))  # in a third of the runs there is not room for all
        for number in range(crowd * random.randint(2, 4)):
            self.add_workload(f"app-{number}", random.randint(1, 4))
        for number in range(random.randint(0, 3)):
            self.add_pod(f"single-{number}")

    def _rebalancing(self) -> Obj:
        """Moves pods every few seconds, by strategies that nodes and faults of a run give work to."""
        low, high = {"cpu": 30, "pods": 100}, {"cpu": 50, "pods": 100}
        return {
            "mode": self.random.choice(("Enforce", "Enforce", "DryRun")),
            "planner": self.random.choice(("Proven", "Upstream")),
            "schedule": {"intervalSeconds": self.random.choice((5, 10, 20))},
            "strategies": [
                {"name": "RemoveDuplicates"},
                {"name": "RemovePodsViolatingNodeTaints"},
                {"name": "LowNodeUtilization", "args": {"thresholds": low, "targetThresholds": high}},
            ],
            "evictor": {"minPodAge": "1s", "minReplicas": 1},
        }

    def add_node(self) -> None:
        """One node more."""
        self._made += 1
        name = f"node-{self._made}"
        cpu = self.random.choice(("2", "3", "4"))
        self.api.create(
            "nodes", make_node(name, cpu=cpu, memory="8Gi", pods=12, zone=self.random.choice(ZONES))
        )

    def add_workload(self, name: str, replicas: int) -> None:
        """A Deployment, and for some a PodDisruptionBudget."""
        labels = {"app": name}
        spec: Obj = {"schedulerName": SCHEDULER, "containers": [self._container()]}
        if self.random.random() < 0.3:
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": labels},
                }
            ]
        self.api.create(
            "deployments.apps",
            {
                "metadata": {"name": name, "namespace": NAMESPACE},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": spec},
                },
            },
        )
        if self.random.random() < 0.5:
            self.api.create(
                "poddisruptionbudgets.policy",
                {
                    "metadata": {"name": name, "namespace": NAMESPACE},
                    "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels}},
                },
            )

    def add_pod(self, name: str, scheduler: str = SCHEDULER) -> Obj:
        """A pod without an owner."""
        spec = {"schedulerName": scheduler, "containers": [self._container()]}
        return self.api.create("pods", {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})

    def _container(self) -> Obj:
        cpu = self.random.choice(("100m", "300m", "500m", "800m", "1200m"))
        memory = self.random.choice(("64Mi", "256Mi", "1Gi"))
        return {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": memory}}}

    def bind(self, pod: Obj, node: str) -> None:
        """Another scheduler binds a pod."""
        name = pod["metadata"]["name"]
        target = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        bind(self.api, (pod["metadata"]["namespace"], name), target, Write(), labelled=True)


def policy(name: str, **spec: Any) -> Obj:
    """A SchedulingPolicy."""
    return {"apiVersion": "plimsoll.dev/v1alpha1", "metadata": {"name": name}, "spec": spec}


async def ended(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
