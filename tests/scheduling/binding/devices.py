"""A binder of devices for tests, and a wing of which pods have claims."""

import asyncio
import contextlib
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from devices.builders import a_class, a_device, a_slice
from plimsoll.cluster.watch_events import NodeAdded, ObjectAdded, PodAdded, PodDeleted, WatchEvent
from plimsoll.devices.book import DeviceBook
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.resource_claim import ResourceClaim
from plimsoll.model.kinds.resource_slice import DeviceClass, ResourceSlice
from plimsoll.ports.observer import Observer
from plimsoll.scheduling.devices.device_claims import DeviceClaims
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import (
    FakeClaims,
    FakeClock,
    FakeRecorder,
    settled,
)
from scheduling.wing_scene import WingScene


def a_device_binder(claims: FakeClaims | None = None, clock: FakeClock | None = None) -> DeviceClaims:
    """One of an empty cluster."""
    ports = claims or FakeClaims(), clock or FakeClock(), Observer(), FakeRecorder()
    return DeviceClaims(Cluster(), *ports, freed=lambda _change: None)


def gpus(count: int, node: str = "gpu") -> ResourceSlice:
    """Devices of a node: ``d0`` and so on."""
    return a_slice(node, [a_device(f"d{at}") for at in range(count)])


class DeviceScene(WingScene):
    """The scheduling wing on the nodes ``plain`` and ``gpu``, and an API server of claims.

    Args:
        claims: As they are at the start.
        slices: What drivers have published.
    """

    def __init__(
        self,
        *claims: ResourceClaim,
        slices: Sequence[ResourceSlice] = (),
        classes: Sequence[DeviceClass] = (),
        nodes: Sequence[Any] = (),
    ) -> None:
        self.claims = FakeClaims(*claims)
        super().__init__(ports={"claims": self.claims})
        self.place()
        self.claims.watch = self.show
        objects = (a_class(), *classes, *(slices or [gpus(1)]), *self.claims.claims.values())
        self.show(*map(NodeAdded, nodes or (a_node("plain"), a_node("gpu"))), *map(ObjectAdded, objects))
        self.wing.serve_devices(is_served=True)

    @property
    def devices(self) -> DeviceBook:
        """Of devices."""
        return self.cache.cluster.objects.ledger(DeviceBook)

    def show(self, *events: WatchEvent) -> None:
        """The watches show this."""
        self.ingestion.apply(list(events))

    def wants(self, name: str = "pod", claim: str = "mine", **spec: Any) -> Pod:
        """A pod that waits, with a claim."""
        named = [{"name": "gpu", "resourceClaimName": claim}] if claim else []
        pod = a_pod(name, schedulerName="s", resourceClaims=named, **spec)
        self.show(PodAdded(pod))
        return pod

    def removes(self, pod: Pod) -> None:
        """It is gone."""
        self.show(PodDeleted(pod))

    async def later(self, seconds: float = 0.0) -> None:
        """Let everything happen."""
        await settled()
        if seconds:
            await self.clock.advance(seconds)

    async def __aenter__(self) -> Self:
        self._task = asyncio.ensure_future(self.wing.run())
        await settled()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
