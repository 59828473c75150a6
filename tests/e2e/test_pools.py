"""Two operators in one cluster: each places the pods of its own policies, on nodes of its own."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest
import yaml

from cli.commands import say
from deploy.tools import ROOT
from e2e.conftest import define
from e2e.page_shell import execute
from e2e.polls import eventually
from e2e.scene import LEASES, POLICIES, Scene
from e2e.speaker import MERGE, speaking

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from e2e.operator_process import Operator
    from e2e.scene import Obj
    from e2e.speaker import Speaker
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = [pytest.mark.e2e]

POOL = "node-pool"
PAGE = ROOT / "docs/how-to/many-operators.md"
NAMES = ("red", "blue")


async def pool_policies(speaker: Speaker) -> None:
    """Give two nodes to each pool, and apply what ``plimsoll pools`` writes."""
    for number, pool in enumerate((*NAMES, *NAMES), 1):
        labelled = {"metadata": {"labels": {POOL: pool}}}
        (await speaker.request("PATCH", f"/api/v1/nodes/node-{number:04}", labelled, sends=MERGE)).accepted()
    for policy in yaml.safe_load_all(say("pools", "--label", POOL, *NAMES).out):
        (await speaker.request("POST", POLICIES, policy)).accepted()


def start_pools(cluster: Path, start_operator: Callable[..., Operator]) -> dict[str, Operator]:
    """An operator for each pool."""
    return {
        name: start_operator(
            cluster, "--operator-name", name, "--leader-elect-resource-name", f"plimsoll-{name}"
        )
        for name in NAMES
    }


async def test_two_operators_place_their_own_pods_and_fill_no_node_twice(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> None:
    cluster = start_roadstead(nodes=4, node_cpu="2")
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        await pool_policies(speaker)
        operators = start_pools(cluster.kubeconfig, start_operator)
        scene = await Scene(speaker).begin()
        for one in operators.values():
            one.until_ready()

        wanted = {"red": 12, "blue": 5}  # each pool has room for 8
        made = [
            scene.pod(f"{pool}-{number}", schedulerName=f"plimsoll-{pool}", cpu="500m", nodeSelector={})
            for pool, count in wanted.items()
            for number in range(count)
        ]
        await asyncio.gather(*made)

        async def bound() -> Counter[tuple[str, str]]:
            found = await scene.pods()
            return Counter(
                (pod["metadata"]["name"].partition("-")[0], node)
                for pod in found
                if (node := pod["spec"].get("nodeName"))
            )

        on = await eventually(bound, lambda found: found.total() == 13)
        pools = {
            node["metadata"]["name"]: node["metadata"]["labels"][POOL]
            for node in await scene.items("/api/v1/nodes")
        }
        assert all(pools[node] == pool for pool, node in on)
        assert sum(count for (pool, _), count in on.items() if pool == "red") == 8, (
            "the rest waits at its border"
        )
        assert max(on.values()) <= 4

        await said_by(scene, "red", "Insufficient cpu")
        await refused(scene, "blue")
        assert {lease["spec"]["holderIdentity"] != "" for lease in await scene.items(LEASES)} == {True}

        # One ends; the other one goes on, and takes over nothing.
        assert operators["red"].terminate() == 0
        for pod in ("red-0", "blue-0"):
            (await speaker.request("DELETE", scene.path(f"pods/{pod}"), gracePeriodSeconds="0")).accepted()
        for pool in NAMES:
            await scene.pod(f"{pool}-late", schedulerName=f"plimsoll-{pool}", nodeSelector={})
        assert pools[await scene.until_bound("blue-late")] == "blue"
        assert not await scene.node_of("red-late")
        await scene.end()


async def test_the_page_divides_a_cluster(
    tmp_path: Path, start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> None:
    """As its commands say, with an operator for each pool and the one without a name."""
    cluster = start_roadstead(nodes=4)
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
    for one in (
        start_operator(cluster.kubeconfig),
        *start_pools(cluster.kubeconfig, start_operator).values(),
    ):
        one.until_ready()
    (tmp_path / "examples").symlink_to(ROOT / "examples")

    await execute(PAGE.read_text(encoding="utf-8"), tmp_path, kubeconfig=cluster.kubeconfig)


async def said_by(scene: Scene, pool: str, words: str) -> None:
    """A pod of a full pool says that it lacks room, though other nodes have some."""

    async def messages() -> list[str]:
        found = [pod for pod in await scene.pods() if not pod["spec"].get("nodeName")]
        conditions = [await scene.condition(pod["metadata"]["name"]) for pod in found]
        return [each.get("message", "") for each in conditions]

    found = await eventually(messages, lambda said: len(said) == 4 and all(words in each for each in said))
    assert all("2 node(s) didn't match scheduler-enforced node affinity" in each for each in found), pool


async def refused(scene: Scene, operator: str) -> None:
    """A further policy of an operator that would use any node is not served, and says whose they are."""
    anywhere: Obj = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": "anywhere", "labels": {"plimsoll.dev/operator": operator}},
        "spec": {"scheduling": {"schedulerName": "anywhere"}},
    }
    (await scene.speaker.request("POST", POLICIES, anywhere)).accepted()
    told = await scene.until_condition("anywhere", "Accepted", "False", "NodesOverlap")
    assert "the older policy red of operator red, and two operators must not fill one node" in told["message"]
    await scene.pod("anywhere", schedulerName="anywhere", nodeSelector={})
    other = await scene.pod("control", schedulerName=f"plimsoll-{operator}", nodeSelector={})
    await scene.until_bound(other["metadata"]["name"])
    assert not await scene.node_of("anywhere")
