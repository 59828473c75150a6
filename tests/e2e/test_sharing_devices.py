"""Two schedulers of two processes allocate from the same slices: no device is handed out twice."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from e2e.conftest import define
from e2e.operator_process import Operator
from e2e.polls import eventually
from e2e.scene import Scene
from e2e.speaker import speaking
from e2e.test_devices import GROUP, claim, devices_of, using, with_claim, with_class

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from e2e.scene import Obj

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"

#: Devices in the cluster, which every node reaches.
DEVICES = 6

#: Counts pods by the operator that has scheduled them.
ATTEMPTS = "plimsoll_scheduler_schedule_attempts_total"

#: Pods, one after the other, of each scheduler name.
PODS = 20


@asynccontextmanager
async def two_operators(kubeconfig: Path, folder: Path) -> AsyncIterator[tuple[Scene, Operator, Operator]]:
    """Two operators with a scheduler name and a lease each; neither knows what the other has in mind."""
    async with speaking(kubeconfig) as speaker:
        await define(speaker)
        scene = await Scene(speaker).begin()
        operators = [
            Operator(
                kubeconfig,
                folder / f"{suffix}.log",
                options=("--leader-elect-resource-name", f"{scene.name}-{suffix}"),
                program=("e2e.one_name", f"{scene.name}-{suffix}"),
                bundle=None,
            )
            for suffix in ("a", "b")
        ]
        try:
            for each in operators:
                each.start()
            for number in range(5):
                await scene.node(f"n{number}", cpu="2", allocatable={"pods": "100"}, runs_pods=False)
            for suffix in ("a", "b"):
                await scene.policy({"scheduling": {"schedulerName": f"{scene.name}-{suffix}"}}, suffix)
            for each in operators:
                await asyncio.to_thread(each.until_ready)
            yield scene, *operators  # type: ignore[misc] # two
        finally:
            for each in operators:
                each.kill()
            await scene.end()
            for suffix in ("a", "b"):
                await speaker.request("DELETE", f"{LEASES}/{scene.name}-{suffix}")


@dataclass(slots=True)
class Judge:
    """Reads pods and claims as any client may, and notes devices that two bound pods have."""

    scene: Scene
    seen: int = 0
    twice: list[str] = field(default_factory=list)

    async def look(self) -> None:
        """Claims first: a pod that is bound then has had its claim since before."""
        claims = {each["metadata"]["name"]: each for each in await self.scene.items(self.path)}
        users: dict[str, str] = {}
        for pod in await self.scene.pods():
            if not pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
                continue
            found = claims.get(pod["metadata"]["name"])
            reserved = found is not None and any(
                each["uid"] == pod["metadata"]["uid"] for each in found["status"].get("reservedFor", ())
            )
            for device in devices_of(found) if found is not None and reserved else ():
                other = users.setdefault(device, pod["metadata"]["name"])
                if other != pod["metadata"]["name"]:
                    self.twice.append(f"{device}: {other} and {pod['metadata']['name']}")
        self.seen += len(users)

    @property
    def path(self) -> str:
        """The claims of the scene."""
        return self.scene.path("resourceclaims", GROUP)

    async def watch(self) -> None:
        """Look again and again."""
        while True:
            await self.look()
            await asyncio.sleep(0.2)  # a pod lives three times as long


async def with_network_devices(scene: Scene) -> None:
    """Devices that every node reaches: all pods want the first free one."""
    document: Obj = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{scene.name}-net"},
        "spec": {
            "driver": f"{scene.name}.example.com",
            "allNodes": True,
            "pool": {"name": "net", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"d{place}"} for place in range(DEVICES)],
        },
    }
    await scene.make(f"{GROUP}/resourceslices", document)


async def one_after_the_other(scene: Scene, suffix: str, room: asyncio.Semaphore) -> None:
    """Pods of one scheduler name; each ends as soon as it is bound, and a controller frees its claim."""

    async def live(name: str) -> None:
        async with room:
            await with_claim(scene, name)
            await scene.pod(name, schedulerName=f"{scene.name}-{suffix}", **using(name))
            await scene.until_bound(name)
            await asyncio.sleep(0.6)
            await scene.speaker.request("DELETE", scene.path(f"pods/{name}"), gracePeriodSeconds="0")

    await asyncio.gather(*(live(f"{suffix}{number}") for number in range(PODS)))


async def test_two_processes_hand_no_device_out_twice(vacant: Path, tmp_path: Path) -> None:
    """More pods than devices at every moment, of two schedulers that know nothing of each other's plans."""
    async with two_operators(vacant, tmp_path) as (scene, first, second):
        await with_class(scene)
        await with_network_devices(scene)
        judge = Judge(scene)
        watching = asyncio.ensure_future(judge.watch())
        room = asyncio.Semaphore(2 * DEVICES)
        await asyncio.gather(*(one_after_the_other(scene, suffix, room) for suffix in ("a", "b")))
        await judge.look()
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching

        async def held() -> list[str]:
            return [name for name in ("a0", "b0") if devices_of(await claim(scene, name))]

        assert judge.twice == []
        assert judge.seen > 0
        assert await eventually(held, lambda found: not found) == []
        assert (first.status, second.status) == (None, None)
        for each in (first, second):
            assert each.metric(ATTEMPTS, result="scheduled") == PODS, each.said()
