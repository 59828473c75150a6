"""Holds assumed pods that wait on Permit until every plugin that holds them allows it.

Pods wait outside of the scheduling cycle: the loop continues, and other pods see the room as taken. A pod may
bind when every plugin that holds it has allowed it. The first rejection or timeout rejects it.

Source: kube-scheduler v1.36, ``framework/runtime/waiting_pods_map.go``.
"""

import asyncio
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from plimsoll.framework import SUCCESS, Code, PodInfo, Status
from plimsoll.ports.clock import Clock

#: A longer wait is cut to this many seconds.
LONGEST_WAIT_S = 15 * 60.0


class HeldPod:
    """One waiting pod; created by :class:`Permits`, handed to plugins."""

    def __init__(self, pod: PodInfo, node: str, timeouts: Mapping[str, float]) -> None:
        self._pod = pod
        self._node = node
        self._holders = dict(timeouts)
        self.verdict: asyncio.Future[Status] = asyncio.get_running_loop().create_future()

    @property
    def pod(self) -> PodInfo:
        """The pod."""
        return self._pod

    @property
    def node(self) -> str:
        """The node on which it is assumed."""
        return self._node

    @property
    def holders(self) -> Mapping[str, float]:
        """The longest wait in seconds, by plugin; a plugin that allows the pod is removed."""
        return MappingProxyType(self._holders)

    def allow(self, plugin: str) -> None:
        """Remove a plugin from the holders; the last one permits the pod."""
        self._holders.pop(plugin, None)
        if not self._holders and not self.verdict.done():
            self.verdict.set_result(SUCCESS)

    def reject(self, plugin: str, reason: str) -> None:
        """Reject the pod."""
        if not self.verdict.done():
            self.verdict.set_result(Status(Code.UNSCHEDULABLE, (reason,), plugin))


class Permits:
    """The waiting pods."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[str, HeldPod] = {}

    def __iter__(self) -> Iterator[HeldPod]:
        """The waiting pods; a plugin may allow or reject during the iteration."""
        return iter(tuple(self._held.values()))

    def find(self, uid: str) -> HeldPod | None:
        """A waiting pod."""
        return self._held.get(uid)

    def hold(self, pod: PodInfo, node: str, timeouts: Mapping[str, float]) -> HeldPod:
        """Make a pod wait; ``timeouts`` are seconds by plugin, cut to 15 minutes each."""
        cut = {plugin: min(max(seconds, 0.0), LONGEST_WAIT_S) for plugin, seconds in timeouts.items()}
        held = self._held[pod.uid] = HeldPod(pod, node, cut)
        return held

    def drop(self, uid: str) -> None:
        """Remove a pod that will not bind and whose verdict no caller awaits."""
        self._held.pop(uid, None)

    async def verdict(self, held: HeldPod) -> Status:
        """Wait until the pod is permitted or rejected; it is no longer held afterwards."""
        waited = 0.0
        try:
            while not held.verdict.done():
                plugin, seconds = min(held.holders.items(), key=lambda each: each[1])
                timer = asyncio.ensure_future(self._clock.sleep(seconds - waited))
                until: list[asyncio.Future[Any]] = [held.verdict, timer]
                try:
                    await asyncio.wait(until, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    timer.cancel()
                waited = seconds
                if plugin in held.holders:
                    took = duration(seconds)
                    held.reject(plugin, f"rejected due to timeout after waiting {took} at plugin {plugin}")
            return held.verdict.result()
        finally:
            if self._held.get(held.pod.uid) is held:
                del self._held[held.pod.uid]


def duration(seconds: float) -> str:
    """Seconds in Go's format: ``1m30s``, ``500ms``, ``15m0s``."""
    if seconds and seconds < 1:
        return f"{seconds * 1000:.6f}".rstrip("0").rstrip(".") + "ms"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{rest:.9f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text
