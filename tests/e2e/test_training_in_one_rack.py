"""Executes docs/how-to/train-in-one-rack.md: a job of 64 ranks, a second one, and a third that waits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from deploy.tools import ROOT
from e2e.conftest import define
from e2e.page_shell import execute
from e2e.speaker import speaking
from roadstead.kubelets.nodes import make_node

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from e2e.operator_process import Operator
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = [pytest.mark.e2e]

PAGE = (ROOT / "docs/how-to/train-in-one-rack.md").read_text(encoding="utf-8")
RACK = "topology.example.com/rack"
SIZES = {"r1": 24, "r2": 72, "r3": 64}


async def test_the_page_on_a_training_job_in_one_rack(
    tmp_path: Path, start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> None:
    """All that it says comes about, in order."""
    cluster = start_roadstead(nodes=0)
    nodes = [
        make_node(
            f"{rack}-{at:02}", cpu="96", memory="1Ti", labels={RACK: rack}, resources={"nvidia.com/gpu": "8"}
        )
        for rack, size in SIZES.items()
        for at in range(size)
    ]
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        answers = await asyncio.gather(*(speaker.request("POST", "/api/v1/nodes", each) for each in nodes))
        assert all(each.accepted() for each in answers)
        start_operator(cluster.kubeconfig).until_ready()

    await execute(PAGE, tmp_path, kubeconfig=cluster.kubeconfig)
