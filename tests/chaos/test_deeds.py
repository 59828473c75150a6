"""Deeds are undone when the faults of a run end: nodes are as before."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from chaos.certificates import Authority
from chaos.deeds import ChaosDeeds
from chaos.faults import ChaosFaults
from chaos.faults import ChaosKind as K
from chaos.features import Features
from chaos.planes import Plane
from chaos.world import NODES, World
from e2e.speaker import Answer
from roadstead.cluster import DevCluster
from roadstead.kubelets.nodes import make_node


class Speaker:
    """Speaks to a cluster in this process."""

    def __init__(self, session: Any) -> None:
        self._session = session

    async def request(self, method: str, path: str, body: Any = None, *, sends: str = "") -> Answer:
        async with self._session.request(method, path, json=body, headers={"Content-Type": sends}) as one:
            return Answer(one.status, await one.json())


@pytest.mark.parametrize("kind", [K.NODE_TAINTED, K.NODE_CORDONED, K.NODE_FLAPPED])
async def test_a_node_is_as_before(kind: K, tmp_path: Any) -> None:
    """Whatever controllers have made of it meanwhile."""
    cluster = DevCluster(port=None, nodes=[make_node("one", cpu="4", memory="8Gi", pods=10)])
    async with cluster, cluster.session() as session:
        random, faults = Random(1), ChaosFaults(1)
        world = World(Speaker(session), random, plays_kubelets=False)  # type: ignore[arg-type] # speaks likewise
        world.nodes.append("one")
        features = Features([], random, float)
        plane = Plane(tmp_path)
        deeds = ChaosDeeds(world, features, plane, [], Authority(), faults)
        before = (await world.ask("GET", f"{NODES}/one")).body

        assert await deeds._ways[kind]()
        during = (await world.ask("GET", f"{NODES}/one")).body
        await deeds.end()
        after = (await world.ask("GET", f"{NODES}/one")).body

    def state(node: Any) -> Any:
        ready = [each["status"] for each in node["status"]["conditions"] if each["type"] == "Ready"]
        taints = [each for each in node["spec"].get("taints") or () if "chaos" in each["key"]]
        return node["spec"].get("unschedulable"), taints, ready

    assert state(during) != state(before)
    assert state(after) == state(before)
