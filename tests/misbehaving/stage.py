"""One operator in virtual time, with plugins of the tests and those in tree, and a cluster around it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import EntryPoint
from random import Random
from typing import Any

import pytest

from plimsoll.app import installed_plugins
from plimsoll.app.operator import Operator
from plimsoll.app.settings import Settings
from plimsoll.plugins import IN_TREE
from plimsoll.policies import extensions
from plimsoll.strategies import IN_TREE as STRATEGIES
from roadstead.kubelets.nodes import make_node
from simulation.cluster import NAMESPACE, POLICIES, SimulatedCluster, policy
from simulation.extenders import ExtenderServer
from simulation.faults import FaultPlan
from simulation.loop import VirtualLoop
from simulation.network import Network
from simulation.replica import Replica
from simulation.trace import Trace

#: Nodes of the stage; a score is asked for only where several are feasible.
NODES = 3

Obj = dict[str, Any]


class Stage:
    """A running operator.

    Attributes:
        life: The operator's process; ``life.ended`` is "" while it lives.
    """

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self._random = Random(1)
        self.cluster = SimulatedCluster(loop, Random(2))
        faults = FaultPlan(Random(3), loop.time, 0.0, ())
        self.network = Network(loop, self.cluster.handler, Random(4), faults, Trace(loop.time))
        self.extenders = ExtenderServer(self.network, Random(5))
        self._replica = Replica("red", self.network, Random(6), Settings(seed=1), self.extenders)

    @property
    def lives(self) -> list[str]:
        """How each process of the operator has ended; "" for one that lives."""
        return [life.ended for life in self._replica.lives]

    @property
    def operator(self) -> Operator:
        """The present process."""
        assert self._replica.life.operator is not None
        return self._replica.life.operator

    def begin(self) -> None:
        """Create the nodes and start the operator."""
        for number in range(NODES):
            self.cluster.api.create("nodes", make_node(f"n{number}", cpu="64", memory="64Gi", pods=1000))
        self._replica.begin()

    def retire(self) -> None:
        """Start no further process."""
        self._replica.retire()

    def serve(self, name: str, *plugins: str, is_binding: bool = False, **scheduling: Any) -> None:
        """A policy and scheduler name with these plugins after the default ones; instead of them at Bind."""
        enabled = [{"name": each} for each in plugins]
        points: Obj = {"multiPoint": {"enabled": enabled}} if plugins else {}
        if is_binding:
            points["bind"] = {"enabled": enabled, "disabled": [{"name": "*"}]}
        spec = {"schedulerName": name, "plugins": points, **scheduling}
        self.cluster.api.create(POLICIES, policy(name, scheduling=spec))

    def rebalance(self, name: str, strategy: str) -> None:
        """A policy that predicts moves by one strategy, every two seconds."""
        rebalancing = {"schedule": {"intervalSeconds": 2}, "strategies": [{"name": strategy}]}
        self.cluster.api.create(POLICIES, policy(name, rebalancing={"mode": "DryRun", **rebalancing}))

    def pod(self, name: str, scheduler: str, cpu: str = "10m", **spec: Any) -> None:
        """A pod to be placed."""
        container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
        spec = {"schedulerName": scheduler, "containers": [container], **spec}
        meta = {"name": name, "namespace": NAMESPACE, "labels": {"app": "web"}}
        self.cluster.api.create("pods", {"metadata": meta, "spec": spec})

    def node_of(self, name: str) -> str:
        """The node of a pod, "" without one."""
        return str(self._pod(name)["spec"].get("nodeName", ""))

    def said_of_pod(self, name: str) -> str:
        """Its condition PodScheduled if that is False, and its events."""
        conditions = self._pod(name).get("status", {}).get("conditions", [])
        said = [each.get("message", "") for each in conditions if each["type"] == "PodScheduled"]
        said += [
            each.get("note") or each.get("message", "")
            for each in self.cluster.objects("events.events.k8s.io")
            if (each.get("regarding") or each.get("involvedObject") or {}).get("name") == name
        ]
        return "; ".join(said)

    def said_of_policy(self, name: str) -> str:
        """The message of its condition Degraded if that is True."""
        found = self.cluster.api.get(POLICIES, "", name).get("status", {}).get("conditions", [])
        return "; ".join(
            each["message"] for each in found if each["type"] == "Degraded" and each["status"] == "True"
        )

    def _pod(self, name: str) -> Obj:
        return self.cluster.api.get("pods", NAMESPACE, name)


def played(
    story: Callable[[Stage], Awaitable[None]],
    plugins: Sequence[type],
    strategies: Sequence[type] = (),
    packages: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Run a story to its end, with an operator that knows these plugins and strategies.

    ``packages`` are entry points of installed packages, by group and name.
    """

    def installed(group: str) -> list[EntryPoint]:
        return [EntryPoint(name, value, group) for name, value in (packages or {}).get(group, {}).items()]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extensions.load, "__defaults__", (installed,))
        patch.setattr(installed_plugins, "IN_TREE", (*IN_TREE, *plugins))
        patch.setattr(installed_plugins, "STRATEGIES", (*STRATEGIES, *strategies))
        extensions.declared_here.cache_clear()
        loop = VirtualLoop(Random(7))
        try:
            loop.run_until_complete(_told(loop, story))
        finally:
            loop.close()
            extensions.declared_here.cache_clear()  # later tests have no such packages


async def _told(loop: VirtualLoop, story: Callable[[Stage], Awaitable[None]]) -> None:
    stage = Stage(loop)
    working = loop.create_task(stage.cluster.run(), name="controllers and kubelets")  # noqa: F841 - kept
    await stage.network.open()
    stage.begin()
    try:
        await story(stage)
    finally:
        stage.retire()
        stage.network.close()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in others:
                task.cancel()
            await asyncio.wait(others, timeout=1.0)
