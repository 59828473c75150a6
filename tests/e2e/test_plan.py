"""``plimsoll plan`` says what the operator then does: move by move, in order, on a cluster that has drifted.

The size is a parameter: PLIMSOLL_PLAN_NODES=5000 pytest tests/e2e/test_plan.py -s
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from cli.commands import say
from e2e.conftest import define
from e2e.polls import PATIENCE_S, eventually
from e2e.scene import LABEL, POLICIES, Scene
from e2e.speaker import speaking
from roadstead.kubelets.nodes import make_node

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from e2e.operator_process import Operator
    from e2e.scene import Obj
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = pytest.mark.e2e

NODES = int(os.environ.get("PLIMSOLL_PLAN_NODES", "200"))

#: Pods for each node that is there when they are placed, pods of an owner, and moves of a run.
EACH, REPLICAS, MOVES = 4, 20, max(20, NODES // 100)

#: Nodes that get a taint which no pod tolerates.
TAINTED = MOVES // 5

#: Seconds for a step: a large cluster takes its time.
WITHIN_S = max(PATIENCE_S, NODES / 5)

#: Requests under way at the same time.
IN_PARALLEL = 20


@dataclass(slots=True)
class Drifting:
    """A cluster whose pods were placed when half of its nodes were there."""

    scene: Scene
    seconds: dict[str, float] = field(default_factory=dict)
    _gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(IN_PARALLEL))

    async def place(self) -> None:
        """Nodes with names late in the alphabet, then pods; the operator places them."""
        await self._nodes(f"z-{number:04}" for number in range(NODES // 2))
        await self.scene.scheduling()
        count = NODES // 2 * EACH
        await asyncio.gather(*(self._deployment(f"app-{each}") for each in range(count // REPLICAS)))
        for number in range(0, count // REPLICAS, 4):
            await self.scene.budget(f"app-{number}", f"app-{number}", minAvailable=REPLICAS)
        await eventually(self.scene.running, lambda nodes: len(nodes) == count, WITHIN_S)

    async def drift(self) -> None:
        """As many nodes again, named early in the alphabet, with nothing on them; taints on some others."""
        await self._nodes(f"a-{number:04}" for number in range(NODES - NODES // 2))
        taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
        for number in range(TAINTED):
            await self.scene.change_node(f"z-{number:04}", {"spec": {"taints": [taint]}})

    async def _nodes(self, names: Any) -> None:
        """Create nodes, and wait until they are ready."""
        made = list(names)
        await asyncio.gather(*(self._node(name, number) for number, name in enumerate(made)))

        async def tainted() -> list[str]:
            nodes = await self.scene.items("/api/v1/nodes")
            return [each["metadata"]["name"] for each in nodes if each["spec"].get("taints")]

        await eventually(tainted, lambda found: not found, WITHIN_S)

    async def _node(self, name: str, number: int) -> None:
        labels = {LABEL: self.scene.name}
        node = make_node(name, cpu="4", memory="16Gi", zone=f"zone-{'abc'[number % 3]}", labels=labels)
        await self._create("/api/v1/nodes", node)

    async def _deployment(self, name: str) -> None:
        """A Deployment of small pods, some twice as large."""
        cpu = "800m" if int(name.removeprefix("app-")) % 3 else "400m"
        document = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "replicas": REPLICAS,
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": self.scene.pod_spec(cpu=cpu)},
            },
        }
        await self._create(self.scene.path("deployments", "/apis/apps/v1"), document)

    async def _create(self, path: str, document: Obj) -> None:
        async with self._gate:
            (await self.scene.speaker.request("POST", path, document)).accepted()

    async def plan(self, kubeconfig: Path, file: Path) -> Obj:
        """What the command says, with exit code 2."""
        began = time.monotonic()
        said = await asyncio.to_thread(
            say, "plan", "-f", str(file), "--kubeconfig", str(kubeconfig), "-o", "json"
        )
        self.seconds["plan"] = time.monotonic() - began
        assert (said.code, said.err) == (2, ""), said
        found: Obj = json.loads(said.out)["policies"][0]
        return found

    async def records_made(self, path: str, version: str, ended: asyncio.Event) -> list[Obj]:
        """The records that are created until the event, in order."""
        found: list[Obj] = []

        async def read() -> None:
            async for event in self.scene.speaker.watch(path, version):
                found.extend([event["object"]] if event["type"] == "ADDED" else [])

        reading = asyncio.create_task(read())
        await ended.wait()
        await eventually(self.scene.records, lambda records: len(records) == len(found))
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        return found


async def test_plan_says_what_the_operator_then_does(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator], tmp_path: Path
) -> None:
    """The plan is taken before the policy is applied; the records of its one run are the same moves.

    The operator has seen nodes come in another order than a list has them.
    """
    cluster = start_roadstead(nodes=1, node_cpu="100m")
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        scene = await Scene(speaker).begin()
        operator = start_operator(cluster.kubeconfig)
        drifting = Drifting(scene)
        await drifting.place()
        await drifting.drift()
        spec = scene.rebalancing(
            "RemovePodsViolatingNodeTaints",
            {
                "name": "LowNodeUtilization",
                "args": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 55}},
            },
            schedule={"intervalSeconds": 86_400},
            limits={"total": MOVES, "perMinute": MOVES, "perNamespace": "100%", "perWorkload": "10%"},
        )
        kind = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "SchedulingPolicy"}
        name = f"{scene.name}-policy"
        policy = {**kind, "metadata": {"name": name}, "spec": spec}
        file = tmp_path / "policy.yaml"
        file.write_text(yaml.safe_dump(policy))

        planned = await drifting.plan(cluster.kubeconfig, file)
        everywhere = (await speaker.request("GET", scene.records_path)).accepted()
        ended = asyncio.Event()
        watching = asyncio.create_task(
            drifting.records_made(scene.records_path, everywhere["metadata"]["resourceVersion"], ended)
        )
        began = time.monotonic()
        (await speaker.request("POST", POLICIES, policy)).accepted()
        status = await eventually(
            lambda: scene.policy_status(name),
            lambda found: (found.get("lastRun") or {}).get("completionTime"),
            WITHIN_S,
        )
        drifting.seconds["run"] = time.monotonic() - began
        ended.set()
        made = [each["spec"] for each in await watching]

        did = [(each["pod"]["name"], each["fromNode"], each["targetNode"], each["strategy"]) for each in made]
        said = [
            (
                each["pod"].partition("/")[2],
                each["sourceNode"],
                each["targetNode"],
                each["strategy"],
            )
            for each in planned["moves"]
        ]
        figures = f"{NODES} nodes: {len(said)} moves planned, {len(did)} made, seconds {drifting.seconds}"
        sys.stdout.write(f"{figures}, phases {Counter(await scene.phases())}\n")
        assert did == said
        assert len(said) == MOVES
        assert {strategy for *_, strategy in said} == {"RemovePodsViolatingNodeTaints", "LowNodeUtilization"}
        refused = {each["reason"]: each["pods"] for each in planned["refused"]}
        assert refused == {each["reason"]: each["count"] for each in status["counts"]["refused"]}
        assert refused["Budget"]
        assert operator.status is None
        words = ("history", "-n", scene.name, "--kubeconfig", str(cluster.kubeconfig), "-o", "json")
        history = json.loads((await asyncio.to_thread(say, *words)).out)
        assert {each["pod"].partition("/")[2] for each in history["moves"]} == {pod for pod, *_ in did}
