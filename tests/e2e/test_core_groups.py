"""PodGroups of the core API start in one rack, where the API server has them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from e2e.gangs import a_core_group, core_condition, serves_core_groups
from e2e.polls import eventually

if TYPE_CHECKING:
    from e2e.scene import Scene

pytestmark = pytest.mark.e2e

RACK = "example.com/rack"


async def test_a_group_starts_in_one_rack_once_one_has_room(scene: Scene) -> None:
    """Two racks of two places cannot take three; a node more can. A late member stays out of other racks."""
    if not await serves_core_groups(scene):
        pytest.skip("the API server does not serve scheduling.k8s.io/v1alpha2")
    racks = {f"{rack}{number}": rack for rack in "ab" for number in (0, 1)}
    await asyncio.gather(*(scene.node(name, cpu="1", labels={RACK: each}) for name, each in racks.items()))
    await scene.scheduling()
    await a_core_group(scene, "train", 3, schedulingConstraints={"topology": [{"key": RACK}]})
    group = {"podGroupName": "train"}
    await asyncio.gather(*(scene.pod(f"p{n}", cpu="700m", schedulingGroup=group) for n in range(3)))
    condition = await eventually(
        lambda: scene.condition("p0"), lambda one: "must fit" in one.get("message", "")
    )
    says = f"3 members of 700m cpu each must fit, and the largest {RACK}, a, holds 2 when it is empty"
    assert condition["message"].startswith(says)
    await eventually(
        lambda: core_condition(scene, "train"), lambda found: found == ("False", "Unschedulable")
    )

    await scene.node("b2", cpu="1", labels={RACK: "b"})

    nodes = await asyncio.gather(*(scene.until_bound(f"p{n}") for n in range(3)))
    assert {name.removeprefix(f"{scene.name}-") for name in nodes} == {"b0", "b1", "b2"}
    await eventually(lambda: core_condition(scene, "train"), lambda found: found == ("True", "Scheduled"))
    await scene.pod("late", cpu="700m", schedulingGroup=group)
    late = await eventually(
        lambda: scene.condition("late"), lambda one: "Insufficient cpu" in one.get("message", "")
    )
    assert "3 of 4 members fit, 3 must; 1 lack a node" in late["message"]
