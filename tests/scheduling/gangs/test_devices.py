"""Gangs whose members have resource claims: each its own devices, or no member starts."""

import asyncio
import contextlib
from typing import Any

import pytest

from devices.builders import a_claim, a_class
from plimsoll.model.kinds.watch_event import NodeAdded, ObjectAdded
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import FakeClaims
from scheduling.binding.devices import gpus
from scheduling.gangs.gang_scene import GangScene


def a_member(name: str, claim: str) -> Any:
    """A pod of the gang, with a claim."""
    claims = [{"name": "gpu", "resourceClaimName": claim}]
    return a_pod(name, schedulerName="s", labels={"plimsoll.dev/pod-group": "g"}, resourceClaims=claims)


@pytest.mark.parametrize(("devices", "bound"), [(3, ["m0", "m1", "m2"]), (2, [])])
async def test_members_get_devices_of_their_own(devices: int, bound: list[str]) -> None:
    """On one node, decided together: enough devices for all, or none is bound and none is allocated."""
    names = [f"c{number}" for number in range(3)]
    scene = GangScene(claims=FakeClaims(*map(a_claim, names)))
    scene.claims.watch = lambda event: scene.ingestion.apply([event])
    objects = (a_class(), gpus(devices), *scene.claims.claims.values())
    running = asyncio.ensure_future(scene.wing.run())
    await scene.see(NodeAdded(a_node("gpu")), *map(ObjectAdded, objects))
    scene.wing.serve_devices(is_served=True)
    await scene.group("g", minMember=3)
    await scene.pods(*(a_member(f"m{number}", f"c{number}") for number in range(3)))
    await scene.see()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running

    allocations = [each.status.allocation for each in scene.claims.claims.values()]
    given = [each.devices.results[0].device for each in allocations if each is not None]
    assert scene.bound == bound
    assert sorted(given) == (["d0", "d1", "d2"] if bound else [])
