"""plimsoll whatif says of a drain what the operator does when the pods are evicted: their new nodes."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from cli.commands import say
from e2e.polls import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.scene import Scene

pytestmark = pytest.mark.e2e


async def by_node(scene: Scene) -> dict[str, int]:
    """The scene's pods that are not leaving, counted by node, "" for none."""
    pods = [each for each in await scene.pods() if "deletionTimestamp" not in each["metadata"]]
    return dict(Counter(each["spec"].get("nodeName", "") for each in pods))


async def test_a_drain_ends_as_it_was_foreseen(scene: Scene, defined: Path) -> None:
    """Two of three pods of the small node find room, one becomes pending; nothing was written before."""
    small = await scene.node("small", cpu="3")
    await scene.scheduling()
    await scene.deployment("web", 3, cpu="900m")
    await scene.node("large", cpu="2")
    words = ("whatif", "--drain", small, "--kubeconfig", str(defined), "-o", "json")

    before = await by_node(scene)
    said = await asyncio.to_thread(say, *words)
    after = await by_node(scene)
    await scene.change_node(small, {"spec": {"unschedulable": True}})
    for pod in await scene.pods():
        name = pod["metadata"]["name"]
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": scene.name},
        }
        await scene.speaker.request("POST", scene.path(f"pods/{name}/eviction"), eviction)

    answer = json.loads(said.out)
    foreseen = Counter(each["node"] for each in answer["placed"]) + Counter({"": len(answer["pending"])})
    assert (said.code, before, after) == (2, {small: 3}, {small: 3})
    assert sorted(foreseen.values()) == [1, 2]
    await eventually(lambda: by_node(scene), lambda found: found == dict(foreseen))
