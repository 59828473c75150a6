"""``plimsoll explain --operator`` shows the running operator's memory of a pod."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from cli.commands import say
from e2e.polls import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.operator_process import Operator
    from e2e.scene import Scene

pytestmark = pytest.mark.e2e


async def test_the_operator_says_where_in_its_queue_a_pod_is(
    scene: Scene, operator: Operator, defined: Path
) -> None:
    """The pod that fits nowhere is explained on a copy of the cluster, its attempts by the operator."""
    await scene.node("small", cpu="1")
    await scene.policy({"scheduling": {"schedulerName": scene.scheduler}})
    await scene.pod("big", cpu="3")
    await eventually(lambda: scene.condition("big"), lambda found: found.get("status") == "False")
    words = ["explain", "pod", "big", "-n", scene.name, "-o", "json", "--kubeconfig", str(defined)]

    said = await asyncio.to_thread(say, *words, "--operator", f"http://127.0.0.1:{operator.metrics_port}")

    assert (said.code, said.err) == (0, "")
    answer = json.loads(said.out)
    assert answer["operator"]["queue"]["attempts"] >= 1
    assert "NodeResourcesFit" in answer["operator"]["queue"]["rejectedBy"]
    assert not [each for each in answer["unknown"] if "the queue" in each]
